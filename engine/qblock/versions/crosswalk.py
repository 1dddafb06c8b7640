"""The crosswalk of a store, beside the session that reads the source."""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.queries import Query
from qblock.engines.registry import ENGINES
from qblock.engines.session import Session
from qblock.engines.sql_session import SqlSession, sql_of
from qblock.errors import Busy, QblockError
from qblock.hierarchy.labels import texts as text_array
from qblock.ledger import schema
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.ledger.parts import Parts
from qblock.ledger.stamps import SHOWN
from qblock.ledger.store import Store
from qblock.resources import sql_text
from qblock.versions.integrity import Sums, all_parts, digests_kept, is_as_marked, record_digests, sums_of

COHORT, WITHDRAWN, CELL, LEFT, ASIDE = "cohort", "withdrawn", "cell", "left", "aside"
CHANGED, MOVED, STALE, REPEATED = "changed", "moved", "stale", "repeated"
"""Why people are set apart: a cohort that failed, people who withdrew, who shares a joint cell with one who left at
once, who left in a batch that passed, and whom the coin set aside; of people with several rows, units that changed
while they waited, those that came as another one of the same person left or changed, and those whose label shows
another one; and who was still there when most of the joint cell had left."""
OUT, LEAVING, QUEUED, FAILED = "out", "leaving", "queued", "failed"
"""Their states: in no later version; in none from the version on that is being made; in all until a batch closes; in
all, since the batch that they closed failed its check."""
GONE = (OUT, LEAVING)

HEXADECIMAL = 32
"""Digits kept of a digest: with 128 bits, two of ten million persons share one with a chance of 1 in 10^24."""

_names: ContextVar[Iterator[int]] = ContextVar("names of temporary tables", default=itertools.count())  # noqa: B039


