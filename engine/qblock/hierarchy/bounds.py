"""The bounds of a label of numbers or of dates, half-open: what an analyst filters by, instead of by its text.

They are read from the label alone, never from values of the data. A label that cannot be read (`*`, a name) is open at
both ends, so that no filter drops its rows; one that has NULL in it has the bounds of its known values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from qblock.canonical import decimal_text
from qblock.comparison import NUMBER, Kind
from qblock.hierarchy.core import Hierarchy
from qblock.hierarchy.labels import Labels
from qblock.hierarchy.written import MISSING

Of = Literal["numbers", "dates"]
End = Fraction | float | date | None
"""An end of an interval; None: open. Dates have their first day, numbers of a column of floats their double."""
Ends = tuple[End, End]
OPEN: Ends = (None, None)

INTERVAL = re.compile(r"(?P<open>[\[(])\s*(?P<low>[^\[\](),]*?)\s*,\s*(?P<high>[^\[\](),]*?)\s*(?P<close>[\])])")
TO = re.compile(r" to |\s*[-\u2013\u2014]\s*")
BEYOND = re.compile(r"(?P<sign><=?|>=?|\u2264|\u2265)\s*(?P<end>\S.*)")
AT_LEAST = re.compile(r"(?P<end>\S.*?)\s*\+")
REST = re.compile(r"(?P<within>.*) \(other \d+\)")
DAY = re.compile(r"(?P<day>\d{4}-\d{2}-\d{2})(?P<time>[ T]\d{2}:\d{2}[\d:.+]*)?(?P<before> BC| \(BC\))?", re.ASCII)
YEAR = re.compile(r"\d{4}", re.ASCII)
MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
QUARTER = re.compile(r"(\d{4})-Q([1-4])", re.ASCII)
WEEK = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)


@dataclass(frozen=True)
class Reader:
    """Reads the labels of a quasi-identifier. kind: of its column; weeks: whether its years are those of weeks.

    stated: its hierarchy where that comes from a file or a table, whose labels may say anything: one that does not hold
    all its leaves is open. joined: its labels are those of boxes, which join labels of the hierarchy into new ones; one
    wrong label then leaves all of them open.
    """

    of: Of
    kind: Kind
    weeks: bool = False
    stated: Hierarchy | None = None
    joined: bool = False

    def bounds(self, label: str | None) -> Ends:
        """The half-open interval of a label: low <= value < high."""
        if label is None or label in self._wrong or (self.joined and self._wrong):
            return OPEN
        return self._read(label)

    def is_value(self, label: str) -> bool:
        """Whether a label that reads as a value stands for it alone: a stated hierarchy may call several so."""
        return label not in self._shared

    @cached_property
    def _shared(self) -> frozenset[str]:
        """Labels of a stated hierarchy that stand for others than the leaf of their text."""
        above = () if self.stated is None else self.stated.columns[1:]
        leaves = () if self.stated is None else self.stated.leaves
        return frozenset(
            label for labels in above for label, of in members_of(labels) if [leaves[i] for i in of] != [label]
        )

    @cached_property
    def _wrong(self) -> frozenset[str]:
        """Labels of a stated hierarchy that have a leaf outside of what they say."""
        if self.stated is None:
            return frozenset()
        leaves, *above = self.stated.columns
        ends = [self._read(leaf or "") for leaf in leaves.distinct.to_pylist()]
        return frozenset(
            label
            for labels in above
            for label, of in members_of(labels)
            if not all(_within(ends[leaf], self._read(label)) for leaf in of)
        )

    def _read(self, label: str) -> Ends:
        rest = REST.fullmatch(label)
        text = (rest["within"] if rest else label).strip().removesuffix(f" or {MISSING}")
        ends = self._value(text)
        if ends is None:
            ends = self._interval(text) or self._range(text) or self._beyond(text) or OPEN
        low, high = ends
        return OPEN if low is not None and high is not None and not _before(low, high) else ends

    def _value(self, text: str) -> Ends | None:
        return self._number(text) if self.of == "numbers" else self._calendar(text)

    def _number(self, text: str) -> Ends | None:
        if not NUMBER.fullmatch(text):
            return None
        exact = Fraction(text)
        if self.kind == "integer":
            return (exact, exact + 1) if exact.denominator == 1 else None
        value = float(text)
        if not math.isfinite(value):
            return OPEN
        return (
            (value, math.nextafter(value, math.inf))
            if self.kind == "float"
            else (exact, math.nextafter(float(exact), math.inf))
        )

    def _calendar(self, text: str) -> Ends | None:
        try:
            if match := DAY.fullmatch(text):
                # The calendar before Christ is not Python's.
                return OPEN if match["before"] else _days(date.fromisoformat(match["day"]), 1)
            if match := WEEK.fullmatch(text):
                return _days(date.fromisocalendar(int(match[1]), int(match[2]), 1), 7)
            if match := QUARTER.fullmatch(text):
                return _months(int(match[1]), 3 * int(match[2]) - 2, 3)
            if match := MONTH.fullmatch(text):
                return _months(int(match[1]), int(match[2]), 1)
            if YEAR.fullmatch(text):
                return _week_year(int(text)) if self.weeks else _months(int(text), 1, 12)
        except ValueError:
            return None
        return None

    def _interval(self, text: str) -> Ends | None:
        match = INTERVAL.fullmatch(text)
        if match is None:
            return None
        low = self._point(match["low"], after=match["open"] == "(")
        high = self._point(match["high"], after=match["close"] == "]" or self._within_a_day(match["high"]))
        return None if low is False or high is False else (low, high)

    def _point(self, text: str, *, after: bool) -> End | Literal[False]:
        """Where an interval begins or ends: at what the text says, or after all of it; False for another text."""
        if text.lower() in ("", "inf", "-inf", "+inf", "infinity", "-infinity", "+infinity"):
            return None
        if self.of == "numbers" and not after and NUMBER.fullmatch(text):
            return Fraction(text)
        ends = self._value(text)
        return False if ends is None else ends[1] if after else ends[0]

    def _within_a_day(self, text: str) -> bool:
        """Whether an end has a time, so that some of its day is before it."""
        match = DAY.fullmatch(text) if self.of == "dates" else None
        return bool(match and match["time"])

    def _range(self, text: str) -> Ends | None:
        """`15-19`, `-10 to -6`, `2024-01 to 2024-03`: all of the first and all of the last."""
        # A hyphen may be a sign, or of a date.
        for mark in TO.finditer(text):
            low, high = self._value(text[: mark.start()]), self._value(text[mark.end() :])
            if low is not None and high is not None:
                return low[0], high[1]
        return None

    def _beyond(self, text: str) -> Ends | None:
        """`<20`, `>=90`, `90+`."""
        match = BEYOND.fullmatch(text) or AT_LEAST.fullmatch(text)
        if match is None:
            return None
        sign = match.groupdict().get("sign", ">=")
        after = sign in ("<=", "\u2264", ">") or (sign == "<" and self._within_a_day(match["end"]))
        end = self._point(match["end"], after=after)
        if end is False:
            return None
        return (None, end) if sign in ("<", "<=", "\u2264") else (end, None)


def _days(first: date, count: int) -> Ends:
    """So many days; what begins on the last days that a calendar has is open."""
    try:
        return first, first + timedelta(days=count)
    except OverflowError:
        return first, None


def _months(year: int, month: int, count: int) -> Ends:
    first, after = date(year, month, 1), 12 * year + month - 1 + count
    return first, None if after // 12 > date.max.year else date(after // 12, after % 12 + 1, 1)


def _week_year(year: int) -> Ends:
    first = date.fromisocalendar(year, 1, 1)
    return first, None if year == date.max.year else date.fromisocalendar(year + 1, 1, 1)


def members_of(labels: Labels) -> Iterator[tuple[str, list[int]]]:
    """Each label of a level with the numbers of its leaves."""
    order = np.argsort(labels.of_leaf, kind="stable")
    edges = np.searchsorted(labels.of_leaf[order], np.arange(len(labels.distinct) + 1))
    for number, label in enumerate(labels.distinct.to_pylist()):
        yield label, order[edges[number] : edges[number + 1]].tolist()


def _within(inner: Ends, outer: Ends) -> bool:
    (low, high), (least, most) = inner, outer
    above = least is None or (low is not None and not _before(low, least))
    return above and (most is None or (high is not None and not _before(most, high)))


def _before(first: Fraction | float | date, second: Fraction | float | date) -> bool:
    """Of two ends of labels of one column, which are both dates or both numbers."""
    return bool(first < second)  # type: ignore[operator]


def double_texts(ends: Ends) -> tuple[str, str]:
    """Bounds of numbers as the texts of two doubles, the second above the first."""
    low = -math.inf if ends[0] is None else float(ends[0])  # type: ignore[arg-type]
    high = math.inf if ends[1] is None else float(ends[1])  # type: ignore[arg-type]
    return repr(low), repr(high if high > low else math.nextafter(low, math.inf))


def date_texts(ends: Ends) -> tuple[str, str]:
    """Bounds of dates as text, an open end as an infinite date."""
    low, high = ends
    return ("-infinity" if low is None else str(low), "infinity" if high is None else str(high))


def range_text(ends: Ends, most: int | None = None) -> str:
    """Bounds as a range of PostgreSQL, an open end as none. most: of a type of whole numbers, beyond which all is
    open."""
    low, high = ("" if end is None or _beyond(end, most) else _exact(end) for end in ends)
    return f"{'[' if low else '('}{low},{high})"


def _beyond(end: Fraction | float | date, most: int | None) -> bool:
    return most is not None and not isinstance(end, date) and abs(Fraction(end)) > most


def _exact(end: Fraction | float | date) -> str:
    return end.isoformat() if isinstance(end, date) else decimal_text(Fraction(end))
