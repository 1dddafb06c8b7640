"""The store of a PostgreSQL source: schema `qblock` of its own database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock.engines.kept_sessions import are_kept, leave, run_scoped
from qblock.engines.postgresql import session as postgresql_session
from qblock.engines.postgresql.adapter import PostgresqlAdapter, of_transactions
from qblock.engines.postgresql.faults import explain_postgresql
from qblock.engines.postgresql.lock_waits import limited
from qblock.engines.postgresql.session import LEDGER_PATH, PATH
from qblock.engines.sql_session import SqlSession
from qblock.ledger.store import OPEN_SECONDS, SCHEMA, CrosswalkDatabase, HeldLock, Store
from qblock.ledger.stores.postgresql_locks import advisory_lock, advisory_lock_of_all

WRITTEN = ("event", "guarantee", "reference", "begun", "pointer", "release_move", "spec", "view", "crosswalk_key")
"""Tables that a run writes."""
LOCK_TIMEOUT = f"'{OPEN_SECONDS}s'"
"""How long any statement waits for a lock, where nothing else is said."""
WITHOUT_NESTED_LOOPS = (
    "SELECT setting.before FROM (SELECT current_setting('enable_nestloop') AS before OFFSET 0) AS setting "
    "WHERE set_config('enable_nestloop', 'off', true) = 'off'"
)
"""Answers what the setting was before."""


class PostgresqlStore(Store, CrosswalkDatabase):
    """The store of a PostgreSQL database: its sessions are those of the run (`kept_sessions`)."""

    engine = "postgresql"
    file = None
    one_database = True
    named = f"schema {SCHEMA}"
    another_target = "with another view"
    crosswalk_named = f"its tables in schema {SCHEMA} are"

    def __init__(self, folder: Path, url: sa.URL, *, atomic: bool = True) -> None:
        self.folder, self.url, self.atomic = folder, url, atomic
        self.heads = {}
        self.crosswalk = self

    def beside(self, file: str) -> PostgresqlStore:
        return self

    def within(self, file: Path) -> str:
        return str(file)

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise explain_postgresql(error, self.url) from error

    def create_engine(self) -> sa.Engine:
        return _engine(self.url, False, PATH)

    def connect(self, *, read_only: bool, seconds: float) -> sa.Connection:
        return _engine(self.url, read_only, LEDGER_PATH).connect()

    def make(self) -> None:
        pass  # the first upgrade makes the schema

    def give_up(self, connection: sa.Connection) -> None:
        leave(connection)  # closing it rolls back

    def transaction(self, connection: sa.Connection, seconds: float) -> AbstractContextManager[object]:
        return limited(connection, seconds, f"the ledger (schema {SCHEMA})", SCHEMA, *WRITTEN)

    def may_read(self, connection: sa.Connection, tables: Sequence[str]) -> bool | None:
        names = {"names": [f"{SCHEMA}.{table}" for table in tables]}
        if connection.scalar(
            sa.text("SELECT bool_or(to_regclass(n) IS NULL) FROM unnest(CAST(:names AS text[])) n"), names
        ):
            return False
        allowed = "SELECT bool_and(has_table_privilege(n, 'SELECT')) FROM unnest(CAST(:names AS text[])) n"
        return True if connection.scalar(sa.text(allowed), names) else None

    def session(self, connection: sa.Connection) -> SqlSession:
        return SqlSession(connection, PostgresqlAdapter())

    @contextmanager
    def without_nested_loops(self, session: SqlSession) -> Iterator[None]:
        # A login that does not own the tables cannot ask for statistics.
        setting = session.scalar(WITHOUT_NESTED_LOOPS)
        yield
        session.run(f"SET LOCAL enable_nestloop = {setting}")

    def lock_until(self, release: str, deadline: float) -> AbstractContextManager[HeldLock]:
        return advisory_lock(self, release, deadline)

    def lock_all_until(self, what: str, deadline: float) -> AbstractContextManager[HeldLock]:
        return advisory_lock_of_all(self, what, deadline)


def _engine(url: sa.URL, read_only: bool, path: tuple[str, ...]) -> sa.Engine:
    if not are_kept():
        return _engine_of_one(url, read_only, path)
    make = postgresql_session.kept_engine
    return run_scoped((url, read_only, path), lambda: make(url, path=path, **_options(read_only, path)))


@lru_cache(maxsize=8)
def _engine_of_one(url: sa.URL, read_only: bool, path: tuple[str, ...]) -> sa.Engine:
    return postgresql_session.create_engine(url, path=path, **_options(read_only, path))


def _options(read_only: bool, path: tuple[str, ...]) -> dict[str, Any]:
    options: dict[str, Any] = {"postgresql_readonly": True} if read_only else {}
    # What is not the ledger may be large.
    large = {} if path == LEDGER_PATH else of_transactions()
    return {**options, "local": {**large, "lock_timeout": LOCK_TIMEOUT}}
