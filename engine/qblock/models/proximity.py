"""Models for a numeric sensitive attribute: similar numbers count as the same value (DL Def. 2 to 5, Fig. 3).

The numbers of the domain are brought to integers over a common denominator, so that every interval is exact; blocks are
then searched by the rank of a number in the domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np

from qblock.blocks import Blocks, Ints, Reference
from qblock.errors import ParameterError
from qblock.models.base import (
    About,
    Bound,
    Model,
    Monotone,
    Setting,
    at_least,
    parameter,
    privacy_model,
    require,
)
from qblock.models.ratios import Integers, times, wide

_NARROW = 2**60
"""Positions below this are kept as int64: sums and differences of a few of them do not overflow."""


def twentieth_of_the_range(reference: Reference) -> Fraction:
    """The distance that counts as near where nobody said which does; 0 where there are no numbers."""
    numbers = reference.numbers
    return Fraction(max(numbers) - min(numbers), 20) if numbers else Fraction(0)


@privacy_model
class EpsilonMAnonymity(Model):
    """At most 1/m of a block lies within epsilon of any value that occurs in it (DL Def. 2).

    epsilon: a distance, or with `relative` a share of the value's magnitude (0..1). Intervals are closed.
    """

    name = "epsilon_m_anonymity"
    about = About(
        citation="DL Def. 2",
        condition="m * #{y : |y-x| <= epsilon} <= n(q) for every x in q; relative: <= epsilon |x|",
        meaning="among people who look the same, at most 1 in {m} has a {sensitive} within {epsilon} of anybody's",
        bounds=(Bound("m", "larger"),),
        needs=frozenset({"numbers"}),
        settings=(Setting({"epsilon": twentieth_of_the_range}),),
    )
    monotone = Monotone(generalization=False, suppression=False)

    epsilon: int | Fraction = parameter("rational", at_least(0), Fraction(1, 10))
    m: int | Fraction = parameter("rational", at_least(1), 2)
    relative: bool = parameter("flag", example=True, default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.relative:
            require(self.name, "epsilon", self.epsilon, self.epsilon <= 1, "0 <= epsilon <= 1, a share")

    def validate(self, reference: Reference) -> list[str]:
        _numbers(self.name, reference)
        return []

    def _least_rows(self, reference: Reference) -> int:
        return math.ceil(self.m)  # x itself is counted

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        line = _line(self.name, reference)
        reach = line.share(self.epsilon) if self.relative else line.distance(self.epsilon)
        return blocks.total, line.largest(blocks, reach, reach)


@privacy_model
class DeltaLDiversity(Model):
    """At most 1/l of a block has values whose intervals [v - delta, v + delta] meet (DL Def. 3 to 5, Fig. 3).

    reading "window": the largest set of rows that are pairwise similar (what Fig. 3 computes; monotone); "literal": the
    rows similar to one value (Def. 5; not monotone, whatever the paper says). For a given l the supremum of delta is
    half the least distance over which more than n/l rows spread, and not attained.
    """

    name = "delta_l_diversity"
    about = About(
        citation="DL Def. 3-5, Fig. 3",
        condition="l * max_x #{y : x <= y <= x + 2 delta} <= n(q); literal: |y-x| <= 2 delta",
        meaning="among people who look the same, at most 1 in {l} has a {sensitive} within {delta} of any one number",
        bounds=(Bound("l", "larger"), Bound("delta", "larger", attained=False, decides=False)),
        needs=frozenset({"numbers"}),
        multi_attribute=True,
        settings=(Setting({"delta": twentieth_of_the_range}),),
    )

    delta: int | Fraction = parameter("rational", at_least(0), 1)
    l: int | Fraction = parameter("rational", at_least(1), 2)  # noqa: E741
    reading: Literal["window", "literal"] = parameter("choice", ("window", "literal"), "window", default="window")

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=self.reading == "window", suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        _numbers(self.name, reference)
        return []

    def _least_rows(self, reference: Reference) -> int:
        return math.ceil(self.l)  # x itself is counted

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        line = _line(self.name, reference)
        if parameter == "delta":
            if self.l == 1:
                return np.ones_like(blocks.total), np.zeros_like(blocks.total)
            spread = line.spread(blocks, self.l, centred=self.reading == "literal")
            return spread, np.full(len(blocks), 2 * line.scale, dtype=spread.dtype)
        reach = line.distance(2 * self.delta)
        return blocks.total, line.largest(blocks, reach if self.reading == "literal" else 0 * reach, reach)


def _numbers(model: str, reference: Reference) -> tuple[Fraction, ...]:
    if reference.numbers is None:
        raise ParameterError(f"{model}: the sensitive attribute must be numeric")
    return reference.numbers


@lru_cache(maxsize=4)
def _line(model: str, reference: Reference) -> _Line:
    numbers = _numbers(model, reference)
    scale = math.lcm(*(x.denominator for x in numbers))
    scaled = [x.numerator * (scale // x.denominator) for x in numbers]
    narrow = scale < _NARROW and all(abs(x) < _NARROW for x in scaled)
    return _Line(scale, np.array(scaled, dtype=np.int64 if narrow else object))


@dataclass(frozen=True, eq=False)
class _Line:
    """The numbers of the domain [V] as integers: each is position / scale."""

    scale: int
    position: Integers

    @cached_property
    def distinct(self) -> Integers:
        """[R] ascending."""
        return np.unique(self.position)

    @cached_property
    def rank(self) -> Ints:
        """int64[V]: the place of each number among the distinct ones."""
        result: Ints = np.searchsorted(self.distinct, self.position)
        return result

    def distance(self, reach: Fraction | int) -> Integers:
        """[V]: a distance in whole steps; what lies between two steps reaches no further."""
        step = math.floor(reach * self.scale)
        return np.full(len(self.position), step, dtype=np.int64 if step < _NARROW else object)

    def share(self, reach: Fraction | int) -> Integers:
        """[V]: a share of each number's magnitude, in whole steps."""
        p, q = Fraction(reach).as_integer_ratio()
        reached = times(np.abs(self.position), p)
        result: Integers = (reached if q < _NARROW else wide(reached)) // q
        return result

    def ordered(self, blocks: Blocks) -> tuple[Ints, Ints, Ints, Ints]:
        """The pairs by block and number: key int64[P], rank [P], count [P], and the rows before each pair [P+1]."""
        rank = self.rank[blocks.value]
        key = blocks.owner * len(self.distinct) + rank
        count = blocks.count
        if (key[1:] < key[:-1]).any():
            order = np.argsort(key, kind="stable")
            key, rank, count = key[order], rank[order], count[order]
        return key, rank, count, np.concatenate(([0], np.cumsum(count)))

    def largest(self, blocks: Blocks, below: Integers, above: Integers) -> Ints:
        """int64[B]: the most rows within [x - below, x + above] of a number x that occurs in the block."""
        first = np.searchsorted(self.distinct, self.distinct - self._by_rank(below), side="left")
        last = np.searchsorted(self.distinct, self.distinct + self._by_rank(above), side="right")
        key, rank, _, before = self.ordered(blocks)
        base = key - rank
        inside = before[np.searchsorted(key, base + last[rank])] - before[np.searchsorted(key, base + first[rank])]
        result: Ints = blocks.max(inside)
        return result

    def spread(self, blocks: Blocks, l: int | Fraction, centred: bool) -> Integers:  # noqa: E741
        """[B]: the least distance that holds more than n/l rows, in steps, for l > 1; centred: to both sides of one."""
        _, rank, _, before = self.ordered(blocks)
        start = before[blocks.start[:-1]]
        p, q = Fraction(l).as_integer_ratio()
        rows = times(blocks.total, q)
        # rows after the first one of a set that is too large
        further = ((rows if p < _NARROW else wide(rows)) // p).astype(np.int64)
        x = self.distinct[rank]

        def at(row: Ints) -> Integers:
            """The number in a row, of all rows in this order."""
            numbers: Integers = x[np.searchsorted(before, row, side="right") - 1]
            return numbers

        if not centred:  # of equal numbers the first is the nearest to the row that comes `further` rows later
            target = before[:-1] + further[blocks.owner]
            fits = target < before[blocks.start[1:]][blocks.owner]
            # where it does not fit, the block's first number is at least as near to its own target
            target = np.where(fits, target, (start + further)[blocks.owner])
            left = np.where(fits, x, at(start)[blocks.owner])
            return blocks.min(at(target) - left)
        low, high = start[blocks.owner], (start + blocks.total - 1 - further)[blocks.owner]
        first, last = low, high
        while (low < high).any():  # the first set of rows whose upper end is at least as far from x as its lower end
            middle = (low + high) // 2
            reached = at(middle + further[blocks.owner]) - x >= x - at(middle)
            low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
        nearest = [
            np.maximum(at(i + further[blocks.owner]) - x, x - at(i)) for i in (low, np.clip(low - 1, first, last))
        ]
        return blocks.min(np.minimum(*nearest))

    def _by_rank(self, reach: Integers) -> Integers:
        """[R] from [V]: equal numbers reach equally far."""
        result = np.zeros(len(self.distinct), dtype=reach.dtype)
        result[self.rank] = reach
        return result
