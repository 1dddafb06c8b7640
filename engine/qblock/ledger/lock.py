"""One run at a time for each release: the lock is taken before the first transaction and dies with the process.

Every run also shares a lock of its whole place, which `place_lock` takes alone: then nothing else runs there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from qblock.ledger.place import HeldLock, Place


@contextmanager
def release_lock(place: Place, release: str, wait_seconds: float = 0) -> Iterator[HeldLock]:
    """Hold the lock of a release: an advisory lock of a session of its own (PostgreSQL), or a lock on the file
    `<release>.lock` in the private folder (DuckDB), which stays there when the lock is gone.

    Raises Busy (exit 4) when another run still holds it after wait_seconds, or `place_lock` is held.
    """
    with place.lock(release, time.monotonic() + wait_seconds) as lock:
        yield lock


@contextmanager
def place_lock(place: Place, what: str, wait_seconds: float = 0) -> Iterator[HeldLock]:
    """Keep out every run of every release of a place. what: who does so, for the messages of others.

    Raises Busy (exit 4), naming the release, when a run is still in progress after wait_seconds.
    """
    with place.lock_all(what, time.monotonic() + wait_seconds) as lock:
        yield lock
