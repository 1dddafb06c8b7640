"""The tables of a release on PostgreSQL: kept versions, and what its views read, which holds nothing else.

Every column that was ever published has its place in the table of rows. One table serves all column lists of a release,
so that the view can be replaced over it and whoever still reads from an older snapshot finds the older version whole,
with NULL in the columns that it did not publish.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.engines.kept_sessions import leave
from qblock.engines.postgresql.lock_waits import KEEP, REPLACE, WRITE, Attempt, state_of
from qblock.engines.quoting import quote
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.store import SCHEMA
from qblock.publish.helpers import KEPT, Kind, Type
from qblock.publish.targets.postgresql_view import close, run, text

TYPES: dict[Type, str] = {
    "text": "text",
    "bigint": "bigint",
    "double": "double precision",
    "boolean": "boolean",
    "timestamp": "timestamp without time zone",
    "date": "date",
}
TABLES = tuple(f"shown_{helper.kind}" for helper in KEPT)
"""Tables of what helper views show of each version."""
UNPACKED = "has pages of versions that are not shown"
"""The comment on a table that must be packed."""
BYTES_A_SECOND = 40 << 20
"""How much of a table is surely written anew in a second: readers wait meanwhile."""
NOT_NOW = ("55P03", "57014", "40P01", "25006", "42501")
"""A lock that somebody has, the time that is over, a deadlock, a server or a table on which nothing may be written."""
MOST_COLUMNS = 1600
"""The most columns that a table of PostgreSQL may have."""
MOST_BYTES = 63
ROWS, HELPERS, VERSIONS = "data[0-9]*", "now_[a-z]+", "v[0-9]+"
"""Tables of a release in the private schema: the rows that are shown, what helper views show, and kept versions."""


def helper_table(kind: Kind, release: str) -> str:
    """The name of the table that a helper view reads."""
    return f"now_{kind}_{release}"


def pattern_of(release: str, *kinds: str) -> str:
    """A regular expression of the names of a release's tables, by default of all; what tells them from each other comes
    first, since a release's name may end in anything."""
    return f"^({'|'.join(kinds or (ROWS, HELPERS, VERSIONS))})_{release}$"


def of_kinds(tables: Sequence[Any], release: str, *kinds: str) -> list[Any]:
    """Those of a release's tables that are of these kinds."""
    return [table for table in tables if re.fullmatch(pattern_of(release, *kinds), table.name)]


def version_table(version: int, release: str) -> str:
    """The name of the table that keeps a version."""
    return f"v{version}_{release}"


@dataclass(frozen=True)
class Layout:
    """stored: the column of the table that holds each published column, in the order of these; missing: those that the
    table does not have yet, with their types."""

    table: str
    stored: dict[str, str]
    missing: tuple[tuple[str, str], ...] = ()


def layout_of(table: Any, columns: Sequence[PublishedColumn]) -> Layout | None:
    """How a table (a row of release_tables) holds these columns; None where it cannot.

    A column has its own name there. Where that holds another type already, what was published under it before stays as
    it was, and this one is stored under its name and type.
    """
    there = dict(table.columns)
    stored: dict[str, str] = {}
    for column in columns:
        names = (column.name, f"{column.name} ({column.type})")
        place = next((name for name in names if there.get(name, column.type) == column.type), None)
        if place is None or len(place.encode()) > MOST_BYTES:
            return None
        stored[column.name] = place
    missing = tuple((stored[c.name], c.type) for c in columns if stored[c.name] not in there)
    if len(set(stored.values())) < len(stored) or table.used + len(missing) > MOST_COLUMNS:
        return None
    return Layout(table.name, stored, missing)


class ShownTables:
    """The tables that the views of a release read: they hold the version that is shown, and nothing else.

    The planner tells every reader what it knows of the tables that a view reads: how often each value occurs, how many
    rows and pages there are. So no view reads a table that holds another version. A publication deletes and inserts
    rows in one transaction, which no reader waits for and every snapshot sees whole. Pages that it leaves are given
    back later. They are `qblock.data_<release>` (where that cannot hold a column list `data2_<release>`, ...) with the
    rows, and `qblock.now_<kind>_<release>` with what each helper view shows.
    """

    def __init__(self, release: str) -> None:
        self._release = release

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
        close(connection, SCHEMA, name)

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