@dataclass(frozen=True, eq=False)
class Crosswalk:
    """The crosswalk, open within one transaction. source: reads the source; own: reads and writes the crosswalk.

    On PostgreSQL they are one session: what is written is committed with the transaction that stages the version. On
    DuckDB the crosswalk is a file of its own, committed when it is closed, and rows go over as Arrow columns.
    read: the versions that were read from it, until one is written (`versions.recorded`). touched: what `write` wrote.
    """

    source: Session
    own: SqlSession
    read: dict[str | None, list[Any]] = field(default_factory=dict, init=False, repr=False)
    touched: set[tuple[sa.Table, str | None, int | None]] = field(default_factory=set, init=False, repr=False)
    moved: dict[tuple[sa.Table, str], Sums] = field(default_factory=dict, init=False, repr=False)
    _counted: list[sa.Table] = field(default_factory=list, init=False, repr=False)

    @property
    def tables(self) -> Tables:
        return tables(self.own.engine)

    def bring(self, query: Query) -> sa.TableClause:
        """A query of the source as a temporary table beside the crosswalk."""
        if self.own is self.source:
            return self.own.store(fresh_name(), query)
        return self.own.load(fresh_name(), self.source.fetch(query))

    def column(self, query: Query) -> list[Any]:
        """The values of a query of the crosswalk that has one column."""
        return list(self.own.fetch(query)[0].to_pylist())

    def write(
        self, statement: sa.Insert | sa.Update | sa.Delete, release: str | None, version: int | None = None
    ) -> None:
        """Change the crosswalk's own tables. release, version: whose rows alone are changed (None: any).

        What is written in any other way is not in the digests that the ledger keeps, and refused by the next run.
        """
        assert isinstance(statement.table, sa.Table)
        if statement.table not in self._counted:
            self.touched.add((statement.table, release, version))
        self.own.run(statement)

    @contextmanager
    def counted(self, table: sa.Table, release: str, people: sa.FromClause) -> Iterator[None]:
        """Keep up the digest of a table, of which no rows but those of some people (entity) are written within."""
        same = (table.c.release == release, table.c.entity.in_(sa.select(people.c.entity)))
        before = sums_of(self.own, table, *same)
        self._counted.append(table)
        try:
            yield
        finally:
            self._counted.pop()
        after = sums_of(self.own, table, *same)
        self.moved[table, release] = self.moved.get((table, release), Sums()).plus(after).minus(before)

    def gone(self, release: str) -> Query:
        """Who is in no version from the one on that is being made (entity)."""
        t = self.tables.apart
        return sa.select(t.c.entity).where(t.c.release == release, t.c.state.in_(GONE))

    def lend(self, query: Query) -> sa.FromClause:
        """A query of the crosswalk in a form that the source can be joined to."""
        if self.own is self.source:
            return query.subquery(fresh_name())
        return self.source.load(fresh_name(), self.own.fetch(query))

    @property
    def hashes(self) -> bool:
        """Whether the digests are made of the SHA-256 of an entity's text, since the source may not have the keys."""
        return not self.source.keeps_secrets

    def entity(
        self,
        text: sa.ColumnElement[Any],
        table: sa.FromClause,
        digits: int = HEXADECIMAL,
        *,
        whose: tuple[str, ...] = (),
    ) -> sa.ColumnElement[Any]:
        """The digest that stands for an entity, from its text, in a statement of the source's session on a table.

        Keyed by a secret that stays in the database of the crosswalk: whoever gets hold of the crosswalk's rows alone
        (a dump of a table, a grant too many) can neither read identifiers nor try out likely ones. The same entity has
        the same digest in all releases of a store, which may have to be checked together.
        With a key that was given later (`new_key`) it is the digest of the older one's digest, so that people who are
        gone from the source could be moved to it too.
        A source that may not have the keys sends the SHA-256 of everybody's text instead, and is lent their digests.
        digits: of the digest; whose: what the text is, where a run may ask for it several times.
        """
        t = self.tables.key
        numbers = self.key_numbers()
        if self.hashes:
            return self._exchanged(digest(self.source, text), table, numbers, digits, whose)
        secret = self.lend(sa.select(t.c.id, t.c.secret))
        return keyed(self.source, text, [key_of(secret, number) for number in numbers], digits)

    def _exchanged(
        self,
        hashed: sa.ColumnElement[Any],
        table: sa.FromClause,
        numbers: Sequence[int],
        digits: int,
        whose: tuple[str, ...],
    ) -> sa.ColumnElement[Any]:
        what = ("digests", *whose, digits, *numbers)
        lent = self.source.lasting.get(what)
        if lent is None:
            lent = self._lent(hashed, table, numbers, digits)
            if whose and self.source.is_copy(table):  # in every other relation of the snapshot are some of the same
                self.source.lasting[what] = lent
        of_one = sa.select(sa.func.max(lent.c.entity)).where(lent.c.hashed == hashed)
        return of_one.correlate(table).scalar_subquery()

    def _lent(
        self, hashed: sa.ColumnElement[Any], table: sa.FromClause, numbers: Sequence[int], digits: int
    ) -> sa.TableClause:
        """The digests of all hashes of a relation (hashed, entity), beside the source."""
        people = sa.select(hashed.label("hashed")).select_from(table).where(hashed.is_not(None)).distinct()
        here = self.own.load(fresh_name(), self.source.fetch(people))
        keys = [key_of(self.tables.key, number) for number in numbers]
        both = self.own.fetch(sa.select(here.c.hashed, keyed(self.own, here.c.hashed, keys, digits).label("entity")))
        self.own.drop(here)
        return self.source.load(fresh_name(), both)

    def key_numbers(self) -> list[int]:
        """The numbers of the keys of the digests, oldest first. Raises QblockError where there is none."""
        t = self.tables.key
        numbers = self.column(sa.select(t.c.id).order_by(t.c.id))
        if not numbers:
            raise QblockError("the crosswalk has no key: it was altered")
        return [int(number) for number in numbers]


def fresh_name() -> str:
    """A name that no temporary table of this run has yet."""
    return f"qblock_joint_{next(_names.get())}"


def load_texts(session: Session, **columns: Iterable[str | None] | pa.Array) -> sa.TableClause:
    """Texts, and arrays of whatever else, as a temporary table beside a session."""
    arrays = {name: c if isinstance(c, pa.Array) else text_array(c) for name, c in columns.items()}
    return session.load(fresh_name(), pa.table(arrays))


def as_text(text: str) -> sa.ColumnElement[str]:
    """A text as a column of a query."""
    return sa.cast(sa.literal(text), sa.Text)


