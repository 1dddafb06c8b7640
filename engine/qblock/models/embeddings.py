"""Models that amount to epsilon-privacy: which epsilon a (c,2)-diverse or t-close table grants (EP 5).

The paper's Lemma 1 and its formula for (c,2)-diversity are misprinted; these are the forms that hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from qblock.errors import ParameterError


def share_allowed(epsilon: Fraction | int, values: int) -> Fraction:
    """The largest share of one value that class III with the uniform prior allows: min(eps/V, 1 - (V-1)/(V eps))."""
    return min(Fraction(epsilon) / values, 1 - Fraction(values - 1) / (values * Fraction(epsilon)))


def epsilon_of_c2(c: Fraction | int, values: int) -> Fraction:
    """The least epsilon of class III with the uniform prior that allows shares up to c/(c+1), as (c,2)-diversity does.

    It is max(V c/(c+1), (c+1)(V-1)/V), not the printed min. At exactly that share a block is epsilon-private and not
    (c,2)-diverse, whose condition is strict. No table has only shares below 1/V, so c must be at least 1/(V-1);
    raises ParameterError below that and for V < 2.
    """
    c = Fraction(c)
    if values < 2 or c * (values - 1) < 1:
        raise ParameterError(f"c = {c} is out of range; valid: c >= 1/(V-1) and at least two values, V = {values}")
    return max(values * c / (c + 1), (c + 1) * (values - 1) / values)


def epsilon_of_t(t: Fraction | int, shares: Sequence[Fraction], nearest: Fraction | int = 1) -> Fraction:
    """The epsilon of class III with the table's prior that every t-close table has; shares are P_s.

    nearest: the smallest positive ground distance of the earth mover's distance (1 for the equal one). Raises
    ParameterError unless t/nearest is below the smallest positive share, where the guarantee ends: a block without that
    value can be t-close.
    """
    moved, positive = Fraction(t) / Fraction(nearest), [share for share in shares if share > 0]
    if moved < 0 or moved >= min(positive):
        raise ParameterError(f"t = {t} is out of range; valid: 0 <= t < {min(positive) * nearest}, the smallest share")
    return max(max((p + moved) / p, p / (p - moved)) for p in positive)
