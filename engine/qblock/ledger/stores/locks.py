"""Locks of a store in files, and waiting for the locks of any store."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from qblock.errors import Busy, QblockError
from qblock.files import check_file
from qblock.ledger.store import HeldLock, make_private

POLL_SECONDS = 0.1
WHOLE = ""
"""The whole place, where a lock is named after a release: no release has this name."""
KEPT_FROM_RUNNING = (
    "the key of the crosswalk is being changed, and no run may see it half done; wait until that has ended"
)


def wait_for(attempt: Callable[[], bool], deadline: float, busy: Callable[[], Busy]) -> None:
    """Try until it succeeds. Raises what `busy` gives after the deadline."""
    while not attempt():
        left = deadline - time.monotonic()
        if left <= 0:
            raise busy()
        time.sleep(min(POLL_SECONDS, left))


def busy(release: str | None, holder: str) -> Busy:
    """What is said of another run. holder: which process it is, in brackets."""
    of = f" of release {release}" if release else ""
    return Busy(f"another run{of} is in progress{holder}; wait for it to end, or let this one wait longer")


@contextmanager
def _locked_file(path: Path) -> Iterator[tuple[IO[str], Callable[[], None]]]:
    """The file to be locked, and the check that it is still the one that others will find."""
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
def file_lock(folder: Path, release: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of a release, with a share of that of the folder."""
    make_private(folder)
    with (
        _locked_file(folder / f"{release}.lock") as (file, check_own),
        _locked_file(folder / f"{WHOLE}.lock") as (shared, check_shared),
    ):
        wait_for(lambda: _try_file(file), deadline, lambda: busy(release, _written_by(file)))
        wait_for(lambda: _try_file(shared, fcntl.LOCK_SH), deadline, lambda: Busy(KEPT_FROM_RUNNING))
        holder = {"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}
        file.truncate(0)
        # Only for the messages of others: on a full disk the lock is held nevertheless.
        with suppress(OSError):
            os.pwrite(file.fileno(), json.dumps(holder).encode(), 0)

        def check() -> None:
            check_own()
            check_shared()

        check()
        yield HeldLock(release, check)
        file.seek(0)
        file.truncate()


@contextmanager
def file_lock_of_all(folder: Path, what: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of the folder, alone."""
    with _locked_file(make_private(folder) / f"{WHOLE}.lock") as (file, check):
        wait_for(lambda: _try_file(file), deadline, lambda: busy(*_some_run(folder)))
        yield HeldLock(what, check)


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
