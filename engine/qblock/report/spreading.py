"""How published labels are spread over what they may stand for, and how far two tables of counts differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np

from qblock.blocks import Floats, Ints
from qblock.hierarchy import TOP, Hierarchy
from qblock.hierarchy.written import MISSING

MOST_LABELS = 20
"""Of a quasi-identifier, that are compared one by one."""


@dataclass(frozen=True, eq=False)
class Spreading:
    """The published labels of a quasi-identifier over the labels of one level.

    hierarchy: of the source as it is now; entries: of the labels, as `VIEW_levels` has them; published_level: that all
    of them have, None of labels of several; whole: whether `*` is a value like another one (NULL, or a suppressed row)
    and not spread over all, as in a map.
    """

    hierarchy: Hierarchy
    entries: Sequence[Mapping[str, Any]]
    published_level: int | None
    whole: bool

    @cached_property
    def level(self) -> int:
        """At which labels are compared: that of the published ones; of a map the finest one with few labels, of which
        values count where most are published, or else the one below `*`."""
        below = range(max(1, self.hierarchy.height))
        if self.published_level is not None:
            return min(self.published_level, self.hierarchy.height)
        few = (level for level in below if len(self.hierarchy.columns[level].distinct) <= MOST_LABELS)
        return next((level for level in few if level > 0 or self._shows_values), below[-1])

    @cached_property
    def _shows_values(self) -> bool:
        """Whether at least half of the values are published labels."""
        published = {entry["label"] for entry in self.entries}
        leaves = self.hierarchy.leaves
        return 2 * sum(leaf in published for leaf in leaves) >= len(leaves)

    @cached_property
    def bins(self) -> tuple[str, ...]:
        """The labels that are compared one by one: those that most published rows have. One of the finest level is a
        value of the source, and there only where it is published."""
        published = {entry["label"] for entry in self.entries}
        mass: dict[str, float] = {}
        for entry in self.entries:
            for label, share in self._shares(entry).items():
                mass[label] = mass.get(label, 0) + share * entry["rows"]
        named = [label for label in mass if self.level > 0 or label in published]
        most = sorted(named, key=lambda label: (-mass[label], label))[:MOST_LABELS]
        return tuple(sorted(most, key=lambda label: (label == TOP, *self._place(label))))

    def weights(self) -> dict[str, Floats]:
        """Of each published label the share of its rows in each bin, and after these in none of them."""
        place = {label: i for i, label in enumerate(self.bins)}
        result = {}
        for entry in self.entries:
            row = np.zeros(len(self.bins) + 1)
            for label, share in self._shares(entry).items():
                row[place.get(label, len(self.bins))] += share
            result[entry["label"]] = row
        return result

    def _shares(self, entry: Mapping[str, Any]) -> dict[str, float]:
        """The labels of the level that a published label stands for, evenly by the values below them."""
        if self.published_level is not None and (self.whole or entry["label"] != TOP):
            return {entry["label"]: 1.0}
        labels = self.hierarchy.columns[self.level]
        numbers = np.bincount(labels.of_leaf[self._leaves(entry)], minlength=len(labels.distinct))
        names = labels.distinct.to_pylist()
        total = int(numbers.sum())
        return {TOP if names[i] is None else names[i]: numbers[i] / total for i in np.flatnonzero(numbers).tolist()}

    def _leaves(self, entry: Mapping[str, Any]) -> Ints:
        """The values that a label stands for, as far as readers are told; all where nothing is said of it."""
        every = np.arange(len(self.hierarchy.leaves))
        if entry["label"] == TOP:
            return every
        if entry["level"] is not None and entry["level"] <= self.hierarchy.height:
            labels = self.hierarchy.columns[entry["level"]]
            place = labels.place(entry["label"])
            chosen = every[:0] if place is None else np.flatnonzero(labels.of_leaf == place)
        elif (entry["low"], entry["high"]) != (None, None):
            low, high = end_of(entry["low"], -math.inf), end_of(entry["high"], math.inf)
            chosen = np.flatnonzero((self._numbers >= low) & (self._numbers < high))
        else:
            members = set(json.loads(entry["members"] or "[]"))
            leaves = enumerate(self.hierarchy.leaves)
            chosen = np.array([i for i, leaf in leaves if (MISSING if leaf is None else leaf) in members], dtype=int)
        return chosen if len(chosen) else every

    @cached_property
    def _numbers(self) -> Floats:
        return np.array([math.nan if leaf is None else end_of(leaf, math.nan) for leaf in self.hierarchy.leaves])

    def _place(self, label: str) -> tuple[float, int]:
        """By the first number below it, or else as in the hierarchy."""
        labels = self.hierarchy.columns[self.level]
        place = labels.place(label)
        if place is None:
            return math.inf, 0
        number = np.nanmin(np.append(self._numbers[labels.of_leaf == place], math.inf)).item()
        return number, int(labels.first[place])


def end_of(text: str | None, otherwise: float) -> float:
    """A number, or a date in days; `otherwise` for another text."""
    if text is None:
        return otherwise
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return float(date.fromisoformat(text[:10]).toordinal())
    except ValueError:
        return otherwise


def cramers_v(counts: Floats) -> float | None:
    """Cramer's V of a table of counts: 0 where neither column says anything of the other, 1 where one tells it. None
    where a column has one value."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    counts = counts[rows > 0][:, columns > 0]
    if min(counts.shape, default=0) < 2:
        return None
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    chi_squared = ((counts - expected) ** 2 / expected).sum()
    return float(min(1.0, math.sqrt(chi_squared / counts.sum() / (min(counts.shape) - 1))))


def distance(first: Floats, second: Floats) -> float:
    """Half the sum of the differences of two distributions."""
    return float(np.abs(first - second).sum() / 2)
