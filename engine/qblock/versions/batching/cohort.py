"""`cohort: auto`: how many newcomers close a batch, from what readers already see and nothing else.

A batch that fails is given up for good, so it should seldom fail; and a size that was found by trying the people who
wait would tell their values. So the size of a block is the least one at which people drawn from the distribution that
the block shows pass with a probability of at least 0.999.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Mask, Reference
from qblock.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity, KMap, Model
from qblock.spec import Spec
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Block

SURE = 0.999
LIMIT = 400
"""Sizes that are tried; a block that needs more hardly passes itself, and gets none."""
DRAWS = 20_000
SEED = 20_260

Key = TypeVar("Key", bound=Hashable)
Chance = Callable[[Floats, int], float]
"""The probability that so many people, drawn from shares [V], pass."""


def chance_of_distinct(shares: Floats, n: int, l: int) -> float:  # noqa: E741
    """P(at least l different values among n), exactly, value by value: how many draws are left, how many values seen.

    Terms are positive throughout, so that nothing cancels as in inclusion and exclusion.
    """
    if l <= 2:
        return 1.0 - float(np.sum(shares**n)) if l == 2 else 1.0
    left = np.zeros((l, n + 1))  # fewer than l values so far, by draws that are left
    left[0, n] = 1.0
    rest = 1.0
    for share in shares:
        drawn = _binomials(n, min(1.0, share / rest) if rest > 0 else 1.0)
        new = left * drawn[:, 0]
        for d in range(1, l):
            for r in np.flatnonzero(left[d - 1]):
                new[d, :r] += left[d - 1, r] * drawn[r, r:0:-1]
        left, rest = new, rest - share
    return 1.0 - float(left[:, 0].sum())


def chance_of_frequency(shares: Floats, n: int, l: int | Fraction) -> float:  # noqa: E741
    """P(no value has more than n / l of n), exactly in the same way."""
    most = math.floor(n / Fraction(l))
    left = np.zeros(n + 1)
    left[n] = 1.0
    rest = 1.0
    for share in shares:
        drawn = _binomials(n, min(1.0, share / rest) if rest > 0 else 1.0)
        changed = np.zeros(n + 1)
        for r in range(n + 1):
            c = min(int(r), most)
            changed[r - c : r + 1] += left[r] * drawn[r, c::-1]
        left, rest = changed, rest - share
    return float(left[0])


def _binomials(n: int, p: float) -> Floats:
    """float64[n + 1, n + 1]: the probability of c successes in r draws."""
    table = np.zeros((n + 1, n + 1))
    table[0, 0] = 1.0
    for r in range(1, n + 1):
        table[r] = table[r - 1] * (1.0 - p)
        table[r, 1:] += table[r - 1, :-1] * p
    return table


def chance_of(models: Sequence[Model], reference: Reference) -> Chance:
    """The probability of passing models on one sensitive attribute: exact for sizes with one of distinct and frequency
    l-diversity, else by a simulation with a fixed seed."""
    of_values = [model for model in models if not isinstance(model, (KAnonymity, KMap))]
    if not of_values:
        return lambda shares, n: 1.0
    if len(of_values) == 1 and isinstance(of_values[0], DistinctLDiversity):
        least = int(of_values[0].l)
        return lambda shares, n: chance_of_distinct(shares, n, least)
    if len(of_values) == 1 and isinstance(of_values[0], FrequencyLDiversity):
        most = Fraction(of_values[0].l)
        return lambda shares, n: chance_of_frequency(shares, n, most)

    return _simulated(of_values, reference, lambda drawn: drawn, lambda blocks: np.ones(DRAWS, dtype=bool))


def chance_of_bundles(models: Sequence[Model], reference: Reference, bundles: Sequence[Collection[int]]) -> Chance:
    """The same of people with several rows, drawn from shares of bundles: by a simulation with a fixed seed.

    bundles: the values that each one holds. A batch in which everybody holds one value does not pass.
    """
    of_values = [model for model in models if not isinstance(model, (KAnonymity, KMap))]
    number = max((value for bundle in bundles for value in bundle), default=-1) + 1
    holds = np.zeros((len(bundles), number))
    for i, bundle in enumerate(bundles):
        holds[i, list(bundle)] = 1

    def held(drawn: Ints) -> Ints:
        # Whole numbers are multiplied one by one; doubles, which these are exactly, by the library for that.
        people: Ints = (drawn.astype(np.float64) @ holds).astype(np.int64)
        return people

    return _simulated(of_values, reference, held, lambda blocks: blocks.largest < blocks.rows)


def _simulated(
    models: Sequence[Model], reference: Reference, held: Callable[[Ints], Ints], alone: Callable[[Blocks], Mask]
) -> Chance:
    """By draws with a fixed seed. held: people by value of what was drawn; alone: which draws may pass at all."""

    def chance(shares: Floats, n: int) -> float:
        drawn = held(np.random.default_rng(SEED).multinomial(n, shares / shares.sum(), size=DRAWS))
        number, value = np.nonzero(drawn)
        start = np.searchsorted(number, np.arange(DRAWS + 1)).astype(np.int64)
        rows = np.full(DRAWS, n, dtype=np.int64)
        blocks = Blocks(start, value.astype(np.int64), drawn[number, value], rows)
        passed = alone(blocks)
        for model in models:
            passed &= model.passes(blocks, reference)
        return float(passed.mean())

    return chance


def cohort_size(counts: Sequence[int], least: int, chance: Chance, limit: int = LIMIT) -> int | None:
    """The size for a block that shows these counts; None where none up to `limit` will do.

    counts: [V], in the order of the domain. least: rows that the models imply for any block (Rules.k); a size is at
    least twice as many. Sizes are doubled and then halved, which finds the least one where more people pass more often.
    """
    shares: Floats = np.array(counts, dtype=np.float64)
    if not shares.sum():
        return None
    shares /= shares.sum()
    low = size = max(2 * least, 2)
    while chance(shares, size) < SURE:
        if size >= limit:
            return None
        low, size = size + 1, min(2 * size, limit)
    while low < size:
        middle = (low + size) // 2
        low, size = (low, middle) if chance(shares, middle) >= SURE else (middle + 1, size)
    return size


Values = tuple[str | None, ...] | tuple[frozenset[str | None], ...]
"""One for each sensitive attribute; a set of values where people have several rows."""
ByValues = tuple[tuple[Values, int], ...]
"""People by sensitive values."""
MOST_BUNDLES = 400
"""Of the bundles of a block those that most people have stand for all: the others are as good as never alike."""


class Sizes:
    """The people who close a batch of newcomers of a block, from what the first version shows, and nothing else.

    Computed when they are first asked for, and kept from then on. hidden: blocks in which none closes; declared: the
    size of every block, None for `cohort: auto`; blocks, whole: the sizes known so far, and that of blocks that the
    first version does not show; first: the people by values in the blocks that it shows; sized: the size for these;
    least: that no size is below, whatever a block shows.
    """

    def __init__(
        self,
        first: Callable[[], Mapping[Block, Mapping[Values, int]]],
        sized: Callable[[ByValues], int | None],
        k: int,
        *,
        declared: int | None = None,
        hidden: Collection[Block] = (),
        known: Mapping[Block, int | None] = MappingProxyType({}),
        whole: int | None = None,
    ) -> None:
        self.declared, self.hidden = declared, hidden
        self.blocks, self.whole = dict(known), whole
        self.least = max(2 * k, 2) if declared is None else declared
        self._first, self._sized = cache(first), cache(sized)

    def __call__(self, block: Block) -> int | None:
        if block in self.hidden:
            return None
        if self.declared is not None:
            return self.declared
        if block not in self.blocks:
            counts = self._first()
            if block in counts:
                self.blocks[block] = self._sized(_in_order(counts[block]))
            else:
                self.blocks[block] = self.of_whole()
        return self.blocks[block]

    def of_whole(self) -> int | None:
        """The size for people of no block in particular, by the distribution of all whom the first version shows."""
        if self.whole is None:
            everybody = added(pair for by_value in self._first().values() for pair in by_value.items())
            self.whole = self._sized(_in_order(everybody))
        return self.whole


def _in_order(counts: Mapping[Values, int]) -> ByValues:
    return tuple(sorted(counts.items(), key=repr))


def size_of(spec: Spec, references: Mapping[str, Reference], least: int, counts: ByValues) -> int | None:
    """The size for a block that shows people with these values: the largest of those of its sensitive attributes.

    references: by sensitive attribute; least: as of `cohort_size`.
    """
    columns = []
    for index, name in enumerate(spec.sensitives):
        code = {text: i for i, text in enumerate(references[name].domain)}
        column = [0] * len(code)
        for value, n in counts:
            column[code[value[index]]] += n  # type: ignore[index]
        columns.append(column)
    return size_for(spec, references, columns, least)


def size_of_bundles(spec: Spec, references: Mapping[str, Reference], least: int, counts: ByValues) -> int | None:
    """The same where people have several rows."""
    sizes: list[int | None] = []
    for index, name in enumerate(spec.sensitives):
        code = {text: i for i, text in enumerate(references[name].domain)}
        people: Counter[frozenset[int]] = Counter()
        for value, n in counts:
            people[frozenset(code[text] for text in value[index] or ())] += n
        most = sorted(people.items(), key=lambda pair: (-pair[1], sorted(pair[0])))[:MOST_BUNDLES]
        chance = chance_of_bundles(_models_of(spec, name), references[name], [bundle for bundle, _ in most])
        sizes.append(cohort_size([n for _, n in most], least, chance))
    return _largest(sizes, least)


def size_for(
    spec: Spec, references: Mapping[str, Reference], columns: Sequence[Sequence[int]], least: int
) -> int | None:
    """The size for a block that shows, for each sensitive attribute, these counts [V] in the order of the domain."""
    sizes = [
        cohort_size(column, least, chance_of(_models_of(spec, name), references[name]))
        for name, column in zip(spec.sensitives, columns, strict=True)
    ]
    return _largest(sizes, least)


def _models_of(spec: Spec, name: str) -> list[Model]:
    sizes = [q.model for q in spec.privacy if not q.sensitive]
    return sizes + [q.models[q.sensitive.index(name)] for q in spec.privacy if name in q.sensitive]


def _largest(sizes: Sequence[int | None], least: int) -> int | None:
    if not sizes:
        return max(2 * least, 2)
    return None if None in sizes else max(size for size in sizes if size is not None)


def added(pairs: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    """The sum of the counts of each key."""
    sums: dict[Key, int] = {}
    for key, n in pairs:
        sums[key] = sums.get(key, 0) + n
    return sums


CHURN_SEED = 20_261
MOST_CHANGES = 15
"""Kinds of change that are told apart; with more attributes most people change in few ways."""


@dataclass(frozen=True)
class Churn:
    """Shares of the people per run: who come, leave, and whose value changes."""

    coming: float
    leaving: float
    changing: float


@dataclass(frozen=True)
class Together:
    """Newcomers who close as one cohort. within: in so many runs; box: its people at least."""

    within: int
    box: int


@dataclass(frozen=True)
class Estimate:
    """Over some runs.

    mean_wait: of newcomers who were shown, None where nobody was; worst_wait: of anybody, those still waiting included;
    both in runs. lag, worst_lag: share of the source's people whom the view does not show as they are, the mean over
    the runs and the largest. never: share of the newcomers whose block gets no cohort.
    """

    mean_wait: float | None
    worst_wait: int
    lag: float
    worst_lag: float
    never: float


def _failing(table: Ints, l: int) -> Ints:  # noqa: E741
    """[B], the most people of a batch that may have one of l values of the block and l - 1 values in all."""
    counts: Ints = -np.sort(-table, axis=1)
    most: Ints = counts[:, : l - 2].sum(axis=1) + counts[:, l - 1]
    return most


def estimate(
    counts: Sequence[Sequence[Sequence[int]] | Ints],
    cohorts: Sequence[int | None],
    churn: Churn,
    rules: Rules,
    *,
    attributes: int = 1,
    leave: int = 0,
    together: Together | None = None,
    runs: int = 52,
) -> Estimate:
    """The estimate for a node.

    counts: for each sensitive attribute [B, V], people by value in each block; cohorts: [B], the sizes that close one;
    attributes: that are published of a person beside the block, any of which may change; leave: as of `step`, here for
    changed values; together: of newcomers who close as one cohort, instead of cohorts. Takes every batch to pass, which
    is so where their sizes are large enough, and changes of later newcomers never to be shown.
    """
    tables: list[Ints] = [np.asarray(table, dtype=np.int64) for table in counts]
    sizes = tables[0].sum(axis=1)
    never = np.array([size is None and together is None for size in cohorts])
    closing: Ints = np.array([np.iinfo(np.int64).max if size is None else size for size in cohorts], dtype=np.int64)
    # The share of a cell whose change, even if it failed, would leave l candidates.
    most: Floats = np.zeros(len(sizes))
    each = list(zip(tables, rules.ls, strict=False))
    if rules.cells and all(table.shape[1] >= l for table, l in each):  # noqa: E741
        most = np.min([_failing(table, l) for table, l in each], axis=0) / np.maximum(sizes, 1)  # noqa: E741
    rng = np.random.default_rng(CHURN_SEED)
    came = np.zeros((runs, len(sizes)), dtype=np.int64)  # who wait, by the run in which they came
    # People of the cells as they are now, whose changes may be shown; those who came since are in cells of few people.
    old, stuck = sizes.copy(), np.zeros_like(sizes)
    # By what changed of them: only people with the same change share a batch.
    once = np.zeros((min(2**attributes - 1, MOST_CHANGES), len(sizes)), dtype=np.int64)
    leaving, changing = min(1.0, churn.leaving), min(1.0, churn.changing)
    waited, shown, worst = 0, 0, 0
    lags: Floats = np.zeros(runs)
    for run in range(runs):
        came[run] = rng.poisson(churn.coming * sizes)
        closes = came.sum(axis=0) >= closing
        if together is not None:
            closes = np.full(len(sizes), (run + 1) % together.within == 0 and came.sum() >= together.box)
        ages = run - np.arange(runs)
        done = came[:, closes]
        waited += int((done.sum(axis=1) * ages)[: run + 1].sum())
        shown += int(done.sum())
        came[:, closes] = 0
        waiting = np.flatnonzero(came[:, ~never].sum(axis=1))
        worst = max(worst, int(ages[waiting[0]]) if len(waiting) else 0, int(ages[done.any(axis=1)].max(initial=0)))
        # Whoever changes again before the first change is shown keeps the old value.
        again = rng.binomial(once, changing)
        fresh = rng.poisson(churn.changing * np.maximum(old - once.sum(axis=0), 0) / len(once), size=once.shape)
        # Nearly everybody else is in a cell with too few people for a batch.
        rest = np.maximum(sizes - old - stuck, 0)
        once, stuck = once + fresh - again, stuck + again.sum(axis=0) + rng.binomial(rest, changing)
        shows = (once >= max(rules.k, leave)) & (once <= most * old) & (old - once >= rules.k)
        # One batch of a cell in a run.
        shows &= np.cumsum(shows, axis=0) == 1
        old = np.maximum(old - np.where(shows, once, 0).sum(axis=0) - again.sum(axis=0), 0)
        once = np.where(shows, 0, once)
        # Who leaves lags no more: the source does not have them.
        once -= rng.binomial(once, leaving)
        stuck -= rng.binomial(stuck, leaving)
        old -= rng.binomial(old, leaving)
        lags[run] = (came.sum() + once.sum() + stuck.sum()) / max(1, sizes.sum())
    total = float(sizes.sum())
    return Estimate(
        waited / shown if shown else None,
        worst,
        float(lags.mean()),
        float(lags.max(initial=0.0)),
        float(sizes[never].sum() / total) if total else 0.0,
    )
