"""Groups whose sensitive values are worth less than their number says: one value is nearly everybody's, or who knows
what is hidden of a quasi-identifier knows that some values are not a person's (a diagnosis that one sex alone has).

A value is taken as excluded where SURE rows or more would have it, were the two columns independent, and no row of the
whole table has. l is then counted of the values that are left (models.md section 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from qblock.blocks import CELLS, Blocks, Floats, Ints, Mask, Reference
from qblock.checks.dependencies import SURE, alone
from qblock.frequency import positions
from qblock.frequency.arrays import counted
from qblock.models import Model, parameters_of
from qblock.models.left import Left
from qblock.models.left_bounds import bounds_of_l
from qblock.models.ratios import double
from qblock.search.assessment import Assessment
from qblock.search.task import Task

if TYPE_CHECKING:
    from qblock.search.boxes.recoded import Recoded

MOST_SHARE = 0.9
"""Of a group, held by one value, beyond which the number of its values says little."""


class PublishedGroups(Protocol):
    """The groups that readers see."""

    def blocks(self, sensitive: int) -> Blocks | None:
        """Those that are published, with the counts of a sensitive attribute; None where these are not known."""
        ...

    def leaves(self, sensitive: int, i: int) -> tuple[Ints, Ints, Ints]:
        """int64[L] each: group, leaf of the i-th quasi-identifier that it hides, and rows; a pair may come again."""
        ...

    def hidden(self) -> list[int]:
        """The places of the quasi-identifiers of which a group may hide something."""
        ...


@dataclass(frozen=True, eq=False)
class NodeGroups:
    """The blocks of a node that are published."""

    task: Task
    assessment: Assessment

    def blocks(self, sensitive: int) -> Blocks:
        (blocks,) = self.task.source.frequency_sets.blocks(self.assessment.node, (sensitive,))
        assert blocks.keys is not None
        return blocks.select(positions(self._keys, blocks.keys))

    def leaves(self, sensitive: int, i: int) -> tuple[Ints, Ints, Ints]:
        return self.task.source.frequency_sets.leaves_in(self.assessment.node, self._keys, i)

    def hidden(self) -> list[int]:
        return [i for i, level in enumerate(self.assessment.node) if level > 0]

    @cached_property
    def _keys(self) -> Ints:
        """Of the blocks that are published."""
        return self.assessment.counts.keys[self.assessment.kept]


@dataclass(frozen=True, eq=False)
class MapGroups:
    """The boxes of a recoding map that are published, with the attributes that a model looks at."""

    recoded: Recoded

    def blocks(self, sensitive: int) -> Blocks | None:
        from qblock.search.boxes.groups import blocks_of  # a map's alone

        recoded = self.recoded
        column = recoded.judge.columns.get(list(recoded.task.source.sensitives)[sensitive])
        if column is None:
            return None
        return blocks_of(recoded.specialized.groups.select(recoded.kept), column)

    def leaves(self, sensitive: int, i: int) -> tuple[Ints, Ints, Ints]:
        leaves = self.recoded.leaves(sensitive)
        kept = leaves.box >= 0
        return leaves.box[kept], leaves.codes[kept, i], leaves.count[kept]

    def hidden(self) -> list[int]:
        return self.recoded.hidden()


@dataclass(frozen=True)
class Excluded:
    """Of a sensitive attribute l is less than what is asked, for who knows the leaf of a quasi-identifier.

    required, left: l as the spec asks, and the least that it is then; rows: of people of whom it is too small.
    """

    sensitive: str
    of: str
    required: float
    left: float
    rows: int


def one_valued(groups: PublishedGroups, sensitive: int) -> float:
    """The greatest share of a group that has one value."""
    blocks = groups.blocks(sensitive)
    return 0.0 if blocks is None else float((blocks.largest / blocks.total).max(initial=0))


def excluded(task: Task, groups: PublishedGroups) -> Iterator[Excluded]:
    """The quasi-identifiers that exclude values, each with the model of which most rows are fewer than it asks."""
    source = task.source
    for sensitive, name in enumerate(source.sensitives):
        models = [
            bound[0]
            for requirement, bound in task.bound_models
            if requirement.sensitive == (name,) and any(b.parameter == "l" for b in requirement.model.about.bounds)
        ]
        for i in groups.hidden() if models else ():
            values = _excluding(task, sensitive, i)
            if values is None:
                continue
            known = Known(groups, sensitive, i, *values)
            failing = [fails for model, reference in models if (fails := known.failing(model, reference)) is not None]
            if failing:
                most = max(failing, key=lambda of: of[2])
                yield Excluded(name, source.quasi_identifiers[i], *most)


def _excluding(task: Task, sensitive: int, i: int) -> tuple[Ints, Mask] | None:
    """The leaves of a quasi-identifier that exclude values, and bool[leaves, values], which ones; None without any."""
    (blocks,) = task.source.frequency_sets.blocks(alone(task, i, 0), (sensitive,), keyed=True)
    assert blocks.keys is not None
    many = np.bincount(blocks.value, weights=blocks.count)
    sure = SURE * float(many.sum())
    place = np.flatnonzero(blocks.total * many.max() >= sure)
    leaves, excluded_values = [], []
    for part in np.array_split(place, max(1, len(place) * len(many) // CELLS)):
        some = blocks.select(part)
        present = np.zeros((len(part), len(many)), dtype=bool)
        present[some.owner, some.value] = True
        without = ~present & (np.outer(some.total, many) >= sure)
        there = np.flatnonzero(without.any(axis=1))
        leaves.append(blocks.keys[part[there], i])
        excluded_values.append(without[there])
    excluding = np.concatenate(leaves)
    return (excluding, np.concatenate(excluded_values)) if len(excluding) else None


class Known:
    """Groups as who knows the leaf of somebody sees them: without the values that it excludes. leaves, values: the
    leaves that exclude some, and bool[leaves, values]."""

    def __init__(self, groups: PublishedGroups, sensitive: int, i: int, leaves: Ints, values: Mask) -> None:
        blocks = groups.blocks(sensitive)
        assert blocks is not None  # a model looks at it
        patterns, pattern = np.unique(values, axis=0, return_inverse=True)
        group, leaf, rows = groups.leaves(sensitive, i)
        of_leaf = np.full(int(max(leaves.max(), leaf.max(initial=0))) + 1, -1, dtype=np.int64)
        of_leaf[leaves] = pattern.reshape(-1)
        told = of_leaf[leaf] >= 0
        cases = counted(group[told] * len(patterns) + of_leaf[leaf[told]], rows[told])
        case, self._rows = cases.keys, cases.rows
        self._left = Left(replace(blocks, keys=None), case // len(patterns), case % len(patterns), patterns)

    def failing(self, model: Model, reference: Reference) -> tuple[float, float, int] | None:
        """l as it is asked, the least that is left, and the rows of people of whom it is too small; None without."""
        rows, least = 0, math.inf
        for cases, left in self._left.runs():
            low, fails = _failing(left, model, reference)
            rows += int(self._rows[cases][fails].sum())
            for part in left.portions(np.flatnonzero(fails)):
                may = part[low[part] < least]  # the others are known to be no less than one that was found
                if len(may):
                    tightest = model.tightest(left.counted(may), reference)
                    least = min(least, *(float(v.value or 0) for v in tightest.values if v.parameter == "l"))
        return (float(parameters_of(model)["l"]), least, rows) if rows else None


def _failing(left: Left, model: Model, reference: Reference) -> tuple[Floats, Mask]:
    """What l is at least of each case, and which of them fail: by the bounds, and exactly where these do not tell."""
    bounds = bounds_of_l(model, left) if left.dense else None
    low, high = bounds or (np.zeros(len(left.block)), np.full(len(left.block), math.inf))
    required = double(parameters_of(model)["l"])
    fails: Mask = high < required
    for part in left.portions(np.flatnonzero(~fails & ~(low >= required))):
        fails[part] = ~model.passes(left.counted(part), reference)
    return low, fails
