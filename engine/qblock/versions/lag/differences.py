"""How the source differs from the state shown: newcomers, leavers, changed values. One statement."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import sqlalchemy as sa

from qblock.lattice import Node
from qblock.ledger.events import canonical
from qblock.source import SourceTable
from qblock.versions.batching.state import Block
from qblock.versions.crosswalk import LEAVING, OUT, Crosswalk, fresh_name
from qblock.versions.lag.memory import Layout
from qblock.versions.recorded import coded, entity_of
from qblock.versions.texts import block_name, bundle, join_texts, owner, rows_of, texts_of, with_rows
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
    gone: shown, and set apart by an erasure since. units, excluded: where somebody may have several rows, the units of
    the source, and those among them that are set apart."""

    newcomers: Mapping[str, Newcomer]
    left: frozenset[str]
    values: Mapping[str, str]
    gone: frozenset[str]
    units: int = 0
    excluded: int = 0


def differences(
    crosswalk: Crosswalk,
    source: SourceTable,
    node: Node,
    layout: Layout,
    wanted: Collection[str],
    withdrawn: Collection[str],
) -> Differences:
    """Compare the source with the state shown.

    source: opened by an Admission, so that quasi-identifiers are those of each one's first publication, and people set
    apart are not in it. wanted: digests whose present value is wanted in any case. withdrawn: who counts as absent.
    """
    release, t, session = source.spec.release, crosswalk.tables, source.session
    # By the digest of the unit, and by that of the person: the same one but for bundles.
    gone = frozenset[str]()
    for who in (t.shown.c.entity, owner(t.shown.c.entity)) if source.spec.bundles else (t.shown.c.entity,):
        erased = (
            sa.select(t.shown.c.entity)
            .join(t.apart, sa.and_(t.apart.c.entity == who, t.apart.c.release == t.shown.c.release))
            .where(t.shown.c.release == release, t.apart.c.state.in_((OUT, LEAVING)))
        )
        gone |= frozenset(crosswalk.own.fetch(erased)["entity"].to_pylist())
    state = crosswalk.lend(sa.select(t.shown.c.entity, t.shown.c.value).where(t.shown.c.release == release))
    present, units, excluded = _present(crosswalk, source, node, layout, withdrawn), 0, 0
    if source.spec.bundles:
        present, units, excluded = _units(crosswalk, source, node, present)
    rows = present.subquery("qblock_present")
    pending = session.load(fresh_name(), pa.table({"entity": pa.array(sorted(wanted), pa.string())}))
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
    changes = replace(_sorted(session.fetch(query), labels, gone), units=units, excluded=excluded)
    return _by_rows(changes) if source.spec.by_rows else changes


def _present(
    crosswalk: Crosswalk, source: SourceTable, node: Node, layout: Layout, withdrawn: Collection[str]
) -> Query:
    joined, codes = coded(source, node)
    query = sa.select(
        entity_of(crosswalk, source).label("entity"),
        join_texts(texts_of(source, layout.valued)).label("value"),
        join_texts(texts_of(source, layout.quasi)).label("place"),
        *(code.label(f"q{i}") for i, code in codes.items()),
    ).select_from(joined)
    if not withdrawn:
        return query
    rows = query.subquery("qblock_rows")
    absent = source.session.load(fresh_name(), pa.table({"entity": pa.array(sorted(withdrawn), pa.string())}))
    return sa.select(*rows.c).where(rows.c.entity.not_in(sa.select(absent.c.entity)))


def _units(crosswalk: Crosswalk, source: SourceTable, node: Node, present: Query) -> tuple[Query, int, int]:
    """The units of the source that are not set apart, each with its bundle as the value and the place of one row; how
    many units there are, and how many are set apart."""
    session, t = source.session, crosswalk.tables.apart
    rows = present.subquery("qblock_rows")
    codes = [c for c in rows.c if c.name.startswith("q")]
    columns = [bundle(session, rows.c.value).label("value"), sa.func.min(rows.c.place).label("place")]
    grouped = session.store(fresh_name(), sa.select(rows.c.entity, *codes, *columns).group_by(rows.c.entity, *codes))
    kept = [grouped.c[code.name] for code in codes]
    blocks = session.fetch(sa.select(sa.literal_column("1").label("one"), *kept).distinct())
    labels = [h.shown(level) for h, level in zip(source.hierarchies, node, strict=True)]
    names = [
        block_name(canonical([texts[row.get(f"q{i}", 0)] for i, texts in enumerate(labels)]))
        for row in blocks.to_pylist()
    ]
    named = session.load(fresh_name(), blocks.append_column("name", pa.array(names, pa.string())))
    same = [sa.true(), *(named.c[code.name] == code for code in kept)]
    unit = grouped.c.entity.concat(named.c.name).label("entity")
    query = sa.select(unit, grouped.c.value, grouped.c.place, *kept).select_from(grouped.join(named, sa.and_(*same)))
    units = session.store(fresh_name(), query)
    out = crosswalk.lend(sa.select(t.c.entity).where(t.c.release == source.spec.release, t.c.state.in_((OUT, LEAVING))))
    outside = sa.select(out.c.entity)
    number = sa.select(sa.func.count()).select_from(units)
    everybody, excluded = int(session.scalar(number)), int(session.scalar(number.where(units.c.entity.in_(outside))))
    return sa.select(*units.c).where(units.c.entity.not_in(outside)), everybody, excluded


def _by_rows(changes: Differences) -> Differences:
    newcomers = {
        entity: replace(new, block=with_rows(new.block, len(rows_of(new.value))))
        for entity, new in changes.newcomers.items()
    }
    return replace(changes, newcomers=newcomers)


def _sorted(table: pa.Table, labels: Sequence[Sequence[str]], gone: frozenset[str]) -> Differences:
    newcomers: dict[str, Newcomer] = {}
    left: set[str] = set()
    values: dict[str, str] = {}
    for row in table.to_pylist():
        entity = row["entity"]
        if row["kind"] == "new":
            block = tuple(texts[row.get(f"q{i}", 0)] for i, texts in enumerate(labels))
            newcomers[entity] = Newcomer(block, row["place"], row["value"])
        elif entity in gone:
            continue
        elif row["kind"] == "left":
            left.add(entity)
        else:
            values[entity] = row["value"]
    return Differences(newcomers, frozenset(left), values, gone)
