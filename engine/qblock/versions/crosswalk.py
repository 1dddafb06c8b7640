"""The crosswalk of a place, beside the session that reads the source."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger import schema
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.ledger.store import Store
from qblock.resources import sql_text
from qblock.versions.tables import Tables, tables
from qblock.warehouse.protocol import Session
from qblock.warehouse.queries import Query

HEXADECIMAL = 32
"""Digits kept of a digest: with 128 bits, two of ten million persons share one with a chance of 1 in 10^24."""

_names: ContextVar[Iterator[int]] = ContextVar("names of temporary tables", default=itertools.count())  # noqa: B039


@dataclass(frozen=True, eq=False)
class Crosswalk:
    """The crosswalk, open within one transaction. source: reads the source; own: reads and writes the crosswalk.

    On PostgreSQL they are one session: what is written is committed with the transaction that stages the version. On
    DuckDB the crosswalk is a file of its own, committed when it is closed, and rows go over as Arrow columns.
    read: the versions that were read from it, until one is written (`versions.versions`).
    """

    source: Session
    own: Session
    read: dict[str | None, list[Any]] = field(default_factory=dict, init=False, repr=False)

    @property
    def tables(self) -> Tables:
        return tables(self.own.engine)

    def bring(self, query: Query) -> sa.TableClause:
        """A query of the source as a temporary table beside the crosswalk."""
        if self.own is self.source:
            return self.own.store(fresh_name(), query)
        return self.own.load(fresh_name(), self.source.fetch(query))

    def lend(self, query: Query) -> sa.FromClause:
        """A query of the crosswalk in a form that the source can be joined to."""
        if self.own is self.source:
            return query.subquery(fresh_name())
        return self.source.load(fresh_name(), self.own.fetch(query))

    @property
    def hashes(self) -> bool:
        """Whether the digests are made of the SHA-256 of an entity's text, since the source may not have the keys."""
        return not self.source.keeps_secrets

    def entity(self, text: sa.ColumnElement[Any], table: sa.FromClause) -> sa.ColumnElement[Any]:
        """The digest that stands for an entity, from its text, in a statement of the source's session on a table.

        Keyed by a secret that stays in the database of the crosswalk: whoever gets hold of the crosswalk's rows alone
        (a dump of a table, a grant too many) can neither read identifiers nor try out likely ones. The same entity has
        the same digest in all releases of a place, which may have to be checked together.
        With a key that was given later (`new_key`) it is the digest of the older one's digest, so that people who are
        gone from the source could be moved to it too.
        A source that may not have the keys sends the SHA-256 of everybody's text instead, and is lent their digests.
        """
        t = self.tables.key
        numbers = self.key_numbers()
        if self.hashes:
            return self._exchanged(digest(self.source, text), table, numbers)
        secret = self.lend(sa.select(t.c.id, t.c.secret))
        return keyed(self.source, text, [key_of(secret, number) for number in numbers])

    def _exchanged(
        self, hashed: sa.ColumnElement[Any], table: sa.FromClause, numbers: Sequence[int]
    ) -> sa.ColumnElement[Any]:
        people = sa.select(hashed.label("hashed")).select_from(table).where(hashed.is_not(None)).distinct()
        here = self.own.load(fresh_name(), self.source.fetch(people))
        keys = [key_of(self.tables.key, number) for number in numbers]
        both = self.own.fetch(sa.select(here.c.hashed, keyed(self.own, here.c.hashed, keys).label("entity")))
        self.own.drop(here)
        there = self.source.load(fresh_name(), both)
        of_one = sa.select(sa.func.max(there.c.entity)).where(there.c.hashed == hashed)
        return of_one.correlate(table).scalar_subquery()

    def key_numbers(self) -> list[int]:
        """The numbers of the keys of the digests, oldest first. Raises QblockError where there is none."""
        t = self.tables.key
        numbers = self.own.fetch(sa.select(t.c.id).order_by(t.c.id))["id"].to_pylist()
        if not numbers:
            raise QblockError("the crosswalk has no key: it was altered")
        return [int(number) for number in numbers]


def fresh_name() -> str:
    """A name that no temporary table of this run has yet."""
    return f"qblock_joint_{next(_names.get())}"


