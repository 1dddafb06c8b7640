"""The book of a place: the database that holds the crosswalk, beside the session that reads the source."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.joint.tables import Tables, tables
from qblock.ledger import migrate
from qblock.ledger.place import Place, translated
from qblock.ledger.writer import ledger_transaction, opened
from qblock.resources import sql_text
from qblock.warehouse.duckdb import DuckdbFacts
from qblock.warehouse.postgresql import PostgresqlFacts
from qblock.warehouse.protocol import Session
from qblock.warehouse.queries import Query
from qblock.warehouse.session import SqlSession

FILE = "crosswalk.duckdb"
HEXADECIMAL = 32
"""Digits kept of a digest: 128 bits tell ten million persons apart but for a chance of 1 in 10^24."""

_names = itertools.count()


@dataclass(frozen=True, eq=False)
class Book:
    """The crosswalk, open within one transaction. source: reads the source; own: reads and writes the crosswalk.

    On PostgreSQL they are one session: what is written is committed with the transaction that stages the version. On
    DuckDB the crosswalk is a file of its own, committed when the book is closed, and rows go over as Arrow columns.
    """

    source: Session
    own: Session

    @property
    def tables(self) -> Tables:
        return tables(self.own.engine)

    def bring(self, query: Query) -> sa.TableClause:
        """A query of the source as a temporary table beside the crosswalk."""
        if self.own is self.source:
            return self.own.store(fresh_name(), query)
        return self.own.load(fresh_name(), self.source.fetch(query))

    def lend(self, query: Query) -> sa.FromClause:
        """A query of the crosswalk as something that the source can be joined to."""
        if self.own is self.source:
            return query.subquery(fresh_name())
        return self.source.load(fresh_name(), self.own.fetch(query))

    def entity(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The digest that stands for an entity, from its text, in a statement of the source's session.

        Keyed by a secret that stays in the database of the crosswalk: whoever gets hold of the crosswalk's rows alone
        (a dump of a table, a grant too many) can neither read identifiers nor try out likely ones. The same entity has
        the same digest in all releases of a place, which may have to be checked together.
        With a key that was given later (`new_key`) it is the digest of the older one's digest, so that people who are
        gone from the source could be moved to it too.
        """
        t = self.tables.key
        numbers = self.key_numbers()
        secret = self.lend(sa.select(t.c.id, t.c.secret))
        return keyed(self.source.engine, text, [key_of(secret, number) for number in numbers])

    def key_numbers(self) -> list[int]:
        """The numbers of the keys of the digests, oldest first. Raises QblockError where there is none."""
        t = self.tables.key
        found = self.own.fetch(sa.select(t.c.id).order_by(t.c.id))["id"].to_pylist()
        if not found:
            raise QblockError("the crosswalk has no key: it was altered")
        return [int(number) for number in found]


def fresh_name() -> str:
    """A name that no temporary table of this process has."""
    return f"qblock_joint_{next(_names)}"


