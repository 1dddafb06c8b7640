"""The labels of one quasi-identifier as a map uses them: of the hierarchy, and groups of one parent's children.

A label stands for a set of leaves. One of the hierarchy is divided into its children; a group of children is divided
into smaller groups until each stands alone. A level that divides a label into itself is no step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from qblock import comparison
from qblock.blocks import Ints, Mask
from qblock.comparison import NUMBER, NUMBERS
from qblock.hierarchy import Hierarchy

MISSING = "(missing)"
"""How the leaf of NULL, and of values that a hierarchy does not cover, reads where it stands alone: `*` would read like
all values."""
INTERVAL = re.compile(r"(?P<open>\[?)(?P<low>-?[^\[\], ]+?)(?P<mark>-| to |, )(?P<high>-?[^\[\], ]+?)(?P<end>\)?)")
Form = Literal["plain", "range", "rest"]
WHOLE = re.compile(r"-?\d+", re.ASCII)


@dataclass(frozen=True, eq=False)
class Label:
    """A set of leaves that is published under one text: one label of the hierarchy, or several of one parent.

    level: of the hierarchy; codes: of its labels there, in their order; leaves: how many leaves they stand for;
    form: `plain` for one label; of several, `range` for neighbours and `rest` for others. within: the plain label whose
    children they are. stated: how it reads, where that was said before.
    """

    level: int
    codes: Ints
    leaves: int
    form: Form
    within: Label | None = None
    stated: str | None = None


@dataclass(frozen=True)
class Bounds:
    """Neighbours of an ordered hierarchy, from one label to another: their names, and the first leaf of the first and
    the last leaf of the last. null: whether the leaf of NULL is one of them."""

    names: tuple[str | None, str | None]
    leaves: tuple[str | None, str | None]
    null: bool = False


@dataclass(frozen=True, eq=False)
class Sides:
    """What a label is cut into. labels: of both sides; bounds: of both; ranks: the places of both in the order of their
    level, NULL left out."""

    labels: tuple[Label, ...]
    bounds: tuple[Bounds, ...]
    ranks: tuple[tuple[int, int], ...]


class Ladder:
    """kind: how the column compares; finest: the level of the finest labels; half_open: whether its ranges are written
    so. Labels are interned, so that one object stands for one set of labels."""

    def __init__(self, hierarchy: Hierarchy, kind: str | None, finest: int = 0, *, half_open: bool = False) -> None:
        self.hierarchy, self.finest, self._half_open = hierarchy, finest, half_open
        self._codes = hierarchy.codes.astype(np.int64)
        leaves = hierarchy.leaves
        self.null = leaves.index(None) if None in leaves else None
        numeric = kind in NUMBERS or kind == "date" or (kind or "").startswith("timestamp")
        keys = [(1, (0, 0)) if leaf is None else (0, comparison.key(leaf, kind)) for leaf in leaves] if numeric else []
        self.ordered = bool(keys) and all(key[1][0] != comparison.OTHER for key in keys)
        self._keys = keys
        self.leaf_order: Ints = np.zeros(len(leaves), dtype=np.int64)
        if self.ordered:
            self.leaf_order[sorted(range(len(leaves)), key=keys.__getitem__)] = np.arange(len(leaves))
            self.ordered = all(self._contiguous(level) for level in range(hierarchy.height))
        self._kind = kind
        self._known: dict[tuple[int, bytes, str | None], Label] = {}
        self._ranks: dict[int, Ints] = {}
        # Labels are few, and parts that have them many.
        self._members: dict[tuple[Label, int], Ints] = {}
        self._grains: dict[Label, int | None] = {}
        self._cuts: dict[tuple[Label, int, int], Sides] = {}
        self._dividing: dict[tuple[int, int], Mask] = {}
        self._sorted: dict[int, tuple[Ints, Ints]] = {}
        self._places: dict[int, dict[str | None, int]] = {}

    @cached_property
    def size(self) -> int:
        """How many leaves there are."""
        return len(self.hierarchy.leaves)

    def plain(self, level: int, code: int) -> Label:
        """One label of the hierarchy."""
        return self._interned(level, np.array([code], dtype=np.int64), "plain", None)

    def group(self, level: int, codes: Ints, within: Label, stated: str | None = None) -> Label:
        """Labels of one level that are published as one. within: what they are part of; stated: how they read, where
        that was said before: of labels that there are no more, one or none may be left."""
        whole = within if within.within is None else within.within
        form: Form = "range" if self.ordered else "rest"
        if len(codes) == 1:
            found = self.plain(level, int(codes[0]))
        elif len(codes) == len(self.members(whole, level)):
            found = whole
        else:
            codes = codes[np.argsort(self.rank(level)[codes])]
            found = self._interned(level, codes, form, whole)
        # The number of a rest is among those that are there: what was said of one stays as it was.
        if stated is None or (len(codes) and found.form != "rest" and self.text(found) == stated):
            return found
        return self._interned(level, codes, form, whole, stated)

    def _interned(self, level: int, codes: Ints, form: Form, within: Label | None, stated: str | None = None) -> Label:
        key = (level, codes.tobytes(), stated)
        if key not in self._known:
            leaves = int(self.under(level)[codes].sum())
            self._known[key] = Label(level, codes, leaves, form, within, stated)
        return self._known[key]

    def grain(self, label: Label) -> int | None:
        """The level by whose labels it is divided next; None where it cannot be."""
        if label not in self._grains:
            self._grains[label] = self._grain(label)
        return self._grains[label]

    def _grain(self, label: Label) -> int | None:
        if len(label.codes) > 1:
            return label.level
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
            found = np.unique(self._codes[level][leaves])
            self._members[label, level] = found[np.argsort(self.rank(level)[found])]
        return self._members[label, level]

    def cut(self, label: Label, level: int, at: int) -> Sides:
        """A label of an ordered hierarchy in two: what is before the label of this code, and it with what follows."""
        if (label, level, at) not in self._cuts:
            members = self.members(label, level)
            above = self.rank(level)[members] >= self.rank(level)[at]
            sides = members[~above], members[above]
            self._cuts[label, level, at] = self._sides(
                label, level, sides, [self._bounds(level, side) for side in sides]
            )
        return self._cuts[label, level, at]

    def cut_again(self, label: Label, level: int, bounds: Sequence[Bounds], stated: Sequence[str | None]) -> Sides:
        """A label in two as it was cut before. stated: how the sides read."""
        members = self.members(label, level)
        return self._sides(label, level, [members[self.between(level, members, of)] for of in bounds], bounds, stated)

    def _sides(
        self,
        label: Label,
        level: int,
        sides: Sequence[Ints],
        bounds: Sequence[Bounds],
        stated: Sequence[str | None] = (None, None),
    ) -> Sides:
        labels = [self.group(level, side, label, text) for side, text in zip(sides, stated, strict=True)]
        ranks = []
        for side in sides:
            there = [code for code in side.tolist() if self.name(level, code) is not None]
            found = self.rank(level)[there].tolist() if there else [0, -1]
            ranks.append((found[0], found[-1]))
        return Sides(tuple(labels), tuple(bounds), tuple(ranks))

    def rank(self, level: int) -> Ints:
        """int64[leaves]: the place of each label, by its code, in an order that does not depend on that of the rows."""
        if level not in self._ranks:
            codes = np.unique(self._codes[level])
            if self.ordered:
                first = np.full(self.size, self.size, dtype=np.int64)
                np.minimum.at(first, self._codes[level], self.leaf_order)
                order = codes[np.argsort(first[codes])]
            else:
                names = [self.name(level, code) for code in codes.tolist()]
                order = codes[sorted(range(len(codes)), key=lambda i: (names[i] is None, names[i] or ""))]
            rank = np.zeros(self.size, dtype=np.int64)
            rank[order] = np.arange(len(order))
            self._ranks[level] = rank
        return self._ranks[level]

    def name(self, level: int, code: int) -> str | None:
        """The text of a label by its code, None for the leaf of NULL where it is apart from the others."""
        if self.null is not None and code == self.null and self.under(level)[code] == 1:
            return None
        return self.hierarchy.labels[level][code]

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
        codes = [code for code in label.codes.tolist() if self.name(label.level, code) is not None]
        first, last = self._shown(label.level, codes[0]), self._shown(label.level, codes[-1])
        found = first
        if len(codes) > 1:
            found = neighbours(first, last, self._kind) if self._half_open else joined(first, last)
        return found if len(codes) == len(label.codes) else f"{found} or {MISSING}"

    def _bounds(self, level: int, codes: Ints) -> Bounds:
        """What neighbours are between; codes: in their order."""
        known = [code for code in codes.tolist() if self.name(level, code) is not None]
        null = len(known) < len(codes)
        if not known:
            return Bounds((None, None), (None, None), null)
        names = self.name(level, known[0]), self.name(level, known[-1])
        return Bounds(names, (self._ends(level, known[0])[0], self._ends(level, known[-1])[1]), null)

    def between(self, level: int, codes: Ints, bounds: Bounds) -> Mask:
        """bool: which labels of an ordered hierarchy are between bounds, also where those that were named are gone."""
        found = np.zeros(len(codes), dtype=bool)
        for i, code in enumerate(codes.tolist()):
            name = self.name(level, code)
            if name is None:
                found[i] = bounds.null
            elif name in bounds.names:
                found[i] = True
            elif bounds.leaves[0] is not None and bounds.leaves[1] is not None:
                first, last = (comparison.key(leaf or "", self._kind) for leaf in self._ends(level, code))
                low, high = (comparison.key(leaf, self._kind) for leaf in bounds.leaves if leaf is not None)
                found[i] = low <= first and last <= high
        return found

    def _ends(self, level: int, code: int) -> tuple[str | None, str | None]:
        """The first and the last leaf of a label in the order of values."""
        order, codes = self._by_code(level)
        leaves = order[np.searchsorted(codes, code) : np.searchsorted(codes, code, side="right")]
        ends = leaves[np.argmin(self.leaf_order[leaves])], leaves[np.argmax(self.leaf_order[leaves])]
        return self.hierarchy.leaves[int(ends[0])], self.hierarchy.leaves[int(ends[1])]

    def leaf_sets(self, label: Label) -> Mask:
        """bool[leaves]: which leaves it stands for."""
        found: Mask = np.isin(self._codes[label.level], label.codes)
        return found

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
            found = np.zeros(self.size, dtype=bool)
            found[self._codes[coarse][self._codes[fine] != self._codes[coarse]]] = True
            self._dividing[fine, coarse] = found
        return self._dividing[fine, coarse]

    def _by_code(self, level: int) -> tuple[Ints, Ints]:
        if level not in self._sorted:
            order = np.argsort(self._codes[level], kind="stable")
            self._sorted[level] = order, self._codes[level][order]
        return self._sorted[level]

    def _contiguous(self, level: int) -> bool:
        codes = self._codes[level][np.argsort(self.leaf_order)]
        return int(np.count_nonzero(codes[1:] != codes[:-1])) == len(np.unique(codes)) - 1


def joined(first: str, last: str) -> str:
    """Neighbouring labels as one: `15-19` and `25-29` are 15-29, [0, 5) and [10, 15) are [0, 15), others `a to b`."""
    one, other = INTERVAL.fullmatch(first), INTERVAL.fullmatch(last)
    if one and other and (one["open"], one["end"]) == (other["open"], other["end"]):
        low, high, mark = one["low"], other["high"], one["mark"]
        if one["open"]:
            return f"[{low}, {high})"
        ends = (low, one["high"], other["low"], high)
        # 2024-01 is a month.
        if all(map(WHOLE.fullmatch, ends)) and list(ends) == sorted(ends, key=int):
            return f"{low}-{high}" if mark == "-" and other["mark"] == "-" and low[0] != "-" else f"{low} to {high}"
    if first.startswith("<") and (high := _from_to(last)[1]) is not None:
        return f"<{high}"
    if last.startswith(">=") and (low := _from_to(first)[0]) is not None:
        return f">={low}"
    if WHOLE.fullmatch(first) and WHOLE.fullmatch(last) and first[0] != "-":
        return f"{first}-{last}"
    return f"{first} to {last}"


def _from_to(label: str) -> tuple[str | None, str | None]:
    """Where a range of numbers begins, and what comes after it: of 15-19, of 15 and of [1.5, 2); None of others."""
    found = INTERVAL.fullmatch(label)
    if found and found["open"] and found["end"]:
        return found["low"], found["high"]
    low, high = (found["low"], found["high"]) if found else (label, label)
    if WHOLE.fullmatch(low) and WHOLE.fullmatch(high) and int(low) <= int(high):
        return low, str(int(high) + 1)
    return None, None


def neighbours(first: str, last: str, kind: str | None) -> str:
    """The same where ranges of whole numbers are half open, and so is what values are joined to: 30 and 31 are
    [30, 32), of other numbers [30, 31], and [90, 95) and [95, 100] are [90, 100]."""
    if first[:1] == "[" and last[-1:] == "]":
        return f"{first.partition(', ')[0]}, {last.rpartition(', ')[2]}"
    if not NUMBER.fullmatch(first) or not NUMBER.fullmatch(last):
        return joined(first, last)
    return f"[{first}, {int(last) + 1})" if kind == "integer" and WHOLE.fullmatch(last) else f"[{first}, {last}]"


def ladders(
    hierarchies: Sequence[Hierarchy],
    kinds: Sequence[str | None],
    finest: Sequence[int] | None = None,
    half_open: Sequence[bool] | None = None,
) -> tuple[Ladder, ...]:
    """One for each quasi-identifier."""
    of = zip(hierarchies, kinds, finest or [0] * len(kinds), half_open or [False] * len(kinds), strict=True)
    return tuple(Ladder(hierarchy, kind, level, half_open=open_) for hierarchy, kind, level, open_ in of)
