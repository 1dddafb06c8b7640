"""Locks of a PostgreSQL store: advisory locks of a session of their own.

A pooler in transaction mode runs each statement of the session in whatever server session is free; it is detected, and
nothing stays locked in it. So every statement on a lock also returns which server session it ran in, and whether that
one has the lock.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa

from qblock.engines.postgresql import pooler
from qblock.engines.postgresql import session as postgresql_session
from qblock.errors import Busy, QblockError
from qblock.ledger.store import KEPT_FROM_RUNNING, WHOLE, HeldLock, Store, busy, wait_for
from qblock.resources import sql_text

MOST_BYTES = 63
"""The longest application_name."""
_NAME = re.compile(r"qblock (?P<what>.*) \(process (?P<pid>\d+), (?P<machine>[0-9a-f]{6})(?P<start>[0-9a-f]{4})\)")
REACH_SECONDS = 5.0
MOST_REACHED = 32
"""How many server sessions of a pool are asked for the one that kept a lock."""
Rival = sa.Row[Any] | None
"""Another run that has a lock: the row of lock_rival."""


def lock_key(release: str) -> int:
    """The advisory lock's key: a signed 64-bit number."""
    return int.from_bytes(hashlib.sha256(f"qblock:{release}".encode()).digest()[:8], "big", signed=True)


def _half(key: int) -> int:
    """The upper half of a key, which those that stand in for it have, too."""
    return key >> 32 & 0xFFFFFFFF


def _stand_in(key: int) -> int:
    return key >> 32 << 32 | secrets.randbits(32)


