"""A release as a PostgreSQL view: versions are partitions in the private schema, and a pointer row names one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.errors import Busy, InputError, QblockError, Refused
from qblock.ledger.kept import Kept, PublishedColumn, read_kept
from qblock.ledger.place import SCHEMA, Place
from qblock.ledger.reader import LedgerReader
from qblock.ledger.stores.postgresql import WRITTEN
from qblock.ledger.tables import tables
from qblock.ledger.writer import lock_pointer, shared
from qblock.publish.copy import Copy
from qblock.publish.digest import content_digest, relation_digest
from qblock.publish.helpers import Shown, check_names
from qblock.publish.targets import postgresql_creators, postgresql_rights
from qblock.publish.targets.identity import Identity, table_text
from qblock.publish.targets.layout import MOST_BYTES, VERSION, Layout, layout_of, version_column
from qblock.publish.targets.mark import Mark, mark_text, read_mark
from qblock.publish.targets.postgresql_homes import home_of, readers_of, with_schemas
from qblock.publish.targets.postgresql_needs import needs
from qblock.publish.targets.postgresql_view import run, text
from qblock.publish.targets.postgresql_views import TABLES, Views
from qblock.publish.targets.protocol import STAYS, Record, Rows, exposure
from qblock.spec import Spec
from qblock.warehouse.lock_waits import (
    ATTACH,
    DEADLOCK,
    DEPENDENT,
    KEEP,
    LOCK,
    READ,
    REPLACE,
    ROW,
    Turn,
    state_of,
    take_turns,
    unhurried,
)
from qblock.warehouse.postgresql import PostgresqlFacts, PostgresqlWarehouse
from qblock.warehouse.protocol import Session, TableName, quote
from qblock.warehouse.rights import Needs
from qblock.warehouse.session import SqlSession


class PostgresqlTarget:
    """The Target protocol for PostgreSQL.

    `qblock.data_<release>` (where that cannot hold a column list `data2_<release>`, ...) is partitioned by version;
    `qblock.v<N>_<release>` is a version. Release names may end in anything, so the distinguishing part comes first.
    """

    def __init__(self, spec: Spec, place: Place) -> None:
        self.spec = spec
        self.place = place
        self._view = Views(spec)

    @property
    def view(self) -> str:
        return self._view.shown

    @property
    def made(self) -> Views:
        """The views themselves."""
        return self._view

    @property
    def place_name(self) -> str:
        return self._view.shown

    def identity(self) -> Identity:
        with self._session() as session, self.place.translated():
            found = home_of(session.connection, TableName.parse(self.spec.source.table))
            readers = readers_of(session.connection, self.spec)
        return Identity(None if found is None else table_text(found), None, self.view, self.view, readers)

    def check(self) -> list[str]:
        for place, name in (("schema", self.spec.publish.schema), ("view", self.spec.view)):
            if len(name.encode()) > MOST_BYTES:
                raise InputError(
                    f"{self.spec.at('publish', place)}: {name} has more than {MOST_BYTES} bytes, the most that "
                    "PostgreSQL keeps of a name; shorten it"
                )
        check_names(self.spec)
        if self.spec.publish.schema == SCHEMA:
            raise InputError(
                f"{self.spec.at('publish', 'schema')}: {SCHEMA} is the private schema; publish in another one"
            )
        with self._session() as session:
            facts = self._view.check_names(session.connection)
            with self.place.translated():
                return postgresql_creators.warnings(session.connection, self._readers(session.connection, facts))

    def needs(self, job: str | None = None, officer: str | None = None) -> Needs:
        with self._session() as session, self.place.translated():
            return needs(session.connection, self.spec, job, officer)

    def exposed(self) -> list[str]:
        with self._session() as session, self.place.translated():
            connection = session.connection
            return postgresql_rights.ways(connection, with_schemas(connection, self.spec), self._readers(connection))

    def _readers(self, connection: sa.Connection, facts: Any = None) -> list[str]:
        """The readers of the spec, and everybody else who was granted something on the view."""
        facts = self._view.facts(connection) if facts is None else facts
        given = connection.execute(text("relation_grantees"), {"oid": facts.oid}) if facts is not None else ()
        others = sorted({row.grantee for row in given if row.grantee is not None})
        return list(dict.fromkeys([*self.spec.publish.readers, *others]))

    def prove(self, connection: sa.Connection) -> list[str]:
        """Raise Refused where a reader could reach something private, as the catalog says or as it is tried."""
        readers = self._readers(connection)
        spec = with_schemas(connection, self.spec)
        found = postgresql_rights.ways(connection, spec, readers)
        # As in a reader's own session: a policy there filters, and the rows that it leaves are read.
        run(connection, "SET LOCAL row_security = on")
        problems, notes = postgresql_rights.tried(connection, spec, readers, self._view.sql)
        run(connection, "SET LOCAL row_security = off")
        if found or problems:
            raise Refused(exposure([*found, *problems]))
        return notes

    def stage(self, session: Session, copy: Copy, shown: Shown, version: int, stamp: str, record: Record) -> None:
        layout = self._ready(copy.columns) or self._new_table(session, copy.columns)
        parent, name = f"{SCHEMA}.{quote(layout.table)}", self._version(version)
        table, seconds = f"{SCHEMA}.{quote(name)}", self.seconds

        def make(turn: Turn) -> None:
            turn.wants(READ, SCHEMA, layout.table)
            session.run(f"CREATE TABLE {table} (LIKE {parent})")

        with self.place.translated():
            unhurried(session.connection, seconds, parent, make)
        self._close(session, name)
        comment = mark_text(self.spec.release, version, stamp).replace("'", "''")
        session.run(f"COMMENT ON TABLE {table} IS '{comment}'")
        places = [*layout.stored.values(), layout.key]
        into = sa.table(name, *map(sa.column, places), schema=SCHEMA)
        query = copy.ordered.add_columns(sa.literal_column(str(version)))
        session.run(sa.insert(into).from_select(places, query))
        rows = session.scalar(f"SELECT count(*) FROM {table}")
        if rows != copy.rows:
            raise Refused(f"the copy has {rows} rows, but {copy.rows} were counted: nothing is published")
        session.run(f"ANALYZE {table}")
        inserts = self._view.loaded(session, shown)

        def attach(turn: Turn) -> None:
            # Well before it can be published: a reader plans with the partitions that it knows.
            turn.wants(ATTACH, SCHEMA, layout.table)
            session.run(f"ALTER TABLE {parent} ATTACH PARTITION {table} FOR VALUES IN ({version})")
            turn.wants(ROW, SCHEMA, *TABLES)
            self._view.forget(session.connection, version)
            for insert in inserts:
                session.run(insert)
            turn.wants(ROW, SCHEMA, *WRITTEN)
            record(session.connection, "staged")

        with self.place.translated():
            unhurried(session.connection, seconds, parent, attach)
            session.connection.commit()

    @property
    def seconds(self) -> float:
        """The seconds that a reader may have to wait behind a statement of the job."""
        return float(self.spec.publish.lock_timeout)

    def _ready(self, columns: Sequence[PublishedColumn]) -> Layout | None:
        """The table of versions for these columns, with new ones added; None where none can have them.

        The one that readers see now comes first, so that the view stays one of the same table. In a transaction of its
        own: a column is added under a lock that keeps readers out, and the snapshot of the source is open for long.
        """
        with self._session() as session, self.place.translated():
            connection = session.connection
            found = (layout_of(table, columns) for table in self._parents(connection))
            layout = next((one for one in found if one is not None), None)
            if layout is not None and layout.missing:
                take_turns(connection, self.seconds, f"{SCHEMA}.{layout.table}", lambda turn: self._add(turn, layout))
                connection.commit()
        return layout

    def _add(self, turn: Turn, layout: Layout) -> None:
        """Add the columns that a table of versions lacks, to all its versions."""
        table = f"{SCHEMA}.{quote(layout.table)}"
        versions = [t.name for t in self._tables(turn.connection) if t.parent == layout.table]
        turn.wants(REPLACE, SCHEMA, layout.table, *versions)
        run(turn.connection, f"LOCK TABLE ONLY {table} IN ACCESS EXCLUSIVE MODE")
        run(turn.connection, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE NOWAIT")  # its partitions
        added = ", ".join(f"ADD COLUMN {quote(name)} {type_}" for name, type_ in layout.missing)
        run(turn.connection, f"ALTER TABLE {table} {added}")

    def _parents(self, connection: sa.Connection) -> list[sa.Row[tuple]]:  # type: ignore[type-arg]
        """The tables of versions, newest first, except that of the version which readers see."""
        found = self._tables(connection)
        pointer = tables(connection).pointer
        query = sa.select(pointer.c.version).where(pointer.c.release == self.spec.release)
        shown = connection.scalar(query)
        first = {t.parent for t in found if shown is not None and t.name == self._version(shown)}
        return sorted((t for t in found if t.kind == "p"), key=lambda table: table.name not in first)

    def _new_table(self, session: Session, columns: Sequence[PublishedColumn]) -> Layout:
        key = version_column(columns)
        parents = [t for t in self._tables(session.connection) if t.kind == "p"]
        numbers = [int(re.match(r"data(\d*)_", table.name)[1] or 1) for table in parents]  # type: ignore[index]
        number = max(numbers, default=0) + 1
        name = f"data{number if number > 1 else ''}_{self.spec.release}"
        body = ", ".join(f"{quote(c.name)} {c.type}" for c in columns)
        session.run(
            f"CREATE TABLE {SCHEMA}.{quote(name)} ({body}, {quote(key)} bigint NOT NULL) "
            f"PARTITION BY LIST ({quote(key)})"
        )
        self._close(session, name)
        return Layout(name, key, {c.name: c.name for c in columns})

    def layout(self, connection: sa.Connection, version: int, columns: Sequence[PublishedColumn]) -> Layout | None:
        """Where a version's columns are; None for one that does not exist, is not attached, or lacks some of them."""
        found = {t.name: t for t in self._tables(connection)}
        own = found.get(self._version(version))
        layout = layout_of(found[own.parent], columns) if own is not None and own.parent is not None else None
        return None if layout is None or layout.missing else layout

    def _close(self, session: Session, name: str) -> None:
        """Take away what default privileges have given on a new table."""
        self._view.close(session.connection, SCHEMA, name)

    def _tables(self, connection: sa.Connection, kinds: str = "data[0-9]*|v[0-9]+") -> Sequence[sa.Row[tuple]]:  # type: ignore[type-arg]
        with self.place.translated():
            return connection.execute(text("release_tables"), {"pattern": f"^({kinds})_{self.spec.release}$"}).all()

    @contextmanager
    def checking(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[PostgresqlChecked]:
        name = self._version(version)
        with self._session() as session:

            def keep(turn: Turn) -> None:
                turn.wants(KEEP, SCHEMA, name)
                session.run(f"LOCK TABLE {SCHEMA}.{quote(name)} IN SHARE MODE")

            with self.place.translated():
                unhurried(session.connection, self.seconds, f"{SCHEMA}.{name}", keep)
            layout = self.layout(session.connection, version, columns)
            if layout is None:
                raise Refused(f"{SCHEMA}.{name} is not the table of version {version} any more: it was altered")
            rows = Rows(session, self._rows(session, version, layout), session.connection)
            yield PostgresqlChecked(self, rows, columns, layout)

    def _rows(self, session: Session, version: int, layout: Layout) -> sa.FromClause:
        """The rows of a version under the names that it publishes, and no other column."""
        table = session.relation(TableName(SCHEMA, self._version(version)))
        selected = [table.c[place].label(quoted_name(name, quote=True)) for name, place in layout.stored.items()]
        return sa.select(*selected).subquery("qblock_version_rows")

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
        name = TableName(SCHEMA, self._version(mark.version))
        with self._session() as session:
            with self.place.translated():
                columns = self._published_columns(session.connection, mark.version)
                layout = self.layout(session.connection, mark.version, columns) if columns else None
            if layout is not None:
                return content_digest(session, self._rows(session, mark.version, layout), columns)
            # What it published is not known: everything in it.
            return relation_digest(
                session, name, without=[c for c in session.columns(name) if c.rstrip("_") == VERSION]
            )

    def _published_columns(self, connection: sa.Connection, version: int) -> Sequence[PublishedColumn]:
        """The columns that a version published, as kept with it; none where that is missing or cannot be read."""
        known = read_kept(connection, self.spec.release, version)
        with suppress(QblockError):
            return Kept.of_text(known or "").columns
        return ()

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
        with self._session() as session, self.place.translated():
            layout = self.layout(session.connection, version, columns)
            return layout is not None and self._view.all_intact(session.connection, layout, columns)

    def check_columns(self, columns: Sequence[PublishedColumn]) -> None:
        with self._session() as session, self.place.translated():
            self._view.check_all(session.connection, columns)

    @contextmanager
    def kept(self, version: int, columns: Sequence[PublishedColumn]) -> Iterator[tuple[Session, str]]:
        warehouse = PostgresqlWarehouse(self.place.url)
        try:
            with warehouse.snapshot() as session:
                with self.place.translated():
                    layout = self.layout(session.connection, version, columns)
                if layout is None:
                    raise Refused(f"{SCHEMA}.{self._version(version)} is not the table of version {version} any more")
                for statement in self._view.temporary(self._version(version), version, layout):
                    session.run(statement)
                yield session, session.scalar("SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")
        finally:
            warehouse.close()

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
        with self._session() as session, self.place.translated():

            def give(turn: Turn) -> list[str]:
                turn.wants(REPLACE, self.spec.publish.schema, self.spec.view, catalog=True)
                return self._view.grant(turn.connection)

            given = take_turns(session.connection, self.seconds, self.view, give)
            session.connection.commit()
        return given

    def close(self, record: Record) -> None:
        # Neither waits for readers nor makes them wait: a view that is dropped would, and analysts' own views with it.
        def take(turn: Turn) -> None:
            turn.wants(ROW, SCHEMA, *WRITTEN)
            record(turn.connection, "retired_view")
            if self._view.facts(turn.connection) is not None:
                turn.wants(REPLACE, self.spec.publish.schema, self.spec.view, catalog=True)
                self._view.close_all(turn.connection)

        with self._session() as session, self.place.translated():
            take_turns(session.connection, self.seconds, self.view, take)
            session.connection.commit()

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
        with self.place.translated():
            return LedgerReader(connection).pointer(self.spec.release) or 0

    def _still_seen(self, connection: sa.Connection, version: int) -> int:
        with self.place.translated():
            number = connection.scalar(text("superseded"), {"release": self.spec.release, "version": version})
            return int(connection.scalar(text("old_snapshots"), {"release": self.spec.release, "number": number}) or 0)

    def _drop(self, name: str, parent: str | None, record: Record | None, exists: bool = True) -> bool:
        """Drop one version's table unless readers are in the way; whether it is gone."""

        def drop(turn: Turn) -> None:
            if record is not None:
                record(turn.connection, "retired")
            version = re.match(r"v(\d+)_", name)
            if version is not None:
                self._view.forget(turn.connection, int(version[1]))
            if not exists:
                return
            table = f"{SCHEMA}.{quote(name)}"
            if parent is not None:
                run(turn.connection, f"LOCK TABLE ONLY {SCHEMA}.{quote(parent)} IN ACCESS EXCLUSIVE MODE")
                run(turn.connection, f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE NOWAIT")
                run(turn.connection, f"ALTER TABLE {SCHEMA}.{quote(parent)} DETACH PARTITION {table}")
            run(turn.connection, f"DROP TABLE {table}")

        with self._session() as session, self.place.translated():
            try:
                take_turns(session.connection, self.seconds, f"{SCHEMA}.{name}", drop, turns=1)
            except (Busy, sa.exc.DBAPIError) as error:
                if state_of(error) not in (LOCK, DEADLOCK, DEPENDENT):  # a view that shows nothing needs its parent
                    raise
                return False
            session.connection.commit()
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
        """A session in a READ COMMITTED transaction, rolled back unless it is committed; shared within `one_reader`."""

        def connect() -> sa.Connection:
            with self.place.translated():
                return self.place.create_engine().connect()

        with shared(("target", self.place), self.place, connect) as connection:
            yield SqlSession(connection, PostgresqlFacts())


class PostgresqlChecked:
    """A staged version in the second transaction."""

    def __init__(
        self, target: PostgresqlTarget, rows: Rows, columns: Sequence[PublishedColumn], layout: Layout
    ) -> None:
        self.rows = rows
        self._target = target
        self._columns = columns
        self._layout = layout

    def publish(self, record: Record) -> list[str]:
        target, connection = self._target, self.rows.session.connection

        def show(turn: Turn) -> list[str]:
            turn.wants(ROW, SCHEMA, *WRITTEN)
            record(connection, "checked")
            lock_pointer(connection, target.spec.release)
            if not target.made.all_intact(connection, self._layout, self._columns, whole=True):
                # What the proof asks for is locked before the view is, for which readers wait from then on.
                postgresql_rights.lock_private(connection, with_schemas(connection, target.spec), turn)
                target.made.make_all(connection, self._layout, self._columns, turn)
            turn.wants(REPLACE, target.spec.publish.schema, target.spec.view, catalog=True)
            target.made.grant(connection)
            notes = target.prove(connection)
            turn.rest()
            record(connection, "published")
            return notes

        with target.place.translated():
            notes = take_turns(connection, target.seconds, target.view, show)
            connection.commit()
        return notes
