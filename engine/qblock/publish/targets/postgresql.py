"""A release as a PostgreSQL view over the version that is shown; versions are kept as tables of the private schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.engines.from_spec import is_elsewhere
from qblock.engines.postgresql.adapter import PostgresqlAdapter, PostgresqlWarehouse
from qblock.engines.postgresql.copied import send_rows
from qblock.engines.postgresql.lock_waits import (
    DEADLOCK,
    DEPENDENT,
    KEEP,
    LOCK,
    REPLACE,
    ROW,
    Attempt,
    in_one_attempt,
    retry_with_backoff,
    state_of,
)
from qblock.engines.quoting import quote, quote_text
from qblock.engines.rights import Needs
from qblock.engines.session import Session
from qblock.engines.sql_session import SqlSession, sql_of
from qblock.engines.tables import TableName
from qblock.errors import Busy, InputError, QblockError, Refused
from qblock.ledger.chain import lock_pointer
from qblock.ledger.events import RecordedEvent
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.reader import LedgerReader
from qblock.ledger.stamps import ObjectTag
from qblock.ledger.store import SCHEMA, Store
from qblock.ledger.stores.postgresql import WRITTEN
from qblock.publish.copy import Copy
from qblock.publish.helpers import Shown, check_names, reserved_schema
from qblock.publish.targets import postgresql_access as access
from qblock.publish.targets.postgresql_move import move
from qblock.publish.targets.postgresql_needs import home_of, needs, readers_of
from qblock.publish.targets.postgresql_tables import (
    MOST_BYTES,
    TABLES,
    VERSIONS,
    Layout,
    ShownTables,
    of_kinds,
    pattern_of,
    version_table,
)
from qblock.publish.targets.postgresql_view import close, run, text
from qblock.publish.targets.postgresql_views import Views
from qblock.publish.targets.protocol import STAYS, Identity, Record, Rows, copied_source, exposure, table_text
from qblock.spec import Spec

RESERVED = re.compile(r"pg_.*|information_schema", re.DOTALL)
"""Schemas that are the server's."""


