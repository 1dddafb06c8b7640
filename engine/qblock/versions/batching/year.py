"""Some runs of a steady job, simulated in arrays: what its rules do with people who come and leave at random.

The rules are those of `step`, but for what is not drawn: values do not change, nobody withdraws or comes back, and
nobody has several rows. Whoever is asked for verdicts decides which models are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Floats, Ints, Mask
from qblock.versions.batching.cohort import Churn
from qblock.versions.batching.failing import Column, cannot_fail, leaves_candidates
from qblock.versions.batching.proposals import Due
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.weights import tolerance

SEED = 20_262
WAITS, OUT, GONE = -1, -2, -3
"""Of people in no cell: who has not come or waits, is out for good, was shown and left."""

Divide = Callable[[Ints], Ints]
"""Gives the box of some people, each a number that no other cohort has, by the rows of a table that they are like."""
Fails = Callable[[Ints, Ints, int], Mask]
"""Which of so many groups fail, by the group of each of some people and the row of the table that each is like."""


@dataclass(frozen=True, eq=False)
class History:
    """Who is there in which run.

    row: int64[P], the row of a table that each person is like; came: int64[P], the run that each is there from, 1 for
    those of the first version; left: int64[P], the run that each is absent from; runs: after the first version.
    """

    row: Ints
    came: Ints
    left: Ints
    runs: int

    @property
    def first(self) -> Ints:
        """The people of the first version."""
        return np.flatnonzero(self.came == 1)

    @property
    def last(self) -> int:
        """The number of the last run."""
        return self.runs + 1

    @property
    def later(self) -> range:
        """The runs after the first version, by number."""
        return range(2, self.last + 1)

    def present(self, run: int) -> Mask:
        there: Mask = (self.came <= run) & (self.left > run)
        return there


def draw_history(rows: int, churn: Churn, runs: int, seed: int = SEED) -> History:
    """Each person leaves with the same chance in each run, and who comes is like somebody of the table.

    Rows come in no order, so that who goes first of people who left in one run is chance.
    """
    rng = np.random.default_rng(seed)
    coming = rng.poisson(churn.coming * rows, runs)
    row = np.concatenate([rng.permutation(rows), rng.integers(rows, size=int(coming.sum()))])
    came = np.concatenate([np.ones(rows, dtype=np.int64), np.repeat(np.arange(2, runs + 2), coming)])
    stay = rng.geometric(min(1.0, churn.leaving), len(row)) if churn.leaving else np.full(len(row), runs + 2)
    return History(row, came, came + stay, runs)


@dataclass(frozen=True, eq=False)
class Cohort:
    """Newcomers who close together. people: int64[C], by number; box: int64[C], that of each."""

    people: Ints
    box: Ints


def draw_cohorts(history: History, due: Due, least: int, divide: Divide) -> dict[int, Cohort]:
    """The cohorts by the run in which they close: as `in_cohorts`, whatever becomes of the boxes."""
    cohorts: dict[int, Cohort] = {}
    waits = history.came > 1
    for run in history.later:
        people = np.flatnonzero(waits & history.present(run))
        if len(people) < least or not due(run, int(history.came[people].min())):
            continue
        cohorts[run] = Cohort(people, divide(history.row[people]))
        waits[people] = False
    return cohorts


@dataclass(frozen=True, eq=False)
class Policy:
    """What the job is told. skip: as of the spec; weights: whether rows have them, so that a version is made for theirs
    alone."""

    rules: Rules
    leave: int = 0
    stale: Fraction | None = None
    skip: Fraction = Fraction(0)
    weights: bool = False

    @property
    def batch(self) -> int:
        """The least leavers of a batch."""
        return max(self.rules.k, self.leave)


@dataclass(frozen=True, eq=False)
class Year:
    """What the last version shows, and how it came to that.

    cell: int64[P], the cell of each person, or why there is none; box: int64[C], that of each cell; counted: int64[C],
    of how many of its people the weight of its rows says that they are there. versions: with the first; hidden:
    float64[runs], the share of those present who are in no row; longest_wait: of newcomers, in runs; gone: how many
    people who were shown, and left, are shown no more.
    """

    cell: Ints
    box: Ints
    counted: Ints
    versions: int
    hidden: Floats
    longest_wait: int
    gone: int


class _Job:
    """A job while it runs."""

    def __init__(self, history: History, base: Ints, values: Ints, policy: Policy, fails: Fails) -> None:
        self.history, self.values, self.policy, self.fails = history, values, policy, fails
        self.cell = np.full(len(history.row), WAITS, dtype=np.int64)
        self.box = np.zeros(0, dtype=np.int64)
        self.frozen = np.zeros(0, dtype=bool)
        self.tried = np.zeros(0, dtype=np.int64)
        """The largest batch of leavers of each cell that may not go, as the cell is."""
        self.counted = np.zeros(0, dtype=np.int64)
        self.people = np.zeros(0, dtype=np.int64)
        """How many each cell had when its weight was said."""
        self.coin = np.random.default_rng(SEED)
        first = history.first
        self.cell[first[base < 0]] = OUT
        self._show(first[base >= 0], base[base >= 0])

    def run(self, run: int, cohort: Cohort | None) -> bool:
        """One run: whether a version is published."""
        size, absent = self._counts(run)
        taken = self._whole(size, absent)
        taken |= self._stale(size, absent, taken)
        self._take(taken, run)
        shown = cohort is not None and self._newcomers(cohort)
        goes = self._leavers(run, np.where(taken, 0, size), absent) if self.policy.rules.cells else False
        return bool(taken.any()) or shown or goes

    def say_weights(self, run: int) -> bool:
        """Say them anew (`weights.restated`): whether one is another of a cell whose people are the same."""
        size, absent = self._counts(run)
        sizes, of = np.unique(size, return_inverse=True)
        allowed = np.array([tolerance(n, self.policy.rules.k) for n in sizes.tolist()], dtype=np.int64)
        differ = abs(size - absent - self.counted) >= allowed[of.reshape(-1)]
        same = self.people == size
        self.counted = np.where(differ | ~same, size - absent, self.counted)
        self.people = size
        return bool((differ & same).any())

    def _counts(self, run: int) -> tuple[Ints, Ints]:
        """The people of each cell, and those of them who left."""
        number, shown = len(self.box), self.cell >= 0
        left = shown & (self.history.left <= run)
        size, absent = (np.bincount(self.cell[who], minlength=number).astype(np.int64) for who in (shown, left))
        return size, absent

    def _show(self, people: Ints, box: Ints) -> None:
        """Show people, each box as a cell."""
        boxes, number = np.unique(box, return_inverse=True)
        number = number.reshape(-1)
        self.cell[people] = len(self.box) + number
        self.box = np.concatenate([self.box, boxes])
        self.frozen = np.concatenate([self.frozen, np.zeros(len(boxes), dtype=bool)])
        self.tried = np.concatenate([self.tried, np.zeros(len(boxes), dtype=np.int64)])
        size = np.bincount(number, minlength=len(boxes)).astype(np.int64)
        self.counted, self.people = (np.concatenate([said, size]) for said in (self.counted, self.people))

    def _whole(self, size: Ints, absent: Ints) -> Mask:
        return _but_the_last((size > 0) & (absent == size) & ~self.frozen, size, int(size.sum()))

    def _stale(self, size: Ints, absent: Ints, taken: Mask) -> Mask:
        policy = self.policy
        if policy.stale is None or not policy.rules.stale:
            return np.zeros_like(taken)
        stuck = self.frozen | (size < policy.rules.k + policy.batch + 2)
        many = absent * policy.stale.denominator >= size * policy.stale.numerator
        return _but_the_last(stuck & ~taken & (absent > 0) & many, size, int(size[~taken].sum()))

    def _take(self, taken: Mask, run: int) -> None:
        people = np.flatnonzero(self.cell >= 0)
        people = people[taken[self.cell[people]]]
        self.cell[people] = np.where(self.history.left[people] <= run, GONE, OUT)

    def _newcomers(self, cohort: Cohort) -> bool:
        boxes, number = np.unique(cohort.box, return_inverse=True)
        number = number.reshape(-1)
        passed = ~self.fails(number, self.history.row[cohort.people], len(boxes))
        if self.policy.rules.coin:
            passed &= self.coin.random(len(boxes)) >= float(self.policy.skip)
        passed = passed[number]
        self.cell[cohort.people[~passed]] = OUT
        self._show(cohort.people[passed], cohort.box[passed])
        return bool(passed.any())

    def _leavers(self, run: int, size: Ints, absent: Ints) -> bool:
        """Let those go who are gone longest, of each cell as many as may."""
        k, batch = self.policy.rules.k, self.policy.batch
        most = np.minimum(absent, size - k)
        able = (most >= batch) & (absent < size) & (most > self.tried[: len(size)]) & ~self.frozen[: len(size)]
        batches = []
        for cell, people in self._members(np.flatnonzero(able), run):
            columns = self._columns(people)
            least = max(batch, int(self.tried[cell]) + 1)
            goes = next((m for m in range(int(most[cell]), least - 1, -1) if self._may_go(columns, m)), 0)
            if goes:
                batches.append((cell, people, goes))
            else:
                self.tried[cell] = most[cell]
        if not batches:
            return False
        people = np.concatenate([people for _, people, _ in batches])
        group = np.concatenate([2 * i + (np.arange(len(p)) >= m) for i, (_, p, m) in enumerate(batches)])
        failing = self.fails(group, self.history.row[people], 2 * len(batches))
        failed: Mask = failing[::2] | failing[1::2]
        for i, (cell, people, goes) in enumerate(batches):
            if failed[i]:
                self.frozen[cell] = True
            else:
                self.cell[people[:goes]] = GONE
                self.tried[cell] = 0
        return not failed.all()

    def _members(self, cells: Ints, run: int) -> Sequence[tuple[int, Ints]]:
        """The people of some cells, those who are gone longest first."""
        people = np.flatnonzero(np.isin(self.cell, cells))
        left = self.history.left[people]
        people = people[np.lexsort((np.where(left <= run, left, run + 1), self.cell[people]))]
        ends = np.searchsorted(self.cell[people], cells, side="right")
        return list(zip(cells.tolist(), np.split(people, ends)[:-1], strict=True))

    def _columns(self, people: Ints) -> list[Column]:
        rules, values = self.policy.rules, self.values[self.history.row[people]]
        columns = zip(values.T.tolist(), rules.ls, rules.models, strict=True)
        return [Column(tuple(column), l, models) for column, l, models in columns]  # noqa: E741

    def _may_go(self, columns: Sequence[Column], m: int) -> bool:
        return (self.policy.rules.sure and cannot_fail(columns, m)) or leaves_candidates(columns, m)


def _but_the_last(cells: Mask, size: Ints, shown: int) -> Mask:
    """Cells to be taken out, but one where they are all: a version that shows nobody is none."""
    if cells.any() and int(size[cells].sum()) >= shown:
        cells[np.flatnonzero(cells)[-1]] = False
    return cells


def simulate(
    history: History, base: Ints, cohorts: Mapping[int, Cohort], values: Ints, policy: Policy, fails: Fails
) -> Year:
    """Run the job.

    Args:
        history: who is there.
        base: the box of each person of the first version, -1 where it is suppressed.
        cohorts: of the newcomers, by run.
        values: int64[N, S], the sensitive values of each row of the table.
        policy: the rules.
        fails: the verdicts.
    """
    job = _Job(history, base, values, policy, fails)
    versions, hidden, longest = 1, np.zeros(history.runs), 0
    for run in history.later:
        present = history.present(run)
        waits = present & (job.cell == WAITS)
        longest = max(longest, run - int(history.came[waits].min(initial=run)))
        shown = job.run(run, cohorts.get(run))
        weighed = job.say_weights(run)
        versions += shown or (weighed and policy.weights)
        hidden[run - 2] = (present & (job.cell < 0)).sum() / max(1, int(present.sum()))
    gone = int((job.cell == GONE).sum())
    return Year(job.cell, job.box, job.counted, versions, hidden, longest, gone)
