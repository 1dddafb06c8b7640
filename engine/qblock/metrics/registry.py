"""The metrics by which a node can be chosen and described: a metric is one entry of METRICS."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from qblock.blocks import Floats, Ints, Mask
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node, height
from qblock.metrics import formulas
from qblock.metrics.formulas import Answers, Query, query_answers, random_workload

Needs = Literal["sizes", "keys", "leaf", "workload"]
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
    weights: of the quasi-identifiers, in loss, precision and non-uniform entropy; None where they count alike.
    """

    node: Node
    hierarchies: Sequence[Hierarchy]
    rows: int
    suppressed: int
    sizes: Ints
    multiplicity: Ints
    keys: Ints | None = None
    block_rows: Ints | None = None
    leaves: Leaves | None = None
    queries: tuple[Query, ...] | None = None
    weights: tuple[Fraction, ...] | None = None

    @classmethod
    def of_blocks(
        cls,
        node: Node,
        hierarchies: Sequence[Hierarchy],
        keys: Ints,
        block_rows: Ints,
        rows: int,
        leaves: Leaves | None = None,
        queries: tuple[Query, ...] | None = None,
        weights: tuple[Fraction, ...] | None = None,
    ) -> Published:
        """From the published blocks; what they lack to N is suppressed."""
        sizes, multiplicity = np.unique(block_rows, return_counts=True)
        suppressed = rows - int(block_rows.sum())
        return cls(node, hierarchies, rows, suppressed, sizes, multiplicity, keys, block_rows, leaves, queries, weights)

    @cached_property
    def kept(self) -> Mask | None:
        """bool[L]: the leaf tuples that are published; None for all."""
        if not self.suppressed:
            return None
        return formulas.kept_leaves(_given(self.leaves).codes, _given(self.keys), self.node, self.hierarchies)

    @property
    def query_errors(self) -> Floats:
        """float64[queries]: the error of each query of the workload."""
        return self.query_answers.errors

    @cached_property
    def query_answers(self) -> Answers:
        """Of each query of the workload."""
        leaves, queries = _given(self.leaves), self.queries
        if queries is None:
            queries = random_workload(self.hierarchies, int(leaves.value.max(initial=-1)) + 1)
        return query_answers(
            queries, leaves.codes, leaves.value, leaves.count, self.node, self.hierarchies, kept=self.kept
        )


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One utility metric.

    meaning: in plain words, as the documentation has it. better: which direction is. least, most: what it is between,
    for any table. grows: it never improves under generalization as long as nothing is suppressed, so that some minimal
    node is a best node. needs: the least that it is computed from (see Published), of which "workload" is "leaf" with
    the queries. sensitive: whether sensitive values have a part in it.
    """

    name: str
    meaning: str
    better: Literal["smaller", "larger"]
    least: float = 0
    most: float = math.inf
    grows: bool
    needs: Needs
    sensitive: bool = False
    compute: Callable[[Published], float]

    @property
    def sign(self) -> int:
        """1 or -1: of values times this, smaller ones are better."""
        return 1 if self.better == "smaller" else -1

    def of(self, published: Published) -> float:
        """The metric's value. Raises ValueError when what it needs is not there."""
        return self.compute(published)


def _given(value: T | None) -> T:
    if value is None:
        raise ValueError("a metric was asked for without the counts that it needs")
    return value


def _loss(p: Published) -> float:
    return formulas.loss(_given(p.keys), _given(p.block_rows), p.node, p.hierarchies, p.suppressed, p.rows, p.weights)


def _entropy(p: Published) -> float:
    leaves = _given(p.leaves)
    return formulas.non_uniform_entropy(leaves.codes, leaves.count, p.node, p.hierarchies, p.kept, weights=p.weights)


def _kl(p: Published) -> float:
    leaves = _given(p.leaves)
    kept = slice(None) if p.kept is None else p.kept
    return formulas.kl_divergence(leaves.codes[kept], leaves.value[kept], leaves.count[kept], p.node, p.hierarchies)


METRICS: tuple[Metric, ...] = (
    Metric(
        name="height",
        meaning="the levels of the node, added up",
        better="smaller",
        grows=True,
        needs="sizes",
        compute=lambda p: height(p.node),
    ),
    Metric(
        name="average_block_size",
        meaning="published rows per published block",
        better="smaller",
        least=1,
        grows=True,
        needs="sizes",
        compute=lambda p: formulas.average_block_size(p.multiplicity, p.suppressed, p.rows),
    ),
    Metric(
        name="discernibility",
        meaning="each row counts the rows of its block, and a suppressed one all rows",
        better="smaller",
        grows=True,
        needs="sizes",
        compute=lambda p: formulas.discernibility(p.sizes, p.multiplicity, p.suppressed, p.rows),
    ),
    Metric(
        name="loss",
        meaning="the share of an attribute's values that a published label stands for, the attributes joined",
        better="smaller",
        most=1,
        grows=True,
        needs="keys",
        compute=_loss,
    ),
    Metric(
        name="precision",
        meaning="1 minus the mean share of its hierarchy that a cell was generalized by",
        better="larger",
        most=1,
        grows=True,
        needs="sizes",
        compute=lambda p: formulas.precision(p.node, p.hierarchies, p.suppressed, p.rows, p.weights),
    ),
    Metric(
        name="non_uniform_entropy",
        meaning="bits by which labels tell less than values, the more so where few rows have the value",
        better="smaller",
        grows=True,
        needs="leaf",
        compute=_entropy,
    ),
    Metric(
        name="kl_divergence",
        meaning="nats between the table and what is published of it, spread evenly over each block",
        better="smaller",
        grows=True,
        needs="leaf",
        sensitive=True,
        compute=_kl,
    ),
    Metric(
        name="query_error",
        meaning="the mean relative error of count queries that are answered from what is published",
        better="smaller",
        grows=False,
        needs="workload",
        sensitive=True,
        compute=lambda p: formulas.mean(p.query_errors),
    ),
)
"""All metrics, in the order in which answers give them."""
BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}


def markdown() -> str:
    """One row for each metric."""
    lines = ["| metric | what it says | from, to | better | looks at sensitive values |", "|---|---|---|---|---|"]
    for metric in METRICS:
        most = "infinity" if math.isinf(metric.most) else f"{metric.most:g}"
        looks = "yes" if metric.sensitive else "no"
        lines.append(f"| `{metric.name}` | {metric.meaning} | {metric.least:g}, {most} | {metric.better} | {looks} |")
    return "\n".join(lines) + "\n"
