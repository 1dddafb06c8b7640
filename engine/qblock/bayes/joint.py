"""A joint distribution of leaf combinations and sensitive values as arrays, exact in any scale."""

from __future__ import annotations

import math
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
        some = np.flatnonzero(weight > 0)
        order = some[np.lexsort((value[some], leaf[some]))]
        leaf, value, weight = leaf[order], value[order], weight[order]
        new = np.ones(len(leaf), dtype=bool)
        new[1:] = (leaf[1:] != leaf[:-1]) | (value[1:] != value[:-1])
        first = np.flatnonzero(new)
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
        self.keys, first = np.unique(keys[order], return_index=True)
        ordered = joint.weight[order]
        self.weight = np.add.reduceat(ordered, first) if len(first) else ordered

    def of(self, group: Ints, value: Ints) -> NDArray[Any]:
        """[R]: the sum of each (group, value), 0 where none occurs."""
        keys = group * self._values + value
        place = np.searchsorted(self.keys, keys)
        place[place == len(self.keys)] = 0
        if not len(self.keys):
            return np.zeros(len(keys), dtype=self.weight.dtype)
        return np.where(self.keys[place] == keys, self.weight[place], 0)


def whole_weights(weights: list[Fraction]) -> NDArray[Any]:
    """Weights in a scale in which they are whole numbers: int64 where all of them add up to less than a word."""
    scale = 1
    for weight in weights:
        scale = scale * weight.denominator // math.gcd(scale, weight.denominator)
    found = [int(weight * scale) for weight in weights]
    return np.array(found, dtype=np.int64 if sum(found) < HALF_WORD else object)
