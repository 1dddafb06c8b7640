"""Why versions together were refused: reports for the person who must act. They never pass what the gate refuses.

J2: the values that remain after intersecting the supports of all blocks that showed an episode; exact for an attacker
who knows the target only. J3: Fréchet bounds of the count of each value in each joint cell, iterated to the fixpoint;
values with an upper bound of 0 are excluded, and never wrongly so, but that a value is not excluded proves nothing.
Delta check: how many came, left or moved between two versions. Equal signatures (m-invariance): where the blocks of a
connected component of cells and blocks all hold the same values equally often, each stays possible to one who cannot
link rows.

All of it works on counts that are extracted once; a history with more than LIMIT joint cells is not explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qblock.blocks import Ints, Mask

LIMIT = 20_000
"""Joint cells up to which a history is explained: J3 holds two numbers for each of them and each value in memory."""

Label = tuple[str, int] | None
"""What an episode was shown as in a version: ("P", block), ("S", block) for a failed block, or None."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What an attacker with the register knows, as counts.

    vectors: for each joint cell its label in each version; rows: int64[C], its episodes; values: of the sensitive
    attribute; margins: for each version and published block the count of each value, int64[S].
    """

    vectors: tuple[tuple[Label, ...], ...]
    rows: Ints
    values: tuple[str, ...]
    margins: Mapping[tuple[int, int], Ints]

    @cached_property
    def shown(self) -> Mask:
        """bool[C]: cells that any version shows."""
        return np.array([any(label and label[0] == "P" for label in v) for v in self.vectors], dtype=bool)

    @cached_property
    def blocks(self) -> dict[tuple[int, int], Ints]:
        """The cells of each published block."""
        cells_of: dict[tuple[int, int], list[int]] = {}
        for cell, vector in enumerate(self.vectors):
            for version, label in enumerate(vector):
                if label and label[0] == "P":
                    cells_of.setdefault((version, label[1]), []).append(cell)
        return {key: np.array(cells, dtype=np.int64) for key, cells in cells_of.items()}


@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds of the count of each value in each cell, int64[C, S]."""

    lower: Ints
    upper: Ints


def supports(evidence: Evidence) -> Mask:
    """J2 as bool[C, S]: the values that every block which shows the cell holds; all of them where none does."""
    possible = np.ones((len(evidence.vectors), len(evidence.values)), dtype=bool)
    for key, cells in evidence.blocks.items():
        possible[cells] &= evidence.margins[key] > 0
    return possible


def bounds(evidence: Evidence) -> Bounds:
    """J3: iterated bounds over the margins (cell: its episodes) and (block, value: its count), to the fixpoint.

    For each margin with total T: U_i <= T - sum of the other L_j, and L_i >= T - sum of the other U_j. Raises
    ValueError for margins that no table has.
    """
    rows = evidence.rows[:, None]
    upper = np.repeat(rows, len(evidence.values), axis=1)
    lower = np.zeros_like(upper)
    while True:
        before = (lower.copy(), upper.copy())
        for key, cells in evidence.blocks.items():
            total = evidence.margins[key][None, :]
            _tighten(lower, upper, cells, total, axis=0)
        _tighten(lower, upper, slice(None), rows, axis=1)
        if (lower > upper).any():
            raise ValueError("no table has these counts")
        if np.array_equal(lower, before[0]) and np.array_equal(upper, before[1]):
            return Bounds(lower, upper)


def _tighten(lower: Ints, upper: Ints, part: Ints | slice, total: Ints, axis: int) -> None:
    low, high = lower[part], upper[part]
    new_high = np.minimum(high, total - (low.sum(axis=axis, keepdims=True) - low))
    new_low = np.maximum(low, total - (new_high.sum(axis=axis, keepdims=True) - new_high))
    upper[part], lower[part] = new_high, new_low


def fewest(possible: Mask, evidence: Evidence) -> int | None:
    """The fewest values that remain possible for anybody who was shown; None where nobody was."""
    left = possible.sum(axis=1)[evidence.shown]
    return int(left.min()) if len(left) else None


@dataclass(frozen=True)
class Change:
    """A block, as its label in the join of two nodes, in which too few people came, left or moved (in or out)."""

    what: str
    label: str
    people: int


def delta_check(pairs: Iterable[tuple[str | None, str | None, int]], k: int) -> list[Change]:
    """The changes between two versions that fewer than k people made.

    pairs: how many people (the third) were shown in which block of the earlier and which of the later version, both as
    labels in the join of the two nodes; None: not shown.
    """
    counts: dict[tuple[str, str], int] = {}
    for before, after, people in pairs:
        if before == after:
            continue
        if before is None:
            changes = [("came to", after)]
        elif after is None:
            changes = [("left", before)]
        else:
            changes = [("moved out of", before), ("moved into", after)]
        for what, label in changes:
            assert label is not None
            counts[what, label] = counts.get((what, label), 0) + people
    return [Change(what, label, n) for (what, label), n in sorted(counts.items()) if 0 < n < k]


@dataclass(frozen=True)
class Component:
    """Cells connected by blocks. values: how many values remain where all its blocks hold the same ones equally often,
    else None; rows: its episodes that were shown."""

    cells: int
    rows: int
    values: int | None


def equal_signatures(evidence: Evidence, failed: Mapping[tuple[int, int], Ints]) -> list[Component]:
    """The connected components of cells and blocks, first those that say nothing.

    failed: the counts of each value in suppressed blocks of k rows or more, whose failing tells something too.
    """
    owner = list(range(len(evidence.vectors)))

    def find(cell: int) -> int:
        while owner[cell] != cell:
            owner[cell] = owner[owner[cell]]
            cell = owner[cell]
        return cell

    first: dict[tuple[int, str, int], int] = {}
    for cell, vector in enumerate(evidence.vectors):
        for version, label in enumerate(vector):
            if label:
                other = first.setdefault((version, *label), cell)
                owner[find(cell)] = find(other)
    sets: dict[int, set[bytes | None]] = {}
    for (version, kind, block), cell in first.items():
        counts = evidence.margins[version, block] if kind == "P" else failed[version, block]
        held = np.flatnonzero(counts)
        equal = len(held) > 0 and bool((counts[held] == counts[held[0]]).all())
        sets.setdefault(find(cell), set()).add(held.tobytes() if equal else None)
    members: dict[int, list[int]] = {}
    for cell in range(len(owner)):
        members.setdefault(find(cell), []).append(cell)
    components = []
    for root, cells in members.items():
        held_sets = sets.get(root, set())
        alone = next(iter(held_sets)) if len(held_sets) == 1 else None
        rows = int(evidence.rows[cells][evidence.shown[cells]].sum())
        values = None if alone is None else len(np.frombuffer(alone, dtype=np.int64))
        components.append(Component(len(cells), rows, values))
    return sorted(components, key=lambda c: (c.values is not None, -c.rows))
