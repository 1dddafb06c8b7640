"""How far a search is, and how long it will still take."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from qblock.errors import InputError
from qblock.spec import Spec
from qblock.spec.fields import duration
from qblock.spec.sections import Search

Stage = Literal["search", "walk", "choice", "boxes", "nodes", "years", "maps"]
"""search: verdicts of the lattice; walk: nodes asked in a lattice that is not decided; choice: metrics of satisfying
nodes; boxes: of a recoding map, those that are done, and parts that may be split; nodes: every node, one after the
other; years: of the job, simulated with one choice after another; maps: of other questions, one after the other."""


@dataclass(frozen=True)
class SearchProgress:
    """How far a stage is. decided, left: nodes; questions: asked so far; rows_read: by the statements that answered
    them; seconds: since the stage began; remaining: how many more it may take, None as long as nothing can be said;
    settled: of a map, whose rounds are its questions, the share of the rows that are in boxes that are done.
    """

    stage: Stage
    decided: int
    left: int
    questions: int
    rows_read: int
    seconds: float
    remaining: float | None
    settled: float | None = None

    @property
    def rate(self) -> float | None:
        """Questions a second."""
        return self.questions / self.seconds if self.seconds else None


Progress = Callable[[SearchProgress], None]
"""Called after each question."""

FIRST = 8
"""Questions before a guess is made."""
RECENT = 0.7
"""The share of the questions so far that a guess goes by: the first ones decide most."""
STATEMENT = 200_000
"""What a question takes beside reading rows, in rows."""
SOON = 0.1
"""Seconds for which a guess is kept: to guess takes as long as a question of a small table."""


class Pace:
    """Turns what is left into how long it takes.

    Each question decides a share of what is left, about the same one for long; in the end one node each. It takes as
    long as the rows that it is expected to read. Both are taken from the questions so far. That this comes near is
    measured, not proved (docs/performance.md). Of a map nothing is guessed: parts become more before they become fewer.
    """

    def __init__(
        self,
        stage: Stage,
        report: Progress,
        rows_read: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stage, self._report, self._rows_read, self._clock = stage, report, rows_read, clock
        self._began = clock()
        self._before = rows_read()
        self._times: list[float] = []
        self._left: list[int] = []
        self._prices: list[float] = []
        self._guess, self._guessed = 0.0, -math.inf

    def __call__(self, decided: int, left: int, price: float) -> None:
        """After a question: nodes that need none any more, those that may, and the rows that another would read; of a
        map, boxes, open parts and the rows of these."""
        seconds = self._clock() - self._began
        self._times.append(seconds)
        self._left.append(left)
        self._prices.append(price + STATEMENT)
        read = self._rows_read() - self._before
        told = self._stage, decided, left, len(self._times), read, seconds
        if self._stage == "boxes":
            self._report(SearchProgress(*told, None, self._settled()))
        else:
            self._report(SearchProgress(*told, self._remaining()))

    def _settled(self) -> float | None:
        first, last = (price - STATEMENT for price in (self._prices[0], self._prices[-1]))
        return 1 - last / first if first else None

    def _remaining(self) -> float | None:
        if not self._left[-1]:
            return 0.0
        if len(self._times) < FIRST:
            return None
        if self._times[-1] - self._guessed >= SOON:
            self._guess, self._guessed = self._guess_anew(), self._times[-1]
        return self._guess

    def _guess_anew(self) -> float:
        questions = len(self._times)
        since = int(questions * (1 - RECENT)) - 1
        times = [b - a for a, b in itertools.pairwise(self._times[since:])]
        prices = self._prices[since:-1]
        rates = sorted(seconds / price for seconds, price in zip(times, prices, strict=True))
        rate = (sum(times) / sum(prices) + rates[len(rates) // 2]) / 2
        return rate * self._prices[-1] * self._questions(since)

    def _questions(self, since: int) -> float:
        """How many are still to come, if each decides the share of what is left that it did since the given one."""
        left, before = self._left[-1], self._left[since]
        if before <= left:
            return left
        share = (len(self._left) - 1 - since) / math.log(before / left)  # 1 / the share
        return min(left, share * math.log(left / share) + share) if left > share else left


class Deadline:
    """Whether the time of a search is over; of one without a limit it never is. cut: whether it was said to be, so that
    something was left out."""

    def __init__(self, within: timedelta | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limited, self.cut, self._clock = within is not None, False, clock
        self._end = math.inf if within is None else clock() + within.total_seconds()

    def __call__(self) -> bool:
        self.cut = self.cut or (self.limited and self._clock() >= self._end)
        return self.cut


def with_time(spec: Spec, within: str) -> Spec:
    """The spec with another time of its search: a text as of `search.within`."""
    try:
        time = duration(within)
    except ValueError as error:
        raise InputError(f"--within: {str(error).format(it=repr(within))}") from None
    # A key that is left out is not None where it is written.
    given = {name: value for name, value in vars(spec.search).items() if value is not None}
    return replace(spec, search=Search(**given | {"within": time}))