@contextmanager
def names_of_a_run() -> Iterator[None]:
    """Let a run name its temporary tables as the run before did, so that no statement is compiled for each anew."""
    token = _names.set(itertools.count())
    try:
        yield
    finally:
        _names.reset(token)


def digest(session: Session, text: sa.ColumnElement[Any], digits: int = HEXADECIMAL) -> sa.ColumnElement[Any]:
    """The first hexadecimal digits of the SHA-256 of a text, in a statement of a session."""
    return sa.func.left(session.sha256(text), digits, type_=sa.Text)


def key_of(keys: sa.FromClause, number: int) -> sa.ColumnElement[Any]:
    """One of the keys of the digests, from a relation with their numbers."""
    same = keys.c.id == sa.literal_column(str(number))
    return sa.select(keys.c.secret).where(same).scalar_subquery()


def keyed(
    session: Session,
    text: sa.ColumnElement[Any],
    keys: Sequence[sa.ColumnElement[Any]],
    digits: int = HEXADECIMAL,
) -> sa.ColumnElement[Any]:
    """The digest of a text under a chain of keys, oldest first: each is applied to the digest before it, which has as
    many digits."""
    for key in keys:
        text = digest(session, key.concat(digest(session, key.concat(text))), digits)
    return text


def prepare(store: Store) -> None:
    """Make the crosswalk's tables and its secret where they are missing, in a transaction of its own.

    Raises Busy when another process keeps the DuckDB file open, or a lock of PostgreSQL.
    """
    with store.crosswalk.write() as connection:
        schema.upgrade(connection)
        statement = sql_text("crosswalk_new_key", connection.dialect.name)
        connection.execute(sa.text(statement), {"secret": secrets.token_hex(32)})


@contextmanager
def open_crosswalk(store: Store, session: Session | None = None, *, read_only: bool = False) -> Iterator[Crosswalk]:
    """The crosswalk of a store beside a session of its source. `prepare` must have been called.

    In the source's database: within the session's own transaction. Elsewhere, and without a session: in a transaction
    that is committed at the end unless an error is raised, so that it outlasts a refused run. read_only: leaves all as
    it is. Not to be used without a session within another one: DuckDB has one writer, and on PostgreSQL it would wait
    for itself. Raises Busy when another process keeps the file open.
    """
    if session is not None and store.atomic and session.engine == store.engine:
        crosswalk = Crosswalk(session, sql_of(session))
        with store.without_nested_loops(crosswalk.own):
            yield crosswalk
            if (crosswalk.touched or crosswalk.moved) and not read_only:
                record_digests(store, crosswalk)
        return
    database = store.crosswalk
    # A server counts temporary tables as writing: there they go with the transaction.
    reads = read_only and database.file is not None
    with database.opened(read_only=reads) as connection, connection.begin() as transaction:
        if not database.ready(connection):
            raise QblockError(f"there is no crosswalk in {store.folder} yet; a release makes it")
        own = database.session(connection)
        crosswalk = Crosswalk(session or own, own)
        yield crosswalk
        if read_only:
            transaction.rollback()
        elif crosswalk.touched or crosswalk.moved:
            with digests_kept(store, crosswalk):
                transaction.commit()


def has_crosswalk(store: Store) -> bool:
    """Whether there is a crosswalk that this login may read."""
    if not store.crosswalk.exists:
        return False
    with store.crosswalk.opened(read_only=True) as connection:
        if not store.may_read(connection, ["crosswalk_apart"]):
            return False
        # A run that was killed may have left a file without its tables.
        return store.atomic or store.crosswalk.ready(connection)


def record_with(store: Store, crosswalk: Crosswalk, event: Event) -> None:
    """Write an event of the ledger together with what is written in the crosswalk: in its transaction where they have
    one database, else in one that is committed before it."""
    if store.atomic:
        record(crosswalk.own.connection, event, after=store.heads.get(event.release))
        return
    with store.write() as connection:
        record(connection, event)


