"""The tables and the view of a release of PostgreSQL under another name, within the transaction that moves it."""

from __future__ import annotations

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.events import RecordedEvent
from qblock.ledger.kept import Kept
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import SCHEMA
from qblock.publish.targets import postgresql_rights
from qblock.publish.targets.identity import mark_text, read_mark
from qblock.publish.targets.layout import pattern_of
from qblock.publish.targets.postgresql import PostgresqlTarget
from qblock.publish.targets.postgresql_homes import with_schemas
from qblock.publish.targets.postgresql_view import facts_of, run, text
from qblock.spec import Spec
from qblock.warehouse.lock_waits import REPLACE, Attempt, retry_with_backoff
from qblock.warehouse.protocol import TableName, quote


def move_view(
    connection: sa.Connection, spec: Spec, earlier: str, target: PostgresqlTarget, last: RecordedEvent
) -> list[str]:
    """Rename the tables of the versions, and make the view that of the spec; notes for the person who does it.

    The view stays the same object, so that analysts' own views keep working, and keeps its grants. Raises Busy where
    readers or others keep it locked, Refused where readers could reach what is private.
    """
    view = TableName.parse(last.target or last.view or "")
    return retry_with_backoff(
        connection,
        target.seconds,
        last.view or target.view,
        lambda attempt: _move(attempt, spec, earlier, target, view),
    )


def _move(attempt: Attempt, spec: Spec, earlier: str, target: PostgresqlTarget, view: TableName) -> list[str]:
    connection = attempt.connection
    postgresql_rights.lock_private(connection, with_schemas(connection, spec), attempt)
    # From here on readers wait for the end of the transaction.
    attempt.begin()
    _rename_tables(attempt, earlier, spec.release)
    there = facts_of(connection, view.schema or "", [view.name]).get(view.name)
    if there is None:
        return []
    if not connection.scalar(
        sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :name"), {"name": spec.publish.schema}
    ):
        run(connection, f"CREATE SCHEMA {quote(spec.publish.schema)}")
    attempt.wants_oids(REPLACE, there.oid)
    attempt.use_time_left()
    if view.schema != spec.publish.schema:
        run(connection, f"ALTER VIEW {_sql(view)} SET SCHEMA {quote(spec.publish.schema)}")
        view = TableName(spec.publish.schema, view.name)
    if view.name != spec.view:
        run(connection, f"ALTER VIEW {_sql(view)} RENAME TO {quote(spec.view)}")
    target.views.rename(connection, earlier, there, attempt)
    current = LedgerReader(connection).pointer(spec.release)
    if current is None:
        # It shows nothing; the next publication makes it again.
        return []
    kept = LedgerReader(connection).reference(spec.release, current)
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
    if earlier == release:
        return
    connection = attempt.connection
    tables = connection.execute(text("release_tables"), {"pattern": pattern_of(earlier)}).all()
    attempt.wants_oids(REPLACE, *(table.oid for table in tables))
    for table in tables:
        attempt.use_time_left()
        name = table.name.removesuffix(earlier) + release
        run(connection, f"ALTER TABLE {SCHEMA}.{quote(table.name)} RENAME TO {quote(name)}")
        mark = read_mark(table.comment, earlier)
        if mark is not None:
            run(connection, f"COMMENT ON TABLE {SCHEMA}.{quote(name)} IS '{mark_text(release, *mark)}'")


def _sql(view: TableName) -> str:
    return ".".join(quote(part) for part in (view.schema, view.name) if part)
