"""Hierarchies that were edited: people whom a version would show in another block than the state has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from qblock.lattice import Node
from qblock.ledger.events import canonical
from qblock.source import SourceTable
from qblock.versions.batching.state import Cell
from qblock.versions.crosswalk import HEXADECIMAL, Crosswalk, fresh_name
from qblock.versions.lag.memory import block_of, cell_text, cells_of, load, save, units_in
from qblock.versions.recorded import UNIT, Candidate, coded, recorded
from qblock.versions.texts import block_name


def moved_by_edits(crosswalk: Crosswalk, candidate: Candidate) -> dict[str, str]:
    """The label, as text, of each block in which a candidate has somebody of another one, by digest."""
    t, own = crosswalk.tables.shown, crosswalk.own
    labels = pa.table(
        {"block": pa.array(range(len(candidate.labels)), pa.int64()), "label": pa.array(candidate.labels, pa.string())}
    )
    loaded = own.load(fresh_name(), labels)
    joined = candidate.rows.join(loaded, loaded.c.block == candidate.rows.c.block).join(
        t, t.c.entity == candidate.rows.c.entity
    )
    query = sa.select(t.c.entity, loaded.c.label).select_from(joined)
    rows = own.fetch(query.where(t.c.release == candidate.about.key.release, t.c.block != loaded.c.label)).to_pylist()
    own.drop(loaded)
    return {row["entity"]: row["label"] for row in rows}


def units_moved(crosswalk: Crosswalk, source: SourceTable, shown: sa.FromClause, node: Node) -> int:
    """How many units the hierarchies as they are now put in another block than the state has, where people have several
    rows. shown: the state, as the hook `Shown` gives it; source: with these hierarchies."""
    newest = recorded(crosswalk, source.spec.release)[-1]
    if newest.hierarchies == canonical({h.attribute: h.digest() for h in source.origins}):
        return 0
    joined, codes = coded(replace(source, relation=shown), node)
    name = sa.func.substr(shown.c[UNIT], HEXADECIMAL + 1, type_=sa.Text).label("name")
    columns = {f"q{i}": code for i, code in codes.items()}
    number = sa.func.count(sa.distinct(shown.c[UNIT])).label("n")
    labelled = [column.label(key) for key, column in columns.items()]
    query = sa.select(name, *labelled, number).select_from(joined).group_by(name, *columns.values())
    texts = [h.shown(level) for h, level in zip(source.hierarchies, node, strict=True)]
    moved = 0
    for row in source.session.fetch(query).to_pylist():
        numbers = [row.get(f"q{i}", 0) for i in range(len(texts))]
        if (
            None in numbers
            or block_name(canonical([labels[code] for labels, code in zip(texts, numbers, strict=True)])) != row["name"]
        ):
            moved += row["n"]
    return moved


def refine(crosswalk: Crosswalk, release: str, moved: Mapping[str, str]) -> None:
    """Split the joint cells of people who are shown in another block from now on: versions before tell them apart.

    In a transaction of its own. What is frozen stays so.
    """
    kept = load(crosswalk, release)
    assert kept is not None
    rows = units_in(crosswalk, release, cells_of(crosswalk, release, moved))
    split, frozen = {}, set(kept.memory.frozen)
    for entity, label in moved.items():
        if entity not in rows:
            continue
        before = rows[entity].unit
        digest = hashlib.sha256(cell_text(before.cell).encode()).hexdigest()[:HEXADECIMAL]
        cell = Cell(block_of(label), before.cell.first, before.cell.changed, digest)
        if before.cell in kept.memory.frozen:
            frozen.add(cell)
        split[entity] = rows[entity]._replace(unit=before._replace(cell=cell))
    save(crosswalk, release, replace(kept, memory=replace(kept.memory, frozen=frozenset(frozen))), (), split)
