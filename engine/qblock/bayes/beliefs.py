"""What an adversary who knows a population comes to believe of everybody in a table, as counts (models.md section 5).

Source: l-diversity (ICDE 2006), section 3 and Theorem 3.1. Prior alpha(q,s) = f(s|q); posterior beta(q,s) is
n(q*,s) f(s|q)/f(s|q*) divided by the same summed over s, in which f(q) and f(q*) cancel. Doubles decide what is further
than NEAR from a threshold, fractions the rest: every count is exact. Time and memory grow with the pairs of a leaf
combination and a value, never with people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qblock.blocks import Floats, Ints, Mask
from qblock.errors import InputError, ParameterError

HALF_WORD = 2**62
NEAR = 1e-9
"""Relative distance within which a double does not decide. Every term is positive: the error is some 1e-15."""


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint distribution over leaves and sensitive values, by the pairs that occur, in any scale.

    leaf: int64[P] and value: int64[P], numbers from 0; weight: int64[P], or [P] of Python integers, above 0. Equal
    pairs are added up, and pairs are sorted by leaf, then by value.
    """

    leaf: Ints
    value: Ints
    weight: NDArray[Any]

    @classmethod
    def of(cls, leaf: Ints, value: Ints, weight: NDArray[Any]) -> Joint:
        """From pairs in any order; those of weight 0 are left out."""
        positive = np.flatnonzero(weight > 0)
        order = positive[np.lexsort((value[positive], leaf[positive]))]
        leaf, value, weight = leaf[order], value[order], weight[order]
        first = first_of_runs(leaf, value)
        return cls(leaf[first], value[first], np.add.reduceat(weight, first) if len(first) else weight)

    def within(self, groups: Ints, values: int) -> Grouped:
        """The weights of each (group, value); groups: int64[L], the group of each leaf."""
        return Grouped(self, groups, values)


class Grouped:
    """Sums of a joint distribution over (group, value), looked up by both."""

    def __init__(self, joint: Joint, groups: Ints, values: int) -> None:
        self._values = values
        keys = groups[joint.leaf] * values + joint.value
        order = np.argsort(keys, kind="stable")
        keys, ordered = keys[order], joint.weight[order]
        first = first_of_runs(keys)
        self.keys = keys[first]
        self.weight = np.add.reduceat(ordered, first) if len(first) else ordered

    def of(self, group: Ints, value: Ints) -> NDArray[Any]:
        """[R]: the sum of each (group, value), 0 where none occurs."""
        return self.at(group * self._values + value)

    def at(self, keys: Ints) -> NDArray[Any]:
        """The same by keys of another one with as many values."""
        place = np.searchsorted(self.keys, keys)
        place[place == len(self.keys)] = 0
        if not len(self.keys):
            return np.zeros(len(keys), dtype=self.weight.dtype)
        return np.where(self.keys[place] == keys, self.weight[place], 0)


