"""The tables that the views of a release read on PostgreSQL: they hold the version that is shown, and nothing else.

The planner tells every reader what it knows of the tables that a view reads: how often each value occurs, how many rows
and pages there are. So no view reads a table that holds another version. A publication deletes and inserts rows in one
transaction, which no reader waits for and every snapshot sees whole. Pages that it leaves are given back later.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from qblock.ledger.kept import PublishedColumn
from qblock.ledger.place import SCHEMA
from qblock.publish.helpers import KEPT
from qblock.publish.targets.layout import HELPERS, ROWS, Layout, layout_of, of_kinds, pattern_of, version_table
from qblock.publish.targets.postgresql_view import run, text
from qblock.publish.targets.postgresql_views import TYPES, Views, helper_table
from qblock.warehouse.kept_sessions import leave
from qblock.warehouse.lock_waits import KEEP, REPLACE, WRITE, Attempt, state_of
from qblock.warehouse.protocol import quote

UNPACKED = "has pages of versions that are not shown"
"""The comment on a table that must be packed."""
BYTES_A_SECOND = 40 << 20
"""How much of a table is surely written anew in a second: readers wait meanwhile."""
NOT_NOW = ("55P03", "57014", "40P01", "25006", "42501")
"""A lock that somebody has, the time that is over, a deadlock, a server or a table on which nothing may be written."""


class ShownTables:
    """`qblock.data_<release>` (where that cannot hold a column list `data2_<release>`, ...) with the rows, and
    `qblock.now_<kind>_<release>` with what each helper view shows."""

    def __init__(self, release: str, views: Views) -> None:
        self._release = release
        self._views = views

    def layout(
        self, connection: sa.Connection, columns: Sequence[PublishedColumn], tables: Sequence[Any] | None = None
    ) -> Layout | None:
        """Where these columns are, or can be, in a table of rows; None where no table can have them. tables: of the
        release, where they are known.

        The one that readers see now comes first, so that the view stays one of the same table.
        """
        rows = self._tables(connection, ROWS) if tables is None else of_kinds(tables, self._release, ROWS)
        tables = sorted(rows, key=lambda table: not table.shown)
        layouts = (layout_of(table, columns) for table in tables)
        return next((layout for layout in layouts if layout is not None), None)

    def prepare(self, attempt: Attempt, columns: Sequence[PublishedColumn]) -> None:
        """Make the tables that can hold these columns, and note that what is about to be written may leave pages."""
        connection = attempt.connection
        layout = self.layout(connection, columns)
        if layout is None:
            self._make(connection, self._new_name(connection), [(c.name, c.type) for c in columns])
        elif layout.missing:
            attempt.wants(REPLACE, SCHEMA, layout.table)
            added = ", ".join(f"ADD COLUMN {quote(name)} {type_}" for name, type_ in layout.missing)
            run(connection, f"ALTER TABLE {SCHEMA}.{quote(layout.table)} {added}")
        there = {table.name for table in self._tables(connection)}
        for helper in KEPT:
            name = helper_table(helper.kind, self._release)
            if name not in there:
                types = [(column, TYPES[type_]) for column, type_ in helper.columns.items()]
                self._make(connection, name, [("position", "bigint"), *types])
        self.note(attempt)

    def _new_name(self, connection: sa.Connection) -> str:
        numbers = [int(re.match(r"data(\d*)_", t.name)[1] or 1) for t in self._tables(connection, ROWS)]  # type: ignore[index]
        number = max(numbers, default=0) + 1
        return f"data{number if number > 1 else ''}_{self._release}"

    def _make(self, connection: sa.Connection, name: str, columns: Sequence[tuple[str, str]]) -> None:
        body = ", ".join(f"{quote(column)} {type_}" for column, type_ in columns)
        run(connection, f"CREATE TABLE {SCHEMA}.{quote(name)} ({body})")
        self._views.close(connection, SCHEMA, name)

    def note(self, attempt: Attempt) -> None:
        """Write down that there may be pages of what is not shown."""
        for table in self._tables(attempt.connection):
            if table.comment != UNPACKED:
                attempt.wants(KEEP, SCHEMA, table.name)
                run(attempt.connection, f"COMMENT ON TABLE {SCHEMA}.{quote(table.name)} IS '{UNPACKED}'")

    def fill(self, attempt: Attempt, layout: Layout, version: int) -> None:
        """Put a kept version in the place of what is shown, within the transaction of the caller."""
        connection, release = attempt.connection, self._release
        self.empty(attempt)
        # In the order of the version, and not from where somebody else is reading it.
        run(connection, "SET LOCAL synchronize_seqscans = off")
        names, places = (", ".join(map(quote, columns)) for columns in (layout.stored, layout.stored.values()))
        own = f"{SCHEMA}.{quote(version_table(version, release))}"
        run(connection, f"INSERT INTO {SCHEMA}.{quote(layout.table)} ({places}) SELECT {names} FROM {own}")
        for helper in KEPT:
            listed = ", ".join(map(quote, ["position", *helper.columns]))
            run(
                connection,
                f"INSERT INTO {SCHEMA}.{quote(helper_table(helper.kind, release))} ({listed}) "
                f"SELECT {listed} FROM {SCHEMA}.shown_{helper.kind} "
                f"WHERE of_release = '{release}' AND of_version = {version} ORDER BY position",
            )
        # Statistics change with the rows, in one transaction.
        self.analyze(connection)

    def analyze(self, connection: sa.Connection) -> None:
        """Let the planner know what is there now, within the transaction of the caller."""
        names = self._names(connection)
        # Of a table without rows ANALYZE keeps what it knew of the rows before: it gets one of NULLs for the while.
        empty = [name for name in names if not connection.scalar(sa.text(f"SELECT EXISTS (SELECT FROM {name})"))]
        for name in empty:
            run(connection, f"INSERT INTO {name} DEFAULT VALUES")
        if names:
            run(connection, f"ANALYZE {', '.join(names)}")
        for name in empty:
            run(connection, f"DELETE FROM {name}")

    def shows(self, connection: sa.Connection) -> bool:
        """Whether a view reads rows, whatever the pointer row says."""
        names = [f"{SCHEMA}.{quote(table.name)}" for table in self._tables(connection) if table.shown]
        return any(connection.scalar(sa.text(f"SELECT EXISTS (SELECT FROM {name})")) for name in names)

    def empty(self, attempt: Attempt) -> None:
        """Show nothing, from the end of the caller's transaction on."""
        for name in self._names(attempt.connection):
            attempt.wants(WRITE, SCHEMA, name.partition(".")[2])
            run(attempt.connection, f"DELETE FROM {name}")

    def unpacked(self, connection: sa.Connection, tables: Sequence[Any]) -> list[Any]:
        """Tables with pages of what is not shown, as soon as no session can see an older version in them. tables: of
        the release."""
        tables = [t for t in of_kinds(tables, self._release, ROWS, HELPERS) if t.comment == UNPACKED]
        seen = tables and connection.scalar(text("old_snapshots"), {"release": self._release})
        return [] if seen else tables

    def pack(self, connection: sa.Connection, tables: Sequence[Any], seconds: float) -> None:
        """Give the pages of what is not shown back, as far as nobody is in the way; the next run does the rest.

        connection: in no transaction; it is used up. seconds: how long a reader may have to wait.
        """
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        names = ", ".join(f"{SCHEMA}.{quote(table.name)}" for table in tables)
        oids, most = [table.oid for table in tables], max(1, math.ceil(seconds * 1000))
        size = sa.text("SELECT sum(pg_relation_size(oid)) FROM unnest(CAST(:oids AS oid[])) AS oid")
        try:
            for setting in (f"lock_timeout = {most}", f"statement_timeout = {most}", "synchronize_seqscans = off"):
                run(connection, f"SET {setting}")
            if connection.scalar(size, {"oids": oids}) <= seconds * BYTES_A_SECOND:
                run(connection, f"VACUUM (FULL, ANALYZE) {names}")
            else:
                run(connection, "SET statement_timeout = 0")
                run(connection, f"VACUUM (ANALYZE) {names}")
            for name in names.split(", "):
                run(connection, f"COMMENT ON TABLE {name} IS NULL")
        except sa.exc.DBAPIError as error:
            if state_of(error) not in NOT_NOW:
                raise
        finally:
            leave(connection)  # with its settings

    def unread(self, tables: Sequence[Any]) -> list[str]:
        """Tables of rows that no view reads any more. tables: of the release."""
        tables = of_kinds(tables, self._release, ROWS)
        return [table.name for table in tables if not table.shown and any(other.shown for other in tables)]

    def _names(self, connection: sa.Connection) -> list[str]:
        return [f"{SCHEMA}.{quote(table.name)}" for table in self._tables(connection)]

    def _tables(self, connection: sa.Connection, *kinds: str) -> Sequence[Any]:
        pattern = pattern_of(self._release, *(kinds or (ROWS, HELPERS)))
        return connection.execute(text("release_tables"), {"pattern": pattern}).all()