class PostgresqlTarget:
    """The Target protocol for PostgreSQL.

    `qblock.v<N>_<release>` is a version, which no reader's query touches; what is shown is a copy of one (ShownTables).
    """

    def __init__(self, spec: Spec, store: Store) -> None:
        self.spec = spec
        self.store = store
        self.views = Views(spec)
        self.tables = ShownTables(spec.release)

    @property
    def view(self) -> str:
        return self.views.shown

    @property
    def place_name(self) -> str:
        return self.views.shown

    def identity(self) -> Identity:
        with self._session() as session, self.store.translated():
            readers = readers_of(session.connection, self.spec)
            if is_elsewhere(self.spec):
                return Identity(*copied_source(self.spec), self.view, readers)
            source = home_of(session.connection, TableName.parse(self.spec.source.table))
        return Identity(None if source is None else table_text(source), None, self.view, readers)

    def check(self) -> list[str]:
        for store, name in (("schema", self.spec.publish.schema), ("view", self.spec.view)):
            if len(name.encode()) > MOST_BYTES:
                raise InputError(
                    f"{self.spec.at('publish', store)}: {name} has more than {MOST_BYTES} bytes, the most that "
                    "PostgreSQL keeps of a name; shorten it"
                )
        check_names(self.spec)
        reserved_schema(self.spec, "PostgreSQL", RESERVED)
        if self.spec.publish.schema == SCHEMA:
            raise InputError(
                f"{self.spec.at('publish', 'schema')}: {SCHEMA} is the private schema; publish in another one"
            )
        with self._session() as session:
            facts = self.views.check_names(session.connection)
            with self.store.translated():
                return access.path_warnings(session.connection, self._readers(session.connection, facts))

    def needs(self, job: str | None = None, officer: str | None = None) -> Needs:
        with self._session() as session, self.store.translated():
            return needs(session.connection, self.spec, job, officer)

    def find_exposures(self) -> list[str]:
        with self._session() as session, self.store.translated():
            connection = session.connection
            return access.ways(connection, self.spec, self._readers(connection))

    def _readers(self, connection: sa.Connection, facts: Any = None) -> list[str]:
        """The readers of the spec, and everybody else who was granted something on the view."""
        facts = self.views.facts(connection) if facts is None else facts
        given = connection.execute(text("relation_grantees"), {"oid": facts.oid}) if facts is not None else ()
        granted = sorted({row.grantee for row in given if row.grantee is not None})
        return list(dict.fromkeys([*self.spec.publish.readers, *granted]))

    def prove(self, connection: sa.Connection) -> list[str]:
        """Raise Refused where a reader could reach something private, as the catalog says or as it is tried."""
        readers = self._readers(connection)
        ways = access.ways(connection, self.spec, readers)
        # As in a reader's own session: a policy there filters, and the rows that it leaves are read.
        run(connection, "SET LOCAL row_security = on")
        problems, notes = access.tried(connection, self.spec, readers, self.views.sql)
        run(connection, "SET LOCAL row_security = off")
        if ways or problems:
            raise Refused(exposure([*ways, *problems]))
        return notes

    def stage(self, session: Session, copy: Copy, shown: Shown, tag: ObjectTag, record: Record) -> None:
        here = session.engine == self.store.engine
        with nullcontext(sql_of(session)) if here else self._session() as own:
            self._stage(session, own, copy, shown, tag, record)

    def _stage(
        self, source: Session, session: SqlSession, copy: Copy, shown: Shown, tag: ObjectTag, record: Record
    ) -> None:
        name = self._version(tag.version)
        table, columns = f"{SCHEMA}.{quote(name)}", [column.name for column in copy.columns]
        body = ", ".join(f"{quote(column.name)} {column.type}" for column in copy.columns)
        with self.store.translated():
            session.run(f"CREATE TABLE {table} ({body})")
        # What default privileges have given on a new table.
        close(session.connection, SCHEMA, name)
        session.run(f"COMMENT ON TABLE {table} IS {quote_text(tag.text)}")
        if source is session:
            into = sa.table(name, *map(sa.column, columns), schema=SCHEMA)
            session.run(sa.insert(into).from_select(columns, copy.ordered))
        else:
            # Days before the year 1, or without an end, have no form that both write alike.
            send_rows(source, copy.with_texts(source, ("date", "timestamp")), session, table)
        rows = session.scalar(f"SELECT count(*) FROM {table}")
        if rows != copy.rows:
            raise Refused(f"the copy has {rows} rows, but {copy.rows} were counted: nothing is published")
        session.run(f"ANALYZE {table}")
        inserts = self.views.loaded(session, shown)

        def write(attempt: Attempt) -> None:
            attempt.wants(ROW, SCHEMA, *TABLES)
            self.views.forget(session.connection, tag.version)
            for insert in inserts:
                session.run(insert)
            attempt.wants(ROW, SCHEMA, *WRITTEN)
            record(session.connection, "staged")

        with self.store.translated():
            in_one_attempt(session.connection, self.seconds, table, write)
            session.connection.commit()

    def prepare(self, columns: Sequence[PublishedColumn]) -> None:
        """Make ready the tables that readers' views read.

        In a transaction of its own: a column is added under a lock that keeps readers out.
        """
        with self._session() as session, self.store.translated():
            work = partial(self.tables.prepare, columns=columns)
            retry_with_backoff(session.connection, self.seconds, self.view, work)
            session.connection.commit()

    @property
    def seconds(self) -> float:
        """The seconds that a reader may have to wait behind a statement of the job."""
        return float(self.spec.publish.lock_timeout)

    def layout(self, connection: sa.Connection, version: int, columns: Sequence[PublishedColumn]) -> Layout | None:
        """Where the columns of a version are in the table that is shown; None for a version that does not exist or was
        altered, and where no table has these columns."""
        tables = self._tables(connection)
        if not self._is_whole(tables, version, columns):
            return None
        layout = self.tables.layout(connection, columns, tables)
        return None if layout is None or layout.missing else layout

    def _is_whole(self, tables: Sequence[Any], version: int, columns: Sequence[PublishedColumn]) -> bool:
        """Whether the table of a version is there, with these columns and no other."""
        there = {table.name: table.columns for table in tables}.get(self._version(version))
        return there is not None and [tuple(column) for column in there] == [(c.name, c.type) for c in columns]

    def _tables(self, connection: sa.Connection) -> Sequence[Any]:
        """The tables of the release, of all kinds."""
        with self.store.translated():
            return connection.execute(text("release_tables"), {"pattern": pattern_of(self.spec.release)}).all()

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[PostgresqlChecked]:
        name = self._version(version)
        with self._session() as session:

            def keep(attempt: Attempt) -> None:
                attempt.wants(KEEP, SCHEMA, name)
                session.run(f"LOCK TABLE {SCHEMA}.{quote(name)} IN SHARE MODE")

            with self.store.translated():
                in_one_attempt(session.connection, self.seconds, f"{SCHEMA}.{name}", keep)
            if not self._is_whole(self._tables(session.connection), version, columns):
                raise Refused(f"{SCHEMA}.{name} is not the table of version {version} any more: it was altered")
            rows = Rows(session, self._rows(session, version, columns))
            yield PostgresqlChecked(self, rows, version, columns)

    def _rows(self, session: SqlSession, version: int, columns: Sequence[PublishedColumn]) -> sa.FromClause:
        """The rows of a version under the names that it publishes."""
        table = session.relation(TableName(SCHEMA, self._version(version)))
        selected = [table.c[column.name].label(quoted_name(column.name, quote=True)) for column in columns]
        return sa.select(*selected).subquery("qblock_version_rows")

    def tags(self) -> list[ObjectTag]:
        with self._session() as session:
            tables = self._tables(session.connection)
        tags, release = [], self.spec.release
        for table in of_kinds(tables, release, VERSIONS):
            version, tag = int(table.name[1:].partition("_")[0]), ObjectTag.read(table.comment, release)
            tags.append(tag if tag and tag.version == version else ObjectTag(release, version, None))
        return tags

    def shows(self) -> bool:
        with self._session() as session, self.store.translated():
            return self.tables.shows(session.connection)

    def holds(self, version: int) -> bool:
        with self._session() as session:
            return any(table.name == self._version(version) for table in self._tables(session.connection))

    def is_live(self, version: int) -> bool:
        # The ledger and the pointer row change in one transaction: nothing can land without its ledger row.
        return False

    def clear(self, kept: Sequence[int]) -> list[str]:
        removed = []
        with self._session() as session:
            tables, names = self._tables(session.connection), {self._version(version) for version in kept}
            others = [t.name for t in of_kinds(tables, self.spec.release, VERSIONS) if t.name not in names]
            shown = self._version(self._pointer(session.connection)) if others else None
        for name in others:
            if name != shown and self._drop(name, None):
                removed.append(f"{SCHEMA}.{name}")
        self.pack(tables)
        return removed

    def pack(self, known: Sequence[Any] | None = None) -> None:
        """Leave nothing of versions that are not shown in what views read, as far as nobody is in the way. known: the
        tables of the release, where they are."""
        with self.store.translated():
            with self._session() as session:
                known = self._tables(session.connection) if known is None else known
                unread = self.tables.unread(known)
                tables = self.tables.unpacked(session.connection, known)
            dropped = [name for name in unread if self._drop(name, None)]
            tables = [table for table in tables if table.name not in dropped]
            if tables:
                with self.store.create_engine().connect() as connection:
                    self.tables.pack(connection, tables, self.seconds)

    def difference(self, version: int, columns: Sequence[PublishedColumn], digest: str | None) -> str:
        return f"{self.view} is not as version {version} was published"

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        with self._session() as session, self.store.translated():
            layout = self.layout(session.connection, version, columns)
            return layout is not None and self.views.all_intact(session.connection, layout, columns)

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        with self._session() as session, self.store.translated():
            self.views.check_all(session.connection, columns)

    @contextmanager
    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[tuple[SqlSession, str]]:
        warehouse = PostgresqlWarehouse(self.store.url)
        try:
            with warehouse.snapshot() as session:
                with self.store.translated():
                    whole = self._is_whole(self._tables(session.connection), version, columns)
                if not whole:
                    raise Refused(f"{SCHEMA}.{self._version(version)} is not the table of version {version} any more")
                for statement in self.views.temporary(self._version(version), version, columns):
                    session.run(statement)
                yield session, session.scalar("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")
        finally:
            warehouse.close()

    @contextmanager
    def published(self) -> Iterator[Rows]:
        warehouse = PostgresqlWarehouse(self.store.url)
        try:
            with warehouse.snapshot() as session:
                if self.views.facts(session.connection) is None:
                    raise Refused(f"the view {self.view} does not exist: nothing is published")
                rows = session.relation(TableName(self.spec.publish.schema, self.spec.view))
                yield Rows(session, rows)
        finally:
            warehouse.close()

    def grant(self) -> list[str]:
        with self._session() as session, self.store.translated():

            def give(attempt: Attempt) -> list[str]:
                attempt.wants(REPLACE, self.spec.publish.schema, self.spec.view, catalog=True)
                return self.views.grant(attempt.connection)

            given = retry_with_backoff(session.connection, self.seconds, self.view, give)
            session.connection.commit()
        return given

    def close(self, record: Record) -> None:
        # Neither waits for readers nor makes them wait: a view that is dropped would, and analysts' own views with it.
        def take(attempt: Attempt) -> None:
            attempt.wants(ROW, SCHEMA, *WRITTEN)
            record(attempt.connection, "retired_view")
            self.tables.empty(attempt)
            self.tables.analyze(attempt.connection)
            self.tables.note(attempt)
            if self.views.facts(attempt.connection) is not None:
                attempt.wants(REPLACE, self.spec.publish.schema, self.spec.view, catalog=True)
                self.views.close_all(attempt.connection)

        with self._session() as session, self.store.translated():
            retry_with_backoff(session.connection, self.seconds, self.view, take)
            session.connection.commit()
        self.pack()

    def unpublish(self) -> None:
        # The ledger and what readers see change in one transaction.
        return None

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        left = []
        for version, record in versions.items():
            name = self._version(version)
            with self._session() as session:
                seen = self._pointer(session.connection) == version
                exists = any(table.name == name for table in self._tables(session.connection))
            if seen:
                left.append(STAYS.format(version))
            elif not self._drop(name, record, exists):
                left.append(f"version {version} stays until its readers have ended")
        return left

    def move(self, connection: sa.Connection, earlier: str, last: RecordedEvent) -> list[str]:
        """Rename the tables of the versions, and make the view that of the spec.

        The view stays the same object, so that analysts' own views keep working, and keeps its grants. Raises Busy
        where readers or others keep it locked, Refused where readers could reach what is private.
        """
        view = TableName.parse(last.target or "")
        return retry_with_backoff(
            connection, self.seconds, last.target or self.view, lambda attempt: move(self, attempt, earlier, view)
        )

    def finish_move(
        self, earlier: str, before: str, kept: Mapping[int, Sequence[PublishedColumn]], current: int | None
    ) -> None:
        # All of it was done in the transaction of the ledger.
        return None

    def _pointer(self, connection: sa.Connection) -> int:
        """The version that the pointer row names; 0, which none has, where it names none."""
        with self.store.translated():
            return LedgerReader(connection).pointer(self.spec.release) or 0

    def _drop(self, name: str, record: Record | None, exists: bool = True) -> bool:
        """Drop one table, a version with its record, unless somebody is in the way; whether it is gone."""

        def drop(attempt: Attempt) -> None:
            if record is not None:
                record(attempt.connection, "retired")
            version = re.match(r"v(\d+)_", name)
            if version is not None:
                self.views.forget(attempt.connection, int(version[1]))
            if exists:
                run(attempt.connection, f"DROP TABLE {SCHEMA}.{quote(name)}")

        with self._session() as session, self.store.translated():
            try:
                retry_with_backoff(session.connection, self.seconds, f"{SCHEMA}.{name}", drop, attempts=1)
            except (Busy, sa.exc.DBAPIError) as error:
                if state_of(error) not in (LOCK, DEADLOCK, DEPENDENT):
                    raise
                return False
            session.connection.commit()
        return True

    def _version(self, version: int) -> str:
        return version_table(version, self.spec.release)

    @contextmanager
    def _session(self) -> Iterator[SqlSession]:
        """A session in a READ COMMITTED transaction, rolled back unless it is committed."""
        with self.store.translated():
            connection = self.store.create_engine().connect()
        try:
            yield SqlSession(connection, PostgresqlAdapter())
        except BaseException:
            self.store.give_up(connection)
            raise
        finally:
            connection.close()


