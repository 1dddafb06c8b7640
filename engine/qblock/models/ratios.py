"""Exact arithmetic on arrays of non-negative fractions: integer numerators and denominators, cross-multiplied.

Arrays are int64, or of Python integers (dtype object) where int64 could overflow. A denominator of 0 is infinity.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qblock.blocks import Blocks, Floats, Ints

Integers = NDArray[Any]
"""int64 or object (Python integers)."""

NEAR = 1e-9
_SAFE = 2**62


_GREATEST = Fraction(sys.float_info.max)


def double(value: Fraction | int) -> float:
    """The nearest double, or the greatest finite one for anything beyond it: only what is infinite becomes infinity."""
    return float(max(-_GREATEST, min(_GREATEST, Fraction(value))))


def _peak(array: Integers) -> int:
    return int(np.abs(array).max()) if len(array) else 0


def wide(array: Integers) -> Integers:
    """An array as Python integers, which do not overflow."""
    return array.astype(object)


def times(array: Integers, factor: int | Integers) -> Integers:
    """The product with an integer or an array of the same length, in Python integers only where int64 overflows."""
    peak = abs(factor) if isinstance(factor, int) else _peak(factor)
    # The factor itself may be too large for an int64 where everything else is 0.
    if array.dtype == object or max(_peak(array), 1) * peak >= _SAFE:
        return wide(array) * (factor if isinstance(factor, int) else wide(factor))
    return array * factor


def quotient(numerator: Integers, denominator: Integers) -> Floats:
    """float64: numerator / denominator, inf where the denominator is 0."""
    zero = (denominator == 0).astype(bool)
    if numerator.dtype == object or denominator.dtype == object:
        pairs = zip(numerator.tolist(), np.where(zero, 1, denominator).tolist(), strict=True)
        result: Floats = np.array([_double_ratio(n, d) for n, d in pairs], dtype=np.float64)
    else:
        result = numerator.astype(np.float64) / np.where(zero, 1, denominator).astype(np.float64)
    result[zero] = math.inf
    return result


def _double_ratio(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:
        return double(Fraction(numerator, denominator))


def sign(numerator: Integers, denominator: Integers, threshold: Fraction | int) -> Ints:
    """-1, 0 or 1 for each fraction: below, equal to or above what is asked. Exact."""
    p, q = Fraction(threshold).as_integer_ratio()
    result: Ints
    narrow = numerator.dtype != object and denominator.dtype != object
    # p and q must fit an int64 even where all that they multiply is 0.
    if narrow and max(_peak(numerator), 1) * q < _SAFE and max(_peak(denominator), 1) * abs(p) < _SAFE:
        result = np.sign(numerator * q - denominator * p)
        return result
    values, target = quotient(numerator, denominator), double(threshold)
    result = np.sign(values - target).astype(np.int64)
    near = np.flatnonzero(np.abs(values - target) <= NEAR * max(1.0, abs(target)))
    difference = wide(numerator[near]) * q - wide(denominator[near]) * p
    result[near] = (difference > 0).astype(np.int64) - (difference < 0).astype(np.int64)
    return result


def extreme(numerator: Integers, denominator: Integers, largest: bool) -> Fraction | float:
    """The largest or smallest of at least one fraction, exactly; math.inf where it is infinite."""
    return extremes(numerator, denominator, np.array([0, len(numerator)]), largest)[0]


def extremes(numerator: Integers, denominator: Integers, start: Ints, largest: bool) -> list[Fraction | float]:
    """`extreme` of each run start[i]:start[i+1] of fractions, of which each has at least one."""
    best, run, near = near_extremes(quotient(numerator, denominator), start, largest)
    numerator, denominator = numerator[near], denominator[near]
    ends = np.searchsorted(run, np.arange(len(start))).tolist()
    return [
        value if math.isinf(value) else _extreme(numerator[first:last], denominator[first:last], largest)
        for value, first, last in zip(best.tolist(), ends[:-1], ends[1:], strict=True)
    ]


def near_extremes(values: Floats, start: Ints, largest: bool) -> tuple[Floats, Ints, Ints]:
    """Of each run start[i]:start[i+1] of numbers the largest or smallest, float64[G]; and, by run, which are so near to
    it that exact values decide between them: int64[] the runs, and int64[] the places. None is near to infinity."""
    best: Floats = (np.maximum if largest else np.minimum).reduceat(values, start[:-1])
    run = np.repeat(np.arange(len(best)), np.diff(start))
    of_run = best[run]
    with np.errstate(invalid="ignore"):  # infinity minus infinity is not a number
        near = np.flatnonzero(np.isfinite(of_run) & (np.abs(values - of_run) <= NEAR * np.maximum(1.0, np.abs(of_run))))
    return best, run[near], near


def _extreme(numerator: Integers, denominator: Integers, largest: bool) -> Fraction:
    best = Fraction(int(numerator[0]), int(denominator[0]))
    while True:  # each round drops everything that is no better than what was found
        better = sign(numerator, denominator, best) == (1 if largest else -1)
        if not better.any():
            return best
        numerator, denominator = numerator[better], denominator[better]
        best = Fraction(int(numerator[0]), int(denominator[0]))


def greatest(blocks: Blocks, numerator: Integers, denominator: Integers) -> Ints:
    """int64[B]: the pair with the largest of the fractions [P] of each block, exactly."""
    values = quotient(numerator, denominator)
    best = blocks.max(values)
    with np.errstate(invalid="ignore"):  # infinity minus infinity is not a number, but it is equal to the best here
        behind = best[blocks.owner] - values
    near = np.flatnonzero((behind <= NEAR * values) | np.isnan(behind))
    owner = blocks.owner[near]
    chosen = near[np.searchsorted(owner, np.arange(len(blocks)))] if len(blocks) else near
    if len(near) == len(blocks):
        return chosen
    while True:  # a block's choice improves in every round, and only a few pairs are this near to each other
        rival = chosen[owner]
        gain = times(numerator[near], denominator[rival])
        loss = times(denominator[near], numerator[rival])
        better = np.flatnonzero(gain > loss)
        if not len(better):
            return chosen
        chosen = chosen.copy()
        chosen[owner[better]] = near[better]


def equality_classes(start: Ints, *columns: Ints) -> Ints:
    """int64[B]: the same number for blocks whose columns (each over the pairs) agree pair by pair."""
    label = np.zeros(len(start) - 1, np.int64)
    lengths = np.diff(start)
    used = 0
    for length in np.unique(lengths).tolist():
        index = np.flatnonzero(lengths == length)
        pairs = start[index][:, None] + np.arange(length)
        table = np.concatenate([column[pairs] for column in columns], axis=1)
        order = np.lexsort(table.T[::-1])
        ranked = table[order]
        new = np.concatenate(([0], np.any(ranked[1:] != ranked[:-1], axis=1).cumsum()))
        label[index[order]] = used + new
        used += int(new[-1]) + 1
    return label
