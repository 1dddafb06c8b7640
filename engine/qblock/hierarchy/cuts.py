"""Cuts at equal distances between declared bounds, so that no label tells a value of the data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TypeAlias

from qblock.canonical import decimal_text

Point: TypeAlias = int | Fraction | date


@dataclass(frozen=True)
class Grid:
    """Cuts at start + i min_width, for whole i, strictly between low and high; all numbers, or all but the width dates.

    min_width: of dates in days. low and high need not be cuts: the cell at that end is narrower then. Both are
    inside: the last cell ends with high, and every other is half open. Raises ValueError for bounds without any cut.
    """

    start: Point
    min_width: int | Fraction
    low: Point
    high: Point

    def __post_init__(self) -> None:
        ends = (self.start, self.low, self.high)
        if len({isinstance(end, date) for end in ends}) > 1:
            raise ValueError("start, low and high are numbers and dates; write numbers alone, or dates alone")
        if self.min_width <= 0:
            raise ValueError(f"min_width {decimal_text(self.min_width)} is out of range; valid: above 0")
        if self.of_dates and Fraction(self.min_width).denominator > 1:
            raise ValueError(f"min_width {decimal_text(self.min_width)} is not a number of days; write a whole number")
        low, high = self.place(self.low), self.place(self.high)
        if low >= high:
            raise ValueError(f"low {shown(self.low)} is not below high {shown(self.high)}; write low < high")
        first, last = self.span
        if first == last:
            raise ValueError(
                f"no cut lies between low {shown(self.low)} and high {shown(self.high)}; "
                "write a smaller min_width, or another start"
            )

    @property
    def of_dates(self) -> bool:
        return isinstance(self.start, date)

    @staticmethod
    def place(point: Point) -> int | Fraction:
        """A number as it is; a date as its day."""
        return point.toordinal() if isinstance(point, date) else point

    @property
    def per(self) -> int:
        """The least denominator that all its numbers have."""
        numbers = (self.min_width, *map(self.place, (self.start, self.low, self.high)))
        return math.lcm(*(Fraction(number).denominator for number in numbers))

    @property
    def span(self) -> tuple[int, int]:
        """The numbers of the first and the last cell; cell i starts at start + i min_width unless low is above."""
        start, low, high = (Fraction(self.place(point)) for point in (self.start, self.low, self.high))
        return math.floor((low - start) / self.min_width), math.ceil((high - start) / self.min_width) - 1

    def widths(self) -> Iterator[int | Fraction]:
        """min_width, and twice, four times as much and so on, as long as there are fewer cells and more than one.

        Cells on both sides of start never become one.
        """
        (first, last), width, before = self.span, self.min_width, 0
        while 1 < last - first + 1 != before:
            yield width
            before, width, first, last = last - first + 1, 2 * width, first // 2, last // 2


def shown(point: Point) -> str:
    """A number or a date as a label has it."""
    return point.isoformat() if isinstance(point, date) else decimal_text(point)
