"""Quasi-identifiers of which the chosen node shows nothing, and what it would take to show one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from qblock.blocks import Mask
from qblock.hierarchy import TOP, Hierarchy
from qblock.lattice import Node
from qblock.search.recoding import Recoded
from qblock.search.run import SearchResult
from qblock.search.strategies.best_only import SLACK
from qblock.search.utility.measure import MARGINAL, Metrics


@dataclass(frozen=True)
class Hidden:
    """A quasi-identifier that is `*` in every row.

    level: the highest at which it would not be; shown_at: a node that satisfies the spec and shows it; None where there
    is none, or none is known. rows_to_suppress: at the chosen node with this attribute at `level`; None where these
    would be all rows.
    """

    attribute: str
    level: int
    shown_at: Node | None
    rows_to_suppress: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "attribute": self.attribute,
            "level": self.level,
            "shown_at": None if self.shown_at is None else list(self.shown_at),
            "rows_to_suppress": self.rows_to_suppress,
        }


def hidden(result: SearchResult) -> list[Hidden]:
    """The hidden quasi-identifiers of the chosen node, in their order. Counts one node for each."""
    if result.chosen is None:
        return []
    if result.recoded is not None:
        return _of_map(result, result.recoded)
    node, task = result.chosen.node, result.task
    attributes = []
    for i, hierarchy in enumerate(task.source.hierarchies):
        level = _shown_below(hierarchy, node[i])
        if level is not None:
            failing = task.counts((*node[:i], level, *node[i + 1 :])).failing_rows
            rows = failing if failing < task.source.rows else None
            attributes.append(Hidden(hierarchy.attribute, level, _shown_at(result, i, level), rows))
    return attributes


def _of_map(search: SearchResult, recoded: Recoded) -> list[Hidden]:
    """Those of which no published box shows anything: no split by one of them passes, whatever it would suppress."""
    attributes = []
    for i, hierarchy in enumerate(search.task.source.hierarchies):
        level = _shown_below(hierarchy, hierarchy.height)
        if level is not None and recoded.hides(i):
            attributes.append(Hidden(hierarchy.attribute, level, _shown_at(search, i, level), None))
    return attributes


def _shown_below(hierarchy: Hierarchy, level: int) -> int | None:
    """The highest level below this one at which rows differ from `*`; None where this one shows something, or none
    does."""
    if not _all_top(hierarchy, level):
        return None
    return next((lower for lower in range(level - 1, -1, -1) if not _all_top(hierarchy, lower)), None)


def _all_top(hierarchy: Hierarchy, level: int) -> bool:
    return set(hierarchy.columns[level].distinct.to_pylist()) <= {TOP, None}


def _shown_at(result: SearchResult, attribute: int, level: int) -> Node | None:
    """Of the nodes that are known to satisfy and show the attribute, the best by what is known without a count: the
    metric of the choice, or else the loss, as if no row were suppressed."""
    outcome, task = result.outcome, result.task
    if outcome is None or (result.choice == "sizes" and not task.sizes_only):
        return None  # none was searched for, or block sizes alone were looked at
    where = tuple(slice(None, level + 1) if i == attribute else slice(None) for i in range(len(task.lattice.heights)))
    by = task.spec.search.choose_by if task.spec.search.choose_by in MARGINAL else "loss"
    metrics, sign = Metrics(task), -1 if by == "precision" else 1
    nodes = outcome.each_satisfying() if outcome.satisfied is None else _least(outcome.satisfied, metrics, by, where)
    shown = (node for node in nodes if node[attribute] <= level)
    return min(shown, key=lambda n: (float(f"{sign * metrics.unsuppressed(n, by):.12g}"), sum(n), n), default=None)


def _least(satisfied: Mask, metrics: Metrics, by: str, where: tuple[slice, ...]) -> Iterator[Node]:
    """The satisfying nodes of a part of the lattice that are the best there, or so near that doubles may not tell."""
    known = metrics.bounds(by)
    assert known is not None
    mask, known = satisfied[where], known[where]
    least = float(known.min(where=mask, initial=np.inf))
    for place in np.flatnonzero(mask & (known <= least + SLACK * max(abs(least), 1.0))):
        yield tuple(int(n) for n in np.unravel_index(place, mask.shape))
