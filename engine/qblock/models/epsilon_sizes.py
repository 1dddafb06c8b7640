"""The smallest block that epsilon-privacy can accept, so that a search can skip nodes by their block sizes alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from qblock.blocks import Floats

CELLS = 1 << 18
SLACK = 1e-9
FAR = 10**100

Side = tuple[Fraction | None, Sequence[Fraction]]
"""A stubbornness (None for infinite) and the prior mass of every single value."""


def least_size(epsilon: Fraction, known: int, sides: Sequence[Side], rows: int) -> int:
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
    numbers = [epsilon, *(number for sigma, masses in sides for number in (sigma or 1, *masses))]
    if start > rows or any(number != 0 and not 1 / FAR < number < FAR for number in numbers):
        return min(start, rows + 1)  # beyond that, doubles are not precise enough
    kinds, index = np.unique(np.array([float(m) for m in sides[0][1]]), return_index=True)
    copies = np.bincount(np.searchsorted(kinds, [float(m) for m in sides[0][1]]), minlength=len(kinds))
    step = max(1, (CELLS >> 4) // len(kinds))
    for first in range(start, min(rows, start + CELLS // len(kinds)) + 1, step):
        sizes = np.arange(first, min(first + step, rows + 1), dtype=np.float64)
        room = np.full((len(sizes), len(kinds)), math.inf)
        for sigma, masses in sides:
            mass = np.array([float(masses[i]) for i in index.tolist()])
            room = np.minimum(room, _caps(float(epsilon), known, sigma, mass, sizes[:, None]))
        possible = np.flatnonzero((_floor(room) * copies).sum(axis=1) >= sizes)
        if len(possible):
            return first + int(possible[0])
        start = first + len(sizes)
    return start


def _start(epsilon: Fraction, known: int, sigma: Fraction | None, masses: Sequence[Fraction], rows: int) -> int:
    if sigma is None:
        return 1
    top = max(Fraction(1), *masses)
    lacking, gain = sigma - 1 + epsilon * known * top, epsilon * top - 1
    if gain == 0:
        return 1 if lacking == 0 else rows + 1
    return math.ceil(lacking / gain)


def _caps(epsilon: float, known: int, sigma: Fraction | None, mass: Floats, n: Floats) -> Floats:
    left = n - known
    if sigma is None:
        caps = np.minimum(epsilon * mass * left, left * (1 - (1 - mass) / epsilon))
        return np.asarray(np.minimum(caps, left - 1))
    others = n + float(sigma) - 1
    ratio = epsilon * left / others
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(ratio >= 1 - SLACK, math.inf, ratio * (mass - 1) / (1 - ratio))
        slope = epsilon * others - left
        second = left * (epsilon * others - (n + float(sigma) - mass)) / slope
    second = np.where(slope <= SLACK * others, math.inf, second)
    return np.asarray(np.minimum(np.minimum(first, second), left - 1))


def _floor(room: Floats) -> Floats:
    """Whole rows; where in doubt, one more, so that the bound is never too high."""
    return np.asarray(np.floor(np.maximum(room, 0.0) * (1 + SLACK) + SLACK))
