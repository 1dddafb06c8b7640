"""The labels of a quasi-identifier as readers are told of them: what each stands for, and how to filter by them.

Nothing here is more than the published labels tell: a value is named where it is a published label itself. Another one
may be a value of a single person, also where a file or a table lists it, which may have been made from the source.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

import pyarrow.compute as pc

from qblock.engines.quoting import quote_plain, quote_text
from qblock.hierarchy import TOP, Hierarchy
from qblock.hierarchy.bounds import OPEN, Ends, members_of
from qblock.hierarchy.labels import texts
from qblock.hierarchy.written import MISSING
from qblock.publish.bounds import Bound

MOST_MEMBERS = 1000
"""Values that are named of one label; one of more names none, as `*` does."""
SPECIAL = re.compile(r"['\"\\%_]")
Row = tuple[Any, ...]
Leaves = Mapping[str, Set[str | None]]
"""The leaves of labels that a recoding map made, by their texts."""


@dataclass(frozen=True, eq=False)
class Levels:
    """The published labels of a quasi-identifier.

    rows: how many each label has; rests: of the labels that are no range and no label of the hierarchy; typed: whether
    every row has a value of the source, in its type.
    """

    name: str
    hierarchy: Hierarchy
    rows: Mapping[str, int]
    bound: Bound | None
    rests: Leaves = field(default_factory=dict)
    typed: bool = False

    @property
    def total(self) -> int:
        return sum(self.rows.values())

    @cached_property
    def at(self) -> dict[str, list[int]]:
        """The levels at which each label occurs; none of a label that a recoding map made."""
        levels: dict[str, list[int]] = {label: [] for label in self.rows}
        listed = texts(list(self.rows))
        for level, labels in enumerate(self.hierarchy.columns):
            for label in listed.filter(pc.is_in(listed, labels.distinct)).to_pylist():
                levels[label].append(level)
        if TOP in levels:
            levels[TOP] = [self.hierarchy.height]
        return levels

    @property
    def level(self) -> int | None:
        """The coarsest level at which all published labels occur; what is suppressed may be so at every level."""
        shared = set(range(self.hierarchy.height + 1))
        for label in self.rows:
            if label != TOP:
                shared &= set(self.at[label])
        if set(self.rows) <= {TOP}:
            return self.hierarchy.height
        return max(shared, default=None)

    def members(self, label: str) -> tuple[list[str] | None, bool | None]:
        """The values of a label that are labels of their own, and whether it stands for no others; none of a label that
        has bounds, and none of `*` and of too many."""
        if label == TOP:
            return None, False
        if self._ends(label) != OPEN:
            return None, None
        leaves = self.rests.get(label) or self._leaves[label]
        named = sorted({MISSING if leaf is None else leaf for leaf in leaves} & self.rows.keys())
        return (named, len(named) == len(leaves)) if len(named) <= MOST_MEMBERS else (None, False)

    def _ends(self, label: str) -> Ends:
        return OPEN if self.bound is None else self.bound.reader.bounds(label)

    @cached_property
    def _leaves(self) -> dict[str, set[str | None]]:
        """The leaves of each label of the hierarchy that has no bounds, whichever level it is of."""
        named = {label for label in self.rows if label != TOP and self._ends(label) == OPEN}
        leaves: dict[str, set[str | None]] = {label: set() for label in named}
        for level in {level for label in named for level in self.at[label]}:
            for label, of in members_of(self.hierarchy.columns[level]):
                if label in named:
                    leaves[label].update(self.hierarchy.leaves[leaf] for leaf in of)
        return leaves

    def listed(self, since: Mapping[str, int]) -> list[Row]:
        """The rows of the view of the labels. since: the version that first showed each."""
        rows: list[Row] = []
        place = self.bound.place_of if self.bound else lambda label: 0
        order = sorted(self.rows, key=lambda label: (label == TOP, place(label), label))
        for number, label in enumerate(order, 1):
            ends = (None, None) if self.bound is None else self.bound.ends_of(label)
            members, complete = self.members(label)
            named = None if members is None else json.dumps(members, ensure_ascii=False)
            level, n = max(self.at[label], default=None), self.rows[label]
            rows.append((self.name, level, label, *ends, named, complete, number, n, n / self.total, since.get(label)))
        return rows

    def how_to_filter(self, view: str) -> str:
        """Conditions that are true of this column, by values that it has. view: of the labels."""
        if set(self.rows) <= {TOP}:
            return "not by this column: it is suppressed in every row, and may have any value"
        if self.typed:
            return "like a column of the source, whose type and values it has"
        least, most = self._points()
        if self.bound is None or not self.bound.ends or least is most is None:
            return self._by_label(view)
        return _by_bounds(self.bound, least, most)

    def _points(self) -> tuple[str | None, str | None]:
        """Two ends of labels that follow each other, in the middle of all; one alone where there are no two."""
        ends = [self._ends(label) for label in self.rows]
        lows, highs = _in_order(low for low, _ in ends), _in_order(high for _, high in ends)
        points = lows if len(lows) > 1 else _in_order([*lows, *highs])
        if len(points) > 1:
            first = (len(points) - 1) // 2
            return _written(points[first]), _written(points[first + 1])
        return (_written(lows[0]), None) if lows else (None, _written(highs[0]) if highs else None)

    def _by_label(self, view: str) -> str:
        column = quote_plain(self.name)
        values = {label for label in self.rows if label != TOP and 0 in self.at[label]}
        # Engines read escapes in other ways, and a pattern has signs of its own.
        simple = [label for label in values if not SPECIAL.search(label)]
        example = max(simple or self.rows, key=lambda label: (label != TOP, self.rows[label], label))
        same = f"{column} = {quote_text(example)}"
        if values == set(self.rows):
            return same
        if not simple:
            return f"by label: {same}; {view} has the values of each label (members)"
        others = f"SELECT label FROM {view} WHERE column_name = {quote_text(self.name)}"
        within = f"members LIKE {quote_text(f'%{json.dumps(example, ensure_ascii=False)}%')}"
        return f"surely: {same}; possibly: {column} IN ({others} AND ({within} OR members IS NULL))"


def _by_bounds(bound: Bound, least: str | None, most: str | None) -> str:
    shown = [quote_plain(column.name) for column in bound.ends]
    if len(shown) == 1:
        between = f"{bound.ends[0].type}({least or 'NULL'}, {most or 'NULL'})"
        return f"surely within: {shown[0]} <@ {between}; possibly: {shown[0]} && {between}"
    low, high = shown
    above, below = f"{high} > {least}", f"{low} < {most}"
    if bound.nulls:
        above, below = f"({above} OR {high} IS NULL)", f"({below} OR {low} IS NULL)"
    sides = [(f"from {least}", f"{low} >= {least}", above)] if least else []
    sides += [(f"below {most}", f"{high} <= {most}", below)] if most else []
    words, surely, possibly = zip(*sides, strict=True)
    return f"surely {' to '.join(words)}: {' AND '.join(surely)}; possibly: {' AND '.join(possibly[::-1])}"


def _in_order(ends: Iterable[Any]) -> list[Any]:
    """The ends of labels of one column that are not open, each once: all dates, or all numbers."""
    return sorted({end for end in ends if end is not None})


def _written(end: Any) -> str:
    if isinstance(end, date):
        return f"DATE '{end}'"
    number = float(end)
    return str(int(number)) if number == math.floor(number) else repr(number)
