"""The metrics by which a node can be chosen and described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from qblock.blocks import Floats, Ints, Mask
from qblock.lattice import Node, height
from qblock.search.utility import formulas
from qblock.search.utility.formulas import HierarchyLike
from qblock.search.utility.workload import Query, query_errors, random_workload

Needs = Literal["sizes", "keys", "leaf"]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaf frequency set: codes int64[L, Q], value and count int64[L], one row per distinct (leaf tuple, value)."""

    codes: Ints
    value: Ints
    count: Ints


@dataclass(frozen=True, eq=False)
class Published:
    """What a node would publish, as far as the metrics asked for need it.

    rows: N; suppressed: rows in blocks that are not published; sizes, multiplicity: the distinct sizes (in rows) of
    the published blocks and how many blocks have each; keys: int64[B, Q] and block_rows: int64[B], the published
    blocks, for metrics that need "keys", and for those that need "leaf" where rows are suppressed; leaves: the leaf
    frequency set of the whole source, for "leaf". queries: the workload; unless given, drawn from a fixed seed.
    """

    node: Node
    hierarchies: Sequence[HierarchyLike]
    rows: int
    suppressed: int
    sizes: Ints
    multiplicity: Ints
    keys: Ints | None = None
    block_rows: Ints | None = None
    leaves: Leaves | None = None
    queries: tuple[Query, ...] | None = None

    @classmethod
    def of_blocks(
        cls,
        node: Node,
        hierarchies: Sequence[HierarchyLike],
        keys: Ints,
        block_rows: Ints,
        rows: int,
        leaves: Leaves | None = None,
        queries: tuple[Query, ...] | None = None,
    ) -> Published:
        """From the published blocks; what they lack to N is suppressed."""
        sizes, multiplicity = np.unique(block_rows, return_counts=True)
        suppressed = rows - int(block_rows.sum())
        return cls(node, hierarchies, rows, suppressed, sizes, multiplicity, keys, block_rows, leaves, queries)

    @cached_property
    def kept(self) -> Mask | None:
        """bool[L]: the leaf tuples that are published; None for all."""
        if not self.suppressed:
            return None
        return formulas.kept_leaves(_given(self.leaves).codes, _given(self.keys), self.node, self.hierarchies)

    @cached_property
    def query_errors(self) -> Floats:
        """float64[queries]: the error of each query of the workload."""
        leaves, queries = _given(self.leaves), self.queries
        if queries is None:
            queries = random_workload(self.hierarchies, int(leaves.value.max(initial=-1)) + 1)
        return query_errors(
            queries, leaves.codes, leaves.value, leaves.count, self.node, self.hierarchies, kept=self.kept
        )


@dataclass(frozen=True)
class Metric:
    """One utility metric.

    better: which direction is. grows: it never improves under generalization as long as nothing is suppressed, so that
    some minimal node is a best node. needs: the least that it is computed from (see Published).
    """

    name: str
    better: Literal["smaller", "larger"]
    grows: bool
    needs: Needs
    compute: Callable[[Published], float]

    def of(self, published: Published) -> float:
        """The metric's value. Raises ValueError when what it needs is not there."""
        return self.compute(published)


def _given(value: T | None) -> T:
    if value is None:
        raise ValueError("a metric was asked for without the counts that it needs")
    return value


def _loss(p: Published) -> float:
    return formulas.loss(_given(p.keys), _given(p.block_rows), p.node, p.hierarchies, p.suppressed, p.rows)


def _entropy(p: Published) -> float:
    leaves = _given(p.leaves)
    return formulas.non_uniform_entropy(leaves.codes, leaves.count, p.node, p.hierarchies, p.kept)


def _kl(p: Published) -> float:
    leaves = _given(p.leaves)
    kept = slice(None) if p.kept is None else p.kept
    return formulas.kl_divergence(leaves.codes[kept], leaves.value[kept], leaves.count[kept], p.node, p.hierarchies)


METRICS: tuple[Metric, ...] = (
    Metric("height", "smaller", True, "sizes", lambda p: height(p.node)),
    Metric(
        "average_block_size",
        "smaller",
        True,
        "sizes",
        lambda p: formulas.average_block_size(p.multiplicity, p.suppressed, p.rows),
    ),
    Metric(
        "discernibility",
        "smaller",
        True,
        "sizes",
        lambda p: formulas.discernibility(p.sizes, p.multiplicity, p.suppressed, p.rows),
    ),
    Metric("kl_divergence", "smaller", True, "leaf", _kl),
    Metric("loss", "smaller", True, "keys", _loss),
    Metric(
        "precision",
        "larger",
        True,
        "sizes",
        lambda p: formulas.precision(p.node, p.hierarchies, p.suppressed, p.rows),
    ),
    Metric("non_uniform_entropy", "smaller", True, "leaf", _entropy),
    Metric("query_error", "smaller", False, "leaf", lambda p: formulas.mean(p.query_errors)),
)
BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
