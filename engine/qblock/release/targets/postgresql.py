"""A release as a PostgreSQL view: versions are partitions in the private schema, and a pointer row names one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import sqlalchemy as sa

from qblock.errors import InputError, Refused
from qblock.release.content import relation_digest
from qblock.release.copy import Copy, PublishedColumn
from qblock.release.ledger_reader import LedgerReader
from qblock.release.private import SCHEMA, Place, create_engine, translated
from qblock.release.targets import creators, rights
from qblock.release.targets.homes import with_schemas
from qblock.release.targets.mark import Mark, mark_text, read_mark
from qblock.release.targets.protocol import STAYS, Record, Rows, exposure
from qblock.release.targets.view import MOST_BYTES, View, run, text
from qblock.spec import Spec
from qblock.warehouse.faults import explain_postgresql
from qblock.warehouse.postgresql import PostgresqlFacts, PostgresqlWarehouse, prepare, quote
from qblock.warehouse.protocol import Session, TableName
from qblock.warehouse.session import SqlSession

VERSION = "qblock_version"
LOCK_MILLISECONDS = 500
"""Readers that come after a statement which waits for a lock wait behind it; so it never waits for long."""


class PostgresqlTarget:
    """The Target protocol for PostgreSQL.

    `qblock.data_<release>` (with another column list `data2_<release>`, ...) is partitioned by version;
    `qblock.v<N>_<release>` is a version. Release names may end in anything, so what tells them apart comes first.
    """

    def __init__(self, spec: Spec, place: Place) -> None:
        self.spec = spec
        self.place = place
        self._view = View(spec)

    @property
    def view(self) -> str:
        return self._view.shown

    @property
    def made(self) -> View:
        """The view itself."""
        return self._view

    @property
    def place_name(self) -> str:
        return self._view.shown

    def check(self) -> list[str]:
        for place, name in (("schema", self.spec.publish.schema), ("view", self.spec.view)):
            if len(name.encode()) > MOST_BYTES:
                raise InputError(
                    f"{self.spec.at('publish', place)}: {name} has more than {MOST_BYTES} bytes, the most that "
                    "PostgreSQL keeps of a name; shorten it"
                )
        if self.spec.publish.schema == SCHEMA:
            raise InputError(
                f"{self.spec.at('publish', 'schema')}: {SCHEMA} is the private schema; publish in another one"
            )
        with self._session() as session:
            self._view.check(session.connection)
            with translated(self.place):
                return creators.warnings(session.connection, self._readers(session.connection))

    def exposed(self) -> list[str]:
        with self._session() as session, translated(self.place):
            connection = session.connection
            return rights.ways(connection, with_schemas(connection, self.spec), self._readers(connection))

    def _readers(self, connection: sa.Connection) -> list[str]:
        """The readers of the spec, and whoever else has been given something on the view."""
        facts = self._view.facts(connection)
        given = connection.execute(text("relation_grantees"), {"oid": facts.oid}) if facts is not None else ()
        others = sorted({row.grantee for row in given if row.grantee is not None})
        return list(dict.fromkeys([*self.spec.publish.readers, *others]))

    def prove(self, connection: sa.Connection) -> list[str]:
        """Raise Refused where a reader could reach something private, as the catalog says or as it is tried."""
        readers = self._readers(connection)
        spec = with_schemas(connection, self.spec)
        found = rights.ways(connection, spec, readers)
        # As in a reader's own session: a policy there filters, and the rows that it leaves are read.
        run(connection, "SET LOCAL row_security = on")
        problems, notes = rights.tried(connection, spec, readers, self._view.sql)
        run(connection, "SET LOCAL row_security = off")
        if found or problems:
            raise Refused(exposure([*found, *problems]))
        return notes

    def stage(self, session: Session, copy: Copy, version: int, stamp: str, record: Record) -> None:
        parent = self._parent(session, copy.columns)
        name = self._version(version)
        table = f"{SCHEMA}.{quote(name)}"
        session.run(f"CREATE TABLE {table} (LIKE {SCHEMA}.{quote(parent)})")
        self._close(session, name)
        comment = mark_text(self.spec.release, version, stamp).replace("'", "''")
        session.run(f"COMMENT ON TABLE {table} IS '{comment}'")
        number = version_column(copy.columns)
        into = sa.table(name, *(sa.column(c.name) for c in copy.columns), sa.column(number), schema=SCHEMA)
        query = copy.ordered.add_columns(sa.literal_column(str(version)))
        session.run(sa.insert(into).from_select([*(c.name for c in copy.columns), number], query))
        rows = session.scalar(f"SELECT count(*) FROM {table}")
        if rows != copy.rows:
            raise Refused(f"the copy has {rows} rows, and {copy.rows} were counted: nothing is published")
        session.run(f"ANALYZE {table}")
        # Attached well before it can be published: a reader plans with the partitions that it knows of.
        session.run(f"ALTER TABLE {SCHEMA}.{quote(parent)} ATTACH PARTITION {table} FOR VALUES IN ({version})")
        with translated(self.place):
            record(session.connection, "staged")
            session.connection.commit()

    def _parent(self, session: Session, columns: Sequence[PublishedColumn]) -> str:
        wanted = [[c.name, c.type] for c in columns] + [[version_column(columns), "bigint"]]
        parents = [t for t in self._tables(session.connection) if t.kind == "p"]
        for table in parents:
            if table.columns == wanted:
                return str(table.name)
        numbers = [int(re.match(r"data(\d*)_", table.name)[1] or 1) for table in parents]  # type: ignore[index]
        number = max(numbers, default=0) + 1
        name = f"data{number if number > 1 else ''}_{self.spec.release}"
        body = ", ".join(f"{quote(c)} {type_}" for c, type_ in wanted)
        session.run(f"CREATE TABLE {SCHEMA}.{quote(name)} ({body} NOT NULL) PARTITION BY LIST ({quote(wanted[-1][0])})")
        self._close(session, name)
        return name

    def _close(self, session: Session, name: str) -> None:
        """Take away what default privileges have given on a new table."""
        self._view.close(session.connection, SCHEMA, name)

    def _tables(self, connection: sa.Connection, kinds: str = "data[0-9]*|v[0-9]+") -> Sequence[sa.Row[tuple]]:  # type: ignore[type-arg]
        with translated(self.place):
            return connection.execute(text("release_tables"), {"pattern": f"^({kinds})_{self.spec.release}$"}).all()

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[PostgresqlChecked]:
        with self._session() as session:
            session.run(f"LOCK TABLE {SCHEMA}.{quote(self._version(version))} IN SHARE MODE")
            rows = Rows(session, session.relation(TableName(SCHEMA, self._version(version))), session.connection)
            yield PostgresqlChecked(self, rows, version, columns)

    def marks(self) -> list[Mark]:
        with self._session() as session:
            tables = self._tables(session.connection, "v[0-9]+")
        found = []
        for table in tables:
            version = int(table.name[1:].partition("_")[0])
            mark = read_mark(table.comment, self.spec.release)
            found.append(Mark(version, mark[1] if mark and mark[0] == version else None))
        return found

    def digest_of(self, mark: Mark) -> str:
        name = self._version(mark.version)
        with self._session() as session:
            columns = session.columns(TableName(SCHEMA, name))
            return relation_digest(session, TableName(SCHEMA, name), without=list(columns)[-1:])

    def holds(self, version: int) -> bool:
        with self._session() as session:
            tables = self._tables(session.connection, "v[0-9]+")
        return any(t.name == self._version(version) and t.parent is not None for t in tables)

    def landed(self, version: int) -> bool:
        # The ledger and the pointer row change in one transaction: nothing can land without its ledger row.
        return False

    def clear(self, kept: Sequence[int]) -> list[str]:
        removed = []
        with self._session() as session:
            names = {self._version(version) for version in (*kept, self._pointer(session.connection))}
            tables = [t for t in self._tables(session.connection, "v[0-9]+") if t.name not in names]
        for table in tables:
            if self._drop(table.name, table.parent, None):
                removed.append(f"{SCHEMA}.{table.name}")
        return removed

    def intact(self, version: int, columns: Sequence[PublishedColumn]) -> bool:
        with self._session() as session:
            tables = {t.name: t for t in self._tables(session.connection)}
            name = self._version(version)
            if name not in tables or tables[name].parent is None:
                return False
            return self._view.intact(session.connection, tables[name].parent, columns, version_column(columns))

    @contextmanager
    def published(self) -> Iterator[Rows]:
        warehouse = PostgresqlWarehouse(self.place.url)
        try:
            with warehouse.snapshot() as session:
                if self._view.facts(session.connection) is None:
                    raise Refused(f"the view {self.view} does not exist: nothing is published")
                rows = session.relation(TableName(self.spec.publish.schema, self.spec.view))
                yield Rows(session, rows, session.connection)
        finally:
            warehouse.close()

    def grant(self) -> list[str]:
        with self._session() as session, translated(self.place):
            given = self._view.grant(session.connection)
            session.connection.commit()
        return given

    def close(self, record: Record) -> None:
        # Neither waits for readers nor makes them wait: a view that is dropped would, and analysts' own views with it.
        with self._session() as session, translated(self.place):
            connection = session.connection
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
            record(connection, "retired_view")
            if self._view.facts(connection) is not None:
                self._view.close(connection, self.spec.publish.schema, self.spec.view)
            connection.commit()

    def take_away(self) -> None:
        # The ledger and what readers see change in one transaction.
        return None

    def retire(self, versions: Mapping[int, Record]) -> list[str]:
        left = []
        for version, record in versions.items():
            with self._session() as session:
                seen = self._pointer(session.connection) == version
                waiting = self._still_seen(session.connection, version)
                tables = {t.name: t for t in self._tables(session.connection)}
            found = tables.get(self._version(version))
            if seen:
                left.append(STAYS.format(version))
            elif waiting:
                left.append(f"version {version} stays until {waiting} older transactions have ended")
            elif not self._drop(self._version(version), found.parent if found else None, record, found is not None):
                left.append(f"version {version} stays until its readers have ended")
        if not left:
            self._drop_empty_parents()
        return left

    def _pointer(self, connection: sa.Connection) -> int:
        """The version that the pointer row names; 0, which none has, where it names none."""
        with translated(self.place):
            return LedgerReader(connection).pointer(self.spec.release) or 0

    def _still_seen(self, connection: sa.Connection, version: int) -> int:
        with translated(self.place):
            number = connection.scalar(text("superseded"), {"release": self.spec.release, "version": version})
            return int(connection.scalar(text("old_snapshots"), {"release": self.spec.release, "number": number}) or 0)

    def _drop(self, name: str, parent: str | None, record: Record | None, exists: bool = True) -> bool:
        """Drop one version's table unless readers are in the way; whether it is gone."""
        with self._session() as session:
            connection = session.connection
            try:
                if exists:
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
                    if parent is not None:
                        connection.exec_driver_sql(
                            f"ALTER TABLE {SCHEMA}.{quote(parent)} DETACH PARTITION {SCHEMA}.{quote(name)}"
                        )
                    connection.exec_driver_sql(f"DROP TABLE {SCHEMA}.{quote(name)}")
            except sa.exc.DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) in (
                    "55P03",
                    "2BP01",
                ):  # a view that shows nothing needs its parent
                    return False
                raise explain_postgresql(error) from error
            with translated(self.place):
                if record is not None:
                    record(connection, "retired")
                connection.commit()
        return True

    def _drop_empty_parents(self) -> None:
        with self._session() as session:
            tables = self._tables(session.connection)
            used = {t.parent for t in tables}
            empty = [t.name for t in tables if t.kind == "p" and t.name not in used]
        for name in empty:
            self._drop(name, None, None)

    def _version(self, version: int) -> str:
        return f"v{version}_{self.spec.release}"

    @contextmanager
    def _session(self) -> Iterator[SqlSession]:
        """A session in a READ COMMITTED transaction, rolled back unless it is committed."""
        engine = create_engine(self.place).execution_options(isolation_level="READ COMMITTED")
        with translated(self.place):
            connection = engine.connect()
        try:
            with translated(self.place):
                prepare(connection)
            yield SqlSession(connection, PostgresqlFacts())
        finally:
            connection.close()
            engine.dispose()


class PostgresqlChecked:
    """A staged version in the second transaction."""

    def __init__(self, target: PostgresqlTarget, rows: Rows, version: int, columns: Sequence[PublishedColumn]) -> None:
        self.rows = rows
        self._target = target
        self._version = version
        self._columns = columns

    def publish(self, record: Record) -> list[str]:
        target, connection = self._target, self.rows.session.connection
        with translated(target.place):
            record(connection, "checked")
            name = target._version(self._version)
            parent = next(t.parent for t in target._tables(connection) if t.name == name)
            target._view.ensure(connection, parent, self._columns, version_column(self._columns))
            target._view.grant(connection)
            notes = target.prove(connection)
            record(connection, "published")
            connection.commit()
        return notes


def version_column(columns: Sequence[PublishedColumn]) -> str:
    """The name of the column that says a row's version: like no published column."""
    name = VERSION
    while name in {c.name for c in columns}:
        name += "_"
    return name