def digest(engine: str, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """The first 32 hexadecimal digits of the SHA-256 of a text."""
    if engine == "duckdb":
        whole: sa.ColumnElement[Any] = sa.func.sha256(text, type_=sa.Text)
    else:
        whole = sa.func.encode(sa.func.sha256(sa.func.convert_to(text, "UTF8")), "hex", type_=sa.Text)
    return sa.func.left(whole, HEXADECIMAL, type_=sa.Text)


def key_of(keys: sa.FromClause, number: int) -> sa.ColumnElement[Any]:
    """One of the keys of the digests, from a relation with their numbers."""
    same = keys.c.id == sa.literal_column(str(number))
    return sa.select(keys.c.secret).where(same).scalar_subquery()


def keyed(engine: str, text: sa.ColumnElement[Any], keys: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    """The digest of a text under a chain of keys, oldest first: each is applied to the digest before it."""
    for key in keys:
        text = digest(engine, key.concat(digest(engine, key.concat(text))))
    return text


def encoded(texts: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
    """Several texts that may be NULL as one text, which no other texts give (`decoded` reads it)."""
    result: sa.ColumnElement[Any] = sa.literal_column("''", sa.Text)
    for text in texts:
        length = sa.cast(sa.func.length(text), sa.Text)
        sized = sa.literal_column("'V'", sa.Text).concat(length).concat(":").concat(text)
        result = result.concat(sa.func.coalesce(sized, sa.literal_column("'N'", sa.Text)))
    return result


def decoded(text: str) -> tuple[str | None, ...]:
    """The texts that `encoded` put together."""
    found: list[str | None] = []
    at = 0
    while at < len(text):
        if text[at] == "N":
            found.append(None)
            at += 1
            continue
        length, _, _ = text[at + 1 :].partition(":")
        start = at + 2 + len(length)
        found.append(text[start : start + int(length)])
        at = start + int(length)
    return tuple(found)


def prepare(place: Place) -> None:
    """Make the crosswalk's tables and its secret where they are missing, in a transaction of its own.

    Raises Busy when another process keeps the DuckDB file open.
    """
    if place.engine == "postgresql":
        with ledger_transaction(place, None) as connection:
            migrate.upgrade(connection)
            connection.execute(sa.text(sql_text("crosswalk_new_key")), {"secret": secrets.token_hex(32)})
        return
    with opened(crosswalk_of(place), read_only=False) as connection, translated(place), connection.begin():
        migrate.upgrade(connection)
        connection.execute(sa.text(sql_text("crosswalk_new_key")), {"secret": secrets.token_hex(32)})


@contextmanager
def open_book(place: Place, session: Session, *, read_only: bool = False) -> Iterator[Book]:
    """The crosswalk of a place beside a session of its source. `prepare` must have been called.

    PostgreSQL: within the session's own transaction. DuckDB: in a transaction that is committed at the end unless an
    error is raised; the file is open for its length. read_only: leaves the file as it is. Raises Busy when another
    process keeps the file open.
    """
    if place.engine == "postgresql":
        # Tables just filled have no statistics, and a login that does not own them cannot ask for any: one guess too
        # low, and every person is compared with every other.
        found = session.scalar("SELECT current_setting('enable_nestloop')")
        session.run("SET LOCAL enable_nestloop = off")
        yield Book(session, session)
        session.run(f"SET LOCAL enable_nestloop = {found}")
        return
    with opened(crosswalk_of(place), read_only=read_only) as connection, translated(place), connection.begin():
        if not migrate.ready(connection):
            raise QblockError(f"there is no crosswalk in {place.folder} yet; a release makes it")
        yield Book(session, SqlSession(connection, DuckdbFacts(None)))


@contextmanager
def own_book(place: Place) -> Iterator[Book]:
    """The crosswalk in a transaction of its own, without a source, committed at the end: it outlasts a refused run.

    Not within `open_book` of the same thread: DuckDB has one writer, and on PostgreSQL it would wait for itself.
    """
    if place.engine == "postgresql":
        with ledger_transaction(place, None) as connection:
            session = SqlSession(connection, PostgresqlFacts())
            yield Book(session, session)
        return
    with opened(crosswalk_of(place), read_only=False) as connection, translated(place), connection.begin():
        session = SqlSession(connection, DuckdbFacts(None))
        yield Book(session, session)


def has_book(place: Place) -> bool:
    """Whether there is a crosswalk that this login may read."""
    if place.engine == "duckdb":
        if not (place.folder / FILE).exists():
            return False
        # A run that was killed may have left the file without its tables.
        with opened(crosswalk_of(place), read_only=True) as connection, translated(place):
            return migrate.ready(connection)
    with opened(place, read_only=True) as connection, translated(place):
        query = "SELECT has_table_privilege(to_regclass('qblock.crosswalk_apart'), 'SELECT')"
        return bool(connection.scalar(sa.text(query)))


def crosswalk_of(place: Place) -> Place:
    """The database that the crosswalk is in: on DuckDB a file of its own."""
    if place.engine == "postgresql":
        return place
    return replace(place, url=place.url.set(database=str(place.folder / FILE)))
