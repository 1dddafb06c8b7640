"""One run at a time for each release: the lock is taken before the first transaction and dies with the process."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

import sqlalchemy as sa

from qblock.errors import Busy, QblockError
from qblock.release.private import Place, create_engine, make_private, translated
from qblock.resources import sql_text

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class HeldLock:
    """A lock that this process holds. check: raises QblockError when it is lost, before anything is published."""

    release: str
    check: Callable[[], None]


@contextmanager
def release_lock(place: Place, release: str, wait_seconds: float = 0) -> Iterator[HeldLock]:
    """Hold the lock of a release: an advisory lock of a session of its own (PostgreSQL), or a lock on the file
    `<release>.lock` in the private folder (DuckDB), which stays there when the lock is gone.

    Raises Busy (exit 4) when another run still holds it after wait_seconds.
    """
    held = _advisory_lock if place.engine == "postgresql" else _file_lock
    with held(place, release, time.monotonic() + wait_seconds) as lock:
        yield lock


def lock_key(release: str) -> int:
    """The advisory lock's key: a signed 64-bit number."""
    return int.from_bytes(hashlib.sha256(f"qblock:{release}".encode()).digest()[:8], "big", signed=True)


def _wait(attempt: Callable[[], bool], deadline: float, busy: Callable[[], Busy]) -> None:
    while not attempt():
        left = deadline - time.monotonic()
        if left <= 0:
            raise busy()
        time.sleep(min(POLL_SECONDS, left))


def _busy(release: str, holder: str) -> Busy:
    return Busy(
        f"another run of release {release} is going on{holder}; wait for it to end, or let this one wait longer"
    )


@contextmanager
def _advisory_lock(place: Place, release: str, deadline: float) -> Iterator[HeldLock]:
    key = {"key": lock_key(release)}
    engine = create_engine(place).execution_options(isolation_level="AUTOCOMMIT")
    with translated(place):
        connection = engine.connect()
    try:
        with translated(place):
            _keep_session(connection, release)
            take = sa.text("SELECT pg_try_advisory_lock(:key)")
            _wait(
                lambda: bool(connection.scalar(take, key)), deadline, lambda: _busy(release, _holder(connection, key))
            )
        yield HeldLock(release, lambda: _check_session(connection, release, key))
    finally:
        connection.close()
        engine.dispose()


def _keep_session(connection: sa.Connection, release: str) -> None:
    # A session that waits for a long search must not be ended for being idle, and one whose machine is gone must be
    # noticed soon.
    settings = {
        "application_name": f"qblock {release} (process {os.getpid()})"[:63],
        "idle_session_timeout": "0",
        "tcp_keepalives_idle": "30",
        "tcp_keepalives_interval": "10",
        "tcp_keepalives_count": "3",
    }
    known = connection.scalars(
        sa.text("SELECT name FROM pg_settings WHERE name = ANY(:names)"), {"names": list(settings)}
    ).all()
    for name in known:
        connection.execute(sa.text("SELECT set_config(:name, :value, false)"), {"name": name, "value": settings[name]})


def _holder(connection: sa.Connection, key: dict[str, int]) -> str:
    row = connection.execute(sa.text(sql_text("lock_holder", "postgresql")), key).one_or_none()
    if row is None:
        return ""
    since = f", since {row.backend_start.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if row.backend_start else ""
    return f" ({row.application_name or 'session'}, server process {row.pid}{since})"


def _check_session(connection: sa.Connection, release: str, key: dict[str, int]) -> None:
    try:
        held = connection.execute(sa.text(sql_text("lock_holder", "postgresql")), key).one_or_none()
    except sa.exc.SQLAlchemyError:
        held = None
    if held is None or not held.own:
        raise QblockError(
            f"the lock of release {release} was lost: the database ended its session; run the release again"
        )


@contextmanager
def _file_lock(place: Place, release: str, deadline: float) -> Iterator[HeldLock]:
    path = make_private(place.folder) / f"{release}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise QblockError(f"the lock {path} cannot be opened: {error.strerror}") from None
    with open(descriptor, "r+", encoding="utf-8") as file:
        _wait(lambda: _try_file(file), deadline, lambda: _busy(release, _written_by(file)))
        file.seek(0)
        file.truncate()
        json.dump({"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}, file)
        file.flush()

        def check() -> None:
            if not path.exists() or not os.path.samestat(path.stat(), os.fstat(file.fileno())):
                raise QblockError(f"the lock of release {release} was lost: {path} was removed; run the release again")

        check()
        yield HeldLock(release, check)
        file.seek(0)
        file.truncate()


def _try_file(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
