"""Small tables with nested hierarchies, and their metrics straight from the definitions, row by row."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from qblock.lattice import Lattice, Node
from qblock.metrics import Leaves, Published
from qblock.metrics.formulas import random_workload


@dataclass(frozen=True)
class Hierarchy:
    """Codes only: what metrics need of a hierarchy."""

    codes: np.ndarray

    @property
    def height(self) -> int:
        return len(self.codes) - 1

    def leaves_under(self, level: int) -> np.ndarray:
        labels = self.codes[level]
        return np.bincount(labels, minlength=len(labels))[labels]

    @classmethod
    def of(cls, *levels: str) -> Hierarchy:
        """One string per level, one letter per leaf."""
        return cls(np.array([[level.index(letter) for letter in level] for level in levels], dtype=np.int64))

    @classmethod
    def read(cls, path: Path) -> tuple[Hierarchy, list[list[str]]]:
        """From a CSV file with a header; also the labels of each level, one per leaf."""
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        labels = [list(level) for level in zip(*rows, strict=True)]
        return cls(np.array([[level.index(label) for label in level] for level in labels])), labels


@dataclass(frozen=True)
class Table:
    """Rows of leaf codes and a sensitive code."""

    hierarchies: tuple[Hierarchy, ...]
    rows: tuple[tuple[int, ...], ...]

    @property
    def lattice(self) -> Lattice:
        return Lattice(tuple(h.height for h in self.hierarchies))

    @property
    def leaves(self) -> Leaves:
        counts = sorted(Counter(self.rows).items())
        codes = np.array([row for row, _ in counts], dtype=np.int64).reshape(len(counts), len(self.hierarchies) + 1)
        return Leaves(codes[:, :-1], codes[:, -1], np.array([n for _, n in counts], dtype=np.int64))

    def block(self, row: tuple[int, ...], node: Node) -> tuple[int, ...]:
        """The block that a row belongs to at a node."""
        return tuple(int(h.codes[n][c]) for h, n, c in zip(self.hierarchies, node, row, strict=False))

    def blocks(self, node: Node, least: int = 1) -> dict[tuple[int, ...], int]:
        """The sizes of the blocks of at least `least` rows."""
        sizes = Counter(self.block(row, node) for row in self.rows)
        return {key: n for key, n in sorted(sizes.items()) if n >= least}

    def published(self, node: Node, least: int = 1, **more: object) -> Published:
        """What a node publishes when smaller blocks are suppressed."""
        blocks = self.blocks(node, least)
        keys = np.array(list(blocks), dtype=np.int64).reshape(len(blocks), len(self.hierarchies))
        sizes = np.array(list(blocks.values()), dtype=np.int64)
        more.setdefault("queries", random_workload(self.hierarchies, 3, queries=10))
        return Published.of_blocks(node, self.hierarchies, keys, sizes, len(self.rows), self.leaves, **more)

    def under(self, attribute: int, node: Node, code: int) -> int:
        """How many leaves are under the label that a leaf has at a node."""
        labels = self.hierarchies[attribute].codes[node[attribute]].tolist()
        return labels.count(labels[code])

    def kl(self, node: Node, least: int = 1) -> float:
        """Sum of p ln(p / p*) over the published rows' tuples."""
        kept = [row for row in self.rows if self.block(row, node) in self.blocks(node, least)]
        together = Counter((self.block(row, node), row[-1]) for row in kept)
        total = 0.0
        for row, n in Counter(kept).items():
            volume = math.prod(self.under(i, node, code) for i, code in enumerate(row[:-1]))
            spread = together[self.block(row, node), row[-1]] / volume / len(kept)
            total += n / len(kept) * math.log(n / len(kept) / spread)
        return total

    def loss(self, node: Node, least: int = 1) -> float:
        """ARX's loss, cell by cell."""
        kept = self.blocks(node, least)
        product = 1.0
        for i, hierarchy in enumerate(self.hierarchies):
            size = hierarchy.codes.shape[1]
            shares = [self.under(i, node, r[i]) / size if self.block(r, node) in kept else 1 for r in self.rows]
            mean = sum(shares) / len(shares)
            product *= 1 + ((mean - 1 / size) / (1 - 1 / size) if size > 1 else 0)
        return product ** (1 / len(self.hierarchies)) - 1

    def entropy(self, node: Node, least: int = 1) -> float:
        """The non-uniform entropy, cell by cell."""
        kept = self.blocks(node, least)
        total = 0.0
        for i, hierarchy in enumerate(self.hierarchies):
            column = [row[i] for row in self.rows]
            labels = hierarchy.codes[node[i]].tolist()
            for row in self.rows:
                same = [c for c in column if labels[c] == labels[row[i]]] if self.block(row, node) in kept else column
                total -= math.log2(column.count(row[i]) / len(same))
        return total


@st.composite
def hierarchies(draw: Callable) -> Hierarchy:
    """A nested hierarchy of up to 5 leaves and 3 levels above them that ends in a single label."""
    leaves = draw(st.integers(1, 5))
    levels = [list(range(leaves))]
    for _ in range(draw(st.integers(0, 2))):
        groups = draw(st.lists(st.integers(0, 2), min_size=leaves, max_size=leaves))
        merged = [groups[code] for code in levels[-1]]
        levels.append([merged.index(group) for group in merged])
    if any(levels[-1]):
        levels.append([0] * leaves)
    return Hierarchy(np.array(levels, dtype=np.int64))


@st.composite
def tables(draw: Callable) -> Table:
    """Up to 12 rows over up to 3 quasi-identifiers and 3 sensitive values."""
    parts = tuple(draw(st.lists(hierarchies(), min_size=1, max_size=3)))
    cells = [st.integers(0, h.codes.shape[1] - 1) for h in parts]
    rows = draw(st.lists(st.tuples(*cells, st.integers(0, 2)), min_size=1, max_size=12))
    return Table(parts, tuple(rows))


@st.composite
def tables_at_a_node(draw: Callable) -> tuple[Table, Node]:
    """A table with a node of its lattice."""
    table = draw(tables())
    return table, draw(st.tuples(*(st.integers(0, h) for h in table.lattice.heights)))


def inpatients(shared: Path) -> tuple[Table, list[list[list[str]]]]:
    """The raw inpatient table (zip, age, nationality; condition), with the labels of each hierarchy's levels."""
    names = ("zip", "age", "nationality")
    read = [Hierarchy.read(shared / "golden" / f"inpatient_hierarchy_{name}.csv") for name in names]
    with (shared / "golden" / "inpatient_raw.csv").open(encoding="utf-8", newline="") as file:
        raw = list(csv.DictReader(file))
    conditions = sorted({row["condition"] for row in raw})
    rows = [
        (*(labels[0].index(row[name]) for name, (_, labels) in zip(names, read, strict=True)), row["condition"])
        for row in raw
    ]
    coded = tuple((*row[:3], conditions.index(row[3])) for row in rows)
    return Table(tuple(h for h, _ in read), coded), [*(labels for _, labels in read), [conditions]]
