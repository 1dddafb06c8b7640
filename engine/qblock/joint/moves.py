"""Converting what the crosswalk keeps of a release to other column types: values, domains and frozen places."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Reference
from qblock.canonical import canonical
from qblock.errors import Refused
from qblock.joint.crosswalk import Book, decoded, fresh_name
from qblock.joint.type_checks import ESCAPE, SEPARATOR, kept_texts, parts_of
from qblock.joint.types import Types
from qblock.joint.versions import UNPROTECTED, RecordedVersion
from qblock.ledger.kept import Kept
from qblock.spec import Spec
from qblock.warehouse.protocol import Column
from qblock.warehouse.texts import canonical_text, carried
from qblock.warehouse.values import NUMERIC, is_value

Moves = Mapping[str, Mapping[str, str]]
"""For each column the new text of each text that is written differently now."""


def moves_to(
    book: Book, spec: Spec, own: Sequence[RecordedVersion], known: Types, now: Types
) -> dict[str, dict[str, str]]:
    """The texts that are written differently in the present types, by column. Raises Refused where values do not read
    the same both ways, with their number by column."""
    texts = kept_texts(book, spec.release)
    for version in own:
        for name, reference in version.references.items():
            texts.setdefault(name, set()).update(text for text in reference.domain if text is not None)
    moves, problems = {}, []
    for name, kept in texts.items():
        if name not in now.columns:
            continue
        before = known.columns.get(name)
        moved = {text: _moved(text, before, now.columns[name]) for text in kept}
        targets = Counter(moved.values())
        bad = sum(n for target, n in targets.items() if target is None or n > 1)
        if bad:
            problems.append(f"{bad} of {len(kept)} values of column {name}, of type {now.columns[name].type} now")
        moves[name] = {text: target for text, target in moved.items() if target is not None and target != text}
    if problems:
        raise Refused(
            f"{'; '.join(problems)}, do not read the same in the earlier type and in the present one: nothing was "
            f"changed. Give the column its type again, or write {UNPROTECTED}"
        )
    return moves


def _moved(text: str, before: Column | None, now: Column) -> str | None:
    """The text of a kept value in the present type; None where it does not read the same both ways.

    before: the earlier type; None where the newest version has no such column: there it is enough that no two texts
    become one.
    """
    there = canonical_text(text if before is None else carried(text, before.kind, now.kind), now)
    if there is None or before is None:
        return there
    return there if canonical_text(carried(there, now.kind, before.kind), before) == text else None


def apply_moves(book: Book, release: str, own: Sequence[RecordedVersion], moves: Moves, now: Types) -> None:
    """Write the new texts; checks that have rolled the versions roll them again from their rows."""
    t = book.tables
    for version in own:
        same = (t.row.c.release == release, t.row.c.version == version.key.version)
        if any(moves.get(name) for name in version.sensitive):
            texts = book.own.fetch(sa.select(t.row.c.value).where(*same).distinct())["value"].to_pylist()
            values = {text: encoded_texts(through(moves, version.sensitive, decoded(text))) for text in texts}
            replace_texts(book, t.row.c.value, values, same)
        content = _content(version, moves, now)
        here = (t.version.c.release == release, t.version.c.version == version.key.version)
        book.own.run(sa.update(t.version).where(*here).values(content=content))
    book.read.clear()
    layouts = book.own.fetch(sa.select(t.frozen.c.names).where(t.frozen.c.release == release).distinct())
    for layout in layouts["names"].to_pylist():
        names = json.loads(layout)
        if any(moves.get(name) for name in names):
            same = (t.frozen.c.release == release, t.frozen.c.names == layout)
            places = book.own.fetch(sa.select(t.frozen.c.place).where(*same).distinct())["place"].to_pylist()
            replace_texts(
                book, t.frozen.c.place, {p: placed_texts(through(moves, names, parts_of(p))) for p in places}, same
            )
    _roll_anew(book, release)


def _roll_anew(book: Book, release: str) -> None:
    """Forget how far any check has rolled versions of the release: it rolls them again from their rows."""
    rolled = book.tables.rolled
    for row in book.own.fetch(sa.select(rolled)).to_pylist():
        if any(text.rpartition(":")[0] == release for text in json.loads(row["versions"])):
            book.own.run(sa.delete(rolled).where(rolled.c.release == row["release"]))


def through(moves: Moves, names: Sequence[str], texts: Sequence[str | None]) -> list[str | None]:
    """Texts of columns in their present types."""
    pairs = zip(names, texts, strict=True)
    return [None if text is None else moves.get(name, {}).get(text, text) for name, text in pairs]


def encoded_texts(texts: Sequence[str | None]) -> str:
    """As `book.encoded` does in the database."""
    return "".join("N" if text is None else f"V{len(text)}:{text}" for text in texts)


def placed_texts(texts: Sequence[str | None]) -> str:
    """As `admission.together` does in the database."""
    parts = [
        f"{ESCAPE}N" if text is None else text.replace(ESCAPE, f"{ESCAPE}0").replace(SEPARATOR, f"{ESCAPE}1")
        for text in texts
    ]
    return SEPARATOR.join(parts)


def replace_texts(
    book: Book, column: sa.Column[Any], texts: Mapping[str, str], same: Sequence[sa.ColumnElement[bool]]
) -> None:
    """Write other texts in a column of the crosswalk; same: of which rows."""
    wanted = {before: after for before, after in texts.items() if before != after}
    pairs = pa.table({"before": pa.array(list(wanted), pa.string()), "after": pa.array(wanted.values(), pa.string())})
    loaded = book.own.load(fresh_name(), pairs)
    update = sa.update(column.table).values({column.name: loaded.c.after})
    book.own.run(update.where(column == loaded.c.before, *same))
    book.own.drop(loaded)


def _content(version: RecordedVersion, moves: Moves, now: Types) -> str:
    """The quantities kept with a version, with the domains of its sensitive attributes in the present texts."""
    kept = Kept.of_text(version.content)
    moved = []
    for name, references in zip(version.sensitive, kept.references, strict=True):
        column = now.columns.get(name)
        moved.append(tuple(_reference(r, moves.get(name, {}), column) for r in references))
    # What else is written there stays: how people are counted, say.
    return canonical({**json.loads(version.content), **json.loads(replace(kept, references=tuple(moved)).text())})


def _reference(reference: Reference, moves: Mapping[str, str], column: Column | None) -> Reference:
    domain = tuple(None if text is None else moves.get(text, text) for text in reference.domain)
    moved = replace(reference, domain=domain)
    if column is None:
        return moved
    known = [text for text in domain if text is not None]
    numeric = column.kind in NUMERIC and len(known) == len(domain) and all(is_value(t, "decimal") for t in known)
    numbers = tuple(map(Fraction, known)) if numeric else None
    if numbers is None or reference.numbers is not None:
        return replace(moved, numbers=numbers)
    # The column was text before: its domain was in the order of texts, and numbers have their own.
    order = np.array(sorted(range(len(numbers)), key=lambda i: numbers[i]), dtype=np.int64)
    plain = replace(
        moved,
        domain=tuple(domain[i] for i in order),
        totals=reference.totals[order],
        numbers=tuple(numbers[i] for i in order),
        prior=None if reference.prior is None else tuple(reference.prior[i] for i in order),
    )
    return moved if reference.taxonomy is not None or reference.guarded is not None else plain
