"""The splits of a map, as columns of numbers: a map of millions of rows has hundreds of thousands of them.

The children of a part have numbers one behind another: those of the labels that stand alone, then both sides of a cut,
or the rest. Labels that come later have children of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qblock.blocks import Ints
from qblock.recoding.column import Column
from qblock.recoding.label import Bounds, Sides
from qblock.recoding.ladder import Ladder

Kind = Literal["each", "cut", "rest"]
KINDS: tuple[Kind, ...] = ("each", "cut", "rest")
GROUPS = np.array([0, 2, 1], dtype=np.int64)
"""Of several labels, that a split of each kind makes."""
NONE = -1
PART, ATTRIBUTE, LEVEL, KIND, FIRST, ALONE, SIDES = range(7)
"""Columns of a split: the part, by what it is divided, its first child, how many labels stand alone, and the number of
the sides of a cut."""


@dataclass(frozen=True, eq=False)
class Split:
    """How a part is divided by the labels of one attribute at one level.

    kind: `each` label by itself; `cut`: neighbours on two sides; `rest`: some by themselves, the others together.
    children: parts by the code of the label that each has alone; merged: the part of the rest, or of both sides of the
    cut, of which bounds are. A label that is between none of them came later, and stands alone.
    """

    attribute: int
    level: int
    kind: Kind
    children: dict[int, int]
    merged: tuple[int, ...] = ()
    bounds: tuple[Bounds, ...] = ()


class Splits(Mapping[int, Split]):
    """By the parts that they divide. labels: of all parts, int32[P, Q], by their numbers."""

    def __init__(self, ladders: Sequence[Ladder], labels: Column) -> None:
        self._ladders, self._labels = ladders, labels
        self._columns, self._of = Column(7), Column()
        self._sides: list[Sides] = []
        self._between = Column(6)
        self._later: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[int]:
        return iter(np.sort(self._columns.all[:, PART]).tolist())

    def __contains__(self, part: object) -> bool:
        return isinstance(part, int | np.integer) and bool(self.there(np.array([part], dtype=np.int64))[0])

    def __getitem__(self, part: int) -> Split:
        if part not in self:
            raise KeyError(part)
        _, attribute, level, kind, first, alone, sides = self._columns.all[self._of.all[part]].tolist()
        codes = self._codes(attribute, np.arange(first, first + alone)).tolist()
        children = dict(zip(codes, range(first, first + alone), strict=True)) | self._later.get(part, {})
        merged = tuple(range(first + alone, first + alone + int(GROUPS[kind])))
        bounds = self._sides[sides].bounds if sides != NONE else ()
        return Split(attribute, level, KINDS[kind], children, merged, bounds)

    def there(self, parts: Ints) -> np.typing.NDArray[np.bool_]:
        """bool: which parts are divided."""
        self._reach(int(parts.max(initial=-1)) + 1)
        divided: np.typing.NDArray[np.bool_] = self._of.all[parts] != NONE
        return divided

    def ways(self, parts: Ints) -> tuple[Ints, Ints]:
        """The attribute and the level of the splits of parts, -1 for those that are not divided."""
        there = self.there(parts)
        columns = np.full((len(parts), 2), NONE, dtype=np.int64)
        columns[there] = self._columns.all[self._of.all[parts[there]]][:, [ATTRIBUTE, LEVEL]]
        return columns[:, 0], columns[:, 1]

    def add(self, attribute: int, columns: Sequence[Ints], sides: Sequence[Sides] = ()) -> None:
        """Divide parts by the labels of one attribute.

        Args:
            attribute: by whose labels.
            columns: of each split the part, the level, the kind, the first child, how many labels stand alone, and the
                number of its sides among `sides`, -1 for none.
            sides: of cuts.
        """
        part, level, kind, first, alone, side = columns
        self._reach(int(part.max(initial=-1)) + 1)
        self._of.all[part] = np.arange(len(self), len(self) + len(part))
        side = np.where(side < 0, NONE, side + len(self._sides))
        self._columns.extend(np.stack((part, np.full_like(part, attribute), level, kind, first, alone, side), axis=1))
        self._sides += sides
        self._between.extend([(*of.ranks[0], *of.ranks[1], *(bound.null for bound in of.bounds)) for of in sides])

    def add_child(self, part: int, code: int, child: int) -> None:
        """Let a label that came later stand alone."""
        self._later.setdefault(part, {})[code] = child

    def children(self, attribute: int, parts: Ints, codes: Ints) -> Ints:
        """int64: the child of each of some parts, that an attribute divides, that has the label of a code; -1 where
        the label came later, and nobody has been there."""
        of, number = self._of.all[parts], np.full(len(self), NONE, dtype=np.int64)
        number[of] = 0
        at = np.flatnonzero(number == 0)
        number[at] = np.arange(len(at))
        splits, which = self._columns.all[at], number[of]
        child = self._alone(attribute, splits, which, codes)
        left = np.flatnonzero(child < 0)
        kind = splits[which[left], KIND]
        merged = splits[which[left], FIRST] + splits[which[left], ALONE]
        side = np.where(kind == KINDS.index("rest"), 0, NONE)
        cut = kind == KINDS.index("cut")
        side[cut] = self._side(attribute, splits[which[left[cut]]], codes[left[cut]])
        child[left] = np.where(side < 0, NONE, merged + side)
        if self._later:
            for i in np.flatnonzero(child < 0).tolist():
                child[i] = self._later.get(int(parts[i]), {}).get(int(codes[i]), NONE)
        return child

    def _alone(self, attribute: int, splits: Ints, which: Ints, codes: Ints) -> Ints:
        """Among the children of labels that stand alone. which: int64, the place of each one's split."""
        size = self._ladders[attribute].size
        number = splits[:, ALONE]
        of = np.repeat(np.arange(len(splits)), number)
        children = np.arange(len(of)) + np.repeat(splits[:, FIRST] - np.cumsum(number) + number, number)
        key = of * size + self._codes(attribute, children)
        order = np.argsort(key)
        key, children = np.append(key[order], -1), np.append(children[order], NONE)
        wanted = which * size + codes
        place = np.searchsorted(key[:-1], wanted)
        child: Ints = np.where(key[place] == wanted, children[place], NONE)
        return child

    def _side(self, attribute: int, splits: Ints, codes: Ints) -> Ints:
        """On which side of a cut labels are, -1 for neither. splits: of each."""
        ladder, rank = self._ladders[attribute], np.zeros(len(codes), dtype=np.int64)
        null = np.zeros(len(codes), dtype=bool)
        for level in np.unique(splits[:, LEVEL]).tolist():
            here = splits[:, LEVEL] == level
            rank[here], null[here] = ladder.rank(level)[codes[here]], codes[here] == ladder.null_at(level)
        between = self._between.all[splits[:, SIDES]]
        on = [
            np.where(null, between[:, 4 + i], (between[:, 2 * i] <= rank) & (rank <= between[:, 2 * i + 1])) > 0
            for i in range(2)
        ]
        return np.where(on[0], 0, np.where(on[1], 1, NONE))

    def _codes(self, attribute: int, children: Ints) -> Ints:
        """The codes of labels that stand alone, by the parts that they are."""
        return self._ladders[attribute].fact("code", self._labels.all[children, attribute])

    def _reach(self, parts: int) -> None:
        if parts > len(self._of):
            self._of.extend(np.full(parts - len(self._of), NONE, dtype=np.int64))
