"""Round cuts: of all points between two neighbours the roundest, so that a cut repeats the digits of no value.

A cut is the least multiple of the coarsest step that has one in (below, above]. Each step is a whole number of the next
finer one: of numbers ... 50, 10, 5, 1, 0.5, 0.1 ...; of moments so many years, a quarter, a month, a day, an hour, a
minute, a second and so on. (With steps of 1, 2 and 5 the cells of 5 would cross those of 2.) So the cut stays where it
is when either neighbour moves within its cell of the step that was taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import date
from fractions import Fraction

DAY = 86_400
CYCLE = 146_097
"""Days of 400 years."""
FIRST = date(400, 1, 1).toordinal()


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
