"""A joint distribution of leaf combinations and sensitive values as arrays, exact in any scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qblock.blocks import Ints

HALF_WORD = 2**62


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
