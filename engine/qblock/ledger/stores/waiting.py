"""Waiting for a lock, and what is said where it is in vain."""

from __future__ import annotations

import time
from collections.abc import Callable

from qblock.errors import Busy

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
