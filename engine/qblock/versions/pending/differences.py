"""How the source differs from the state shown (newcomers, leavers, changed values; one statement), and whom a run reads
for that: of most cells no more than who left or changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.queries import Query
from qblock.engines.tables import Column
from qblock.engines.values import fits, type_class
from qblock.errors import Refused
from qblock.hierarchy.labels import texts as text_array
from qblock.lattice import Node
from qblock.ledger.events import canonical
from qblock.source import SourceTable
from qblock.source.columns import Scan, code_quasi_identifiers
from qblock.spec import Spec
from qblock.versions.batching.proposals import may_be_tried
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Block, Cell
from qblock.versions.crosswalk import GONE, Crosswalk, fresh_name, load_texts
from qblock.versions.pending.state import (
    Layout,
    Row,
    State,
    another_unit,
    cell_text,
    people_in,
    units_in,
    units_of,
)
from qblock.versions.recorded import (
    DIGEST,
    LEAF_NAME,
    UNIT,
    UNPROTECTED,
    Candidate,
    coded,
    entity_of,
    load_labels,
    recorded,
)
from qblock.versions.texts import (
    AT_LEAF,
    block_name,
    bundle,
    join_texts,
    name_of,
    owner,
    rows_of,
    split_text,
    texts_of,
    with_rows,
)
from qblock.versions.types import cannot_hold

OTHER_COLUMNS = (
    "version {first} of release {release} was made with other columns ({before}) than the spec has now ({now}); "
    "nothing is published. People whom the source has no more are shown as they were. Write the columns as they were, "
    "or {unprotected}"
)


KIND, VALUE = "qblock kind", "qblock value"
"""Columns beside those of the source: how somebody differs (new, left, value), and the value there."""


@dataclass(frozen=True)
class Newcomer:
    """Somebody who is present and not shown. block: labels at the node; place, value: texts (`join_texts`)."""

    block: Block
    place: str
    value: str


@dataclass(frozen=True)
class Differences:
    """What a run finds, by digests. newcomers: everybody who is not shown; left: shown, and not in the source, or
    withdrawn; values: of those shown and present, the value of each whose value is another one, or was asked for;
    gone: shown, and set apart by an erasure since. units, excluded: where somebody may have several rows, the units of
    the source; out: those among them that are set apart, with their values."""

    newcomers: Mapping[str, Newcomer]
    left: frozenset[str]
    values: Mapping[str, str]
    gone: frozenset[str]
    units: int = 0
    out: Mapping[str, str] = field(default_factory=dict)


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
            .where(t.shown.c.release == release, t.apart.c.state.in_(GONE))
        )
        gone |= frozenset(crosswalk.column(erased))
    state = crosswalk.lend(sa.select(t.shown.c.entity, t.shown.c.value).where(t.shown.c.release == release))
    units, out = 0, dict[str, str]()
    pending = load_texts(session, entity=sorted(wanted))
    if source.spec.bundles:
        present, units, out = _units(crosswalk, source, node, _present(crosswalk, source, node, layout, withdrawn))
        query = _differing(present, state, pending)
    else:
        query = _differing(_people(crosswalk, source, layout, withdrawn), state, pending)
        query = _placed(replace(source, relation=query.subquery("qblock_differing")), node, layout)
    labels = [h.shown(level) for h, level in zip(source.hierarchies, node, strict=True)]
    changes = replace(_sorted(session.fetch(query), labels, gone), units=units, out=out)
    return _by_rows(changes) if source.spec.by_rows else changes


def _differing(query: Query, state: sa.FromClause, wanted: sa.FromClause) -> Query:
    """Of whom the source and the state differ, or who is wanted. query: of the source, entity and value first; what
    else it has is told of them, too."""
    rows = query.subquery("qblock_present")
    entity, value, *further = rows.c
    new = state.c.entity.is_(None)
    return (
        sa.select(
            sa.func.coalesce(entity, state.c.entity).label(DIGEST),
            sa.case((new, "new"), (entity.is_(None), "left"), else_="value").label(KIND),
            value.label(VALUE),
            *further,
        )
        .select_from(rows.outerjoin(state, state.c.entity == entity, full=True))
        .where(
            sa.or_(new, entity.is_(None), value != state.c.value, entity.in_(sa.select(wanted.c.entity))),
        )
    )


def _people(crosswalk: Crosswalk, source: SourceTable, layout: Layout, withdrawn: Collection[str]) -> Query:
    """Who is in the source, with the value, and the quasi-identifiers as they are there."""
    query = sa.select(
        entity_of(crosswalk, source).label(DIGEST),
        join_texts(texts_of(source, layout.valued)).label(VALUE),
        *(source.relation.c[name] for name in layout.quasi),
    ).select_from(source.relation)
    return _without(source, query, withdrawn)


def _placed(differing: SourceTable, node: Node, layout: Layout) -> Query:
    """The same with the place of who is new, and the codes. differing: the source with those alone who differ: few."""
    rows, (joined, codes) = differing.relation, coded(differing, node)
    return sa.select(
        *(rows.c[name] for name in (DIGEST, KIND, VALUE)),
        sa.case((rows.c[KIND] == "new", join_texts(texts_of(differing, layout.quasi)))).label("place"),
        *(code.label(f"q{i}") for i, code in codes.items()),
    ).select_from(joined)


def _present(
    crosswalk: Crosswalk, source: SourceTable, node: Node, layout: Layout, withdrawn: Collection[str]
) -> Query:
    joined, codes = coded(source, node)
    query = sa.select(
        entity_of(crosswalk, source).label("entity"),
        join_texts(texts_of(source, layout.valued)).label("value"),
        join_texts(texts_of(source, layout.quasi)).label("place"),
        *(code.label(f"q{i}") for i, code in codes.items()),
        *(source.relation.c[name].label("leaf") for name in (LEAF_NAME,) if name in source.relation.c),
    ).select_from(joined)
    return _without(source, query, withdrawn)


def _without(source: SourceTable, query: Query, withdrawn: Collection[str]) -> Query:
    if not withdrawn:
        return query
    rows = query.subquery("qblock_rows")
    absent = load_texts(source.session, entity=sorted(withdrawn))
    return sa.select(*rows.c).where(next(iter(rows.c)).not_in(sa.select(absent.c.entity)))


def _units(crosswalk: Crosswalk, source: SourceTable, node: Node, present: Query) -> tuple[Query, int, dict[str, str]]:
    """The units of the source that are not set apart, each with its bundle as the value and the place of one row; how
    many units there are, and those that are set apart with their values."""
    session, release = source.session, source.spec.release
    rows, code_names, name = _named_blocks(source, node, present)
    if "leaf" in rows.c:
        # Of whoever comes in a cohort the block of the first map means nothing.
        t = crosswalk.tables
        parts = (sa.select(of.c.entity).where(of.c.release == release) for of in (t.shown, t.apart))
        known = crosswalk.lend(sa.select(sa.union(*parts).subquery().c.entity))
        in_block = known.c.entity == rows.c.entity.concat(name)
        name = sa.case((known.c.entity.is_not(None), name), else_=rows.c.leaf)
        joined: sa.FromClause = rows.outerjoin(known, in_block)
    else:
        joined = rows
    unit, codes = rows.c.entity.concat(name), [rows.c[code] for code in code_names]
    columns = [bundle(session, rows.c.value).label("value"), sa.func.min(rows.c.place).label("place")]
    query = sa.select(unit.label("entity"), *columns, *codes).select_from(joined).group_by(unit, *codes)
    units = session.store(fresh_name(), query)
    outside = crosswalk.lend(crosswalk.gone(release))
    number = int(session.scalar(sa.select(sa.func.count()).select_from(units)))
    among = units.c.entity.in_(sa.select(outside.c.entity))
    out = session.fetch(sa.select(units.c.entity, units.c.value).where(among))
    values = dict(zip(out["entity"].to_pylist(), out["value"].to_pylist(), strict=True))
    return sa.select(*units.c).where(~among), number, values


def _named_blocks(
    source: SourceTable, node: Node, present: Query
) -> tuple[sa.TableClause, list[str], sa.ColumnElement[Any]]:
    """Rows with what stands for their block in the names of units, and the columns with the codes of the block."""
    session = source.session
    rows = session.store(fresh_name(), present)
    codes = [c.name for c in rows.c if c.name.startswith("q")]
    number: sa.Label[int] = sa.literal_column("1").label("number")
    blocks = session.fetch(sa.select(number, *(rows.c[code] for code in codes)).distinct())
    labels = [h.shown(level) for h, level in zip(source.hierarchies, node, strict=True)]
    names = [
        block_name(canonical([texts[row.get(f"q{i}", 0)] for i, texts in enumerate(labels)]))
        for row in blocks.to_pylist()
    ]
    named = session.load(fresh_name(), blocks.append_column("name", text_array(names)))
    same = [sa.true(), *(named.c[code] == rows.c[code] for code in codes)]
    query = sa.select(*rows.c, named.c.name.label("name")).select_from(rows.join(named, sa.and_(*same)))
    both = session.store(fresh_name(), query)
    return both, codes, both.c.name


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
        entity = row[DIGEST]
        if row[KIND] == "new":
            block = tuple(texts[row.get(f"q{i}", 0)] for i, texts in enumerate(labels))
            newcomers[entity] = Newcomer(block, row["place"], row[VALUE])
        elif entity in gone:
            continue
        elif row[KIND] == "left":
            left.add(entity)
        else:
            values[entity] = row[VALUE]
    return Differences(newcomers, frozenset(left), values, gone)


def moved_people(crosswalk: Crosswalk, candidate: Candidate) -> dict[str, str]:
    """The label, as text, of each block in which a candidate has somebody of another one, by digest."""
    t, own = crosswalk.tables.shown, crosswalk.own
    loaded = load_labels(crosswalk, candidate)
    joined = candidate.rows.join(loaded, loaded.c.block == candidate.rows.c.block).join(
        t, t.c.entity == candidate.rows.c.entity
    )
    query = sa.select(t.c.entity, loaded.c.label).select_from(joined)
    rows = own.fetch(query.where(t.c.release == candidate.about.key.release, t.c.block != loaded.c.label)).to_pylist()
    own.drop(loaded)
    return {row["entity"]: row["label"] for row in rows}


def units_moved(crosswalk: Crosswalk, source: SourceTable, shown: sa.FromClause, node: Node) -> int:
    """How many units the hierarchies as they are now put in another block than the state has, where people have several
    rows. shown: the state, as a ShownState gives it; source: with these hierarchies."""
    newest = recorded(crosswalk, source.spec.release)[-1]
    if newest.hierarchies == canonical({h.attribute: h.digest() for h in source.origins}):
        return 0
    # Whose values nobody in the source has any more have a leaf there, too.
    scan = Scan(source.spec, source.session, shown, source.columns, compared=True)
    hierarchies, dimensions = zip(*code_quasi_identifiers(scan, "qblock_dimension_u").values(), strict=True)
    joined, codes = coded(
        replace(source, relation=shown, dimensions=dimensions, hierarchies=hierarchies, compared=True), node
    )
    name = name_of(shown.c[UNIT]).label("name")
    columns = {f"q{i}": code for i, code in codes.items()}
    number = sa.func.count(sa.distinct(shown.c[UNIT])).label("n")
    labelled = [column.label(key) for key, column in columns.items()]
    query = sa.select(name, *labelled, number).select_from(joined).where(name.not_like(f"{AT_LEAF}%"))
    query = query.group_by(name, *columns.values())
    texts = [h.shown(level) for h, level in zip(hierarchies, node, strict=True)]
    moved = 0
    for row in source.session.fetch(query).to_pylist():
        numbers = [row.get(f"q{i}", 0) for i in range(len(texts))]
        if (
            None in numbers
            or block_name(canonical([labels[code] for labels, code in zip(texts, numbers, strict=True)])) != row["name"]
        ):
            moved += row["n"]
    return moved


def check_layout(spec: Spec, state: State) -> None:
    """Raise Refused where a spec has other columns than the versions."""
    now = Layout.of(spec)
    if state.layout != now:
        before, names = (", ".join((*layout.quasi, *layout.valued)) for layout in (state.layout, now))
        raise Refused(
            OTHER_COLUMNS.format(
                first=state.first, release=spec.release, before=before, now=names, unprotected=UNPROTECTED
            )
        )


def check_shown(crosswalk: Crosswalk, spec: Spec, state: State, columns: Mapping[str, Column]) -> None:
    """Raise Refused where a column that is published as it is writes values otherwise than when it was shown, or where
    one has become too narrow for what versions show of it."""
    for name, before in state.types.items():
        now = columns[name].compare_as
        if type_class(now) != type_class(before):
            raise Refused(
                f"column {name} is of type {now} now, and was of type {before} when version {state.first} of release "
                f"{spec.release} was made; nothing is published. Values that did not change may read differently. Give "
                f"the column its type again, or write {UNPROTECTED}"
            )
    types = {name: column.compare_as for name, column in recorded(crosswalk, spec.release)[-1].types.columns.items()}
    types |= state.types
    names = (*state.layout.quasi, *state.layout.valued)
    other = {name for name in names if columns[name].compare_as != types.get(name)}
    shown = crosswalk.tables.shown
    for column, names in ((shown.c.place, state.layout.quasi), (shown.c.value, state.layout.valued)):
        if not other.intersection(names):
            continue
        query = sa.select(column.label("text")).where(shown.c.release == spec.release).distinct()
        units = crosswalk.column(query)
        rows = [row for unit in units for row in rows_of(unit)] if spec.bundles and column is shown.c.value else units
        for row in rows:
            for name, text in zip(names, split_text(row), strict=True):
                if name in other and text is not None and not fits(text, columns[name]):
                    raise cannot_hold(columns[name])


def check_node(state: State, source: SourceTable) -> None:
    """Raise Refused where the hierarchies have no longer the node of the versions."""
    if state.node not in source.lattice:
        raise Refused(
            f"the published node {list(state.node)} is no longer in the lattice: hierarchies have changed; nothing "
            f"is published. Change them back, or write {UNPROTECTED}"
        )


@dataclass(frozen=True)
class Concerned:
    """rows: everybody in the cells of which a batch may be tried, who left or changed in others, and somebody of
    another cell; whole: the former cells; others: how many people each of the others has that somebody left or changed
    in, or of which not everybody was stated to be present."""

    rows: Mapping[str, Row]
    whole: Collection[Cell]
    others: Mapping[Cell, int]


def concerned(crosswalk: Crosswalk, spec: Spec, changes: Differences, state: State, rules: Rules) -> Concerned:
    """What a run looks at.

    Members are read of the cells of which `may_be_tried` is so: of a million people of whom one in a hundred leaves in
    a week half are in a cell that somebody has left, and few in one of which people can go.
    """
    release, leave, stale = spec.release, spec.versions.leave or 0, spec.versions.stale
    rows = units_of(crosswalk, release, {*changes.left, *changes.values})
    absent, changed = (
        Counter(rows[entity].unit.cell for entity in people if entity in rows)
        for people in (changes.left, changes.values)
    )
    cells = {*absent, *changed, *(state.stated or ())}
    people = people_in(crosswalk, release, cells, changes.gone) if cells else {}
    whole = {cell for cell, n in people.items() if may_be_tried(n, absent[cell], changed[cell], rules, leave, stale)}
    texts = set(map(cell_text, whole))
    rows |= units_in(crosswalk, release, texts) if texts else {}
    rows |= another_unit(crosswalk, release, texts)
    return Concerned(
        {entity: row for entity, row in rows.items() if entity not in changes.gone},
        frozenset(whole),
        {cell: n for cell, n in people.items() if cell not in whole},
    )
