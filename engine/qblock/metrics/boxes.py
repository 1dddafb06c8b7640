"""The metrics of a recoding map: as those of a node, where every box has labels of its own levels (models.md 9).

A label of several children of one parent counts as the parent's level. The height of a node has no counterpart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Floats, Ints
from qblock.hierarchy import Hierarchy
from qblock.metrics import formulas
from qblock.metrics.formulas import Query


@dataclass(frozen=True, eq=False)
class BoxLeaves:
    """The leaf frequency set of the whole source by box.

    codes: int64[L, Q]; value, count: int64[L], as of `Leaves`; box: int64[L], the published box, -1 where it is
    suppressed. label: int64[B, Q], which of its attribute's labels each box has; sets: of each attribute the leaves of
    each of these labels.
    """

    codes: Ints
    value: Ints
    count: Ints
    box: Ints
    label: Ints
    sets: tuple[tuple[Ints, ...], ...]


@dataclass(frozen=True, eq=False)
class Boxes:
    """What a map would publish.

    rows: N; block_rows: int64[B] of each published box; leaves: int64[B, Q], how many leaves its labels stand for;
    steps: float64[B, Q], the share of the hierarchy that they are generalized by; weights: of each attribute.
    of_leaves: for metrics that need every leaf; queries: the workload.
    """

    hierarchies: Sequence[Hierarchy]
    rows: int
    block_rows: Ints
    leaves: Ints
    steps: Floats
    weights: tuple[Fraction, ...]
    of_leaves: BoxLeaves | None = None
    queries: tuple[Query, ...] = ()

    @property
    def suppressed(self) -> int:
        return self.rows - int(self.block_rows.sum())

    def of(self, name: str) -> float:
        """A metric by its name. Raises KeyError for one that a map does not have."""
        return MEASURED[name](self)

    @property
    def given(self) -> BoxLeaves:
        if self.of_leaves is None:
            raise ValueError("a metric was asked for without the counts that it needs")
        return self.of_leaves


def _average(boxes: Boxes) -> float:
    return int(boxes.block_rows.sum()) / len(boxes.block_rows) if len(boxes.block_rows) else math.inf


def _discernibility(boxes: Boxes) -> int:
    sizes, multiplicity = np.unique(boxes.block_rows, return_counts=True)
    return formulas.discernibility(sizes, multiplicity, boxes.suppressed, boxes.rows)


def _loss(boxes: Boxes) -> float:
    if not boxes.rows or not boxes.hierarchies:
        return 0.0
    logs = []
    for i, hierarchy in enumerate(boxes.hierarchies):
        size = len(hierarchy.leaves)
        covered = int((boxes.leaves[:, i] * boxes.block_rows).sum()) + boxes.suppressed * size
        logs.append(math.log1p((covered - boxes.rows) / (boxes.rows * (size - 1))) if size > 1 else 0.0)
    return math.expm1(formulas.weighted_mean(logs, boxes.weights))


def _precision(boxes: Boxes) -> float:
    if not boxes.rows or not boxes.hierarchies:
        return 1.0
    shares = []
    for i, hierarchy in enumerate(boxes.hierarchies):
        lost = math.fsum((boxes.steps[:, i] * boxes.block_rows).tolist()) + boxes.suppressed
        shares.append(lost / boxes.rows if hierarchy.height else 0.0)
    return 1 - formulas.weighted_mean(shares, boxes.weights)


def _entropy(boxes: Boxes) -> float:
    given, lost = boxes.given, []
    for i, hierarchy in enumerate(boxes.hierarchies):
        size = len(hierarchy.leaves)
        rows = np.bincount(given.codes[:, i], weights=given.count, minlength=size)
        label_rows = np.array([rows[leaves].sum() for leaves in given.sets[i]])
        shown = given.box >= 0
        around = np.full(len(given.count), float(boxes.rows))
        around[shown] = label_rows[given.label[given.box[shown], i]]
        lost.append(formulas.total_of(given.count * np.log2(around / rows[given.codes[:, i]])))
    return formulas.weighted_sum(lost, boxes.weights)


def _kl(boxes: Boxes) -> float:
    given = boxes.given
    shown = given.box >= 0
    box, value, count = given.box[shown], given.value[shown], given.count[shown]
    total = int(count.sum())
    if not total:
        return math.inf
    _, pair = np.unique(formulas.number_rows(np.column_stack((box, value))), return_inverse=True)
    together = np.bincount(pair.reshape(-1), weights=count)[pair.reshape(-1)]
    volume = np.log(boxes.leaves.astype(np.float64)).sum(axis=1)[box]
    return formulas.total_of(count / total * (np.log(count / together) + volume))


def map_answers(boxes: Boxes) -> formulas.Answers:
    """Of each query of the workload, from what a map publishes."""
    given = boxes.given
    least = float(Fraction(int(given.count.sum()), 1000))
    shown = given.box >= 0
    numbers = formulas.number_rows(np.column_stack((given.box, given.value))[shown])
    _, first, pair = np.unique(numbers, return_index=True, return_inverse=True)
    rows = np.bincount(pair.reshape(-1), weights=given.count[shown], minlength=len(first)).astype(np.float64)
    box, of = given.box[shown][first], given.value[shown][first]

    def share(attribute: int, inside: Floats) -> Floats:
        shares = np.array([inside[leaves].mean() for leaves in given.sets[attribute]])
        of_pairs: Floats = shares[given.label[box, attribute]]
        return of_pairs

    leaves = given.codes, given.value, given.count
    return formulas.answers_of(boxes.queries, boxes.hierarchies, leaves, (rows, of), share, least)


def _query_error(boxes: Boxes) -> float:
    return formulas.mean(map_answers(boxes).errors)


MEASURED: dict[str, Callable[[Boxes], float]] = {
    "average_block_size": _average,
    "discernibility": _discernibility,
    "loss": _loss,
    "precision": _precision,
    "non_uniform_entropy": _entropy,
    "kl_divergence": _kl,
    "query_error": _query_error,
}
"""By the names that they have for nodes, in the same order."""
