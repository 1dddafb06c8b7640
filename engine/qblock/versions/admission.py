"""Who is in a version, and with which quasi-identifiers: the source as the checks of successive releases let it in.

Somebody who moves to another block would be alone in a joint cell. So the quasi-identifiers of an entity are those of
its first publication, and moves wait. Entities that are set apart (a cohort that failed, people who withdrew) are left
out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.arrow import whole_numbers
from qblock.engines.queries import Query
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.engines.values import fits, writes_alike
from qblock.errors import Refused
from qblock.ledger.events import canonical
from qblock.ledger.store import Store
from qblock.source import SourceTable
from qblock.source.columns import SINCE, WEIGHT, columns_read
from qblock.source.recoded import LEAF
from qblock.spec import Spec
from qblock.versions.batching.state import Cell
from qblock.versions.batching.weights import Stated
from qblock.versions.crosswalk import Crosswalk, as_text, fresh_name, load_texts, open_crosswalk
from qblock.versions.episodes import NOTHING
from qblock.versions.gate import members
from qblock.versions.pending.state import Layout, Row, cell_of, cell_text
from qblock.versions.recorded import (
    DIGEST,
    LEAF_NAME,
    UNIT,
    UNPROTECTED,
    Candidate,
    RecordedVersion,
    entity_of,
    first_of,
    leaf_of,
    person_of,
    recorded,
)
from qblock.versions.texts import join_texts, owner, part_of, row_of, rows_of, size, texts_of
from qblock.versions.types import RETYPE, cannot_hold, changed, check_coarser, named, remedy


@dataclass(eq=False)
class Admission:
    """The hook of `open_source` that lets the source in: `open_task(spec, relation=Admission(spec, store))`.

    leaving: digests of people whose withdrawal takes effect; shown: the versions that were published, whose column
    types those of the source must be (None: not checked); read_only: as of `open_crosswalk`. After the call, `known`
    and `excluded` are what it left beside the source: the frozen quasi-identifiers (entity, names, place) and the
    entities left out (entity), or None; `everybody` is the whole source with the digests (column DIGEST); `stored`
    is whether the rows that it gave are in a table already.
    """

    spec: Spec
    store: Store
    leaving: Sequence[str] = ()
    shown: Collection[int] | None = None
    read_only: bool = field(default=False, kw_only=True)
    known: sa.FromClause | None = field(default=None, init=False)
    excluded: sa.FromClause | None = field(default=None, init=False)
    everybody: sa.FromClause | None = field(default=None, init=False)
    stored: bool = field(default=False, init=False)
    _moves: Query | None = field(default=None, init=False)
    _first: sa.ColumnElement[Any] = field(default_factory=sa.null, init=False)
    _lent: sa.FromClause | None = field(default=None, init=False)

    def __call__(self, session: Session, table: sa.FromClause, columns: dict[str, Column]) -> sa.FromClause:
        """The source's table, or a query over it with the columns that a run reads (the login may be granted no other);
        reads the crosswalk in the session's snapshot.

        The columns of a query are in the types that they compare in.
        """
        entity = self.spec.entity
        if entity is None or self.spec.versions.joint == "none":
            return table
        with open_crosswalk(self.store, session, read_only=self.read_only) as crosswalk:
            release = self.spec.release
            if self.shown is not None:
                check_types(crosswalk, self.spec, columns, self.shown)
            gone = crosswalk.gone(release)
            if crosswalk.own.scalar(sa.select(sa.func.count()).select_from(gone.subquery())):
                self.excluded = crosswalk.lend(gone)
            names = layouts_of(crosswalk, release)
            if names:
                self.known = self._lend_known(crosswalk, session, names)
            self._check_types(session, columns, names)
            known = [v for v in recorded(crosswalk) if v.key.release != release or self._counts(v.key.version)]
            first = first_of(crosswalk, known, self.spec, columns)
            who = person_of(crosswalk, self.spec, session, table, columns, first).label(DIGEST)
            read = [column for column in table.c if column.name in columns_read(self.spec)]
            values = [_compared(session, column, columns[column.name]) for column in read]
            who_and_where = [who]
            leaf = [column for column in table.c if column.name.startswith(LEAF)]
            if leaf:
                name = leaf_of(crosswalk, self.spec, session, table, columns, first, leaf)
                who_and_where.append(name.label(LEAF_NAME))
            everybody = sa.select(*values, *who_and_where)
            rows: sa.FromClause = everybody.subquery("qblock_source")
            as_it_is = not names and self.excluded is None and not self.leaving and not leaf
            if crosswalk.hashes or (session.embedded and not as_it_is):
                # A run reads it several times, and digests are most of what that costs.
                rows = session.store(fresh_name(), everybody)
            self.everybody, self.stored = rows, as_it_is and crosswalk.hashes
            if as_it_is:
                return sa.select(*rows.c).subquery("qblock_source") if self.stored else table
        if self.known is not None:
            self._first = sa.select(sa.func.min(self.known.c.version)).scalar_subquery()
        if session.embedded:
            self._keep_others(session, rows, columns)
        joined: sa.FromClause = rows
        if self.known is not None:
            joined = rows.outerjoin(self.known, self.known.c.entity == rows.c[DIGEST])
            self._moves = self._moved(session, rows, columns)
        selected = []
        for column in read:
            value: sa.ColumnElement[Any] = rows.c[column.name]
            if self.known is not None and column.name in self.spec.quasi_identifiers:
                value = self._frozen(session, value, columns[column.name], names)
            selected.append(value.label(column.name))
        query = sa.select(*selected, *(rows.c[column.name] for column in who_and_where)).select_from(joined)
        return self._without(session, query, rows).subquery("qblock_admitted")

    def _counts(self, version: int) -> bool:
        """Whether a recorded version was published: one that never was is discarded by the check of the next one."""
        return self.shown is None or version in self.shown

    def moves(self, session: Session) -> int:
        """How many entities have moved since their first publication; the moves wait. A count for the private
        ledger."""
        return 0 if self._moves is None else int(session.scalar(self._moves))

    def _lend_known(self, crosswalk: Crosswalk, session: Session, layouts: Sequence[str]) -> sa.FromClause:
        """What is frozen, beside the source. Columns that all of it has in common are not sent for each person."""
        query, (layout, *others) = frozen(crosswalk, self.spec.release, layouts), layouts
        if others or not session.embedded:
            return crosswalk.lend(query)
        rows = query.subquery("qblock_known")
        self._lent = crosswalk.lend(sa.select(rows.c.entity, rows.c.place, rows.c.version))
        return sa.select(*self._lent.c, as_text(layout).label("names")).subquery("qblock_known")

    def _keep_others(self, session: Session, rows: sa.FromClause, columns: dict[str, Column]) -> None:
        """Keep in `known` only those whose frozen quasi-identifiers are others than those of the source: nobody else's
        differ from them."""
        known = self.known
        if known is None:
            return
        self._first = sa.literal(session.scalar(sa.select(self._first)))
        names = self.spec.quasi_identifiers
        layout = sa.cast(sa.literal(canonical(list(names))), sa.Text)
        # Each place is taken apart once: to put one together for each person takes longer.
        places = _each(session, known.c.place, lambda text: [part_of(text, i) for i in range(len(names))])
        now = [session.text_of(rows.c[name], columns[name].kind) for name in names]
        differ = [text.is_distinct_from(places.c[f"v{i}"]) for i, text in enumerate(now)]
        both = known.join(rows, rows.c[DIGEST] == known.c.entity).join(places, places.c.text == known.c.place)
        others = sa.select(*known.c).select_from(both).where(sa.or_(known.c.names != layout, *differ))
        self.known = session.store(fresh_name(), others.distinct())
        for table in (places, self._lent, known):
            if isinstance(table, sa.TableClause):
                session.drop(table)

    def _now(
        self, session: Session, rows: sa.FromClause, columns: dict[str, Column]
    ) -> tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]:
        """The quasi-identifiers of the source as they would be frozen: their place and names."""
        names = self.spec.quasi_identifiers
        now = join_texts([session.text_of(rows.c[name], columns[name].kind) for name in names])
        return now, sa.cast(sa.literal(canonical(list(names))), sa.Text)

    def _moved(self, session: Session, rows: sa.FromClause, columns: dict[str, Column]) -> Query:
        assert self.known is not None
        now, layout = self._now(session, rows, columns)
        both = rows.join(self.known, self.known.c.entity == rows.c[DIGEST])
        counted = sa.select(sa.func.count()).select_from(both)
        counted = counted.where(self.known.c.place != now, self.known.c.names == layout)
        if self.spec.newcomers is None:
            return counted
        # Whoever came with a cohort has the labels of its map, which say nothing of a move.
        return counted.where(self.known.c.version == self._first)

    def _check_types(self, session: Session, columns: dict[str, Column], layouts: Sequence[str]) -> None:
        """Refuse a column whose type cannot hold what is frozen of it: a cast in the query would fail, or quote it."""
        for name in self.spec.quasi_identifiers:
            for layout in layouts if columns[name].kind != "text" else ():
                position = _position(layout, name)
                if position is None or self.known is None:
                    continue
                text = part_of(self.known.c.place, position)
                same = self.known.c.names == as_text(layout)
                values = session.fetch(sa.select(text.label("value")).where(same).distinct())["value"].to_pylist()
                if not all(value is None or fits(value, columns[name]) for value in values):
                    raise cannot_hold(columns[name])

    def _frozen(
        self, session: Session, now: sa.ColumnElement[Any], column: Column, layouts: Sequence[str]
    ) -> sa.ColumnElement[Any]:
        assert self.known is not None
        cases = []
        for layout in layouts:
            position = _position(layout, column.name)
            if position is not None:
                text = part_of(self.known.c.place, position)
                same = self.known.c.names == as_text(layout)
                cases.append((same, session.convert(text, column)))
        return sa.case(*cases, else_=now) if cases else now

    def _without(self, session: Session, query: Query, rows: sa.FromClause) -> Query:
        who = rows.c[DIGEST]
        if self.excluded is not None:
            query = query.where(who.not_in(sa.select(self.excluded.c.entity)))
        if self.leaving:
            leaving = load_texts(session, entity=self.leaving)
            query = query.where(who.not_in(sa.select(leaving.c.entity)))
        return query


def _compared(session: Session, column: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
    value = session.comparable(column, of)
    return value if value is column else value.label(column.name)


def layouts_of(crosswalk: Crosswalk, release: str) -> list[str]:
    """The names of quasi-identifiers, as a JSON list each, that a release has frozen some of."""
    t = crosswalk.tables.frozen
    return crosswalk.column(sa.select(t.c.names).where(t.c.release == release).distinct())


def frozen(crosswalk: Crosswalk, release: str, layouts: Sequence[str] | None = None) -> Query:
    """The quasi-identifiers that a release has frozen: entity, names (a JSON list), place (their texts), version.

    layouts: as of `layouts_of`, where they are known. Of one alone nobody is frozen twice (`freeze`).
    """
    t = crosswalk.tables
    columns = (t.frozen.c.entity, t.frozen.c.names, t.frozen.c.place, t.frozen.c.version)
    if len(layouts_of(crosswalk, release) if layouts is None else layouts) == 1:
        return sa.select(*columns).where(t.frozen.c.release == release)
    # Not by a window function: DuckDB 1.5 fails internally on some plans that keep the first row of a window.
    newest = (
        sa.select(t.frozen.c.entity, sa.func.max(t.frozen.c.version).label("version"))
        .where(t.frozen.c.release == release)
        .group_by(t.frozen.c.entity)
        .subquery("qblock_newest")
    )
    same = sa.and_(t.frozen.c.entity == newest.c.entity, t.frozen.c.version == newest.c.version)
    return sa.select(*columns).select_from(t.frozen.join(newest, same)).where(t.frozen.c.release == release)


def freeze(crosswalk: Crosswalk, source: SourceTable, candidate: Candidate) -> None:
    """Freeze the quasi-identifiers of all whom the candidate is the first to show, in the transaction that records it.

    A block that failed for its values is shown by its label, so its people are frozen too. source: opened by an
    Admission, whose values of earlier entities already are the frozen ones.
    """
    t, about = crosswalk.tables.frozen, candidate.about
    names = canonical(list(source.quasi_identifiers))
    layout = as_text(names)
    known = frozen(crosswalk, about.key.release).subquery("known")
    same = sa.and_(known.c.entity == candidate.rows.c.entity, known.c.names == layout)
    new = crosswalk.own.store(
        fresh_name(),
        sa.select(candidate.rows.c.entity)
        .select_from(candidate.rows.outerjoin(known, same))
        .where(candidate.rows.c.shown != NOTHING, known.c.entity.is_(None)),
    )
    number = crosswalk.own.scalar(sa.select(sa.func.count()).select_from(new))
    if number:
        texts = join_texts(texts_of(source, source.quasi_identifiers))
        rows = sa.select(entity_of(crosswalk, source).label("entity"), texts.label("place")).subquery("rows")
        query = sa.select(rows.c.entity, rows.c.place)
        # Most of everybody, as of a first version, are not sent over to be joined there.
        most = crosswalk.own is not crosswalk.source and 2 * number > source.rows
        if not most:
            wanted = crosswalk.lend(sa.select(new.c.entity))
            query = query.select_from(rows.join(wanted, wanted.c.entity == rows.c.entity))
        brought = crosswalk.bring(query)
        columns: list[Any] = [as_text(about.key.release), sa.literal(about.key.version)]
        chosen = sa.select(*columns, layout, brought.c.entity, brought.c.place)
        chosen = chosen.join(new, new.c.entity == brought.c.entity) if most else chosen
        into = sa.insert(t).from_select(["release", "version", "names", "entity", "place"], chosen)
        crosswalk.write(into, about.key.release, about.key.version)
        # A run that comes before the database does this by itself would compare everybody with everybody.
        crosswalk.own.analyze(t)
        crosswalk.own.drop(brought)
    crosswalk.own.drop(new)


def _each(
    session: Session, text: sa.ColumnElement[Any], parts: Callable[[sa.ColumnElement[Any]], Sequence[Any]]
) -> sa.TableClause:
    """The different texts of a column (text), and the parts of each (v0, v1, ...): many people share one.

    Stored, since DuckDB takes the texts apart after the join otherwise.
    """
    texts = sa.select(text.label("text")).distinct().subquery("qblock_texts")
    values = [value.label(f"v{i}") for i, value in enumerate(parts(texts.c.text))]
    return session.store(fresh_name(), sa.select(texts.c.text, *values))


def _parts(
    session: Session, columns: Mapping[str, Column], names: Sequence[str], text: sa.ColumnElement[Any]
) -> list[sa.Label[Any]]:
    """The values of columns whose texts were joined into one."""
    return [session.convert(part_of(text, i), columns[name]).label(name) for i, name in enumerate(names)]


def _position(layout: str, name: str) -> int | None:
    names = json.loads(layout)
    return names.index(name) if name in names else None


def check_types(crosswalk: Crosswalk, spec: Spec, columns: Mapping[str, Column], shown: Collection[int]) -> None:
    """Refuse columns whose type writes values otherwise than that of the newest version, before the source is scanned.

    Raises Refused naming the column, both types and the remedy.
    """
    versions = recorded(crosswalk)
    own = [v for v in versions if v.key.release == spec.release]
    check_known_types(spec, own, columns, shown)
    _check_audience(crosswalk, spec, columns, versions)


def check_known_types(
    spec: Spec, versions: Sequence[RecordedVersion], columns: Mapping[str, Column], shown: Collection[int]
) -> None:
    """Refuse columns whose type writes values otherwise than the one kept with the newest version published: nothing of
    the source is read.

    versions: of the release. Raises Refused naming the column, both types and the remedy.
    """
    own = [v for v in versions if v.key.version in shown]
    if own:
        check_coarser(spec, own[-1].types, f"version {own[-1].key.version} of release {spec.release}")
    problems = [
        f"column {name} is of type {now} now, and was of type {before} when version {own[-1].key.version} of release "
        f"{spec.release} was made"
        for name, before, now in (changed(spec, own[-1].types, columns) if own else ())
    ]
    if problems:
        raise Refused(
            f"{'; '.join(problems)}; nothing is published. Values that did not change may read differently, so "
            f"versions cannot be checked together. {remedy(spec)}"
        )


def _check_audience(
    crosswalk: Crosswalk, spec: Spec, columns: Mapping[str, Column], versions: Sequence[RecordedVersion]
) -> None:
    """The releases that the same readers may hold must write people and values as this one does."""
    first = first_of(crosswalk, versions, spec, columns)
    audience = {v.key.release: v.types for v in members(spec, versions)}
    for release, theirs in audience.items():
        if release == spec.release:
            continue
        check_coarser(spec, theirs, f"release {release}, which the same readers may hold,")
        if first.hashed != theirs.first.hashed:
            raise Refused(
                f"release {release}, which the same readers may hold, cannot be compared with release {spec.release}; "
                "nothing is published. One of the two is made from a cluster, which is given no keys, so their "
                f"digests of people differ. Release both from one engine, or write {UNPROTECTED}"
            )
        here, there = first.column, theirs.first.column
        if not writes_alike(here, there):
            raise _disagree(f"people by column {here.name}", spec.release, here.type, release, there.type)
        for name in spec.sensitives:
            if name in theirs.columns and not writes_alike(columns[name], theirs.columns[name]):
                types = named(columns[name]).type, theirs.columns[name].type
                raise _disagree(f"values of column {name}", spec.release, types[0], release, types[1])


def _disagree(what: str, release: str, ours: str, other: str, theirs: str) -> Refused:
    return Refused(
        f"release {release} writes {what} in type {ours}, and release {other}, which the same readers may hold, in "
        f"type {theirs}; nothing is published. Equal values would look different, so versions cannot be checked "
        f"together. Give both columns one type, and convert the records of the one that changes: {RETYPE}"
    )


@dataclass(frozen=True, eq=False)
class ShownState:
    """The hook of `open_source` that gives the state shown in the place of the source: everybody as the version that a
    steady job makes shows them.

    layout: its columns; gone: digests of the units of the snapshot that are in it no more; rows: units that are new,
    or shown otherwise than in the snapshot; stated: of the cells of which not everybody is stated to be present;
    numbers: as of `version_numbers`, of what versions showed before this one.
    """

    instead: ClassVar[bool] = True
    spec: Spec
    store: Store
    layout: Layout
    gone: Collection[str] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)
    stated: Mapping[Cell, Stated] = field(default_factory=dict)
    numbers: Mapping[int, int] = field(default_factory=dict)

    def __call__(self, session: Session, table: sa.FromClause, columns: dict[str, Column]) -> sa.FromClause:
        """The state as a query with the columns that a release reads, digests, and weights as texts."""
        rows = self.rows
        with open_crosswalk(self.store, session) as crosswalk:
            t, own = crosswalk.tables.shown, crosswalk.own
            query = self._units(t, own).where(t.c.release == self.spec.release)
            without = sorted({*self.gone, *rows})
            if without:
                loaded = load_texts(own, entity=without)
                query = query.where(t.c.entity.not_in(sa.select(loaded.c.entity)))
            kept = crosswalk.lend(query)
            longest = crosswalk.own.scalar(
                sa.select(sa.func.max(size(t.c.value))).where(t.c.release == self.spec.release)
            )
        values = [str(row.unit.values[-1]) for row in rows.values()]
        cells = [row.unit.cell for row in rows.values()]
        of_cells = {"weight": map(self._weight, cells), "since": map(self._since, cells)}
        new = load_texts(session, entity=rows, place=[row.place for row in rows.values()], value=values, **of_cells)
        read = ("entity", "place", "value", "weight", "since")
        both = (sa.select(*(of.c[name] for name in read)) for of in (kept, new))
        state = sa.union_all(*both).subquery("qblock_state")
        split: list[sa.TableClause] = []
        if self.spec.bundles:
            most = max(int(longest or 1), *(len(rows_of(value)) for value in values), 1)
            shown = self._rows(session, state, columns, most)
        else:
            texts = ((state.c.place, self.layout.quasi), (state.c.value, self.layout.valued))
            if session.embedded:
                parts = partial(_parts, session, columns)
                split = [_each(session, text, partial(parts, names)) for text, names in texts]
            shown = self._people(session, state, columns, split)
        if session.embedded:
            # It is read several times, and to take texts apart is most of what that costs.
            stored = session.store(fresh_name(), shown)
            for table in (new, *split, *([kept] if isinstance(kept, sa.TableClause) else [])):
                session.drop(table)
            shown = sa.select(*stored.c)
        return shown.subquery("qblock_shown")

    def _units(self, t: sa.Table, own: Session) -> Query:
        read = (t.c.entity, t.c.place, t.c.value)
        shown: Sequence[Cell] = list(self.stated)
        if self.spec.shows_since:
            of_release = sa.select(t.c.cell).where(t.c.release == self.spec.release).distinct()
            shown = [cell_of(text) for text in own.fetch(of_release)["cell"].to_pylist()]
        if not shown:
            return sa.select(*read, as_text("1").label("weight"), sa.cast(sa.null(), sa.Text).label("since"))
        known = {"weight": map(self._weight, shown), "since": map(self._since, shown)}
        cells = load_texts(own, cell=map(cell_text, shown), **known)
        weight = sa.func.coalesce(cells.c.weight, as_text("1")).label("weight")
        return sa.select(*read, weight, cells.c.since).select_from(t.outerjoin(cells, cells.c.cell == t.c.cell))

    def _weight(self, cell: Cell) -> str:
        stated = self.stated.get(cell)
        return "1" if stated is None else repr(stated.weight)

    def _since(self, cell: Cell) -> str | None:
        """The version that first showed a row as it is, which is part of what tells its joint cell from others; None of
        one that the next version shows first."""
        version = self.numbers.get(max((cell.first, *cell.changed)))
        return None if version is None else str(version)

    def _people(
        self, session: Session, state: sa.FromClause, columns: dict[str, Column], split: Sequence[sa.FromClause]
    ) -> Query:
        """The people of a state. split: its places and values, where they were taken apart before."""
        who = [state.c.entity.label(DIGEST), state.c.weight.label(WEIGHT), state.c.since.label(SINCE)]
        if not split:
            return sa.select(*who, *self._values(session, state, columns))
        places, values = split
        joined = state.join(places, places.c.text == state.c.place).join(values, values.c.text == state.c.value)
        read = [places.c[f"v{i}"].label(name) for i, name in enumerate(self.layout.quasi)]
        read += [values.c[f"v{i}"].label(name) for i, name in enumerate(self.layout.valued)]
        return sa.select(*who, *read).select_from(joined)

    def _values(self, session: Session, state: sa.FromClause, columns: dict[str, Column]) -> list[sa.Label[Any]]:
        of_place = _parts(session, columns, self.layout.quasi, state.c.place)
        return of_place + _parts(session, columns, self.layout.valued, state.c.value)

    def _rows(self, session: Session, units: sa.FromClause, columns: dict[str, Column], longest: int) -> Query:
        """The rows of units, each with the name of its unit; in the place of the entity the digest of its person."""
        assert self.spec.entity is not None
        numbers = session.load(fresh_name(), pa.table({"n": whole_numbers(range(1, longest + 1))}))
        joined = units.join(numbers, numbers.c.n <= size(units.c.value))
        row = row_of(units.c.value, numbers.c.n)
        read = (units.c.entity, units.c.place, units.c.weight, units.c.since, row.label("value"))
        rows = sa.select(*read).select_from(joined).subquery("qblock_rows")
        person = owner(rows.c.entity)
        who = [rows.c.entity.label(UNIT), person.label(DIGEST), person.label(self.spec.entity)]
        who += [rows.c.weight.label(WEIGHT), rows.c.since.label(SINCE)]
        return sa.select(*who, *self._values(session, rows, columns))
