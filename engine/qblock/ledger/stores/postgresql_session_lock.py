"""Advisory locks of a PostgreSQL session: a pooler in transaction mode is detected, and nothing stays locked in it.

Such a pooler runs each statement of the session in whatever server session is free. So every statement on a lock also
returns which server session it ran in, and whether that one has the lock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.place import Place
from qblock.ledger.stores.holder import session_name
from qblock.resources import sql_text
from qblock.warehouse import pooler, postgresql_session

REACH_SECONDS = 5.0
MOST_REACHED = 32
"""How many server sessions of a pool are asked for the one that kept a lock."""


@dataclass(frozen=True)
class _Taken:
    key: int
    shared: bool
    server_process: int


class SessionLocks:
    """The locks of one session, which does nothing else. connection: in AUTOCOMMIT."""

    def __init__(self, place: Place, connection: sa.Connection) -> None:
        self.connection = connection
        self._place = place
        self._taken: list[_Taken] = []

    def take(self, key: int, *, shared: bool = False) -> bool:
        """Whether the lock was free, and is ours now. Raises Pooled."""
        row = self.connection.execute(postgresql_session.statement("lock_take"), {"key": key, "shared": shared}).one()
        if row.taken:
            self._taken.append(_Taken(key, shared, row.pid))
        if row.before or not self._own(row):
            raise pooler.Pooled
        return bool(row.taken)

    def check(self, of: str, key: int) -> None:
        """Raise QblockError where the lock is not held any more. of: the release, for the message."""
        own = pooler.server_process(self.connection)
        try:
            row = self.connection.execute(postgresql_session.statement("lock_own"), {"key": key, "other": own}).one()
        except sa.exc.SQLAlchemyError:
            row = None
        if row is not None and not self._own(row):
            raise pooler.Pooled
        if row is None or not row.held:
            raise QblockError(f"the lock{of} was lost: the database ended its session; run the command again")

    def _own(self, row: sa.Row[Any]) -> bool:
        return (row.pid, row.word) == (pooler.server_process(self.connection), pooler.word(self.connection))

    def leave(self) -> None:
        """Release every lock, wherever it is. What cannot be released ends with its server session."""
        for taken in reversed(self._taken):
            left = None
            with suppress(sa.exc.SQLAlchemyError):
                values = {"key": taken.key, "shared": taken.shared}
                left = self.connection.scalar(postgresql_session.statement("lock_leave"), values)
            if not left:
                with suppress(psycopg.Error, OSError):
                    _leave_elsewhere(self._place.url, taken)
        self._taken = []


@contextmanager
def lock_session(place: Place, what: str) -> Iterator[SessionLocks]:
    """A session that does nothing but hold locks, all of which are released at the end. what: what it is for.

    Raises Pooled before a lock is taken where a second session would be given the same server session.
    """
    engine = postgresql_session.create_engine(place.url).execution_options(isolation_level="AUTOCOMMIT")
    with place.translated():
        connection = engine.connect()
    try:
        with place.translated():
            _keep_session(connection, what)
            with engine.connect() as other:
                pooler.check_alone(connection, other)
        locks = SessionLocks(place, connection)
        try:
            yield locks
        finally:
            locks.leave()
    finally:
        connection.close()
        engine.dispose()


def _keep_session(connection: sa.Connection, what: str) -> None:
    # A session that waits for a long search must not be ended for being idle, and one whose machine is gone must be
    # noticed soon.
    settings = {
        "application_name": session_name(what),
        "idle_session_timeout": "0",
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
    }
    known = sa.text(
        "SELECT set_config(name, value, false) FROM unnest(CAST(:names AS text[]), CAST(:values AS text[])) "
        "AS setting (name, value) WHERE current_setting(name, true) IS NOT NULL"
    )
    connection.execute(known, {"names": list(settings), "values": list(settings.values())})


def _leave_elsewhere(url: sa.URL, taken: _Taken) -> None:
    """Release a lock that a pooler keeps in a server session which it lends to others now.

    Several transactions are held open, so that the pooler must lend other sessions, until it lends that one. Raises
    what psycopg raises.
    """
    deadline = time.monotonic() + REACH_SECONDS
    held: list[Any] = []
    try:
        while len(held) < MOST_REACHED and time.monotonic() < deadline:
            driver = postgresql_session.bare(url, connect_timeout=int(REACH_SECONDS))
            held.append(driver)
            with pooler.ended_at(driver, deadline):
                driver.execute("SET LOCAL search_path TO pg_catalog, pg_temp")
                pid, _, _, elsewhere = driver.execute(
                    _literal("lock_own", taken, other=taken.server_process)
                ).fetchone()
                if not elsewhere:
                    return
                if pid == taken.server_process:
                    driver.execute(_literal("lock_leave", taken))
                    return
    finally:
        for driver in held:
            driver.close()


def _literal(name: str, taken: _Taken, other: int = 0) -> str:
    """A statement on a lock with its numbers written into it: nothing is prepared in a session that is not ours."""
    values = {":key": str(taken.key), ":shared": str(taken.shared).lower(), ":other": str(other)}
    statement = sql_text(name, "postgresql")
    for value, text in values.items():
        statement = statement.replace(value, text)
    return statement
