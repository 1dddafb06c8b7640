"""All views of a release on PostgreSQL, of the rows and of the helper views, and the tables that they read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from qblock.ledger.kept import PublishedColumn
from qblock.ledger.store import SCHEMA
from qblock.publish.helpers import (
    BLOCKS_SAY,
    KEPT,
    KINDS,
    OF_BLOCKS,
    RELEASED,
    Helper,
    Kind,
    Shown,
    Type,
    block_columns,
    block_names,
    column_comments,
    names,
    view_comment,
)
from qblock.publish.targets import registry
from qblock.publish.targets.layout import HELPERS, ROWS, Layout, layout_of, of_kinds, pattern_of, version_table
from qblock.publish.targets.postgresql_view import Columns, Comments, View, facts_of, quoted, run, text
from qblock.spec import Spec
from qblock.warehouse.kept_sessions import leave
from qblock.warehouse.lock_waits import KEEP, REPLACE, WRITE, Attempt, state_of
from qblock.warehouse.protocol import Session, quote
from qblock.warehouse.session import RawType

TYPES: dict[Type, str] = {
    "text": "text",
    "bigint": "bigint",
    "double": "double precision",
    "boolean": "boolean",
    "timestamp": "timestamp without time zone",
}
TABLES = tuple(f"shown_{helper.kind}" for helper in KEPT)
"""Tables of what helper views show of each version."""
OF = ("of_release", "of_version", "position")
Definition = tuple[str, Columns, Comments]
"""How a view is made: its statement, its columns with their types, and what is said of them."""
UNPACKED = "has pages of versions that are not shown"
"""The comment on a table that must be packed."""
BYTES_A_SECOND = 40 << 20
"""How much of a table is surely written anew in a second: readers wait meanwhile."""
NOT_NOW = ("55P03", "57014", "40P01", "25006", "42501")
"""A lock that somebody has, the time that is over, a deadlock, a server or a table on which nothing may be written."""


def helper_table(kind: Kind, release: str) -> str:
    """The name of the table that a helper view reads."""
    return f"now_{kind}_{release}"


class Views(View):
    """What is published: `<publish.schema>.<view>`, with its helper views."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        named = names(spec.view, spec.publish.names)
        self.helpers: dict[Kind, View] = {kind: View(spec, named[kind], kind) for kind in KINDS}

    def check_names(self, connection: sa.Connection) -> Any:
        """What has the view's name, or None. Raises InputError for readers that do not exist, and for names that stand
        for something else."""
        self.check_readers(connection)
        return self._check_own(connection).get(self.name)

    def _check_own(self, connection: sa.Connection) -> dict[str, Any]:
        """What has their names. Raises InputError for names that stand for something else."""
        there, known = self._present(connection)
        says = {"rows": RELEASED.format(release=self.spec.release), "blocks": BLOCKS_SAY.format(view=self.name)}
        says |= {helper.kind: helper.says.format(view=self.name) for helper in KEPT}
        for view in self._views:
            facts = there.get(view.name)
            # A login that may not read what is known is told which rights it lacks, not that a view is another's.
            said = facts is not None and (facts.comment or "").startswith(says[view.role])
            if registry.readable(connection) or not said:
                view.check_own(facts, known.get(view.name))
        return there

    def _present(self, connection: sa.Connection) -> tuple[dict[str, Any], dict[str, registry.Row]]:
        """What has their names, and what is known of it."""
        named = [view.name for view in self._views]
        return facts_of(connection, self.schema, named), registry.rows(connection, self.schema, named)

    def all_intact(
        self, connection: sa.Connection, layout: Layout, columns: Sequence[PublishedColumn], *, whole: bool = False
    ) -> bool:
        """Whether all views are as `make_all` would make them, and have not been altered since. whole: also those that
        are not there, for a login that may not read which ones there are."""
        return not self._altered(connection, self._definitions(layout, columns), whole=whole)

    def _altered(
        self, connection: sa.Connection, definitions: Mapping[str, Definition], *, whole: bool = True
    ) -> list[View]:
        """The views that are not as they should be."""
        there, known = self._present(connection)
        views = self._views
        if not whole and not registry.readable(connection):
            views = [view for view in views if view is self or view.name in there]
        return [
            view
            for view in views
            if not view.intact(connection, definitions[view.role][0], there.get(view.name), known.get(view.name))
        ]

    @property
    def _views(self) -> list[View]:
        return [self, *self.helpers.values()]

    def check_all(self, connection: sa.Connection, columns: Sequence[PublishedColumn]) -> None:
        """Raise InputError where a view must be dropped and made again for these columns, and something depends on
        it."""
        there, blocks = facts_of(connection, self.schema, [view.name for view in self._views]), self.helpers["blocks"]
        self.check_replaceable(connection, there.get(self.name), [(c.name, c.type) for c in columns])
        blocks.check_replaceable(connection, there.get(blocks.name), _of_blocks(columns))

    def make_all(
        self, connection: sa.Connection, layout: Layout, columns: Sequence[PublishedColumn], attempt: Attempt
    ) -> None:
        """Make the views that are not as they should be. Raises InputError where something depends on what must be
        dropped for it, and for names that are taken."""
        self._check_own(connection)
        self.check_all(connection, columns)
        if not connection.scalar(
            sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :name"), {"name": self.schema}
        ):
            run(connection, f"CREATE SCHEMA {quote(self.schema)}")
        definitions = self._definitions(layout, columns)
        altered = self._altered(connection, definitions)
        attempt.wants(REPLACE, self.schema, *(view.name for view in altered), catalog=True)
        # From here on readers wait for the end of the transaction.
        attempt.begin()
        for view in altered:
            view.make(connection, *definitions[view.role], attempt)

    def _definitions(self, layout: Layout, columns: Sequence[PublishedColumn]) -> dict[str, Definition]:
        stored = layout.stored
        shown = ", ".join(quote(n) if n == place else f"{quote(place)} AS {quote(n)}" for n, place in stored.items())
        version = f"FROM {SCHEMA}.{quote(layout.table)}"
        selected, grouped = block_columns(columns, lambda name: quote(stored[name]))
        says = (view_comment(self.spec), column_comments(self.spec, columns))
        definitions: dict[str, Definition] = {
            "rows": (f"{self.begin} AS SELECT {shown} {version}", [(c.name, c.type) for c in columns], says),
            "blocks": (
                f"{self.helpers['blocks'].begin} AS SELECT {selected} {version} GROUP BY {grouped}",
                _of_blocks(columns),
                (BLOCKS_SAY.format(view=self.name), {}),
            ),
        }
        for helper in KEPT:
            listed = ", ".join(map(quote, helper.columns))
            statement = (
                f"{self.helpers[helper.kind].begin} AS SELECT {listed} "
                f"FROM {SCHEMA}.{quote(helper_table(helper.kind, self.spec.release))} ORDER BY position"
            )
            types = [(name, TYPES[type_]) for name, type_ in helper.columns.items()]
            definitions[helper.kind] = (statement, types, (helper.says.format(view=self.name), {}))
        return definitions

    def temporary(self, table: str, version: int, columns: Sequence[PublishedColumn]) -> list[str]:
        """The statements that make views of these names in the session alone, which show one version; but for the
        blocks. table: of the version."""
        begin, shown = "CREATE TEMPORARY VIEW {} AS SELECT", ", ".join(quote(column.name) for column in columns)
        statements = [f"{begin.format(quote(self.name))} {shown} FROM {SCHEMA}.{quote(table)}"]
        for helper in KEPT:
            listed = ", ".join(map(quote, helper.columns))
            statements.append(
                f"{begin.format(quote(self.helpers[helper.kind].name))} {listed} FROM {SCHEMA}.shown_{helper.kind} "
                f"WHERE of_release = '{self.spec.release}' AND of_version = {version} ORDER BY position"
            )
        return statements

    def grant(self, connection: sa.Connection) -> list[str]:
        given = super().grant(connection)
        helpers = [view.name for view in self.helpers.values()]
        values = {"schema": self.schema, "view": self.name, "helpers": helpers}
        for row in connection.execute(text("helper_grants"), values).all():
            on, role = f"{quote(self.schema)}.{quote(row.name)}", quote(row.grantee) if row.grantee else "PUBLIC"
            run(connection, f"GRANT SELECT ON {on} TO {role}" if row.give else f"REVOKE ALL ON {on} FROM {role}")
        return given

    def close_all(self, connection: sa.Connection) -> None:
        """Take away what anybody has been given on them."""
        for view in self._views:
            if view.facts(connection) is not None:
                self.close(connection, view.schema, view.name)

    def loaded(self, session: Session, shown: Shown) -> list[sa.Insert]:
        """The statements that write down what helper views show of a version: position and values are in temporary
        tables of the session from now on, :version is its number."""
        return [self._insert(session, helper, shown) for helper in KEPT]

    def _insert(self, session: Session, helper: Helper, shown: Shown) -> sa.Insert:
        given = session.load(f"qblock_helper_{helper.kind}", shown.table(helper))
        types: Mapping[str, str] = {"position": "bigint"} | {n: TYPES[t] for n, t in helper.columns.items()}
        values = [sa.cast(given.c[name], RawType(type_)) for name, type_ in types.items()]
        release: sa.ColumnElement[str] = sa.literal_column(f"'{self.spec.release}'")
        version: sa.ColumnElement[int] = sa.literal_column(str(shown.version))
        table = sa.table(f"shown_{helper.kind}", *map(sa.column, [*OF, *helper.columns]), schema=SCHEMA)
        places = [*OF, *helper.columns]
        return sa.insert(table).from_select(places, sa.select(release, version, *values).select_from(given))

    def rename(self, connection: sa.Connection, earlier: str, view: Any, attempt: Attempt) -> None:
        """Make what an earlier name of the release has this one's: its helper views, what is known of its views, and
        what they show. view: the facts of its view of the rows, which has its new name already."""
        for row in registry.rows_of(connection, earlier):
            registry.forget(connection, row.schema, row.name)
            new = self.helpers.get(row.role)  # type: ignore[call-overload]
            if new is None:
                continue
            attempt.wants(REPLACE, row.schema, row.name)
            attempt.use_time_left()
            if row.schema != new.schema:
                old = f"{quote(row.schema)}.{quote(row.name)}"
                run(connection, f"ALTER VIEW {old} SET SCHEMA {quote(new.schema)}")
            if row.name != new.name:
                old = f"{quote(new.schema)}.{quote(row.name)}"
                run(connection, f"ALTER VIEW {old} RENAME TO {quote(new.name)}")
            registry.write(connection, replace(row, schema=new.schema, name=new.name, release=self.spec.release))
        comment = view_comment(self.spec)
        run(connection, f"COMMENT ON VIEW {self.sql} IS {quoted(comment)}")
        own_row = registry.Row(self.schema, self.name, self.spec.release, self.role, view.oid, "", comment)
        registry.write(connection, own_row)
        for table in TABLES:
            statement = f"UPDATE {SCHEMA}.{table} SET of_release = :release WHERE of_release = :earlier"
            connection.execute(sa.text(statement), {"release": self.spec.release, "earlier": earlier})

    def forget(self, connection: sa.Connection, version: int) -> None:
        """Forget what helper views show of a version that is dropped."""
        for table in TABLES if registry.readable(connection) else ():
            statement = f"DELETE FROM {SCHEMA}.{table} WHERE of_release = :release AND of_version = :version"
            connection.execute(sa.text(statement), {"release": self.spec.release, "version": version})


def _of_blocks(columns: Sequence[PublishedColumn]) -> Columns:
    shown = [(c.name, c.type) for c in columns if c.role in OF_BLOCKS and c.role != "people"]
    number, rows = block_names(columns)
    people = [(c.name, c.type) for c in columns if c.role == "people"]
    return [(number, "bigint"), *shown, (rows, "bigint"), *people]


class ShownTables:
    """The tables that the views of a release read: they hold the version that is shown, and nothing else.

    The planner tells every reader what it knows of the tables that a view reads: how often each value occurs, how many
    rows and pages there are. So no view reads a table that holds another version. A publication deletes and inserts
    rows in one transaction, which no reader waits for and every snapshot sees whole. Pages that it leaves are given
    back later. They are `qblock.data_<release>` (where that cannot hold a column list `data2_<release>`, ...) with the
    rows, and `qblock.now_<kind>_<release>` with what each helper view shows.
    """

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
