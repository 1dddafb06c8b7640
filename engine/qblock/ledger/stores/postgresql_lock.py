"""Locks of a PostgreSQL place: advisory locks of a session of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC

import sqlalchemy as sa

from qblock.errors import Busy
from qblock.ledger.place import HeldLock, Place
from qblock.ledger.stores import holder
from qblock.ledger.stores.postgresql_session_lock import lock_session
from qblock.ledger.stores.waiting import KEPT_FROM_RUNNING, WHOLE, busy, wait_for
from qblock.resources import sql_text


def lock_key(release: str) -> int:
    """The advisory lock's key: a signed 64-bit number."""
    return int.from_bytes(hashlib.sha256(f"qblock:{release}".encode()).digest()[:8], "big", signed=True)


@contextmanager
def advisory_lock(place: Place, release: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of a release, with a share of that of the place."""
    key, whole = lock_key(release), lock_key(WHOLE)
    with lock_session(place, release) as locks:
        with place.translated():
            wait_for(lambda: locks.take(key), deadline, lambda: _held_by(locks.connection, key, release))
            wait_for(lambda: locks.take(whole, shared=True), deadline, lambda: _held_by(locks.connection, whole))
        yield HeldLock(release, lambda: locks.check(f" of release {release}", key))


@contextmanager
def advisory_lock_of_all(place: Place, what: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of the place, alone."""
    key = lock_key(WHOLE)
    with lock_session(place, what) as locks:
        with place.translated():
            wait_for(lambda: locks.take(key), deadline, lambda: _held_by(locks.connection, key, shared=True))
        yield HeldLock(what, lambda: locks.check("", key))


def _held_by(connection: sa.Connection, key: int, release: str | None = None, *, shared: bool = False) -> Busy:
    """Who holds a lock, as far as the login may see it. shared: it is one of the runs that share the lock of the place,
    whose release is then in its name."""
    row = connection.execute(sa.text(sql_text("lock_holder", "postgresql")), {"key": key}).first()
    name = None if row is None else row.application_name
    if shared:
        release = holder.release_of(name)
    elif release is None:
        release = WHOLE
    since = f", since {row.backend_start.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if row and row.backend_start else ""
    process = holder.gone(name)
    if row is not None and process is not None:
        what = f"release {release}" if release else "every release"
        return Busy(
            f"{what} is locked by a run that has ended: process {process} of this machine has ended, and server "
            f"process {row.pid}{since} still holds its lock. PostgreSQL soon ends such a session by itself; if it "
            "stays, a connection pooler keeps it: end it there (PgBouncer: RECONNECT), or by SELECT "
            f"pg_terminate_backend({row.pid})"
        )
    if release == WHOLE:
        return Busy(KEPT_FROM_RUNNING)
    return busy(release, f" ({holder.shown(name)}, server process {row.pid}{since})" if row is not None else "")
