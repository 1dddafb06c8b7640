"""The labels of one quasi-identifier as a map uses them: of the hierarchy, and groups of one parent's children.

A label stands for a set of leaves. One of the hierarchy is divided into its children; a group of children is divided
into smaller groups until each stands alone. A level that divides a label into itself is no step.

Neighbours of an ordered hierarchy are told by the cuts around them, not by the first and the last of them, which may be
the values of single people. A cut is where a label of the hierarchy ends, or a round one between values
(hierarchy/cuts.py).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cached_property

import numpy as np

from qblock import comparison
from qblock.blocks import Ints, Mask
from qblock.canonical import decimal_text
from qblock.comparison import NUMBERS, Key
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.bounds import Reader
from qblock.hierarchy.cuts import moment_text, next_year, round_moment, round_number, this_year
from qblock.hierarchy.written import MISSING, interval_of_moments, interval_of_numbers
from qblock.recoding.column import Column
from qblock.recoding.label import Bounds, Form, Label, Sides

FACTS = ("leaves", "grain", "first", "level", "code")
"""Of a label: how many leaves it stands for; the level by whose labels it is divided next, -1 for none; the place of
its first leaf, where the hierarchy is ordered; the level of the label of the hierarchy that it is, or is part of; and
the code of the first of its labels, -1 for none."""
NAMED = 3
"""The most labels of a rest that reads by their names."""
OR = " or "
KNOWN = "(known)"
"""How all values read where NULL stands alone beside them."""


class Ladder:
    """kind: how the column compares; finest: the level of the finest labels; half_open: whether its ranges are written
    so; reader: of the bounds of its labels; ends: the least and the greatest value where they are declared. Labels are
    interned, so that one object stands for one set of labels, and numbered. labels: by their numbers."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        kind: str | None,
        finest: int = 0,
        *,
        half_open: bool = False,
        reader: Reader | None = None,
        ends: tuple[str, str] | None = None,
    ) -> None:
        self.hierarchy, self.finest, self._half_open = hierarchy, finest, half_open
        self._reader = reader or Reader("numbers" if kind in NUMBERS else "dates", kind or "text")  # type: ignore[arg-type]
        self._ends = ends
        self._codes = hierarchy.codes.astype(np.int64)
        leaves = hierarchy.leaves
        self.null = leaves.index(None) if None in leaves else None
        self._numeric = kind in NUMBERS or kind == "date" or (kind or "").startswith("timestamp")
        self._kind = kind
        keys = (
            [(1, (0, 0)) if leaf is None else (0, self._leaf_place(leaf)) for leaf in leaves] if self._numeric else []
        )
        self.ordered = bool(keys) and all(key[1][0] != comparison.OTHER for key in keys)
        self.leaf_order: Ints = np.zeros(len(leaves), dtype=np.int64)
        if self.ordered:
            self.leaf_order[sorted(range(len(leaves)), key=keys.__getitem__)] = np.arange(len(leaves))
            self.ordered = all(self._contiguous(level) for level in range(hierarchy.height))
        self.labels: list[Label] = []
        self._facts = Column(len(FACTS))
        self._numbers: dict[int, Ints] = {}
        self._known: dict[tuple[int, bytes, str | None, Bounds | None], Label] = {}
        self._plain: dict[tuple[int, int], Label] = {}
        self._ranks: dict[int, Ints] = {}
        self._first: dict[int, Ints] = {}
        # Labels are few, and parts that have them many.
        self._members: dict[tuple[Label, int], Ints] = {}
        self._grains: dict[Label, int | None] = {}
        self._cuts: dict[tuple[Label, int, int, bool], Sides] = {}
        self._cuts_again: dict[tuple[object, ...], Sides] = {}
        self._places_of: dict[tuple[int, int], tuple[Key, Key]] = {}
        self._dividing: dict[tuple[int, int], Mask] = {}
        self._sorted: dict[int, tuple[Ints, Ints]] = {}
        self._places: dict[int, dict[str | None, int]] = {}

    def is_like(self, other: Ladder) -> bool:
        """Whether it has the same labels in the same order, and reads them alike."""
        read = [(x.finest, x._half_open, x._ends, x._kind, x.hierarchy.level_names) for x in (self, other)]
        levels, others = self.hierarchy.columns, other.hierarchy.columns
        return read[0] == read[1] and all(
            level.distinct.equals(another.distinct) and np.array_equal(level.of_leaf, another.of_leaf)
            for level, another in zip(levels, others, strict=True)
        )

    @cached_property
    def size(self) -> int:
        """How many leaves there are."""
        return len(self.hierarchy.leaves)

    def plain(self, level: int, code: int) -> Label:
        """One label of the hierarchy."""
        if (level, code) not in self._plain:
            self._plain[level, code] = self._interned(level, np.array([code], dtype=np.int64), "plain", None)
        return self._plain[level, code]

    def plain_numbers(self, level: int, codes: Ints) -> Ints:
        """int64: the numbers of the labels of a level, by their codes."""
        numbers = self._numbers.setdefault(level, np.full(self.size, -1, dtype=np.int64))
        for code in np.unique(codes[numbers[codes] < 0]).tolist():
            numbers[code] = self.plain(level, code).number
        of_codes: Ints = numbers[codes]
        return of_codes

    def fact(self, name: str, labels: Ints) -> Ints:
        """int64: one of FACTS of each label, by their numbers."""
        new = self.labels[len(self._facts) :]
        if new:
            self._facts.extend([self._facts_of(label) for label in new])
        of_labels: Ints = self._facts.all[labels, FACTS.index(name)]
        return of_labels

    def _facts_of(self, label: Label) -> tuple[int, ...]:
        grain, code = self.grain(label), int(label.codes[0]) if len(label.codes) else -1
        level = (label.within or label).level
        return label.leaves, -1 if grain is None else grain, self.first_leaf(label), level, code

    def group(
        self, level: int, codes: Ints, within: Label, stated: str | None = None, bounds: Bounds | None = None
    ) -> Label:
        """Labels of one level that are published as one. within: what they are part of; bounds: what neighbours are
        between; stated: how they read, where that was said before: of labels that there are no more, one or none may
        be left."""
        whole = within if within.within is None else within.within
        form: Form = "range" if self.ordered else "rest"
        cut = bounds is not None and not bounds.exact
        codes = codes[np.argsort(self.rank(level)[codes])]
        if len(codes) == 1 and not cut:
            label = self.plain(level, int(codes[0]))
        elif len(codes) == len(self.members(whole, level)) and not cut:
            label = whole
        else:
            label = self._interned(level, codes, form, whole, bounds=bounds)
        # The number of a rest is among those that are there: what was said of one stays as it was.
        if stated is None or (len(codes) and label.form != "rest" and self.text(label) == stated):
            return label
        return self._interned(level, codes, form, whole, stated, bounds)

    def _interned(
        self,
        level: int,
        codes: Ints,
        form: Form,
        within: Label | None,
        stated: str | None = None,
        bounds: Bounds | None = None,
    ) -> Label:
        key = (level, codes.tobytes(), stated, bounds)
        if key not in self._known:
            leaves = int(self.under(level)[codes].sum())
            self._known[key] = Label(level, codes, leaves, form, within, stated, bounds, len(self.labels))
            self.labels.append(self._known[key])
        return self._known[key]

    def grain(self, label: Label) -> int | None:
        """The level by whose labels it is divided next; None where it cannot be."""
        if label not in self._grains:
            self._grains[label] = self._grain(label)
        return self._grains[label]

    def _grain(self, label: Label) -> int | None:
        if not len(label.codes):
            return None
        if len(label.codes) > 1:
            # NULL is left with as few values as it can be.
            null = label.bounds is not None and label.bounds.null and not label.bounds.exact
            return self.finest if null else label.level
        code = int(label.codes[0])
        for level in range(label.level - 1, self.finest - 1, -1):
            if self._divides(level, label.level)[code]:
                return level
        return None

    def members(self, label: Label, level: int) -> Ints:
        """The codes of a level's labels that it stands for, in their order."""
        if level == label.level or not len(label.codes):
            return label.codes
        if (label, level) not in self._members:
            order, codes = self._by_code(label.level)
            ends = np.searchsorted(codes, label.codes), np.searchsorted(codes, label.codes, side="right")
            leaves = np.concatenate([order[start:end] for start, end in zip(*ends, strict=True)])
            members = np.unique(self._codes[level][leaves])
            self._members[label, level] = members[np.argsort(self.rank(level)[members])]
        return self._members[label, level]

    def cut(self, label: Label, level: int, at: int, *, null: bool = True) -> Sides:
        """A label of an ordered hierarchy in two: what is before the label of this code, and it with what follows.
        null: whether the leaf of NULL goes with these; else it is on neither side, and stands alone."""
        if (label, level, at, null) not in self._cuts:
            members = self.members(label, level)
            if not null:
                members = members[members != self.null_at(level)]
            above = self.rank(level)[members] >= self.rank(level)[at]
            sides = members[~above], members[above]
            bounds = self._cut_bounds(label, level, *sides)
            self._cuts[label, level, at, null] = self._sides(label, level, sides, bounds)
        return self._cuts[label, level, at, null]

    def _cut_bounds(self, label: Label, level: int, below: Ints, above: Ints) -> tuple[Bounds, Bounds]:
        """What both sides of a cut are between."""
        around = label.bounds or Bounds((None, None), (None, None), exact=False)
        first, last = self._bounds(level, below), self._bounds(level, above)
        if last.names == (None, None):
            # NULL alone: what is before it ends where the label does.
            return replace(first, low=around.low, high=around.high, exact=around.exact or _single(first)), last
        point = self._point(level, int(below[-1]), int(above[0]))
        exact = around.exact or point is None
        return (
            replace(first, low=around.low, high=point, exact=exact or _single(first)),
            replace(last, low=point, high=around.high, exact=exact or _single(last)),
        )

    def _point(self, level: int, below: int, above: int) -> str | None:
        """The cut between two neighbouring labels, by their codes; None where none is known."""
        if level or self.hierarchy.cells is not None:
            ends = [self._reader.bounds(self.name(level, code)) for code in (below, above)]
            (_, end), (start, _) = ends
            if end is None or start is None or start < end:  # type: ignore[operator]
                return None
            if not isinstance(end, float):
                return end.isoformat() if isinstance(end, date) else decimal_text(end)
            # Labels that are values.
        values = self._leaves(level, below)[1], self._leaves(level, above)[0]
        (low, a), (high, b) = (self._leaf_place(value or "") for value in values)
        if self._kind in NUMBERS:
            if low and high:
                return None
            # The next one of one digit more, where the other is infinite.
            most = 10 ** len(str(int(abs(b if low else a))))
            return decimal_text(Fraction(-most) if low else Fraction(most) if high else round_number(a, b))
        if low and high:
            return None
        return moment_text(this_year(b) if low else next_year(a) if high else round_moment(a, b))

    def _place(self, text: str) -> Key:
        """Where a value, or a cut, stands among the others: a number of any type by its decimals."""
        key = comparison.key(text, self._kind)
        return (0, Fraction(text)) if self._kind in NUMBERS and key[0] == 0 else key

    def _leaf_place(self, leaf: str) -> Key:
        """Where a leaf stands among the others: a cell where it begins."""
        if self.hierarchy.cells is None:
            return self._place(leaf)
        begin = self._reader.bounds(leaf)[0]
        return (
            (comparison.OTHER, leaf)
            if begin is None
            else self._place(begin.isoformat() if isinstance(begin, date) else decimal_text(Fraction(begin)))
        )

    def cut_again(self, label: Label, level: int, bounds: Sequence[Bounds], stated: Sequence[str | None]) -> Sides:
        """A label in two as it was cut before. stated: how the sides read."""
        key = label, level, *bounds, *stated
        if key not in self._cuts_again:
            members = self.members(label, level)
            sides = [members[self.between(level, members, of)] for of in bounds]
            self._cuts_again[key] = self._sides(label, level, sides, bounds, stated)
        return self._cuts_again[key]

    def _sides(
        self,
        label: Label,
        level: int,
        sides: Sequence[Ints],
        bounds: Sequence[Bounds],
        stated: Sequence[str | None] = (None, None),
    ) -> Sides:
        labels = [self.group(level, *of) for of in zip(sides, [label] * 2, stated, bounds, strict=True)]
        ranks = []
        for side in sides:
            there = [code for code in side.tolist() if self.name(level, code) is not None]
            places = self.rank(level)[there].tolist() if there else [0, -1]
            ranks.append((places[0], places[-1]))
        return Sides(tuple(labels), tuple(bounds), tuple(ranks))

    def rank(self, level: int) -> Ints:
        """int64[leaves]: the place of each label, by its code, in an order that does not depend on that of the rows."""
        if level not in self._ranks:
            codes = np.unique(self._codes[level])
            if self.ordered:
                order = codes[np.argsort(self.first_leaves(level)[codes])]
            else:
                names = [self.name(level, code) for code in codes.tolist()]
                order = codes[sorted(range(len(codes)), key=lambda i: (names[i] is None, names[i] or ""))]
            rank = np.zeros(self.size, dtype=np.int64)
            rank[order] = np.arange(len(order))
            self._ranks[level] = rank
        return self._ranks[level]

    def first_leaves(self, level: int) -> Ints:
        """int64[leaves]: the place of the first leaf of each label, by its code, where the hierarchy is ordered."""
        if level not in self._first:
            first = np.full(self.size, self.size, dtype=np.int64)
            np.minimum.at(first, self._codes[level], self.leaf_order)
            self._first[level] = first
        return self._first[level]

    def first_leaf(self, label: Label) -> int:
        """The place of the first leaf of a label; 0 where the hierarchy is not ordered."""
        return int(self.first_leaves(label.level)[label.codes[0]]) if self.ordered and len(label.codes) else 0

    def null_at(self, level: int) -> int:
        """The code of the leaf of NULL at a level where it is apart from the others, else -1."""
        return -1 if self.null is None or self.under(level)[self.null] != 1 else self.null

    def name(self, level: int, code: int) -> str | None:
        """The text of a label by its code, None for the leaf of NULL where it is apart from the others."""
        return None if code == self.null_at(level) else self.hierarchy.labels[level][code]

    def code(self, level: int, name: str | None) -> int | None:
        """The code of a label by its text, None where the hierarchy has none."""
        if level not in self._places:
            codes = np.unique(self._codes[level]).tolist()
            self._places[level] = {self.name(level, code): code for code in codes}
        return self._places[level].get(name)

    def text(self, label: Label, number: int = 1) -> str:
        """How a label is published. number: of a rest among those within one label."""
        if label.stated is not None:
            return label.stated
        if label.form == "plain":
            return self._shown(label.level, int(label.codes[0]))
        assert label.within is not None
        if label.form == "rest":
            return f"{self.text(label.within)} (other {number})"
        known = self._range_text(label, label.within)
        null = label.bounds.null if label.bounds else self.null_at(label.level) in label.codes
        return f"{known} or {MISSING}" if null else known

    def named(self, rest: Label, shown: Set[str]) -> str | None:
        """A rest of few labels by their names, `retired or student`; None where it has no such name.

        Args:
            rest: the labels that stand together.
            shown: the labels that readers see by themselves. No other is named: it may be a value of one person.
        """
        if self._numeric or len(rest.codes) > NAMED:
            return None
        names = [self._shown(rest.level, code) for code in rest.codes.tolist()]
        if not shown >= {*names}:
            return None
        text = OR.join(names)
        levels = range(self.hierarchy.height + 1)
        return None if any(self.code(level, text) is not None for level in levels) else text

    def _range_text(self, label: Label, within: Label) -> str:
        """How neighbours read: by the cuts around them, else from the first to the last."""
        bounds = label.bounds
        if bounds is None or bounds.exact:
            codes = [code for code in label.codes.tolist() if self.name(label.level, code) is not None]
            first, last = self._shown(label.level, codes[0]), self._shown(label.level, codes[-1])
            return first if len(codes) == 1 else f"{first} to {last}"
        low, high, closed = self._outer(within)
        low = low if bounds.low is None else bounds.low
        high, closed = (high, closed) if bounds.high is None else (bounds.high, False)
        if low is None and high is None:
            return KNOWN
        if self._kind in NUMBERS:
            text = interval_of_numbers(low, high, closed, whole=self._kind == "integer" and not self._half_open)
        else:
            text = interval_of_moments(low, high, closed, units=not self._reader.weeks)
        top = within.level == self.hierarchy.height
        # The ends of a label that cannot be read are not known.
        return text if top or self._outer(within)[:2] != (None, None) else f"{self.text(within)} ({text})"

    def _outer(self, label: Label) -> tuple[str | None, str | None, bool]:
        """Where a label of the hierarchy begins and ends, and whether its end belongs to it."""
        if label.level == self.hierarchy.height:
            return (None, None, False) if self._ends is None else (*self._ends, True)
        text = self.text(label)
        low, high = self._reader.bounds(text)
        if text[:1] == "[" and text[-1:] == "]" and isinstance(low, Fraction):
            return decimal_text(low), text[1:-1].partition(", ")[2], True
        if isinstance(low, float) or isinstance(high, float):
            return None, None, False
        first, last = (
            None if end is None else decimal_text(end) if isinstance(end, Fraction) else str(end) for end in (low, high)
        )
        return first, last, False

    def _bounds(self, level: int, codes: Ints) -> Bounds:
        """From which label to which neighbours are; codes: in their order."""
        known = [code for code in codes.tolist() if self.name(level, code) is not None]
        null = len(known) < len(codes)
        if not known:
            return Bounds((None, None), (None, None), null)
        names = self.name(level, known[0]), self.name(level, known[-1])
        return Bounds(names, (self._leaves(level, known[0])[0], self._leaves(level, known[-1])[1]), null)

    def between(self, level: int, codes: Ints, bounds: Bounds) -> Mask:
        """bool: which labels of an ordered hierarchy are between bounds, also where those that were named are gone."""
        inside = np.zeros(len(codes), dtype=bool)
        low, high = (bounds.leaves[0], bounds.leaves[1]) if bounds.exact else (bounds.low, bounds.high)
        place = self._leaf_place if bounds.exact else self._place
        least, most = (None if end is None else place(end) for end in (low, high))
        for i, code in enumerate(codes.tolist()):
            name = self.name(level, code)
            if name is None or name in bounds.names:
                inside[i] = bounds.null if name is None else True
            elif not bounds.exact or (least is not None and most is not None):
                first, last = self._ends_of(level, code)
                before = most is None or (last <= most if bounds.exact else last < most)
                inside[i] = before and (least is None or least <= first)
        return inside

    def _ends_of(self, level: int, code: int) -> tuple[Key, Key]:
        """Where the first and the last leaf of a label stand."""
        if (level, code) not in self._places_of:
            first, last = self._leaves(level, code)
            self._places_of[level, code] = self._leaf_place(first or ""), self._leaf_place(last or "")
        return self._places_of[level, code]

    def _leaves(self, level: int, code: int) -> tuple[str | None, str | None]:
        """The first and the last leaf of a label in the order of values."""
        order, codes = self._by_code(level)
        leaves = order[np.searchsorted(codes, code) : np.searchsorted(codes, code, side="right")]
        ends = leaves[np.argmin(self.leaf_order[leaves])], leaves[np.argmax(self.leaf_order[leaves])]
        return self.hierarchy.leaves[int(ends[0])], self.hierarchy.leaves[int(ends[1])]

    def leaf_sets(self, label: Label) -> Mask:
        """bool[leaves]: which leaves it stands for."""
        leaves: Mask = np.isin(self._codes[label.level], label.codes)
        return leaves

    def leaves_of(self, label: Label) -> frozenset[str | None]:
        """The leaves that it stands for, by their texts."""
        return frozenset(self.hierarchy.leaves[leaf] for leaf in np.flatnonzero(self.leaf_sets(label)).tolist())

    def _shown(self, level: int, code: int) -> str:
        name = self.name(level, code)
        return MISSING if name is None else name

    @cached_property
    def _counts(self) -> list[Ints]:
        return [np.bincount(codes, minlength=self.size).astype(np.int64) for codes in self._codes]

    def under(self, level: int) -> Ints:
        """int64[leaves]: how many leaves carry each label, by its code."""
        return self._counts[level]

    def _divides(self, fine: int, coarse: int) -> Mask:
        """bool[leaves]: whether labels of the coarse level, by code, have several of the fine one."""
        if (fine, coarse) not in self._dividing:
            divided = np.zeros(self.size, dtype=bool)
            divided[self._codes[coarse][self._codes[fine] != self._codes[coarse]]] = True
            self._dividing[fine, coarse] = divided
        return self._dividing[fine, coarse]

    def _by_code(self, level: int) -> tuple[Ints, Ints]:
        if level not in self._sorted:
            order = np.argsort(self._codes[level], kind="stable")
            self._sorted[level] = order, self._codes[level][order]
        return self._sorted[level]

    def _contiguous(self, level: int) -> bool:
        codes = self._codes[level][np.argsort(self.leaf_order)]
        return int(np.count_nonzero(codes[1:] != codes[:-1])) == len(np.unique(codes)) - 1


def _single(bounds: Bounds) -> bool:
    """Whether one label alone is between bounds."""
    return bounds.names[0] == bounds.names[1] and not bounds.null
