"""Cheap necessary conditions, tried first while they reject often enough to pay."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

AGAIN = 16
"""A test that does not pay is run again at every so many nodes: the next may be others."""


class Prefilter:
    """How often each test has rejected a node, in all threads; the verdicts are the same whichever is run."""

    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._lock = threading.Lock()

    def rejects(self, test: str, cost: float, run: Callable[[], bool]) -> bool:
        """Whether a test rejects the node, if it is run. cost: its share of what the whole verdict costs."""
        with self._lock:
            if (self._rejected[test] + 1) / (self._tried[test] + 1.5) < cost:
                self._left_out[test] += 1
                if self._left_out[test] % AGAIN:
                    return False
            self._tried[test] += 1
        rejected = run()
        with self._lock:
            self._rejected[test] += rejected
        return rejected
