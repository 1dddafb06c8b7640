"""Groups whose sensitive values are worth less than their number says: one value is nearly everybody's, or who knows
what is hidden of a quasi-identifier knows that some values are not a person's (a diagnosis that one sex alone has).

A value is taken as excluded where SURE rows or more would have it, were the two columns independent, and no row of the
whole table has. l is then counted of the values that are left (models.md section 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from qblock.blocks import CELLS, Blocks, Ints, Mask, Reference, number_keys
from qblock.checks.dependencies import SURE, alone
from qblock.frequency import positions
from qblock.models import Model, parameters_of
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
        """int64[L] each: group, leaf of the i-th quasi-identifier that it hides, and rows of each pair that occurs."""
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
        node, source = self.assessment.node, self.task.source
        (finer,) = source.frequency_sets.blocks(tuple(0 if j == i else level for j, level in enumerate(node)), ())
        assert finer.keys is not None
        keys, leaf = finer.keys.copy(), finer.keys[:, i]
        keys[:, i] = source.hierarchies[i].codes[node[i]][leaf]
        counts, kept = self.assessment.counts, self.assessment.kept
        group = np.where(kept, np.cumsum(kept) - 1, -1)[positions(keys, counts.keys)]
        shown = group >= 0
        return group[shown], leaf[shown], finer.rows[shown]

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
        pairs = np.stack((leaves.box[kept], leaves.codes[kept, i]), axis=1)
        number, first = number_keys(pairs)
        rows = np.bincount(number, weights=leaves.count[kept]).astype(np.int64)
        return pairs[first, 0], pairs[first, 1], rows

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
            known = _Known(groups, sensitive, i, *values)
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


class _Known:
    """Groups as who knows the leaf of somebody sees them: without the values that it excludes. leaves, values: the
    leaves that exclude some, and bool[leaves, values]."""

    def __init__(self, groups: PublishedGroups, sensitive: int, i: int, leaves: Ints, values: Mask) -> None:
        blocks = groups.blocks(sensitive)
        assert blocks is not None  # a model looks at it
        self._patterns, pattern = np.unique(values, axis=0, return_inverse=True)
        group, leaf, rows = groups.leaves(sensitive, i)
        of_leaf = np.full(int(max(leaves.max(), leaf.max(initial=0))) + 1, -1, dtype=np.int64)
        of_leaf[leaves] = pattern.reshape(-1)
        told = of_leaf[leaf] >= 0
        pairs = np.stack((group[told], of_leaf[leaf[told]]), axis=1)
        number, first = number_keys(pairs)
        self._blocks, self._pairs = blocks, pairs[first]
        self._rows = np.bincount(number, weights=rows[told]).astype(np.int64)

    def failing(self, model: Model, reference: Reference) -> tuple[float, float, int] | None:
        """l as it is asked, the least that is left, and the rows of people of whom it is too small; None without."""
        rows, least = 0, []
        most = int(self._blocks.support.max(initial=1))
        for part in np.array_split(np.arange(len(self._pairs)), 1 + len(self._pairs) * most // CELLS):
            left = self._left(part)
            bad = np.flatnonzero(~model.passes(left, reference))
            if len(bad):
                rows += int(self._rows[part[bad]].sum())
                tightest = model.tightest(left.select(bad), reference)
                least += [float(value.value or 0) for value in tightest.values if value.parameter == "l"]
        return (float(parameters_of(model)["l"]), min(least), rows) if rows else None

    def _left(self, part: Ints) -> Blocks:
        """The counts of the values that the pairs of a group and a pattern leave."""
        blocks = self._blocks.select(self._pairs[part, 0])
        stays = ~self._patterns[self._pairs[part, 1][blocks.owner], blocks.value]
        return Blocks.from_pairs(blocks.owner[stays], blocks.value[stays], blocks.count[stays])
