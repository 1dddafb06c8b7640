"""Estimates from a sample's blocks: how many people of the population are unique, and the chance of naming one.

Each is a model of how people fall into blocks, named by its paper; none is a bound (docs/report.md, "Risk").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qblock.blocks import Ints

STEPS = 200
"""Of a bisection or a golden-section search: more change nothing in a double."""
LONG = 10_000
"""From this size on the chance of an average member is as good as its expansion."""
GOLDEN = (math.sqrt(5) - 1) / 2
NO_FIT = "no parameters of the model fit these blocks"
ALL_UNIQUE = "every row is unique, and the model needs some that are not"


@dataclass(frozen=True)
class Sample:
    """blocks[i] blocks have size[i] rows of the sample, ascending and above 0; population: how many people there are.

    rows: of the sample; unique: rows that are alone; fraction: the share of the population that the sample is.
    """

    size: Ints
    blocks: Ints
    population: int

    @property
    def rows(self) -> int:
        return int((self.size * self.blocks).sum())

    @property
    def number(self) -> int:
        return int(self.blocks.sum())

    @property
    def unique(self) -> int:
        return int(self.blocks[self.size == 1].sum())

    @property
    def fraction(self) -> float:
        return self.rows / self.population


@dataclass(frozen=True)
class Estimate:
    """people: of the population who are unique; share: of the sample's uniques, who are unique there, too; both None
    where `why` says that the model has no answer."""

    name: str
    people: float | None
    share: float | None
    why: str | None = None


def estimates(sample: Sample) -> tuple[Estimate, ...]:
    """What each model says. Raises ValueError for a population that is smaller than its sample."""
    if sample.population < sample.rows:
        raise ValueError(f"{sample.population} people are fewer than the {sample.rows} rows that were drawn from them")
    if sample.unique == 0 or sample.population == sample.rows:
        share = 1.0 if sample.unique else None
        return tuple(Estimate(name, float(sample.unique), share) for name in MODELS)
    return tuple(_estimate(name, model, sample) for name, model in MODELS.items())


def _estimate(name: str, model: Callable[[Sample], float | None], sample: Sample) -> Estimate:
    if sample.unique == sample.rows and name != "zayatz":
        return Estimate(name, None, None, ALL_UNIQUE)
    people = model(sample)
    if people is None:
        return Estimate(name, None, None, NO_FIT)
    # Whoever is unique in the population is unique in the sample, or not in it.
    people = min(people, sample.unique + sample.population - sample.rows)
    return Estimate(name, people, min(1.0, people * sample.fraction / sample.unique))


def zayatz(sample: Sample) -> float:
    """Zayatz (1991): blocks of the population have the sizes that those of the sample have, and the chance that a block
    of j people has one in the sample is hypergeometric; by Bayes, how often a unique row is of a block of one."""
    drawn, left = sample.rows, sample.population - sample.rows
    chances = np.array([_one_of(int(size), drawn, left) for size in sample.size])
    shares = sample.blocks / sample.number
    unique = float(shares[sample.size == 1].sum()) * sample.fraction
    return sample.unique * unique / float((shares * chances).sum()) / sample.fraction


def _one_of(size: int, drawn: int, left: int) -> float:
    """The chance that exactly one of `size` people is among `drawn` of `drawn` + `left`."""
    if size - 1 > left:
        return 0.0
    logs = math.log(size) + _log_choose(drawn + left - size, drawn - 1) - _log_choose(drawn + left, drawn)
    return math.exp(logs)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def pitman(sample: Sample) -> float | None:
    """Pitman's sampling formula, fitted by maximum likelihood (Hoshino 2001): the expected number of blocks of one in
    a population of N is N times the product of (theta + alpha + i) / (theta + 1 + i) over i from 0 to N - 2."""

    def best(alpha: float) -> tuple[float, float]:
        # theta is above -alpha; its distance from there is searched for as a power of e.
        low, high = -12.0, math.log(sample.rows) * 2 + 3
        theta = math.exp(_highest(lambda power: _pitman_log(sample, math.exp(power) - alpha, alpha), low, high)) - alpha
        return _pitman_log(sample, theta, alpha) + _pitman_joined(sample, alpha), theta

    alpha = _highest(lambda alpha: best(alpha)[0], 0.0, 1 - 1e-9)
    theta, n = best(alpha)[1], sample.population
    log = math.lgamma(theta + alpha + n - 1) - math.lgamma(theta + alpha)
    log -= math.lgamma(theta + n) - math.lgamma(theta + 1)
    return n * math.exp(log)


def _pitman_log(sample: Sample, theta: float, alpha: float) -> float:
    """The logarithm of the likelihood, without what does not depend on theta."""
    blocks = sample.number
    if alpha < 1e-8:
        new = (blocks - 1) * math.log(theta)
    else:
        new = (blocks - 1) * math.log(alpha) + math.lgamma(theta / alpha + blocks) - math.lgamma(theta / alpha + 1)
    rows = math.lgamma(theta + sample.rows) - math.lgamma(theta + 1)
    return new - rows


def _pitman_joined(sample: Sample, alpha: float) -> float:
    """The part of it that depends on alpha alone: of people who joined a block that was there."""
    first, pairs = math.lgamma(1 - alpha), zip(sample.size.tolist(), sample.blocks.tolist(), strict=True)
    return sum(blocks * (math.lgamma(size - alpha) - first) for size, blocks in pairs)


def snb(sample: Sample) -> float | None:
    """The slide negative binomial model (Chen and Keller-McNulty 1998): the size of a block less 1 is negative binomial
    (alpha, beta), and each person is drawn alike. Fitted to the rows, the blocks and the uniques of the sample."""
    fits = [(power, _snb_excess(sample, power)) for power in np.linspace(-14, 14, 113).tolist()]
    for (low, below), (high, above) in pairwise(fits):
        if (below > 0) != (above > 0):
            power = _root(lambda power: _snb_excess(sample, power), low, high)
            alpha, beta = _snb_alpha(sample, power), _sigmoid(power)
            return _snb_blocks(sample, alpha, beta) * math.exp(alpha * math.log(beta))
    return None


def _snb_excess(sample: Sample, power: float) -> float:
    """Expected uniques of the sample over those that it has, less 1, where the number of its blocks fits."""
    alpha, beta = _snb_alpha(sample, power), _sigmoid(power)
    left = (1 - sample.fraction) * (1 - beta)
    unseen = math.exp(alpha * math.log(beta / (1 - left)))
    expected = _snb_blocks(sample, alpha, beta) * sample.fraction * unseen * (alpha * left / (1 - left) + 1)
    return expected / sample.unique - 1


def _snb_alpha(sample: Sample, power: float) -> float:
    """The alpha with which so many blocks of the sample are expected: more of it means fewer, larger blocks."""
    beta = _sigmoid(power)
    ratio = math.log(beta / (1 - (1 - sample.fraction) * (1 - beta)))

    def excess(log_alpha: float) -> float:
        alpha = math.exp(log_alpha)
        seen = 1 - (1 - sample.fraction) * math.exp(alpha * ratio)
        return _snb_blocks(sample, alpha, beta) * seen - sample.number

    return math.exp(_root(excess, -40.0, 40.0))


def _snb_blocks(sample: Sample, alpha: float, beta: float) -> float:
    """How many blocks the population has, by the mean of their sizes."""
    return sample.population * beta / (beta + alpha * (1 - beta))


def _sigmoid(power: float) -> float:
    return 1 / (1 + math.exp(-power))


def _root(of: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign, by bisection."""
    start = of(low) > 0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if (of(middle) > 0) == start else (low, middle)
    return (low + high) / 2


