"""All views of a release on PostgreSQL: of the rows, and the helper views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from qblock.engines.postgresql.lock_waits import REPLACE, Attempt
from qblock.engines.quoting import quote, quote_text
from qblock.engines.session import Session
from qblock.engines.tables import RawType
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
    block_columns,
    block_names,
    column_comments,
    names,
    view_comment,
)
from qblock.publish.midpoints import MIDPOINTS_SAY, midpoints_of
from qblock.publish.targets.postgresql_tables import TABLES, TYPES, Layout, helper_table
from qblock.publish.targets.postgresql_view import (
    Columns,
    Comments,
    KnownView,
    View,
    close,
    facts_of,
    forget_known,
    known_views,
    known_views_of,
    readable,
    run,
    text,
    write_known,
)
from qblock.spec import Spec

OF = ("of_release", "of_version", "position")
Definition = tuple[str, Columns, Comments]
"""How a view is made: its statement, its columns with their types, and what is said of them."""


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
        says["midpoints"] = MIDPOINTS_SAY.format(view=self.name)
        says |= {helper.kind: helper.says.format(view=self.name) for helper in KEPT}
        for view in self._views:
            facts = there.get(view.name)
            # A login that may not read what is known is told which rights it lacks, not that a view is another's.
            said = facts is not None and (facts.comment or "").startswith(says[view.role])
            if readable(connection) or not said:
                view.check_own(facts, known.get(view.name))
        return there

    def _present(self, connection: sa.Connection) -> tuple[dict[str, Any], dict[str, KnownView]]:
        """What has their names, and what is known of it."""
        named = [view.name for view in self._views]
        return facts_of(connection, self.schema, named), known_views(connection, self.schema, named)

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
        if not whole and not readable(connection):
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
        there = facts_of(connection, self.schema, [view.name for view in self._views])
        blocks, midpoints = self.helpers["blocks"], self.helpers["midpoints"]
        self.check_replaceable(connection, there.get(self.name), [(c.name, c.type) for c in columns])
        blocks.check_replaceable(connection, there.get(blocks.name), _of_blocks(self.spec, columns))
        midpoints.check_replaceable(connection, there.get(midpoints.name), _of_midpoints(self.spec, columns))

    def make_all(
        self, connection: sa.Connection, layout: Layout, columns: Sequence[PublishedColumn], attempt: Attempt
    ) -> None:
        """Make the views that are not as they should be. Raises InputError where something depends on what must be
        dropped for it, and for names that are taken."""
        self._check_own(connection)
        self.check_all(connection, columns)
        self.make_schema(connection)
        definitions = self._definitions(layout, columns)
        altered = self._altered(connection, definitions)
        attempt.wants(REPLACE, self.schema, *(view.name for view in altered), catalog=True)
        # From here on readers wait for the end of the transaction.
        attempt.begin()
        for view in altered:
            view.make(connection, *definitions[view.role], attempt)

    def make_schema(self, connection: sa.Connection) -> None:
        """Make the schema of the views where it is missing."""
        query = sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :name")
        if not connection.scalar(query, {"name": self.schema}):
            run(connection, f"CREATE SCHEMA {quote(self.schema)}")

    def _definitions(self, layout: Layout, columns: Sequence[PublishedColumn]) -> dict[str, Definition]:
        stored = layout.stored
        shown = ", ".join(quote(n) if n == place else f"{quote(place)} AS {quote(n)}" for n, place in stored.items())
        version = f"FROM {SCHEMA}.{quote(layout.table)}"
        selected, grouped = block_columns(self.spec, columns, lambda name: quote(stored[name]))
        says = (view_comment(self.spec), column_comments(self.spec, columns))
        definitions: dict[str, Definition] = {
            "rows": (f"{self.begin} AS SELECT {shown} {version}", [(c.name, c.type) for c in columns], says),
            "blocks": (
                f"{self.helpers['blocks'].begin} AS SELECT {selected} {version} GROUP BY {grouped}",
                _of_blocks(self.spec, columns),
                (BLOCKS_SAY.format(view=self.name), {}),
            ),
            "midpoints": self._midpoints(layout, columns),
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

    def _midpoints(self, layout: Layout, columns: Sequence[PublishedColumn]) -> Definition:
        middles, stored = midpoints_of(self.spec, columns), layout.stored
        spread = f"{SCHEMA}.{quote(helper_table('spread', self.spec.release))}"
        rows = f"{SCHEMA}.{quote(layout.table)}"
        text = middles.select(rows, spread, quote, quote_text, lambda name: quote(stored[name]))
        comments = column_comments(self.spec, columns) | middles.comments
        says = (MIDPOINTS_SAY.format(view=self.name), comments)
        return f"{self.helpers['midpoints'].begin} AS {text}", _of_midpoints(self.spec, columns), says

    def temporary(self, table: str, version: int, columns: Sequence[PublishedColumn]) -> list[str]:
        """The statements that make views of these names in the session alone, which show one version; but for
        blocks and midpoints. table: of the version."""
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
                close(connection, view.schema, view.name)

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
        for row in known_views_of(connection, earlier):
            forget_known(connection, row.schema, row.name)
            new = self.helpers.get(row.role)  # type: ignore[call-overload]
            if new is None:
                continue
            attempt.wants(REPLACE, row.schema, row.name)
            attempt.use_time_left()
            new.move(connection, row.schema, row.name)
            write_known(connection, replace(row, schema=new.schema, name=new.name, release=self.spec.release))
        comment = view_comment(self.spec)
        run(connection, f"COMMENT ON VIEW {self.sql} IS {quote_text(comment)}")
        own_row = KnownView(self.schema, self.name, self.spec.release, self.role, view.oid, "", comment)
        write_known(connection, own_row)
        for table in TABLES:
            statement = f"UPDATE {SCHEMA}.{table} SET of_release = :release WHERE of_release = :earlier"
            connection.execute(sa.text(statement), {"release": self.spec.release, "earlier": earlier})

    def forget(self, connection: sa.Connection, version: int) -> None:
        """Forget what helper views show of a version that is dropped."""
        for table in TABLES if readable(connection) else ():
            statement = f"DELETE FROM {SCHEMA}.{table} WHERE of_release = :release AND of_version = :version"
            connection.execute(sa.text(statement), {"release": self.spec.release, "version": version})


def _of_blocks(spec: Spec, columns: Sequence[PublishedColumn]) -> Columns:
    shown = [(c.name, c.type) for c in columns if c.role in OF_BLOCKS and c.role != "people"]
    number, rows, now = block_names(spec, columns)
    people = [(c.name, c.type) for c in columns if c.role == "people"]
    weights = [(now, "bigint") for c in columns if c.role == "weight"]
    return [(number, "bigint"), *shown, (rows, "bigint"), *people, *weights]


def _of_midpoints(spec: Spec, columns: Sequence[PublishedColumn]) -> Columns:
    middles = midpoints_of(spec, columns)
    types = [(m.name, "date" if m.of_dates else "double precision") for m in middles.columns]
    return [*((c.name, c.type) for c in columns), *types]
