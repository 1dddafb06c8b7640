"""How the source differs from the state shown: newcomers, leavers, changed values. One statement."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from qblock.joint.admission import together
from qblock.joint.crosswalk import Book, fresh_name
from qblock.joint.excluded import LEAVING, OUT
from qblock.joint.lag.memory import Layout
from qblock.joint.steady.state import Block
from qblock.joint.versions import coded, entity_of
from qblock.lattice import Node
from qblock.source import SourceTable
from qblock.warehouse.queries import Query


@dataclass(frozen=True)
class Newcomer:
    """Somebody who is present and not shown. block: labels at the node; place, value: texts (`admission.together`)."""

    block: Block
    place: str
    value: str


@dataclass(frozen=True)
class Differences:
    """What a run finds, by digests. newcomers: everybody who is not shown; left: shown, and not in the source, or
    withdrawn; values: of those shown and present, the value of each whose value is another one, or was asked for;
    gone: shown, and set apart by an erasure since."""

    newcomers: Mapping[str, Newcomer]
    left: frozenset[str]
    values: Mapping[str, str]
    gone: frozenset[str]


def differences(
    book: Book, source: SourceTable, node: Node, layout: Layout, asked: Collection[str], withdrawn: Collection[str]
) -> Differences:
    """Compare the source with the state shown.

    source: opened by an Admission, so that quasi-identifiers are those of each one's first publication, and people set
    apart are not in it. asked: digests whose present value is wanted in any case. withdrawn: who counts as absent.
    """
    release, t, session = source.spec.release, book.tables, source.session
    erased = (
        sa.select(t.shown.c.entity)
        .join(t.apart, sa.and_(t.apart.c.entity == t.shown.c.entity, t.apart.c.release == t.shown.c.release))
        .where(t.shown.c.release == release, t.apart.c.state.in_((OUT, LEAVING)))
    )
    gone = frozenset(book.own.fetch(erased)["entity"].to_pylist())
    state = book.lend(sa.select(t.shown.c.entity, t.shown.c.value).where(t.shown.c.release == release))
    rows = _present(book, source, node, layout, withdrawn).subquery("qblock_present")
    pending = session.load(fresh_name(), pa.table({"entity": pa.array(sorted(asked), pa.string())}))
    both = rows.outerjoin(state, state.c.entity == rows.c.entity, full=True)
    new = state.c.entity.is_(None)
    codes = [c for c in rows.c if c.name.startswith("q")]
    query = (
        sa.select(
            sa.func.coalesce(rows.c.entity, state.c.entity).label("entity"),
            sa.case((new, "new"), (rows.c.entity.is_(None), "left"), else_="value").label("kind"),
            rows.c.value,
            sa.case((new, rows.c.place)).label("place"),
            *codes,
        )
        .select_from(both)
        .where(
            sa.or_(
                new,
                rows.c.entity.is_(None),
                rows.c.value != state.c.value,
                rows.c.entity.in_(sa.select(pending.c.entity)),
            )
        )
    )
    labels = [h.shown(level) for h, level in zip(source.hierarchies, node, strict=True)]
    return _sorted(session.fetch(query), labels, gone)


def _present(book: Book, source: SourceTable, node: Node, layout: Layout, withdrawn: Collection[str]) -> Query:
    joined, codes = coded(source, node)
    query = sa.select(
        entity_of(book, source).label("entity"),
        together(texts_of(source, layout.valued)).label("value"),
        together(texts_of(source, layout.quasi)).label("place"),
        *(code.label(f"q{i}") for i, code in codes.items()),
    ).select_from(joined)
    if not withdrawn:
        return query
    rows = query.subquery("qblock_rows")
    absent = source.session.load(fresh_name(), pa.table({"entity": pa.array(sorted(withdrawn), pa.string())}))
    return sa.select(*rows.c).where(rows.c.entity.not_in(sa.select(absent.c.entity)))


def texts_of(source: SourceTable, names: Sequence[str]) -> list[sa.ColumnElement[Any]]:
    """The canonical texts of columns of a source."""
    return [source.session.text_of(source.expression(name), source.columns[name].kind) for name in names]


def _sorted(found: pa.Table, labels: Sequence[Sequence[str]], gone: frozenset[str]) -> Differences:
    newcomers: dict[str, Newcomer] = {}
    left: set[str] = set()
    values: dict[str, str] = {}
    for row in found.to_pylist():
        one = row["entity"]
        if row["kind"] == "new":
            block = tuple(texts[row.get(f"q{i}", 0)] for i, texts in enumerate(labels))
            newcomers[one] = Newcomer(block, row["place"], row["value"])
        elif one in gone:
            continue
        elif row["kind"] == "left":
            left.add(one)
        else:
            values[one] = row["value"]
    return Differences(newcomers, frozenset(left), values, gone)
