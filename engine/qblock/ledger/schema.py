"""The ledger's schema: its tables as statements see them, and the revisions that Alembic brings it through."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from qblock.engines.postgresql.lock_waits import KEEP, LOCK_SECONDS, REPLACE, Attempt, retry_with_backoff, state_of
from qblock.engines.registry import adapter_of
from qblock.engines.tables import PRIVATE_SCHEMA
from qblock.errors import QblockError
from qblock.resources import migrations_directory
from qblock.version import __version__

SQLITE = "sqlite"
"""The name of the dialect of a ledger in a file."""
VERSION_TABLE = "alembic_version"
IN_SQLITE = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = :name"
"""The query whether there is a table."""
_THERE = "qblock ledger"
"""Of a session: it has seen that there is a ledger."""
_READY = "qblock ready"
"""Of a session: in which transaction it has seen the ledger at this program's revision."""
_MADE = ("42P06", "42P07", "23505")
"""The SQLSTATEs of what somebody else has made since it was looked for."""


class Tables:
    """The ledger's tables: in schema `qblock` on PostgreSQL, else in a file of their own."""

    def __init__(self, schema: str | None) -> None:
        metadata = sa.MetaData(schema=schema)
        self.event = sa.Table(
            "event",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("number", sa.BigInteger),
            sa.Column("version", sa.BigInteger),
            sa.Column("state", sa.Text),
            sa.Column("run", sa.Text),
            sa.Column("recorded_at", sa.Text),
            sa.Column("quasi_identifiers", sa.Text),
            sa.Column("node", sa.Text),
            sa.Column("choice", sa.Text),
            sa.Column("protected", sa.Boolean),
            sa.Column("joint", sa.Text),
            sa.Column("rows_source", sa.BigInteger),
            sa.Column("rows_published", sa.BigInteger),
            sa.Column("rows_suppressed", sa.BigInteger),
            sa.Column("spec_digest", sa.Text),
            sa.Column("hierarchy_digest", sa.Text),
            sa.Column("content_digest", sa.Text),
            sa.Column("reference_digest", sa.Text),
            sa.Column("stamp", sa.Text),
            sa.Column("view", sa.Text),
            sa.Column("stale_after", sa.BigInteger),
            sa.Column("detail", sa.Text),
            sa.Column("reason", sa.Text),
            sa.Column("confirmed", sa.Text),
            sa.Column("source", sa.Text),
            sa.Column("source_database", sa.Text),
            sa.Column("source_files", sa.Text),
            sa.Column("target", sa.Text),
            sa.Column("entity", sa.Text),
            sa.Column("columns", sa.Text),
            sa.Column("readers", sa.Text),
            sa.Column("audience", sa.Text),
            sa.Column("private_state", sa.Text),
            sa.Column("program_version", sa.Text),
            sa.Column("previous_digest", sa.Text),
            sa.Column("digest", sa.Text),
        )
        self.guarantee = sa.Table(
            "guarantee",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("number", sa.BigInteger),
            sa.Column("position", sa.BigInteger),
            sa.Column("stage", sa.Text),
            sa.Column("model", sa.Text),
            sa.Column("sensitive", sa.Text),
            sa.Column("parameters", sa.Text),
            sa.Column("parameter", sa.Text),
            sa.Column("asked", sa.Text),
            sa.Column("satisfied", sa.Text),
            sa.Column("satisfied_number", sa.Double),
            sa.Column("attained", sa.Boolean),
            sa.Column("holds", sa.Boolean),
            sa.Column("margin", sa.Double),
        )
        self.reference = sa.Table(
            "reference",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("version", sa.BigInteger),
            sa.Column("content", sa.Text),
        )
        self.move = sa.Table(
            "release_move",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("number", sa.BigInteger),
            sa.Column("earlier", sa.Text),
            sa.Column("before", sa.Text),
            sa.Column("done", sa.Boolean),
        )
        self.begun = sa.Table(
            "begun",
            metadata,
            sa.Column("release", sa.Text),
            sa.Column("version", sa.BigInteger),
            sa.Column("stamp", sa.Text),
            sa.Column("run", sa.Text),
            sa.Column("recorded_at", sa.Text),
            sa.Column("joint", sa.Text),
        )
        self.spec = sa.Table("spec", metadata, sa.Column("digest", sa.Text), sa.Column("content", sa.Text))
        self.pointer = sa.Table("pointer", metadata, sa.Column("release", sa.Text), sa.Column("version", sa.BigInteger))


def schema_of(connection: sa.Connection) -> str | None:
    """The schema of the private tables, where they are not in a file of their own."""
    return None if connection.dialect.name == SQLITE else adapter_of(connection).private_schema


@cache
def _tables(schema: str | None) -> Tables:
    return Tables(schema)


def tables(connection: sa.Connection) -> Tables:
    """The ledger's tables for the engine of a connection."""
    return _tables(schema_of(connection))


