"""How ranges of numbers and of dates are written as labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from fractions import Fraction
from typing import Literal

from qblock.comparison import Kind
from qblock.hierarchy.cuts import Grid
from qblock.hierarchy.numbers import decimal_texts

LabelForm = Literal["plain", "half_open"]
"""How ranges of whole numbers are written: 15-19, or [15, 20), as those of other numbers are in any case."""


def inclusive(kind: Kind, labels: LabelForm, numbers: Sequence[int | Fraction]) -> bool:
    """Whether ranges between these numbers are written with their last value."""
    return labels == "plain" and kind == "integer" and all(Fraction(number).denominator == 1 for number in numbers)


def whole_ranges(lows: Sequence[int], width: int) -> list[str]:
    """Ranges of one width with both ends: 15-19, -10 to -6, and 15 where there is no other."""
    if width == 1:
        return list(map(str, lows))
    return [f"{low}-{low + width - 1}" if low >= 0 else f"{low} to {low + width - 1}" for low in lows]


def half_open(lows: Sequence[int], width: int, per: int) -> list[str]:
    """Ranges without their upper end, [1.5, 2); all numbers times `per`."""
    begins, ends = decimal_texts(list(lows), per), decimal_texts([low + width for low in lows], per)
    return [f"[{low}, {high})" for low, high in zip(begins, ends, strict=True)]


def writer(grid: Grid, kind: Kind, per: int, labels: LabelForm) -> Callable[[int, int, bool], str]:
    """How a cell is written: from its lower end, its upper one, and whether this one belongs to it."""
    if grid.of_dates:
        return lambda low, high, closed: _dates_from_to(low, high - (not closed))
    if inclusive(kind, labels, (Fraction(1, grid.per),)):
        return lambda low, high, closed: whole_ranges([low], high - low + closed)[0]
    return lambda low, high, closed: "[{}, {}{}".format(*decimal_texts([low, high], per), "])"[not closed])


def _dates_from_to(low: int, high: int) -> str:
    return f"{date.fromordinal(low)}" + (f" to {date.fromordinal(high)}" if high > low else "")