@contextmanager
def advisory_lock(store: Store, release: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of a release, with a share of that of the store."""
    key, whole = lock_key(release), lock_key(WHOLE)
    with lock_session(store, release) as locks:
        with store.translated():
            locks.wait(key, deadline, lambda rival: _held_by(rival, release))
            locks.wait(whole, deadline, lambda rival: _held_by(rival, WHOLE), shared=True)
        yield HeldLock(release, lambda: locks.check(f" of release {release}", key))


@contextmanager
def advisory_lock_of_all(store: Store, what: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of the store, alone."""
    key = lock_key(WHOLE)
    with lock_session(store, what) as locks:
        with store.translated():
            locks.wait(key, deadline, _held_by_a_run)
        yield HeldLock(what, lambda: locks.check("", key))


def _held_by_a_run(rival: Rival) -> Busy:
    """What is said of one of the runs that share the lock of the store, whose release is in its name."""
    return _held_by(rival, None if rival is None else release_of(rival.application_name))


def _held_by(rival: Rival, release: str | None) -> Busy:
    """Who holds the lock of a release, as far as the login may see it."""
    if rival is None:
        return Busy(KEPT_FROM_RUNNING) if release == WHOLE else busy(release, "")
    name, since = rival.application_name, ""
    if rival.backend_start is not None:
        since = f", since {rival.backend_start.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    process = gone(name)
    if process is not None:
        what = f"release {release}" if release else "every release"
        return Busy(
            f"{what} is locked by a run that has ended: process {process} of this machine has ended, and server "
            f"process {rival.holder}{since} still holds its lock. PostgreSQL soon ends such a session by itself; if it "
            "stays, a connection pooler keeps it: end it there (PgBouncer: RECONNECT), or by SELECT "
            f"pg_terminate_backend({rival.holder})"
        )
    if release == WHOLE:
        return Busy(KEPT_FROM_RUNNING)
    return busy(release, f" ({shown(name)}, server process {rival.holder} of user {rival.role}{since})")


@dataclass(frozen=True)
class _Taken:
    key: int
    shared: bool
    server_process: int


class SessionLocks:
    """The locks of one session, which does nothing else. connection: in AUTOCOMMIT.

    Any login may take any advisory lock. So a lock is held by who has its key, or another one of the same upper half,
    and may write the ledger: each run takes a key first and looks for others then, so that of two one sees the other.
    """

    def __init__(self, store: Store, connection: sa.Connection) -> None:
        self.connection = connection
        self._store = store
        self._taken: dict[int, _Taken] = {}
        """By the key that is wanted."""

    def wait(self, key: int, deadline: float, busy: Callable[[Rival], Busy], *, shared: bool = False) -> None:
        """Take a lock, or raise what `busy` gives after the deadline."""
        wait_for(lambda: self.take(key, shared=shared), deadline, lambda: busy(self.rival(key, shared=shared)))

    def take(self, key: int, *, shared: bool = False) -> bool:
        """Whether no other run has the lock, and it is ours now. Raises Pooled."""
        if not self._try(key, key, shared):
            if self.rival(key, shared=shared) is not None:
                return False
            # Who has it is no run, and is passed by.
            if not self._try(key, _stand_in(key), shared):
                return False
        if self.rival(key, shared=shared) is not None:
            self._leave(self._taken.pop(key))
            return False
        return True

    def _try(self, wanted: int, key: int, shared: bool) -> bool:
        row = self.connection.execute(postgresql_session.statement("lock_take"), {"key": key, "shared": shared}).one()
        if row.taken:
            self._taken[wanted] = _Taken(key, shared, row.pid)
        if row.before or not self._own(row):
            raise pooler.Pooled
        return bool(row.taken)

    def rival(self, key: int, *, shared: bool = False) -> Rival:
        """Another run that has a lock which we want, or want to share. Raises Pooled."""
        values = {"half": _half(key), "shared": shared, "own": pooler.server_process(self.connection)}
        row = self.connection.execute(postgresql_session.statement("lock_rival"), values).one()
        if not self._own(row):
            raise pooler.Pooled
        return None if row.holder is None else row

    def check(self, of: str, key: int) -> None:
        """Raise QblockError where the lock is not held any more. of: the release, for the message."""
        own = pooler.server_process(self.connection)
        values = {"key": self._taken[key].key, "other": own}
        try:
            row = self.connection.execute(postgresql_session.statement("lock_own"), values).one()
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
        for taken in reversed(self._taken.values()):
            self._leave(taken)
        self._taken = {}

    def _leave(self, taken: _Taken) -> None:
        left = None
        with suppress(sa.exc.SQLAlchemyError):
            values = {"key": taken.key, "shared": taken.shared}
            left = self.connection.scalar(postgresql_session.statement("lock_leave"), values)
        if not left:
            with suppress(psycopg.Error, OSError):
                _leave_elsewhere(self._store.url, taken)


@contextmanager
def lock_session(store: Store, what: str) -> Iterator[SessionLocks]:
    """A session that does nothing but hold locks, all of which are released at the end. what: what it is for.

    Raises Pooled before a lock is taken where a second session would be given the same server session.
    """
    engine = postgresql_session.create_engine(store.url).execution_options(isolation_level="AUTOCOMMIT")
    with store.translated():
        connection = engine.connect()
    try:
        with store.translated():
            _keep_session(connection, what)
            with engine.connect() as other:
                pooler.check_alone(connection, other)
        locks = SessionLocks(store, connection)
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


def session_name(what: str) -> str:
    """What the session of a lock is called: what it is for, and a process of a machine; `what` is cut to fit."""
    pid = os.getpid()
    end = f" (process {pid}, {_machine()}{_start(pid) or ''})"
    most = MOST_BYTES - len(f"qblock {end}")
    return f"qblock {what if len(what) <= most else what[: most - 3] + '...'}{end}"


def shown(name: str | None) -> str:
    """The name of a lock's session, for a message."""
    match = _NAME.fullmatch(name or "")
    return f"qblock {match['what']} (process {match['pid']})" if match else name or "session"


def release_of(name: str | None) -> str | None:
    """The release that the session of a lock is for; None where that is not known."""
    match = re.match(r"qblock (\w+) \(process", name or "")
    return match[1] if match else None


def gone(name: str | None) -> int | None:
    """The process that a session's name gives, where it ran on this machine and has ended; None where it still runs, or
    runs on another machine, of which nothing is known."""
    match = _NAME.fullmatch(name or "")
    if match is None or match["machine"] != _machine():
        return None
    pid = int(match["pid"])
    return pid if _start(pid) != match["start"] else None


@cache
def _machine() -> str:
    """This machine since it was started, and this container on it: pids of another one mean nothing here."""
    try:
        facts = Path("/proc/sys/kernel/random/boot_id").read_text("ascii"), os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""  # not a name of ours, so that nothing is concluded from it
    return hashlib.sha256("".join(facts).encode()).hexdigest()[:6]


def _start(pid: int) -> str | None:
    """When a process began, digested; None for one that does not exist, or has ended and is not reaped yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else hashlib.sha256(fields[19].encode()).hexdigest()[:4]
