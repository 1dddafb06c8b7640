"""Bayes-optimal privacy (models.md section 5)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

Joint = dict[tuple[Any, Any], Fraction]
"""f(q,s) over leaf quasi-identifier values and sensitive values."""


def prior(f: Joint, q: Any, s: Any) -> Fraction:
    """alpha(q,s) = f(s|q)."""
    return f.get((q, s), Fraction(0)) / sum(weight for (other, _), weight in f.items() if other == q)


def posterior(f: Joint, members: set[Any], counts: dict[Any, int], q: Any, s: Any) -> Fraction:
    """beta(q,s) of LD Theorem 3.1 for a block that generalizes the leaf values `members`."""

    def block_prior(value: Any) -> Fraction:
        within = {key: weight for key, weight in f.items() if key[0] in members}
        return sum(w for (_, v), w in within.items() if v == value) / sum(within.values())

    def weight(value: Any) -> Fraction:
        if not counts.get(value):
            return Fraction(0)
        return counts[value] * prior(f, q, value) / block_prior(value)

    return weight(s) / sum(weight(value) for value in counts)


def breach(alpha: Fraction, beta: Fraction, rho1: Fraction, rho2: Fraction) -> bool:
    """(rho1,rho2)-breach, upward or downward."""
    return (alpha < rho1 and beta > rho2) or (alpha > 1 - rho1 and beta < 1 - rho2)
