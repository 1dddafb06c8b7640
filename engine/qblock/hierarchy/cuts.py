"""Cuts that tell no value: at equal distances between declared bounds, or at the roundest point between two values.

A round cut is the least multiple of the coarsest step that has one in (below, above]. Each step is a whole number of
the next finer one: of numbers ... 50, 10, 5, 1, 0.5, 0.1 ...; of moments so many years, a quarter, a month, a day, an
hour, a minute, a second and so on. (With steps of 1, 2 and 5 the cells of 5 would cross those of 2.) So the cut stays
where it is when either neighbour moves within its cell of the step that was taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TypeAlias

from qblock.canonical import decimal_text
from qblock.hierarchy.core import check_levels

Point: TypeAlias = int | Fraction | date
DAY = 86_400
CYCLE = 146_097
"""Days of 400 years."""
FIRST = date(400, 1, 1).toordinal()


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
        # Cells of twice, four times as much and so on: a level for each bit of their number.
        check_levels((last - first + 1).bit_length() + 2, "Write a larger min_width")

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


def steps(size: Fraction) -> Iterator[Fraction]:
    """The steps of numbers up to this size, the coarsest first: 10, 5, 1, 0.5 ... of a size below 10."""
    ten = Fraction(10 ** len(str(math.floor(size))))
    for _ in itertools.count():
        yield ten
        yield ten / 2
        ten /= 10


def round_number(below: Fraction, above: Fraction) -> Fraction:
    """The round cut between two numbers: below < cut <= above."""
    if below < 0 <= above:
        return Fraction(0)
    cuts = ((math.floor(below / step) + 1) * step for step in steps(max(abs(below), abs(above))))
    return next(cut for cut in cuts if cut <= above)


def round_moment(below: Fraction, above: Fraction) -> Fraction:
    """The round cut between two moments, in seconds as `comparison.key` counts them."""
    (year, month, _), (last, until, _) = _calendar(below), _calendar(above)
    if year < last:
        return _seconds(int(round_number(Fraction(year), Fraction(last))), 1)
    for months in (3, 1):
        if (month - 1) // months < (until - 1) // months:
            return _seconds(year, months * ((month - 1) // months + 1) + 1)
    for step in (DAY, 3600, 60, 1):
        cut = (math.floor(below / step) + 1) * Fraction(step)
        if cut <= above:
            return cut
    whole = math.floor(below)
    return whole + round_number(below - whole, above - whole)


def next_year(moment: Fraction) -> Fraction:
    """Where the year after that of a moment begins."""
    return _seconds(_calendar(moment)[0] + 1, 1)


def this_year(moment: Fraction) -> Fraction:
    """Where the year of a moment begins."""
    return _seconds(_calendar(moment)[0], 1)


def moment_text(moment: Fraction) -> str | None:
    """A moment as ISO text, with a time where it is not the first of its day; None outside of the years 1 to 9999."""
    year, month, day = _calendar(moment)
    if not 1 <= year <= date.max.year:
        return None
    text, second = f"{year:04}-{month:02}-{day:02}", moment % DAY
    if not second:
        return text
    whole, rest = divmod(second, 1)
    text += f" {whole // 3600:02}:{whole // 60 % 60:02}"
    if not rest:
        return text if not whole % 60 else f"{text}:{whole % 60:02}"
    return f"{text}:{whole % 60:02}.{math.floor(rest * 10**9):09}".rstrip("0")


def _calendar(moment: Fraction) -> tuple[int, int, int]:
    """The year (0 is 1 BC), month and day of a moment."""
    days = math.floor(moment / DAY)
    cycles = (days - FIRST) // CYCLE
    day = date.fromordinal(days - cycles * CYCLE)
    return day.year - 400 + 400 * cycles, day.month, day.day


def _seconds(year: int, month: int) -> Fraction:
    cycles, within = divmod(year, 400)
    return Fraction(DAY * (date(within + 400, month, 1).toordinal() + cycles * CYCLE))
