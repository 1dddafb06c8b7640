"""Hierarchies that were edited: people whom a version would show in another block than the state has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from qblock.joint.crosswalk import HEXADECIMAL, Book, fresh_name
from qblock.joint.lag.memory import block_of, cell_text, cells_of, load, save, units_in
from qblock.joint.steady import Cell
from qblock.joint.versions import Candidate


def moved_by_edits(book: Book, found: Candidate) -> dict[str, str]:
    """The label, as text, of each block in which a candidate has somebody of another one, by digest."""
    t, own = book.tables.shown, book.own
    labels = pa.table(
        {"block": pa.array(range(len(found.labels)), pa.int64()), "label": pa.array(found.labels, pa.string())}
    )
    loaded = own.load(fresh_name(), labels)
    joined = found.rows.join(loaded, loaded.c.block == found.rows.c.block).join(t, t.c.entity == found.rows.c.entity)
    query = sa.select(t.c.entity, loaded.c.label).select_from(joined)
    rows = own.fetch(query.where(t.c.release == found.about.key.release, t.c.block != loaded.c.label)).to_pylist()
    own.drop(loaded)
    return {row["entity"]: row["label"] for row in rows}


def refine(book: Book, release: str, moved: Mapping[str, str]) -> None:
    """Split the joint cells of people who are shown in another block from now on: versions before tell them apart.

    In a book of its own. What is frozen stays so.
    """
    kept = load(book, release)
    assert kept is not None
    rows = units_in(book, release, cells_of(book, release, moved))
    split, frozen = {}, set(kept.memory.frozen)
    for one, label in moved.items():
        if one not in rows:
            continue
        before = rows[one].unit
        digest = hashlib.sha256(cell_text(before.cell).encode()).hexdigest()[:HEXADECIMAL]
        cell = Cell(block_of(label), before.cell.first, before.cell.changed, digest)
        if before.cell in kept.memory.frozen:
            frozen.add(cell)
        split[one] = rows[one]._replace(unit=before._replace(cell=cell))
    save(book, release, replace(kept, memory=replace(kept.memory, frozen=frozenset(frozen))), (), split)