class Tables:
    """In schema `qblock` on PostgreSQL, in a file of their own on DuckDB.

    key: the secrets of the digests of entities; each later one is applied to the digests of the one before. version:
    every version that was recorded. row: who was where in which version with which value (the crosswalk proper). block:
    the labels of a version's blocks, for explanations. episode and signature: what was rolled from the rows for the
    checks of a release; rolled: how far. frozen: the quasi-identifiers of an entity's first publication. apart:
    entities that are set apart, why, and in which state. turnover: who waited and who was gone when a run last looked.
    rekeyed: changes of the key that a release's ledger may not record yet. shown: what the newest version of a steady
    job shows of each person; waiting: who waits, since which run, and how values changed that are shown as they were;
    steady: what else it remembers; cohort: the map of each cohort, by the version of the state that shows it first.
    """

    def __init__(self, schema: str | None) -> None:
        metadata = sa.MetaData(schema=schema)

        def table(name: str, **columns: type[sa.types.TypeEngine]) -> sa.Table:
            return sa.Table(name, metadata, *(sa.Column(column, type_) for column, type_ in columns.items()))

        text, number = sa.Text, sa.BigInteger
        self.key = table("crosswalk_key", id=number, secret=text)
        self.version = table(
            "crosswalk_version",
            release=text,
            version=number,
            position=number,
            rows=number,
            least=number,
            source=text,
            quasi_identifiers=text,
            node=text,
            hierarchies=text,
            sensitive=text,
            audience=text,
            content=text,
            types=text,
            stamp=text,
            state=number,
        )
        self.row = table(
            "crosswalk",
            release=text,
            version=number,
            entity=text,
            block=number,
            shown=text,
            block_rows=number,
            value=text,
        )
        self.block = table(
            "crosswalk_block", release=text, version=number, block=number, shown=text, rows=number, label=text
        )
        self.episode = table(
            "crosswalk_episode",
            release=text,
            entity=text,
            episode=number,
            begun=text,
            running=sa.Boolean,
            value=text,
            signature=text,
        )
        self.signature = table("crosswalk_signature", release=text, signature=text, shown=text)
        self.rolled = table("crosswalk_rolled", release=text, versions=text)
        self.frozen = table("crosswalk_frozen", release=text, version=number, entity=text, names=text, place=text)
        self.apart = table("crosswalk_apart", release=text, entity=text, why=text, state=text, version=number)
        self.turnover = table("crosswalk_turnover", release=text, entity=text, state=text)
        self.rekeyed = table("crosswalk_rekeyed", release=text, key=number, people=number)
        self.shown = table(
            "crosswalk_shown", release=text, entity=text, block=text, cell=text, place=text, value=text, earlier=text
        )
        self.waiting = table("crosswalk_waiting", release=text, entity=text, since=number, seen=text, times=number)
        self.steady = table("crosswalk_steady", release=text, state=text)
        self.cohort = table("crosswalk_cohort", release=text, first=number, map=text)
        same = sa.and_(*(self.block.c[name] == self.row.c[name] for name in ("release", "version", "block")))
        self.row_in_block = self.row.join(self.block, same)
        self.of_releases = [relation for relation in metadata.tables.values() if "release" in relation.c]
        self.of_versions = (self.row, self.block, self.version, self.frozen)
        """Those of which a version has its own rows."""
        self.padded = (self.waiting, self.turnover)
        """Those that have rows of nobody, too (`pad`)."""
        self.of_people = (self.row, self.frozen, self.episode, self.shown)
        """Those that have a row for each person."""
        self.of_entities = [relation for relation in metadata.tables.values() if "entity" in relation.c]
        """All tables that hold digests of entities."""

    def rows_of(self, table: sa.Table, release: str) -> sa.ColumnElement[bool]:
        """Which rows of a table are of a release, with those of nobody that fill it up."""
        return table.c.release.in_((release, nobody(release)) if table in self.padded else (release,))


@cache
def _tables(schema: str | None) -> Tables:
    return Tables(schema)


def tables(engine: str) -> Tables:
    """The crosswalk's tables on an engine."""
    return _tables(ENGINES[engine].adapter.private_schema)


LEAST = 256
"""Rows of the smallest class; each other one has twice those of the class before."""


def nobody(release: str) -> str:
    """What the rows of nobody that stand beside a release have as theirs: the name of none."""
    return f"-{release}"


def size_class(rows: int) -> int:
    """How many rows there are beside a release where these are of people, and with them.

    PostgreSQL tells every login how many rows each table has, how many were written and how large it is, whoever may
    read it. So whoever waits is written anew as a whole, filled up to a size class with random digests of no release:
    with rows of nobody.
    """
    return max(LEAST, 1 << (rows - 1).bit_length()) if rows else LEAST


