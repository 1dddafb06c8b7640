"""How ranges of numbers and of dates are written as labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Literal

from qblock.comparison import Kind
from qblock.hierarchy.cuts import Grid
from qblock.hierarchy.numbers import decimal_texts

MISSING = "(missing)"
"""How the leaf of NULL, and of values that a hierarchy does not cover, reads where it stands alone: `*` would read like
all values."""
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


def interval_of_numbers(low: str | None, high: str | None, closed: bool, *, whole: bool) -> str:
    """low <= number < high, of which one may be open: 25-29, [2.5, 3), <15, >=90. closed: whether high belongs to it;
    whole: whether ranges of whole numbers have both ends."""
    if low is None:
        return f"<{'=' * closed}{high}"
    if high is None:
        return f">={low}"
    if whole and (first := Fraction(low)).denominator == 1 and (end := Fraction(high)).denominator == 1:
        return whole_ranges([int(first)], int(end - first) + closed)[0]
    return f"[{low}, {high}{'])'[not closed]}"


def interval_of_moments(low: str | None, high: str | None, closed: bool, *, units: bool) -> str:
    """The same of dates, from the first to the last month, or day; of times half-open. units: whether months may be
    written."""
    days = [None if end is None or len(end) > len("2024-01-01") else date.fromisoformat(end) for end in (low, high)]
    first, end = days
    if low is not None and high is not None:
        if first is None or end is None:
            return f"[{low}, {high}{'])'[not closed]}"
        if units and not closed and first.day == end.day == 1:
            last = end - timedelta(days=1)
            return " to ".join(dict.fromkeys(f"{day.year:04}-{day.month:02}" for day in (first, last)))
        return _dates_from_to(first.toordinal(), end.toordinal() - (not closed))
    if low is None:
        return f"<{'=' * closed}{high}"
    return f">={low}"
