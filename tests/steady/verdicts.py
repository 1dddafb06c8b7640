"""The privacy models in plain Python, on the counts of one cell; nothing here knows the engine's models."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction

Counts = Mapping[Hashable, int]
Shares = Mapping[Hashable, Fraction]
Verdict = Callable[[Counts, Shares], bool]
"""On a cell, with the shares of the values in the first version."""


def sizes(k: int) -> Verdict:
    return lambda cell, _: sum(cell.values()) >= k


def distinct(l: int) -> Verdict:  # noqa: E741
    return lambda cell, _: sum(n > 0 for n in cell.values()) >= l


def frequency(l: int) -> Verdict:  # noqa: E741
    return lambda cell, _: max(cell.values()) * l <= sum(cell.values())


def entropy(l: int) -> Verdict:  # noqa: E741
    def passes(cell: Counts, _: Shares) -> bool:
        shares = [n / sum(cell.values()) for n in cell.values() if n]
        return -sum(p * math.log(p) for p in shares) >= math.log(l) - 1e-12

    return passes


def recursive(c: Fraction, l: int) -> Verdict:  # noqa: E741
    def passes(cell: Counts, _: Shares) -> bool:
        counts = sorted(cell.values(), reverse=True)
        return counts[0] < c * sum(counts[l - 1 :])

    return passes


def close(t: Fraction) -> Verdict:
    """t-closeness with equal ground distances."""

    def passes(cell: Counts, shares: Shares) -> bool:
        rows = sum(cell.values())
        far = sum(abs(Fraction(cell.get(v, 0), rows) - shares.get(v, Fraction(0))) for v in {*cell, *shares})
        return far / 2 <= t

    return passes


def protected(allowed: Hashable) -> Verdict:
    """pd-recursive (3,2)-diversity with one value whose disclosure is allowed."""

    def passes(cell: Counts, _: Shares) -> bool:
        worst = max((n for value, n in cell.items() if value != allowed), default=0)
        return not worst or worst < 3 * (sum(cell.values()) - worst)

    return passes


def both(*verdicts: Verdict) -> Verdict:
    return lambda cell, shares: all(verdict(cell, shares) for verdict in verdicts)
