"""What a label or a value of a published column says about a condition, and about the value behind it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from qblock.comparison import NUMBERS, Kind, key
from qblock.estimate.conditions import Condition, Interval, Values
from qblock.hierarchy import TOP
from qblock.hierarchy.written import MISSING

Text = str | None
"""A label, or the text of a value; None for NULL."""


@dataclass(frozen=True)
class Meets:
    """Whether the row behind a label meets a condition. share: of such rows that are expected to."""

    surely: bool
    possibly: bool
    share: float


@dataclass(frozen=True)
class Number:
    """The number behind a label: least <= number <= most, None where it is open. expected: None where nothing says."""

    least: float | None
    most: float | None
    expected: float | None


ANY = Meets(surely=True, possibly=True, share=1.0)


class Column(Protocol):
    """A column of the view that a condition may be about."""

    @property
    def name(self) -> str: ...

    def meets(self, text: Text, condition: Condition) -> Meets: ...

    def number(self, text: Text, condition: Condition | None) -> Number | None:
        """The number behind a label of a row that meets the condition; None where there is none, as for NULL."""


@dataclass(frozen=True)
class Bounded:
    """The bounds of a label, half-open, and the shares of its cells."""

    bounds: Interval
    cells: Sequence[tuple[Interval, float]]


@dataclass(frozen=True)
class BoundedColumn:
    """A quasi-identifier with bounds. step: between its values, 0 where there is none; dates: as days."""

    name: str
    step: float
    dates: bool
    labels: Mapping[str, Bounded]

    def meets(self, text: Text, condition: Condition) -> Meets:
        label = self.labels[text or ""]
        intervals = condition.intervals
        bounds = self._certain(text)
        possibly = any(bounds.overlaps(interval) for interval in intervals)
        surely = bounds != Interval() and any(interval.holds(bounds) for interval in intervals)
        share = sum(share * cell.part_in(interval) for cell, share in label.cells for interval in intervals)
        return Meets(surely, possibly, 1.0 if surely else min(share, 1.0) if possibly else 0.0)

    def number(self, text: Text, condition: Condition | None) -> Number | None:
        intervals = (Interval(),) if condition is None else condition.intervals
        bounds = self._certain(text)
        within = [bounds.within(interval) for interval in intervals if bounds.overlaps(interval)]
        least = min((part.least for part in within), default=-math.inf)
        most = max((part.below - self.step for part in within), default=math.inf)
        expected = self._expected(self.labels[text or ""], intervals)
        if expected is not None:
            expected = min(max(expected, least), most)
        return Number(_finite(least), _finite(most), expected)

    def _certain(self, text: Text) -> Interval:
        """What the value surely is within; NULL is within no bounds."""
        return Interval() if text is None or MISSING in text else self.labels[text].bounds

    def _expected(self, label: Bounded, intervals: Sequence[Interval]) -> float | None:
        total = weight = 0.0
        for cell, share in label.cells:
            for interval in intervals:
                part = share * cell.part_in(interval)
                if cell.closed and part > 0:
                    total += part * cell.within(interval).middle(self.step)
                    weight += part
        return total / weight if weight else None


@dataclass(frozen=True)
class LabelColumn:
    """A quasi-identifier with labels alone.

    By each published label, levels: None for one of a recoding map; rows: how many have it; members: its values that
    are published labels themselves, left out where they are not listed; complete: the labels without other values.
    """

    name: str
    levels: Mapping[str, int | None]
    rows: Mapping[str, int]
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    complete: Collection[str] = ()
    known: dict[Values, float] = field(default_factory=dict)
    """The share of each condition among the rows of labels that decide it."""

    def meets(self, text: Text, condition: Condition) -> Meets:
        label, values = text or "", condition.values
        surely, possibly = self._decided(label, values)
        share = 1.0 if surely else 0.0
        if possibly and not surely:
            share = self._of_members(label, values) if label in self.complete else self._share(values)
        return Meets(surely, possibly, share)

    def number(self, text: Text, condition: Condition | None) -> Number | None:
        return None

    def _decided(self, label: str, values: Values) -> tuple[bool, bool]:
        if label in values:
            return True, True
        if label in self.complete and self.members[label] <= self._within(values):
            return True, True
        return False, any(self._may_share(label, str(value)) for value in values)

    def _within(self, values: Values) -> frozenset[str]:
        """What is known to be a value of one of these labels."""
        return frozenset().union(*(self.members.get(str(value), ()) for value in values))

    def _may_share(self, label: str, value: str) -> bool:
        """Whether two labels may have a value in common: those of one level have none."""
        own, other = self.members.get(label), self.members.get(value)
        if own is not None and other is not None:
            if own & other:
                return True
            if label in self.complete or value in self.complete:
                return False
        level = self.levels[label]
        return label == TOP or level is None or level != self.levels[value]

    def _of_members(self, label: str, values: Values) -> float:
        """The share of a label that these are, if its rows are as those that show its values themselves."""
        own = self.members[label]
        return sum(self.rows[name] for name in own & self._within(values)) / sum(self.rows[name] for name in own)

    def _share(self, values: Values) -> float:
        if values not in self.known:
            decided = {label: self._decided(label, values) for label in self.levels}
            inside = sum(self.rows[label] for label, (surely, _) in decided.items() if surely)
            outside = sum(self.rows[label] for label, (_, possibly) in decided.items() if not possibly)
            self.known[values] = inside / (inside + outside)
        return self.known[values]


@dataclass(frozen=True)
class ValueColumn:
    """A column that is published as it is."""

    name: str
    kind: Kind

    def meets(self, text: Text, condition: Condition) -> Meets:
        same = text in condition.values if text is None else self._among(text, condition)
        return Meets(same, same, float(same))

    def _among(self, text: str, condition: Condition) -> bool:
        own = key(text, self.kind)
        if any(value is not None and key(value, self.kind) == own for value in condition.values):
            return True
        low, high = condition.ends
        above = low is None or key(low, self.kind) <= own
        return condition.is_range and own[0] <= 1 and above and (high is None or own < key(high, self.kind))

    def number(self, text: Text, condition: Condition | None) -> Number | None:
        if text is None or self.kind not in NUMBERS or not math.isfinite(float(text)):
            return None
        return Number(float(text), float(text), float(text))


def _finite(end: float) -> float | None:
    return end if math.isfinite(end) else None