def first_of_runs(*sorted_together: Ints) -> Ints:
    """Where another value begins in one of some arrays of one length. numpy's unique would hash what is sorted."""
    new = np.zeros(len(sorted_together[0]), dtype=bool)
    new[:1] = True
    for values in sorted_together:
        new[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(new)


def whole_weights(weights: Sequence[Fraction | int]) -> NDArray[Any]:
    """Weights in a scale in which they are whole numbers: int64 where all of them add up to less than a word."""
    scale = math.lcm(*{weight.denominator for weight in weights})
    scaled = [weight.numerator * (scale // weight.denominator) for weight in weights]
    return np.array(scaled, dtype=np.int64 if sum(scaled) < HALF_WORD else object)


class InconsistentPrior(InputError):
    """The table holds what is impossible by the prior, so that the posterior is undefined."""


@dataclass(frozen=True)
class Thresholds:
    """From where on a belief is a disclosure; all comparisons are strict.

    (rho1,rho2)-breach: from below rho1 to above rho2, or from above 1 - rho1 to below 1 - rho2; positive disclosure:
    above 1 - delta; negative: below epsilon; factor: by how much a belief may change. Raises ParameterError.
    """

    rho1: Fraction = Fraction(1, 10)
    rho2: Fraction = Fraction(1, 2)
    delta: Fraction = Fraction(1, 10)
    epsilon: Fraction = Fraction(1, 10)
    factor: Fraction = Fraction(2)

    def __post_init__(self) -> None:
        if not 0 < self.rho1 < self.rho2 < 1:
            given = f"rho1 = {self.rho1}, rho2 = {self.rho2}"
            raise ParameterError(f"{given} are out of range; valid: 0 < rho1 < rho2 < 1")
        for name, value in (("delta", self.delta), ("epsilon", self.epsilon)):
            if not 0 < value < 1:
                raise ParameterError(f"{name} = {value} is out of range; valid: 0 < {name} < 1")
        if self.factor <= 1:
            raise ParameterError(f"factor = {self.factor} is out of range; valid: factor > 1")


@dataclass(frozen=True, kw_only=True)
class Disclosed:
    """Disclosures of one kind: pairs of a combination and a value; the combinations; and the people whom they befall.

    Of a breach: everybody with the combination; of a positive disclosure: those who have the value; of a negative one:
    those who have another.
    """

    disclosures: int
    combinations: int
    people: int


@dataclass(frozen=True, kw_only=True)
class Change:
    """A belief in a sensitive value (its number) about the people of one combination, before and after."""

    value: int
    prior: Fraction
    posterior: Fraction


@dataclass(frozen=True, kw_only=True)
class Moved:
    """People of whom some belief changes by more than the factor; own: the belief in the value that they have."""

    people: int
    own: int


@dataclass(frozen=True, kw_only=True)
class Believed:
    """What is believed of the people of one table. combinations: of leaves that occur; rise, fall: the largest ones,
    None where no belief rises; impossible: people whose own value the prior holds impossible for their combination."""

    combinations: int
    people: int
    breach: Disclosed
    positive: Disclosed
    negative: Disclosed
    rise: Change | None
    fall: Change | None
    moved: Moved
    impossible: int


def believed(population: Joint, table: Joint, block: Ints, values: int, thresholds: Thresholds) -> Believed:
    """The disclosures of a table published in blocks to an adversary who knows the population.

    table: int64 counts n(q,s); block: int64[L], the block of every leaf of either; values: how many sensitive values
    there are. Raises InconsistentPrior, with counts alone, where a posterior is undefined.
    """
    return _Beliefs(population, table, block, values).counted(thresholds)


class _Beliefs:
    """Pairs of a leaf of the table and a value that the prior holds possible for it: alpha and beta as doubles [P]."""

    def __init__(self, population: Joint, table: Joint, block: Ints, values: int) -> None:
        leaves = len(block)
        self.table, self.values = table, values
        self.rows = np.zeros(leaves, dtype=np.int64)
        np.add.at(self.rows, table.leaf, table.weight)
        known = np.flatnonzero(self.rows[population.leaf] > 0)
        self.leaf, self.value = population.leaf[known], population.value[known]
        self.weight = population.weight[known]
        of_block = population.within(block, values)
        published = table.within(block, values)
        self.mass = of_block.of(block[self.leaf], self.value)
        self.count = published.of(block[self.leaf], self.value)
        self.support = np.bincount(self.leaf, minlength=leaves)
        self.start = np.concatenate(([0], np.cumsum(self.support)))
        self._check(of_block, published)
        weight = self.weight.astype(np.float64)
        score = self.count * (weight / self.mass.astype(np.float64))
        self.alpha = weight / np.bincount(self.leaf, weight, leaves)[self.leaf]
        self.beta = score / np.bincount(self.leaf, score, leaves)[self.leaf]
        self._exact: dict[int, list[tuple[Fraction, Fraction]]] = {}

    def _check(self, of_block: Grouped, published: Grouped) -> None:
        missing = (self.rows > 0) & (self.support == 0)
        if missing.any():
            raise InconsistentPrior(
                f"inconsistent prior: it has nobody with {int(missing.sum()):,} combinations of quasi-identifiers that "
                f"{int(self.rows[missing].sum()):,} rows of the table have; a population holds everybody in the table"
            )
        lost = of_block.at(published.keys) == 0
        if lost.any():
            raise InconsistentPrior(
                f"inconsistent prior: {int(lost.sum()):,} times a block holds a sensitive value that the prior gives "
                f"to nobody in it, in {int(published.weight[lost].sum()):,} rows. A population holds everybody in the "
                "table"
            )
        possible = np.bincount(self.leaf[self.count > 0], minlength=len(self.rows))
        undefined = (self.rows > 0) & (possible == 0)
        if undefined.any():
            raise InconsistentPrior(
                f"inconsistent prior: for {int(undefined.sum()):,} combinations of quasi-identifiers, of "
                f"{int(self.rows[undefined].sum()):,} rows, no sensitive value in their block is possible. A "
                "population holds everybody in the table"
            )

    def exactly(self, pair: int) -> tuple[Fraction, Fraction]:
        """alpha and beta of a pair."""
        leaf = int(self.leaf[pair])
        first, last = int(self.start[leaf]), int(self.start[leaf + 1])
        if leaf not in self._exact:
            weights = [int(w) for w in self.weight[first:last]]
            parts = zip(weights, self.mass[first:last], self.count[first:last], strict=True)
            scores = [Fraction(int(n) * w, int(m)) for w, m, n in parts]
            total, whole = sum(scores), sum(weights)
            self._exact[leaf] = [(Fraction(w, whole), s / total) for w, s in zip(weights, scores, strict=True)]
        return self._exact[leaf][pair - first]

    def decide(self, sure: Mask, may: Mask, holds: Callable[[Fraction, Fraction], bool]) -> Mask:
        """bool[P]: what holds, where doubles leave it open by fractions."""
        holding = sure.copy()
        for pair in np.flatnonzero(may & ~sure).tolist():
            holding[pair] = holds(*self.exactly(pair))
        return holding

    @cached_property
    def own(self) -> Ints:
        """int64[pairs of the table]: the pair of each of them, -1 where the prior holds it impossible."""
        keys = self.leaf * self.values + self.value
        wanted = self.table.leaf * self.values + self.table.value
        place = np.searchsorted(keys, wanted)
        place[place == len(keys)] = 0
        return np.where(keys[place] == wanted, place, -1)

    def counted(self, thresholds: Thresholds) -> Believed:
        own, n = self.own, self.table.weight
        moved = self._moved(thresholds.factor)
        return Believed(
            combinations=int((self.rows > 0).sum()),
            people=int(self.rows.sum()),
            breach=self._about_everybody(self._breaches(thresholds.rho1, thresholds.rho2)),
            positive=self._positive(1 - thresholds.delta),
            negative=self._negative(thresholds.epsilon),
            rise=self._largest(self.beta - self.alpha, 1),
            fall=self._largest(self.alpha - self.beta, -1),
            moved=Moved(
                people=self._about_everybody(moved).people, own=int(n[(own >= 0) & moved[np.maximum(own, 0)]].sum())
            ),
            impossible=int(n[own < 0].sum()),
        )

    def _about_everybody(self, pairs: Mask) -> Disclosed:
        leaves = self.leaf[pairs]
        leaves = leaves[first_of_runs(leaves)]
        return Disclosed(disclosures=int(pairs.sum()), combinations=len(leaves), people=int(self.rows[leaves].sum()))

    def _breaches(self, rho1: Fraction, rho2: Fraction) -> Mask:
        (low, low_may), (high, high_may) = _below(self.alpha, rho1), _above(self.beta, rho2)
        (most, most_may), (less, less_may) = _above(self.alpha, 1 - rho1), _below(self.beta, 1 - rho2)
        return self.decide(
            (low & high) | (most & less),
            (low_may & high_may) | (most_may & less_may),
            lambda a, b: (a < rho1 and b > rho2) or (a > 1 - rho1 and b < 1 - rho2),
        )

    def _moved(self, factor: Fraction) -> Mask:
        ratio = self.beta / self.alpha
        (up, up_may), (down, down_may) = _above(ratio, factor), _below(ratio, 1 / factor)
        return self.decide(up | down, up_may | down_may, lambda a, b: b > factor * a or b * factor < a)

    def _positive(self, least: Fraction) -> Disclosed:
        sure, may = _above(self.beta, least)
        high = self.decide(sure, may, lambda _, b: b > least)
        true = (self.own >= 0) & high[np.maximum(self.own, 0)]
        leaves = self.table.leaf[true]
        return Disclosed(
            disclosures=int(true.sum()),
            combinations=len(first_of_runs(leaves)),
            people=int(self.table.weight[true].sum()),
        )

    def _negative(self, most: Fraction) -> Disclosed:
        sure, may = _below(self.beta, most)
        small = self.decide(sure, may, lambda _, b: b < most)
        leaf, n, here = self.table.leaf, self.table.weight, self.rows > 0
        # What the prior holds impossible is believed with 0, before and after.
        low = np.where(here, self.values - self.support + np.bincount(self.leaf[small], minlength=len(here)), 0)
        own_low = (self.own < 0) | small[np.maximum(self.own, 0)]
        true_of_all = own_low & (n == self.rows[leaf])
        disclosed = low - np.bincount(leaf[true_of_all], minlength=len(here))
        people = int(n[low[leaf] - own_low > 0].sum())
        return Disclosed(disclosures=int(disclosed.sum()), combinations=int((disclosed > 0).sum()), people=people)

    def _largest(self, change: Floats, sign: int) -> Change | None:
        """The largest rise (sign 1) or fall (-1); the first of several that are equal."""
        if not len(change) or (top := float(change.max())) <= 0:
            return None
        near = np.flatnonzero(change >= top - 1e-12)
        _, first = np.unique(np.stack((self.alpha[near], self.beta[near])), axis=1, return_index=True)
        among = sorted(near[first].tolist())
        pair = max(among, key=lambda p: (sign * (self.exactly(p)[1] - self.exactly(p)[0]), -p))
        prior, posterior = self.exactly(pair)
        if prior == posterior:
            return None
        return Change(value=int(self.value[pair]), prior=prior, posterior=posterior)


def _below(values: Floats, threshold: Fraction) -> tuple[Mask, Mask]:
    """Whether values are surely below a positive threshold, and whether they may be."""
    edge = float(threshold)
    return values < edge * (1 - NEAR), values <= edge * (1 + NEAR)


def _above(values: Floats, threshold: Fraction) -> tuple[Mask, Mask]:
    edge = float(threshold)
    return values > edge * (1 + NEAR), values >= edge * (1 - NEAR)