@cache
def revisions() -> tuple[str, ...]:
    """The revisions that this program knows, oldest first: the numbers that the files of versions/ start with."""
    files = (migrations_directory() / "versions").glob("[0-9]*.py")
    return tuple(sorted(file.name.split("_")[0] for file in files))


def revision(connection: sa.Connection) -> str | None:
    """The revision that the ledger's schema is at; None where there is no ledger yet. Reads only."""
    schema = schema_of(connection)
    if not connection.info.get(_THERE):
        query = IN_SQLITE if connection.dialect.name == SQLITE else adapter_of(connection).table_exists
        if not connection.scalar(sa.text(query), {"name": VERSION_TABLE, "schema": schema}):
            return None
        connection.info[_THERE] = True
    return connection.scalar(sa.text(f"SELECT version_num FROM {f'{schema}.' if schema else ''}{VERSION_TABLE}"))


def known_revision(connection: sa.Connection) -> str | None:
    """The revision of the ledger's schema. Raises QblockError where a newer qblock has written it, which this one
    cannot judge."""
    current = revision(connection)
    if current is not None and current not in revisions():
        raise QblockError(
            f"the ledger's schema is at revision {current}, which qblock {__version__} does not know (its newest is "
            f"{revisions()[-1]}): a newer qblock has upgraded it. Install that one, or a later one"
        )
    # Another program may upgrade it between two transactions of a run.
    connection.info[_READY] = connection.get_transaction() if current == revisions()[-1] else None
    return current


def ready(connection: sa.Connection) -> bool:
    """Whether there is a ledger. Raises QblockError for one whose schema is not this program's."""
    seen = connection.info.get(_READY)
    if seen is not None and seen is connection.get_transaction():
        return True
    current = known_revision(connection)
    if current not in (None, revisions()[-1]):
        raise QblockError(
            f"the ledger's schema is at revision {current}, and qblock {__version__} works with {revisions()[-1]}; "
            "upgrade it: qblock ledger upgrade SPEC"
        )
    return current is not None


def upgrade(bind: sa.Engine | sa.Connection) -> tuple[str | None, str]:
    """Bring the ledger's schema up to date; returns the revisions before and after. May be called again.

    bind: to the database of the ledger, or to the file of the crosswalk; a connection's transaction is used and not
    committed, and must be READ COMMITTED on PostgreSQL. There a login that may only use the tables is enough while
    there is nothing to do, and schema `qblock` is created only where it is missing. Raises QblockError for a ledger of
    a newer qblock.
    """
    if isinstance(bind, sa.Engine):
        with bind.begin() as connection:
            return upgrade(connection)
    before = known_revision(bind)
    newest = revisions()[-1]
    if before == newest:
        return before, newest
    schema = schema_of(bind)
    if schema is None:
        _run(bind)
        return before, newest
    # Views are written without a schema, since not every engine has one for the ledger.
    with adapter_of(bind).private_names(bind):
        try:
            before = retry_with_backoff(bind, LOCK_SECONDS, f"the ledger (schema {schema})", _migrate)
        except (sa.exc.DBAPIError, QblockError) as error:
            before = known_revision(bind) if state_of(error) in _MADE else None
            if before != newest:
                raise
    return before, newest


def _migrate(attempt: Attempt) -> str | None:
    """The migrations, in one session at a time; the revision before.

    No advisory lock, which any login may hold: whoever makes the schema, or its first table, waits for a transaction
    that has made it already, and the table of the revision is locked once it is there.
    """
    connection = attempt.connection
    before = revision(connection)
    if before is not None:
        attempt.wants(KEEP, PRIVATE_SCHEMA, VERSION_TABLE)
        connection.exec_driver_sql(f"LOCK TABLE {PRIVATE_SCHEMA}.{VERSION_TABLE} IN SHARE ROW EXCLUSIVE MODE")
        before = known_revision(connection)
    elif not connection.scalar(sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :n"), {"n": PRIVATE_SCHEMA}):
        connection.exec_driver_sql(f"CREATE SCHEMA {PRIVATE_SCHEMA}")
    if before == revisions()[-1]:
        return before
    # Locks that keep out everybody who reads the ledger, and a release's readers its pointer row.
    names = connection.scalars(
        sa.text(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace = CAST(:schema AS regnamespace)"
        ),
        {"schema": PRIVATE_SCHEMA},
    )
    attempt.wants(REPLACE, PRIVATE_SCHEMA, *names)
    _run(connection)
    return before


def _run(connection: sa.Connection) -> None:
    # Alembic is loaded only when there is something to upgrade: it takes longer than a query of the ledger.
    from alembic import command
    from alembic.config import Config

    config = Config()
    # ConfigParser would read a percent sign in the path as the start of a variable.
    config.set_main_option("script_location", str(migrations_directory()).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["schema"] = schema_of(connection)
    command.upgrade(config, "head")
