"""A release gets another name or view in PostgreSQL: tables are renamed, and the view stays the same object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import sqlalchemy as sa

from qblock.engines.postgresql.lock_waits import REPLACE, Attempt
from qblock.engines.quoting import quote, quote_text
from qblock.engines.tables import TableName
from qblock.errors import QblockError
from qblock.ledger.kept import Kept, PublishedColumn
from qblock.ledger.reader import LedgerReader
from qblock.ledger.stamps import ObjectTag
from qblock.ledger.store import SCHEMA
from qblock.publish.targets import postgresql_access as access
from qblock.publish.targets.postgresql_tables import Layout, pattern_of
from qblock.publish.targets.postgresql_view import facts_of, run, text
from qblock.publish.targets.postgresql_views import Views
from qblock.spec import Spec


class Movable(Protocol):
    """What a move asks of the target; `PostgresqlTarget` is one."""

    spec: Spec
    views: Views

    def layout(self, connection: sa.Connection, version: int, columns: Sequence[PublishedColumn]) -> Layout | None: ...

    def prove(self, connection: sa.Connection) -> list[str]: ...


def move(target: Movable, attempt: Attempt, earlier: str, view: TableName) -> list[str]:
    """Rename the tables of the versions and make the view that of the spec, in one attempt; what the proof notes."""
    connection, release = attempt.connection, target.spec.release
    access.lock_private(connection, target.spec, attempt)
    # From here on readers wait for the end of the transaction.
    attempt.begin()
    if earlier != release:
        _rename_tables(attempt, earlier, release)
    there = facts_of(connection, view.schema or "", [view.name]).get(view.name)
    if there is None:
        return []
    target.views.make_schema(connection)
    attempt.wants_oids(REPLACE, there.oid)
    attempt.use_time_left()
    target.views.move(connection, view.schema or "", view.name)
    target.views.rename(connection, earlier, there, attempt)
    reader = LedgerReader(connection)
    current = reader.pointer(release)
    if current is None:
        # It shows nothing; the next publication makes it again.
        return []
    kept = reader.reference(release, current)
    if kept is None:
        raise QblockError(f"the quantities kept with version {current} are missing: verify the release first")
    columns = Kept.of_text(kept).columns
    layout = target.layout(connection, current, columns)
    if layout is None:
        raise QblockError(f"the table of version {current} is missing or was altered: verify the release first")
    target.views.make_all(connection, layout, columns, attempt)
    target.views.grant(connection)
    return target.prove(connection)


def _rename_tables(attempt: Attempt, earlier: str, release: str) -> None:
    connection = attempt.connection
    tables = connection.execute(text("release_tables"), {"pattern": pattern_of(earlier)}).all()
    attempt.wants_oids(REPLACE, *(table.oid for table in tables))
    for table in tables:
        attempt.use_time_left()
        name = table.name.removesuffix(earlier) + release
        run(connection, f"ALTER TABLE {SCHEMA}.{quote(table.name)} RENAME TO {quote(name)}")
        tag = ObjectTag.read(table.comment, earlier)
        if tag is not None:
            run(
                connection,
                f"COMMENT ON TABLE {SCHEMA}.{quote(name)} IS {quote_text(replace(tag, release=release).text)}",
            )
