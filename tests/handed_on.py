"""Server sessions of PostgreSQL that are handed on within a test, as a pool in session mode does (DISCARD ALL between).

A run of the job makes about forty sessions, and starting them is half of what a run costs the server. Tests marked
`either_engine`, which are about no session, hand them on; all others have sessions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from qblock.engines.postgresql import pooler
from qblock.engines.postgresql import session as postgresql_session

Key = tuple[Any, ...]
_free: dict[Key, list[Any]] = {}
_age = 0
"""How often it was changed what a new session starts with: earlier ones are not handed on after that."""


@cache
def _ended(url: str) -> Any:
    """A connection of libpq that has been closed, in the place of one that was handed on."""
    with psycopg.connect(url) as connection:
        ended = connection.pgconn
    return ended


class HandedOn(psycopg.Connection[Any]):
    """A connection whose server session goes to the next one when it is closed."""

    key: Key | None = None
    server = ""
    age = 0

    def close(self) -> None:
        if self.key is None or self.closed or self.age != _age or not _cleaned(self.pgconn):
            super().close()
            return
        _free.setdefault(self.key, []).append(self.pgconn)
        self._closed = True
        self.pgconn = _ended(self.server)


PLAIN = ("autocommit", "connect_timeout", "context", "cursor_factory", "prepare_threshold", "row_factory")
"""What a connection is given that no server session has."""


def _key(conninfo: str, given: Mapping[str, Any]) -> Key:
    named = {name: value for name, value in given.items() if name not in PLAIN}
    found = {"client_encoding": "utf8", **conninfo_to_dict(conninfo, **named)}
    return tuple(sorted((name, str(value)) for name, value in found.items()))


def _cleaned(session: Any) -> bool:
    try:
        if session.transaction_status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR):
            session.exec_(b"ROLLBACK")
        idle = session.transaction_status == pq.TransactionStatus.IDLE
        return bool(idle and session.exec_(b"DISCARD ALL").status == pq.ExecStatus.COMMAND_OK)
    except psycopg.Error:
        return False


@contextmanager
def handing_on(server: str, patched: pytest.MonkeyPatch) -> Iterator[None]:
    """Let psycopg.connect take sessions that were closed before. server: the URL of any database."""
    _ended(server)
    make = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]

    def connect(conninfo: str = "", *, context: Any = None, row_factory: Any = None, **given: Any) -> Any:
        key = _key(conninfo, given)
        free = _free.get(key, [])
        while free:
            session = free.pop()
            if session.status != pq.ConnStatus.OK:
                session.finish()
                continue
            connection: HandedOn = HandedOn(session)
            if context is not None:
                connection._adapters = psycopg.adapt.AdaptersMap(context.adapters)
            if given.get("cursor_factory") is not None:
                connection.cursor_factory = given["cursor_factory"]
            connection.prepare_threshold = given.get("prepare_threshold", 5)
            if row_factory is not None:
                connection.row_factory = row_factory
            connection.autocommit = given.get("autocommit", False)
            break
        else:
            connection = make(HandedOn, conninfo, context=context, row_factory=row_factory, **given)
        connection.key, connection.server, connection.age = key, server, _age
        return connection

    patched.setattr(psycopg, "connect", connect)
    run = psycopg.Cursor.execute

    def execute(cursor: Any, query: Any, *parameters: Any, **given: Any) -> Any:
        done = run(cursor, query, *parameters, **given)
        text = query if isinstance(query, str) else str(query)
        if "ALTER DATABASE" in text or "ALTER ROLE" in text:
            global _age
            _age += 1
            end()
        return done

    patched.setattr(psycopg.Cursor, "execute", execute)
    _trust(patched)
    try:
        yield
    finally:
        patched.undo()
        end()


def _trust(patched: pytest.MonkeyPatch) -> None:
    """There is no pooler here, and nobody asks whether there is one, which each transaction begins with."""

    def begin(connection: sa.Connection, query: str) -> None:
        _, _, settings = query.partition("; ")
        if settings:
            driver: Any = connection.connection.driver_connection
            driver.execute(settings, prepare=False)

    patched.setattr(pooler, "check", begin)
    patched.setattr(postgresql_session, "_check_alone", lambda url, process: None)


def end() -> None:
    """End the sessions that are free: a database that somebody is connected to is copied by nobody."""
    for sessions in _free.values():
        for session in sessions:
            session.finish()
    _free.clear()
