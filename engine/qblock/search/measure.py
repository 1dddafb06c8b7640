"""The metrics of a task's nodes: fetches no more counts than a metric needs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from qblock.lattice import Node
from qblock.search.metrics import BY_NAME, Leaves, Published
from qblock.search.task import Assessment, Task

SHOWN = ("height", "average_block_size", "discernibility", "loss", "precision", "non_uniform_entropy", "kl_divergence")
LEAF_ROWS = 2_000_000
"""Above this many rows of the leaf frequency set, the metrics that need all of it are computed only when asked for."""


class Metrics:
    """Metrics of nodes of one task."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def of(self, assessment: Assessment, names: tuple[str, ...] = SHOWN) -> dict[str, Any]:
        """The metrics of an assessed node, by name."""
        task = self._task
        large = task.source.frequency_sets.leaf_rows > LEAF_ROWS
        wanted = [n for n in names if not (large and BY_NAME[n].needs == "leaf")]
        leaves = self.leaves if any(BY_NAME[n].needs == "leaf" for n in wanted) else None
        kept = assessment.kept
        published = Published.of_blocks(
            assessment.node,
            task.source.hierarchies,
            assessment.counts.keys[kept],
            assessment.counts.rows[kept],
            task.source.rows,
            leaves,
        )
        return {name: BY_NAME[name].of(published) for name in wanted}

    def rank(self, node: Node, name: str) -> Any:
        """One metric of one node, from its block sizes alone where that is enough."""
        task = self._task
        if BY_NAME[name].needs == "sizes" and not task.budget and not task.source.frequency_sets.entities:
            sizes = task.sizes(node)
            hierarchies, rows = task.source.hierarchies, task.source.rows
            return BY_NAME[name].of(Published(node, hierarchies, rows, 0, sizes.size, sizes.blocks))
        return self.of_named(node, name)

    def of_named(self, node: Node, name: str) -> Any:
        """One metric of one node, fetching whatever it needs."""
        task = self._task
        assessment = task.assess(node)
        leaves = self.leaves if BY_NAME[name].needs == "leaf" else None
        kept = assessment.kept
        counts = assessment.counts
        published = Published.of_blocks(
            node, task.source.hierarchies, counts.keys[kept], counts.rows[kept], task.source.rows, leaves
        )
        return BY_NAME[name].of(published)

    @cached_property
    def leaves(self) -> Leaves:
        """The leaf frequency set with the first sensitive attribute (none: the leaves alone)."""
        sets = self._task.source.frequency_sets
        sensitive = (0,) if self._task.source.sensitives else ()
        codes, value, count = sets.leaf_counts(sensitive)
        return Leaves(codes, value[:, 0] if sensitive else np.zeros(len(count), dtype=np.int64), count)