def clear(crosswalk: Crosswalk, table: sa.Table, release: str) -> None:
    """Delete the rows of a release, and those of nobody beside it."""
    crosswalk.write(sa.delete(table).where(table.c.release.in_((release, nobody(release)))), release)


def pad(crosswalk: Crosswalk, table: sa.Table, release: str, **same: Any) -> None:
    """Fill up the rows of a release, which `clear` has cleared, to their size class. same: further columns."""
    own = crosswalk.own
    rows = own.scalar(sa.select(sa.func.count()).select_from(table).where(table.c.release == release))
    text = secrets.token_hex(HEXADECIMAL // 2 * (size_class(rows) - rows))
    digests = [text[at : at + HEXADECIMAL] for at in range(0, len(text), HEXADECIMAL)]
    loaded = load_texts(own, entity=digests)
    values = {"release": nobody(release), **same}
    columns = [sa.cast(sa.literal(value), table.c[name].type).label(name) for name, value in values.items()]
    crosswalk.write(sa.insert(table).from_select([*values, "entity"], sa.select(*columns, loaded.c.entity)), release)
    own.drop(loaded)


@dataclass(frozen=True)
class Contents:
    """versions: of a release, with their stamps; out: how many people have left it; parts: the digests of all that is
    kept of it; beside: the releases that name it as their audience; there: whether there is a crosswalk at all;
    marked: whether parts are without those of tables that are as they were marked."""

    versions: Mapping[int, str | None] = field(default_factory=dict)
    out: int = 0
    parts: Parts = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    there: bool = True
    marked: bool = False


NOT_THERE = Contents(there=False)


def contents(
    store: Store, release: str, seconds: float, *, quick: bool = False, marked: bool = False
) -> Contents | None:
    """What the crosswalk of a store holds of a release; nothing where there is no crosswalk.

    quick: as of `integrity.all_parts`; marked: whether marks do where tables are as they were; seconds: to wait for
    another process that has the DuckDB file open. None where it is not known what is in it: the login lacks permission
    to read it, or (with 0 seconds) another process has it open. Raises Busy after waiting in vain.
    """
    if not store.crosswalk.exists:
        return NOT_THERE
    try:
        with store.crosswalk.opened(read_only=True, seconds=seconds) as connection:
            if schema.known_revision(connection) is None:
                return NOT_THERE
            own = store.crosswalk.session(connection)
            t = tables(own.engine)
            readable = store.may_read(connection, [table.name for table in (t.key, *t.of_releases)])
            if not readable:
                return None if readable is None else NOT_THERE
            versions, out = _versions_and_out(connection, t, release)
            others = sa.select(t.version.c.release, t.version.c.audience).where(t.version.c.release != release)
            beside = {row.release for row in connection.execute(others) if release in json.loads(row.audience)}
            marked = marked and is_as_marked(own, t, release)
            parts = all_parts(own, t, release, quick=quick, without=t.of_people if marked else ())
            return Contents(versions, out, parts, tuple(sorted(beside)), marked=marked)
    except Busy:
        if seconds or store.crosswalk.file is None:
            raise
        return None


def _versions_and_out(connection: sa.Connection, t: Tables, release: str) -> tuple[dict[int, str | None], int]:
    query = sa.select(t.version.c.version, t.version.c.stamp).where(t.version.c.release == release)
    rows = connection.execute(query)
    versions = {row.version: row.stamp for row in rows}
    gone = sa.and_(t.apart.c.release == release, t.apart.c.state == OUT, t.apart.c.why.in_((WITHDRAWN, CELL)))
    out = connection.scalar(sa.select(sa.func.count(sa.distinct(t.apart.c.entity))).where(gone))
    return versions, int(out or 0)


def lacking(store: Store, versions: list[int], *, there: bool) -> str:
    """What is reported about versions whose part of the crosswalk is missing."""
    named = ", ".join(map(str, versions[:SHOWN])) + (", ..." if len(versions) > SHOWN else "")
    said = f"the ledger has shown version {named} checked together with others, and the crosswalk lacks it"
    return said if there else f"{said}: {store.crosswalk_named} gone"
