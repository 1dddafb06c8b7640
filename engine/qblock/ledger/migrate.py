"""The ledger's schema and its revisions: Alembic migrations run from the package's own data."""

from __future__ import annotations

from functools import cache

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.tables import SQLITE, schema_of
from qblock.resources import migrations_directory
from qblock.version import __version__
from qblock.warehouse.engines import facts_of, private_names
from qblock.warehouse.lock_waits import LOCK_SECONDS, REPLACE, Attempt, retry_with_backoff
from qblock.warehouse.protocol import PRIVATE_SCHEMA

VERSION_TABLE = "alembic_version"
IN_SQLITE = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = :name"
"""The query whether there is a table."""
_THERE = "qblock ledger"
"""Of a session: it has seen that there is a ledger."""
_READY = "qblock ready"
"""Of a session: in which transaction it has seen the ledger at this program's revision."""
_LOCK = 0x71626C6F636B  # "qblock" as bytes: the advisory lock that upgrades of one database wait for


@cache
def revisions() -> tuple[str, ...]:
    """The revisions that this program knows, oldest first: the numbers that the files of versions/ start with."""
    files = (migrations_directory() / "versions").glob("[0-9]*.py")
    return tuple(sorted(file.name.split("_")[0] for file in files))


def revision(connection: sa.Connection) -> str | None:
    """The revision that the ledger's schema is at; None where there is no ledger yet. Reads only."""
    schema = schema_of(connection)
    if not connection.info.get(_THERE):
        query = IN_SQLITE if connection.dialect.name == SQLITE else facts_of(connection).table_exists
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
            f"the ledger's schema is at revision {current}, which qblock {__version__} does not know "
            f"(its newest is {revisions()[-1]}): a newer qblock has upgraded it; install that one, or a later one"
        )
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
    # Another program may upgrade it between two transactions of a run.
    connection.info[_READY] = connection.get_transaction() if current is not None else None
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
    bind.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    before = known_revision(bind)
    if before == newest:
        return before, newest
    if not bind.scalar(sa.text("SELECT count(*) FROM pg_namespace WHERE nspname = :name"), {"name": schema}):
        bind.exec_driver_sql(f"CREATE SCHEMA {schema}")
    # Views are written without a schema, since not every engine has one for the ledger.
    with private_names(bind):
        retry_with_backoff(bind, LOCK_SECONDS, f"the ledger (schema {schema})", _altering)
    return before, newest


def _altering(attempt: Attempt) -> None:
    """The migrations, whose locks keep out everybody who reads the ledger, and a release's readers its pointer row."""
    names = attempt.connection.scalars(
        sa.text(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace = CAST(:schema AS regnamespace)"
        ),
        {"schema": PRIVATE_SCHEMA},
    )
    attempt.wants(REPLACE, PRIVATE_SCHEMA, *names)
    _run(attempt.connection)


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
