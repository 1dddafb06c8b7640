"""One run at a time for each release: the lock is taken before the first transaction and dies with the process.

Beside it every run shares a lock of its whole place, which `place_lock` takes alone: nothing runs there then.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import sqlalchemy as sa

from qblock.errors import Busy, QblockError
from qblock.files import check_file
from qblock.ledger import holder
from qblock.ledger.place import Place, make_private, translated
from qblock.ledger.session_lock import lock_session
from qblock.resources import sql_text

POLL_SECONDS = 0.1
WHOLE = ""
"""The whole place, where a lock is named by a release: no release has this name."""
KEPT_FROM_RUNNING = "the key of the crosswalk is being changed, which no run may see half done; wait for it to end"


@dataclass(frozen=True)
class HeldLock:
    """A lock that this process holds. check: raises QblockError when it is lost, before anything is published."""

    release: str
    check: Callable[[], None]


@contextmanager
def release_lock(place: Place, release: str, wait_seconds: float = 0) -> Iterator[HeldLock]:
    """Hold the lock of a release: an advisory lock of a session of its own (PostgreSQL), or a lock on the file
    `<release>.lock` in the private folder (DuckDB), which stays there when the lock is gone.

    Raises Busy (exit 4) when another run still holds it after wait_seconds, or `place_lock` is held.
    """
    held = _advisory_lock if place.engine == "postgresql" else _file_lock
    with held(place, release, time.monotonic() + wait_seconds) as lock:
        yield lock


@contextmanager
def place_lock(place: Place, what: str, wait_seconds: float = 0) -> Iterator[HeldLock]:
    """Keep every run of every release of a place away. what: who does so, for the messages of others.

    Raises Busy (exit 4), naming the release, when a run is still going on after wait_seconds.
    """
    deadline = time.monotonic() + wait_seconds
    if place.engine == "postgresql":
        key = lock_key(WHOLE)
        with lock_session(place, what) as locks:
            with translated(place):
                _wait(lambda: locks.take(key), deadline, lambda: _held_by(locks.connection, key, shared=True))
            yield HeldLock(what, lambda: locks.check("", key))
        return
    with _locked_file(make_private(place.folder) / f"{WHOLE}.lock") as (file, check):
        _wait(lambda: _try_file(file), deadline, lambda: _busy(*_some_run(place.folder)))
        yield HeldLock(what, check)


def lock_key(release: str) -> int:
    """The advisory lock's key: a signed 64-bit number."""
    return int.from_bytes(hashlib.sha256(f"qblock:{release}".encode()).digest()[:8], "big", signed=True)


def _wait(attempt: Callable[[], bool], deadline: float, busy: Callable[[], Busy]) -> None:
    while not attempt():
        left = deadline - time.monotonic()
        if left <= 0:
            raise busy()
        time.sleep(min(POLL_SECONDS, left))


def _busy(release: str | None, holder: str) -> Busy:
    of = f" of release {release}" if release else ""
    return Busy(f"another run{of} is going on{holder}; wait for it to end, or let this one wait longer")


@contextmanager
def _advisory_lock(place: Place, release: str, deadline: float) -> Iterator[HeldLock]:
    key, whole = lock_key(release), lock_key(WHOLE)
    with lock_session(place, release) as locks:
        with translated(place):
            _wait(lambda: locks.take(key), deadline, lambda: _held_by(locks.connection, key, release))
            _wait(lambda: locks.take(whole, shared=True), deadline, lambda: _held_by(locks.connection, whole))
        yield HeldLock(release, lambda: locks.check(f" of release {release}", key))


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
            f"{what} is locked by a run that is gone: process {process} of this machine has ended, and server process "
            f"{row.pid}{since} still holds its lock. PostgreSQL ends such a session soon by itself; where it stays, a "
            "connection pooler keeps it: end it there (PgBouncer: RECONNECT), or by "
            f"SELECT pg_terminate_backend({row.pid})"
        )
    if release == WHOLE:
        return Busy(KEPT_FROM_RUNNING)
    return _busy(release, f" ({holder.shown(name)}, server process {row.pid}{since})" if row is not None else "")


@contextmanager
def _locked_file(path: Path) -> Iterator[tuple[IO[str], Callable[[], None]]]:
    """A file to be locked, and the check that it is still the one that others will find."""
    if not path.is_symlink():  # which is not followed
        check_file(path, "qblock keeps a lock there; move it away", QblockError)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise QblockError(f"the lock {path} cannot be opened: {error.strerror}") from None
    with open(descriptor, "r+", encoding="utf-8") as file:

        def check() -> None:
            if not path.exists() or not os.path.samestat(path.stat(), os.fstat(file.fileno())):
                of = f" of release {path.stem}" if path.name != f"{WHOLE}.lock" else ""
                raise QblockError(f"the lock{of} was lost: {path} was removed; run the command again")

        yield file, check


@contextmanager
def _file_lock(place: Place, release: str, deadline: float) -> Iterator[HeldLock]:
    folder = make_private(place.folder)
    with (
        _locked_file(folder / f"{release}.lock") as (file, check_own),
        _locked_file(folder / f"{WHOLE}.lock") as (shared, check_shared),
    ):
        _wait(lambda: _try_file(file), deadline, lambda: _busy(release, _written_by(file)))
        _wait(lambda: _try_file(shared, fcntl.LOCK_SH), deadline, lambda: Busy(KEPT_FROM_RUNNING))
        holder = {"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}
        file.truncate(0)
        # For the messages of others alone: on a full disk the lock is held all the same.
        with suppress(OSError):
            os.pwrite(file.fileno(), json.dumps(holder).encode(), 0)

        def check() -> None:
            check_own()
            check_shared()

        check()
        yield HeldLock(release, check)
        file.seek(0)
        file.truncate()


def _some_run(folder: Path) -> tuple[str | None, str]:
    """One of the runs that share the lock of the place: its release, and the process."""
    for path in sorted(folder.glob("*.lock")):
        if path.name == f"{WHOLE}.lock":
            continue
        with _locked_file(path) as (file, _):
            if not _try_file(file):
                return path.stem, _written_by(file)
    return None, ""


def _try_file(file: IO[str], how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _written_by(file: IO[str]) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return f" (process {int(holder['pid'])}, since {holder['since']})"
    except (ValueError, KeyError, TypeError):
        return ""
