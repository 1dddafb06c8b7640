# ruff: noqa: E741 - l is the letter of the papers
"""Models for numeric sensitive values (models.md section 3)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from reference.exact import Exact
from reference.tables import Block


def numbers(block: Block) -> list[Fraction]:
    """The numbers of a block, each as often as it counts."""
    return sorted(Fraction(value) for value, n in block.counts().items() for _ in range(n))


def close(x: Fraction, y: Fraction, epsilon: Exact, relative: bool) -> bool:
    """Whether y lies within epsilon (relative: of |x|) of x; closed."""
    return abs(y - x) <= Fraction(epsilon) * (abs(x) if relative else 1)


def epsilon_m_holds(block: Block, epsilon: Exact, m: Exact, relative: bool) -> bool:
    """DL Definition 2: for every value present, at most 1/m of the block is close to it."""
    rows = numbers(block)
    return all(sum(close(x, y, epsilon, relative) for y in rows) <= Fraction(len(rows)) / Fraction(m) for x in rows)


def epsilon_m_tightest(block: Block, epsilon: Exact, relative: bool) -> Fraction:
    rows = numbers(block)
    return min(Fraction(len(rows), sum(close(x, y, epsilon, relative) for y in rows)) for x in rows)


def similar(x: Fraction, y: Fraction, delta: Exact) -> bool:
    """Whether the closed intervals [x-delta,x+delta] and [y-delta,y+delta] meet."""
    return max(x, y) - Fraction(delta) <= min(x, y) + Fraction(delta)


def _similar_sets(rows: list[Fraction], delta: Exact, reading: str) -> list[int]:
    """Sizes of the sets whose share is bounded: literal, what is similar to one value; window, pairwise similar."""
    if reading == "literal":
        return [sum(similar(x, y, delta) for y in rows) for x in rows]
    values, sizes = sorted(set(rows)), []
    for size in range(1, len(values) + 1):
        for group in itertools.combinations(values, size):
            if all(similar(x, y, delta) for x, y in itertools.combinations(group, 2)):
                sizes.append(sum(rows.count(x) for x in group))
    return sizes


def delta_l_holds(block: Block, delta: Exact, l: Exact, reading: str) -> bool:
    """DL Definition 5 (literal) or the largest pairwise similar set (window), at most 1/l of the block."""
    rows = numbers(block)
    return all(size * Fraction(l) <= len(rows) for size in _similar_sets(rows, delta, reading))


def delta_l_tightest(block: Block, delta: Exact, reading: str) -> Fraction:
    rows = numbers(block)
    return Fraction(len(rows), max(_similar_sets(rows, delta, reading)))


def delta_l_tightest_delta(block: Block, l: Exact, reading: str) -> Exact:
    """The supremum of delta for the l asked (not attained): the first half distance at which the block fails.

    Infinite where every delta passes; 0 where delta = 0 fails already.
    """
    rows = numbers(block)
    candidates = sorted({abs(x - y) / 2 for x in rows for y in rows})
    return next((delta for delta in candidates if not delta_l_holds(block, delta, l, reading)), math.inf)