def _highest(of: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one peak is highest, by golden sections."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = of(left), of(right)
    while high - low > 1e-9:
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = of(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = of(left)
    return (low + high) / 2


MODELS: dict[str, Callable[[Sample], float | None]] = {"pitman": pitman, "zayatz": zayatz, "snb": snb}


def chances(sample: Sample) -> list[float]:
    """For each size f of `sample` the expected chance E[1/F] of naming a person of such a block, F people of whom are
    in the population: F is negative binomial (Benedetti and Franconi 1998). With q = 1 - fraction it is the integral
    from 0 to 1 of fraction * u^(f-1) / (fraction + q u)."""
    fraction, rest = sample.fraction, 1 - sample.fraction
    if sample.population == sample.rows:
        return [1 / int(size) for size in sample.size]
    most = int(min(sample.size.max(), LONG))
    values = np.empty(most + 2)
    # The integrals without the factor: rest * I(f+1) + fraction * I(f) = 1 / f, in the direction that loses no digit.
    if fraction <= rest:
        values[1] = -math.log(fraction) / rest
        for f in range(1, most):
            values[f + 1] = (1 / f - fraction * values[f]) / rest
    else:
        far = LONG + most
        value = (1 + rest / far) / far
        for f in range(far - 1, 0, -1):
            value = (1 / f - rest * value) / fraction
            if f <= most:
                values[f] = value
    return [fraction * float(values[f]) if f <= LONG else fraction / f * (1 + rest / f) for f in map(int, sample.size)]
