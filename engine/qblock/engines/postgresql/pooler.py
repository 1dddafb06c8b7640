"""Poolers in transaction mode: a session's settings, locks and prepared statements do not hold there.

Such a pooler lends a server session for one transaction at a time. An idle pooler often lends the same one again, so
that nothing seems wrong until another client comes. Every connection therefore writes a random word into a setting of
its server session, and every transaction must find this word, all settings as they were set, and the same process.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import sqlalchemy as sa

from qblock.errors import InputError

WORD = "qblock.session"
"""The setting that holds the random word; any login may set one with a dot in its name."""
_FACTS = "qblock_session_facts"
REMEDY = "give the URL of the server itself, or of a pool in session mode (PgBouncer: pool_mode = session)"


LENDS = ", which lends a server session for one transaction at a time, so neither settings nor locks hold"
LEFT = (
    ", or to one that passes on what others have set in a session (no server_reset_query): settings of another run of "
    "qblock are still there"
)


class Pooled(InputError):
    """A URL that leads to a pooler in transaction mode, or to one that does not reset what it passes on."""

    def __init__(self, why: str = LENDS) -> None:
        super().__init__(f"the database URL leads to a connection pooler in transaction mode{why}; {REMEDY}")


def new_word() -> str:
    """A random word for one session."""
    return secrets.token_hex(16)


def facts_query(names: Iterable[str]) -> str:
    """The server process, the word, and what the settings are; calls functions of pg_catalog alone."""
    shown = ", ".join(f"pg_catalog.current_setting('{name}', true)" for name in (WORD, "search_path", *names))
    return f"SELECT pg_catalog.pg_backend_pid(), {shown}"


def first_seen(driver: Any) -> tuple[str, int]:
    """The search path that a new session starts with, and its server process. Raises Pooled for one that is not new.

    Calls nothing that such a path could shadow.
    """
    query = f"SELECT pg_catalog.current_setting('{WORD}', true), pg_catalog.pg_backend_pid()"
    cursor = driver.execute(f"SHOW search_path; {query}")
    path = cursor.fetchone()[0]
    cursor.nextset()
    word, process = cursor.fetchone()
    if word:
        raise Pooled(LEFT)
    return str(path), int(process)


def settled(facts: tuple[Any, ...], info: dict[str, Any]) -> None:
    """Keep what a connection has just set, as the statement that set it has answered `facts_query`. Whether the next
    one is in the same server session is found by `check`, which every transaction begins with."""
    info[_FACTS] = facts


def check(connection: sa.Connection, query: str) -> None:
    """At the start of a transaction: the server session is the one that was settled. Raises Pooled.

    query: `facts_query`, and what else a transaction begins with.

    The driver's own errors are raised as SQLAlchemy's, as those of any statement are.
    """
    driver: Any = connection.connection.driver_connection
    try:
        # Several statements cannot be prepared.
        facts = driver.execute(query, prepare=False).fetchone()
    except psycopg.Error as error:
        raise sa.exc.OperationalError(None, None, error) from error
    if facts != connection.info[_FACTS]:
        raise Pooled


def server_process(connection: sa.Connection) -> int:
    """The pid of the server process that a connection was settled in."""
    return int(connection.info[_FACTS][0])


def word(connection: sa.Connection) -> str:
    """The word of a connection."""
    return str(connection.info[_FACTS][1])


def check_alone(connection: sa.Connection, other: sa.Connection) -> None:
    """Two connections that are open at once have two server processes. Raises Pooled.

    A pooler in transaction mode lends the idle session of the first to the second.
    """
    if server_process(connection) == server_process(other):
        raise Pooled


def check_other(driver: Any, process: int, seconds: float) -> None:
    """The same for a second connection of the driver, which is asked for so many seconds: a pool in session mode that
    has no session left lets it wait."""
    with ended_at(driver, time.monotonic() + seconds):
        pid = driver.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()[0]
    if pid == process:
        raise Pooled


@contextmanager
def ended_at(driver: Any, deadline: float) -> Iterator[None]:
    """Shut a connection of the driver down at a time of the monotonic clock, if it still waits then."""

    def end() -> None:
        with suppress(OSError), socket.socket(fileno=os.dup(driver.pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
