"""Logarithms in 80 digits."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

CONTEXT = decimal.Context(prec=80)
SAME = Decimal("1e-60")
Exact = Fraction | Decimal | int | float
"""The only float is math.inf."""


def decimal_of(x: Exact) -> Decimal:
    if isinstance(x, Decimal):
        return x
    if isinstance(x, float):
        if not math.isinf(x):
            raise TypeError(f"{x} is a float")
        return Decimal(x)
    fraction = Fraction(x)
    return CONTEXT.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def ln(x: Exact) -> Decimal:
    """Natural logarithm of a positive number."""
    return CONTEXT.ln(decimal_of(x))


def plus(*terms: Decimal) -> Decimal:
    total = Decimal(0)
    for term in terms:
        total = CONTEXT.add(total, term)
    return total


def times(x: Exact, y: Exact) -> Decimal:
    return CONTEXT.multiply(decimal_of(x), decimal_of(y))


def negative(x: Decimal) -> Decimal:
    """-x with all its digits: the operators round to the 28 digits of Python's default context."""
    return CONTEXT.minus(x)


def magnitude(x: Decimal) -> Decimal:
    """|x| with all its digits."""
    return CONTEXT.abs(x)


def at_most(x: Exact, y: Exact) -> bool:
    """x <= y, where what agrees in 60 digits counts as equal."""
    if isinstance(x, Decimal) or isinstance(y, Decimal):
        return decimal_of(x) <= decimal_of(y) or CONTEXT.subtract(decimal_of(x), decimal_of(y)) <= SAME
    return x <= y


def less(x: Exact, y: Exact) -> bool:
    """x < y, where what agrees in 60 digits counts as equal."""
    return not at_most(y, x)
