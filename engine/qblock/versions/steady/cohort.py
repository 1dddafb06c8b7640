"""`cohort: auto`: how many newcomers close a batch, from what readers already see and nothing else.

A batch that fails is given up for good, so it should seldom fail; and a size that was found by trying the people who
wait would tell their values. So the size of a block is the least one at which people drawn from the distribution that
the block shows pass with a probability of at least 0.999.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from qblock.blocks import Blocks, Floats, Reference
from qblock.models import DistinctLDiversity, FrequencyLDiversity, KAnonymity, KMap, Model
from qblock.versions.steady.state import Block

SURE = 0.999
LIMIT = 400
"""Sizes that are tried; a block that needs more hardly passes itself, and gets none."""
DRAWS = 20_000
SEED = 20_260

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

    def simulated(shares: Floats, n: int) -> float:
        drawn = np.random.default_rng(SEED).multinomial(n, shares / shares.sum(), size=DRAWS)
        number, value = np.nonzero(drawn)
        start = np.searchsorted(number, np.arange(DRAWS + 1)).astype(np.int64)
        rows = np.full(DRAWS, n, dtype=np.int64)
        blocks = Blocks(start, value.astype(np.int64), drawn[number, value], rows)
        passed = np.ones(DRAWS, dtype=bool)
        for model in of_values:
            passed &= model.passes(blocks, reference)
        return float(passed.mean())

    return simulated


def chance_of_bundles(models: Sequence[Model], reference: Reference, bundles: Sequence[Collection[int]]) -> Chance:
    """The same of people with several rows, drawn from shares of bundles: by a simulation with a fixed seed.

    bundles: the values that each one holds. A batch in which everybody holds one value does not pass.
    """
    of_values = [model for model in models if not isinstance(model, (KAnonymity, KMap))]
    values = sorted({value for bundle in bundles for value in bundle})
    holds = np.zeros((len(bundles), len(values)), dtype=np.int64)
    for i, bundle in enumerate(bundles):
        holds[i, np.searchsorted(values, sorted(bundle))] = 1
    codes = np.array(values, dtype=np.int64)

    def simulated(shares: Floats, n: int) -> float:
        drawn = np.random.default_rng(SEED).multinomial(n, shares / shares.sum(), size=DRAWS) @ holds
        number, value = np.nonzero(drawn)
        start = np.searchsorted(number, np.arange(DRAWS + 1)).astype(np.int64)
        rows = np.full(DRAWS, n, dtype=np.int64)
        blocks = Blocks(start, codes[value], drawn[number, value], rows)
        passed = blocks.largest < n
        for model in of_values:
            passed &= model.passes(blocks, reference)
        return float(passed.mean())

    return simulated


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


def cohort_sizes(
    shown: Mapping[Block, Sequence[int]], least: int, chance: Chance, limit: int = LIMIT
) -> Callable[[Block], int | None]:
    """The size for each block, from the counts [V] that it shows; for one never shown from those of the version."""
    whole = [sum(column) for column in zip(*shown.values(), strict=True)]

    @cache
    def of_counts(counts: tuple[int, ...]) -> int | None:
        return cohort_size(counts, least, chance, limit)

    def size(block: Block) -> int | None:
        return of_counts(tuple(shown.get(block, whole)))

    return size