@contextmanager
def names_of_a_run() -> Iterator[None]:
    """Let a run name its temporary tables as the run before did, so that no statement is compiled for each anew."""
    token = _names.set(itertools.count())
    try:
        yield
    finally:
        _names.reset(token)


def digest(session: Session, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The first 32 hexadecimal digits of the SHA-256 of a text, in a statement of a session."""
    return sa.func.left(session.sha256(text), HEXADECIMAL, type_=sa.Text)


def key_of(keys: sa.FromClause, number: int) -> sa.ColumnElement[Any]:
    """One of the keys of the digests, from a relation with their numbers."""
    same = keys.c.id == sa.literal_column(str(number))
    return sa.select(keys.c.secret).where(same).scalar_subquery()


def keyed(
    session: Session, text: sa.ColumnElement[Any], keys: Sequence[sa.ColumnElement[Any]]
) -> sa.ColumnElement[Any]:
    """The digest of a text under a chain of keys, oldest first: each is applied to the digest before it."""
    for key in keys:
        text = digest(session, key.concat(digest(session, key.concat(text))))
    return text


def encoded(texts: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    """Several texts that may be NULL as one text, which no other texts yield (`decoded` reads it)."""
    result: sa.ColumnElement[Any] = sa.literal_column("''", sa.Text)
    for text in texts:
        length = sa.cast(sa.func.length(text), sa.Text)
        sized = sa.literal_column("'V'", sa.Text).concat(length).concat(":").concat(text)
        result = result.concat(sa.func.coalesce(sized, sa.literal_column("'N'", sa.Text)))
    return result


def decoded(text: str) -> tuple[str | None, ...]:
    """The texts that `encoded` joined."""
    texts: list[str | None] = []
    at = 0
    while at < len(text):
        if text[at] == "N":
            texts.append(None)
            at += 1
            continue
        length, _, _ = text[at + 1 :].partition(":")
        start = at + 2 + len(length)
        texts.append(text[start : start + int(length)])
        at = start + int(length)
    return tuple(texts)


def prepare(place: Store) -> None:
    """Make the crosswalk's tables and its secret where they are missing, in a transaction of its own.

    Raises Busy when another process keeps the DuckDB file open.
    """
    with place.crosswalk.write(None) as connection:
        schema.upgrade(connection)
        connection.execute(sa.text(sql_text("crosswalk_new_key")), {"secret": secrets.token_hex(32)})


@contextmanager
def open_crosswalk(place: Store, session: Session | None = None, *, read_only: bool = False) -> Iterator[Crosswalk]:
    """The crosswalk of a place beside a session of its source. `prepare` must have been called.

    In the source's database: within the session's own transaction. Elsewhere, and without a session: in a transaction
    that is committed at the end unless an error is raised, so that it outlasts a refused run. read_only: leaves all as
    it is. Not to be used without a session within another one: DuckDB has one writer, and on PostgreSQL it would wait
    for itself. Raises Busy when another process keeps the file open.
    """
    if session is not None and place.atomic:
        with place.without_nested_loops(session):
            yield Crosswalk(session, session)
        return
    database = place.crosswalk
    # A server counts temporary tables as writing: there they go with the transaction.
    reads = read_only and database.file is not None
    with database.opened(read_only=reads) as connection, connection.begin() as transaction:
        if not database.ready(connection):
            raise QblockError(f"there is no crosswalk in {place.folder} yet; a release makes it")
        own = database.session(connection)
        yield Crosswalk(session or own, own)
        if read_only:
            transaction.rollback()


def has_crosswalk(place: Store) -> bool:
    """Whether there is a crosswalk that this login may read."""
    if not place.crosswalk.exists:
        return False
    with place.crosswalk.opened(read_only=True) as connection:
        if not place.may_read(connection, ["crosswalk_apart"]):
            return False
        # A run that was killed may have left a file without its tables.
        return place.atomic or place.crosswalk.ready(connection)


def record_with(place: Store, crosswalk: Crosswalk, event: Event) -> None:
    """Write an event of the ledger together with what is written in the crosswalk: in its transaction where they have
    one database, else in one that is committed before it."""
    if place.atomic:
        record(crosswalk.own.connection, event)
        return
    with place.write() as connection:
        record(connection, event)
