"""Conditions of a question: a value, a list of values, or a half-open range of numbers or dates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from qblock.errors import InputError
from qblock.publish.spread import EPOCH

Values = tuple[str | None, ...]
RANGE = ("from", "below")


@dataclass(frozen=True)
class Interval:
    """least <= number < below; infinite where it is open."""

    least: float = -math.inf
    below: float = math.inf

    @property
    def closed(self) -> bool:
        return math.isfinite(self.least) and math.isfinite(self.below)

    def overlaps(self, other: Interval) -> bool:
        return max(self.least, other.least) < min(self.below, other.below)

    def holds(self, other: Interval) -> bool:
        return self.least <= other.least and other.below <= self.below

    def within(self, other: Interval) -> Interval:
        return Interval(max(self.least, other.least), min(self.below, other.below))

    def part_in(self, other: Interval) -> float:
        """The share of this one in another; of an open one that is divided a half, since nothing says more."""
        if other.holds(self):
            return 1.0
        if not self.overlaps(other):
            return 0.0
        shared = self.within(other)
        # The largest doubles have no difference.
        part, width = (i.below / 2 - i.least / 2 for i in (shared, self))
        return part / width if self.closed else 0.5

    def middle(self, step: float) -> float:
        """The mean of its values where these are spread evenly. step: between them."""
        return max(self.least, self.least / 2 + self.below / 2 - step / 2)


@dataclass(frozen=True)
class Condition:
    """What a column must be. values: their texts, None for NULL; ends: of a range as texts; intervals: the same of
    numbers and days, in order, without a point in common."""

    values: Values = ()
    ends: tuple[str | None, str | None] = (None, None)
    is_range: bool = False
    intervals: tuple[Interval, ...] = ()

    @property
    def words(self) -> str:
        if not self.is_range:
            return "is " + " or ".join("NULL" if value is None else value for value in self.values)
        low, high = self.ends
        begins = [] if low is None else [f"from {low}"]
        return " ".join([*begins, *([] if high is None else [f"below {high}"])])


def read_condition(place: str, raw: Any) -> Condition:
    """A condition as texts. place: the column, for messages. Raises InputError."""
    if isinstance(raw, Mapping):
        unknown = [name for name in raw if name not in RANGE]
        if unknown or not raw:
            raise InputError(
                f'{place}: a range has the keys from and below; write where={{"{place}": {{"from": 20, "below": 40}}}}'
            )
        low, high = (None if raw.get(name) is None else text_of(raw[name]) for name in RANGE)
        return Condition(ends=(low, high), is_range=True)
    values = list(raw) if isinstance(raw, list | tuple | set | frozenset) else [raw]
    return Condition(values=tuple(dict.fromkeys(None if value is None else text_of(value) for value in values)))


def text_of(value: Any) -> str:
    """A value of Python as the text that a column has."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def with_intervals(place: str, condition: Condition, *, dates: bool, step: float) -> Condition:
    """The condition on a column of numbers or dates, as intervals. Raises InputError for what is neither."""
    if condition.is_range:
        low, high = (None if end is None else _number(place, end, dates=dates) for end in condition.ends)
        own = [Interval(-math.inf if low is None else low, math.inf if high is None else high)]
    else:
        numbers = [_number(place, value, dates=dates) for value in condition.values if value is not None]
        own = [Interval(n, n + step if step else math.nextafter(n, math.inf)) for n in numbers]
    return Condition(condition.values, condition.ends, condition.is_range, _joined(whole(i, step) for i in own))


def whole(interval: Interval, step: float) -> Interval:
    """The same values where these are whole numbers: from the first of them to before the one after the last."""
    if not step:
        return interval
    return Interval(*(math.ceil(end) if math.isfinite(end) else end for end in (interval.least, interval.below)))


def _joined(intervals: Iterable[Interval]) -> tuple[Interval, ...]:
    """Intervals that touch or overlap as one, without empty ones."""
    joined: list[Interval] = []
    for interval in sorted(intervals, key=lambda i: (i.least, i.below)):
        if not interval.least < interval.below:
            continue
        if joined and interval.least <= joined[-1].below:
            joined[-1] = Interval(joined[-1].least, max(joined[-1].below, interval.below))
        else:
            joined.append(interval)
    return tuple(joined)


def _number(place: str, text: str, *, dates: bool) -> float:
    try:
        if dates:
            # A moment is within a day, of which labels do not tell more.
            day = date.fromisoformat(text) if len(text) <= len("2024-01-31") else _midnight(text)
            return float((day - EPOCH).days)
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        what, example = ("a date", '"2024-01-31"') if dates else ("a number", "30")
        raise InputError(f'{place}: {text!r} is not {what}; write where={{"{place}": {{"from": {example}}}}}')
    return number


def _midnight(text: str) -> date:
    moment = datetime.fromisoformat(text)
    if moment != datetime(moment.year, moment.month, moment.day):
        raise ValueError(text)
    return moment.date()
