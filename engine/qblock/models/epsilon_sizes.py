"""The smallest block that epsilon-privacy can accept, so that a search can skip nodes by their block sizes alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

TRIES = 1 << 16
"""Caps that are computed at most."""

Masses = tuple[Fraction | None, Sequence[Fraction]]
"""A stubbornness (None for infinite) and the prior mass of every single value."""


def least_size(epsilon: Fraction, known: int, sides: Sequence[Masses], rows: int) -> int:
    """A lower bound of n(q) for blocks where the predicates of all single values hold; at most about rows + 1.

    With Nb = n - b and k = epsilon Nb/(n + sigma - 1), the two conditions on x = n(q,s) >= 1 (EP, exact form) are
    x (1-k) <= k (sigma(s)-1), which for x >= 1 asks for k max(1, sigma(s)) >= 1: the closed form `_start`; and
    x (epsilon (n+sigma-1) - Nb) <= Nb (epsilon (n+sigma-1) - (n+sigma-sigma(s))). With infinite stubbornness they are
    x <= epsilon p Nb and x <= Nb (1 - (1-p)/epsilon). At a given n, both are caps on x for each value by itself, and
    the counts of a block add up to n: sizes at which the caps add up to less are impossible. They are tried upwards
    from the closed form, a limited number of them; stopping early leaves a bound that is only less tight.
    """
    for sigma, masses in sides:
        if known == 0 and max(masses) == (1 if sigma is None else sigma):
            return 1  # a value that is certain before the table is published may fill a block of one row
    start = max([known + 1, *(_start(epsilon, known, sigma, masses, rows) for sigma, masses in sides)])
    kinds = Counter(zip(*(masses for _, masses in sides), strict=True))
    caps = [
        (copies, [_cap(epsilon, known, sigma, mass) for (sigma, _), mass in zip(sides, kind, strict=True)])
        for kind, copies in kinds.items()
    ]
    for n in range(start, min(rows, start + TRIES // (len(kinds) * len(sides))) + 1):
        if sum(copies * max(0, min(cap(n) for cap in of)) for copies, of in caps) >= n:
            return n
        start = n + 1
    return min(start, rows + 1)


def _start(epsilon: Fraction, known: int, sigma: Fraction | None, masses: Sequence[Fraction], rows: int) -> int:
    if sigma is None:
        return 1
    top = max(Fraction(1), *masses)
    lacking, gain = sigma - 1 + epsilon * known * top, epsilon * top - 1
    if gain == 0:
        return 1 if lacking == 0 else rows + 1
    return math.ceil(lacking / gain)


def _cap(epsilon: Fraction, known: int, sigma: Fraction | None, mass: Fraction) -> Callable[[int], int]:
    """The most rows of a value in a block of n. In integers: doubles lose (epsilon - 1) n where epsilon is near 1."""
    p, q = epsilon.as_integer_ratio()
    unit = math.lcm(mass.denominator, 1 if sigma is None else sigma.denominator)
    m, s = int(mass * unit), int((sigma or 0) * unit)

    def infinite(n: int) -> int:
        left = n - known
        second = left * (p * unit - q * (unit - m)) // (p * unit)
        return min(p * m * left // (q * unit), second, left - 1)

    def finite(n: int) -> int:
        left, total = n - known, (n - 1) * unit + s
        most = left - 1
        lacking, slope = q * total - p * left * unit, p * total - q * left * unit
        if lacking > 0:
            most = min(most, p * left * (m - unit) // lacking)
        if slope > 0:
            most = min(most, left * (p * total - q * (n * unit + s - m)) // slope)
        return most

    return infinite if sigma is None else finite
