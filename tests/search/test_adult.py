"""The search and the metrics on the Adult data, against figures that other tools and programs found."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from qblock.lattice import Lattice, Node
from qblock.metrics import BY_NAME, Published
from qblock.metrics.formulas import generalize, number_rows
from qblock.search.strategies import STRATEGIES, search

from .tables import Hierarchy

NAMES = ("age", "gender", "race", "marital_status", "education", "native_country", "work_class")


class Adult:
    """k-anonymity over some of the attributes, by numpy alone."""

    sizes_monotone = monotone = sizes_only = True

    def __init__(self, shared: Path, names: Sequence[str], k: int) -> None:
        folder = shared / "data" / "adult"
        read = [Hierarchy.read(folder / "hierarchies" / f"{name}.csv") for name in names]
        self.hierarchies = [hierarchy for hierarchy, _ in read]
        self.lattice = Lattice(tuple(h.height for h in self.hierarchies))
        self.k = k
        code = [{leaf: i for i, leaf in enumerate(labels[0])} for _, labels in read]
        with (folder / "adult.csv").open(encoding="utf-8", newline="") as file:
            self.rows = np.array(
                [[c[row[n]] for c, n in zip(code, names, strict=True)] for row in csv.DictReader(file)]
            )

    @cached_property
    def leaves(self) -> tuple[np.ndarray, np.ndarray]:
        return np.unique(self.rows, axis=0, return_counts=True)

    def blocks(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Keys and sizes of a node's blocks."""
        codes, count = self.leaves
        labels = generalize(codes, node, self.hierarchies)
        _, first, block = np.unique(number_rows(labels), return_index=True, return_inverse=True)
        return labels[first], np.bincount(block, weights=count).astype(np.int64)

    def sizes_pass(self, node: Node) -> bool:
        return bool(self.blocks(node)[1].min() >= self.k)

    passes = sizes_pass

    max_concurrency = 1

    def evaluate_many(self, nodes: list[Node], ask: Callable[[Node], bool]) -> list[bool]:
        return [ask(node) for node in nodes]

    def plan_hubs(self, wanted: np.ndarray, *, sizes: bool) -> np.ndarray:
        return np.full(self.lattice.shape, float(len(self.rows)))

    def equivalent_range(self, node: Node) -> tuple[Node, Node]:
        return node, node


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_minimal_6_anonymous_nodes(shared: Path, strategy: str) -> None:
    outcome = search(Adult(shared, NAMES[:5], 6), strategy=strategy)
    assert len(outcome.lattice) == 240
    assert len(outcome.minimal) == 11
    if strategy == "chains":
        assert outcome.nodes_evaluated <= 60


def test_loss_and_suppressed_rows_as_arx_reports_them(shared: Path) -> None:
    adult, node = Adult(shared, NAMES, 5), (4, 0, 0, 0, 2, 1, 1)
    keys, sizes = adult.blocks(node)
    kept = sizes >= adult.k
    published = Published.of_blocks(node, adult.hierarchies, keys[kept], sizes[kept], len(adult.rows))
    assert published.suppressed == 836
    assert BY_NAME["loss"].of(published) == pytest.approx(0.1784675, abs=5e-8)