class PostgresqlChecked:
    """A staged version in the second transaction."""

    def __init__(self, target: PostgresqlTarget, rows: Rows, version: int, columns: Sequence[PublishedColumn]) -> None:
        self.rows = rows
        self._target = target
        self._version = version
        self._columns = columns

    def publish(self, record: Record) -> list[str]:
        target, connection = self._target, sql_of(self.rows.session).connection
        target.prepare(self._columns)

        def fill(attempt: Attempt) -> Layout:
            layout = target.layout(connection, self._version, self._columns)
            if layout is None:
                raise QblockError(f"the table that {target.view} reads was altered meanwhile; run it again")
            target.tables.fill(attempt, layout, self._version)
            return layout

        def show(attempt: Attempt) -> list[str]:
            attempt.wants(ROW, SCHEMA, *WRITTEN)
            record(connection, "checked")
            lock_pointer(connection, target.spec.release)
            if not target.views.all_intact(connection, layout, self._columns, whole=True):
                # What the proof asks for is locked before the view is, for which readers wait from then on.
                access.lock_private(connection, target.spec, attempt)
                target.views.make_all(connection, layout, self._columns, attempt)
            attempt.wants(REPLACE, target.spec.publish.schema, target.spec.view, catalog=True)
            target.views.grant(connection)
            notes = target.prove(connection)
            attempt.use_time_left()
            record(connection, "published")
            return notes

        with target.store.translated():
            # Nobody waits for it, and it takes long: before the locks that readers wait for.
            layout = in_one_attempt(connection, target.seconds, target.view, fill)
            notes = retry_with_backoff(connection, target.seconds, target.view, show)
            connection.commit()
        target.pack()
        return notes
