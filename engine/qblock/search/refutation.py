"""Cheaper questions that can fail a node and never pass it, asked as long as they save more than they cost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

AGAIN = 16
"""A question that is not worth asking is asked again at every so many nodes: the next may be others."""


class Refutation:
    """How often each question has failed a node, in all threads; the verdicts are the same whichever is asked."""

    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()
        self._lock = threading.Lock()

    def fails(self, question: str, price: float, ask: Callable[[], bool]) -> bool:
        """Whether a question fails the node, if it is asked. price: what it costs of the whole verdict."""
        with self._lock:
            if (self._failed[question] + 1) / (self._tried[question] + 1.5) < price:
                self._left_out[question] += 1
                if self._left_out[question] % AGAIN:
                    return False
            self._tried[question] += 1
        failed = ask()
        with self._lock:
            self._failed[question] += failed
        return failed
