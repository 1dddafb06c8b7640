"""Evaluators over verdicts that are known beforehand, which count what they are asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from qblock.lattice import Lattice, Node, up


@dataclass
class Known:
    """Verdicts as arrays over the lattice; each node may be asked for each verdict once."""

    lattice: Lattice
    sizes: np.ndarray
    full: np.ndarray
    monotone: bool = True
    sizes_monotone: bool = True
    sizes_only: bool = False
    max_concurrency: int = 1
    asked_sizes: list[Node] = field(default_factory=list)
    asked_full: list[Node] = field(default_factory=list)
    batches: list[list[Node]] = field(default_factory=list)

    def sizes_pass(self, node: Node) -> bool:
        assert node not in self.asked_sizes
        self.asked_sizes.append(node)
        return bool(self.sizes[node])

    def passes(self, node: Node) -> bool:
        assert node not in self.asked_full
        self.asked_full.append(node)
        return bool(self.full[node])

    def evaluate_many(self, nodes: Sequence[Node], ask: Callable[[Node], bool]) -> list[bool]:
        assert 1 < len(nodes) <= self.max_concurrency
        assert len(set(nodes)) == len(nodes)
        self.batches.append(list(nodes))
        return [ask(node) for node in nodes]

    def plan_hubs(self, wanted: np.ndarray, *, sizes: bool) -> np.ndarray:
        assert wanted.shape == self.lattice.shape
        assert (wanted >= 0).all()
        costs = np.full(self.lattice.shape, float(rows(self.lattice, self.lattice.bottom)))
        for node in self.asked_sizes + self.asked_full:
            costs[up(node)] = np.minimum(costs[up(node)], rows(self.lattice, node))
        return costs

    def equivalent_range(self, node: Node) -> tuple[Node, Node]:
        return node, node


def rows(lattice: Lattice, node: Node) -> int:
    """A made-up number of blocks that falls by half with every level."""
    return math.prod(2 ** (h - n) for h, n in zip(lattice.heights, node, strict=True))


def up_set(lattice: Lattice, nodes: Iterable[Node]) -> np.ndarray:
    """Everything that generalizes one of the nodes."""
    result = np.zeros(lattice.shape, dtype=bool)
    for node in nodes:
        result[up(node)] = True
    return result


lattices = st.lists(st.integers(0, 3), min_size=1, max_size=4).map(lambda h: Lattice(tuple(h)))


def nodes_in(lattice: Lattice, *, min_size: int = 0) -> st.SearchStrategy[list[Node]]:
    return st.lists(st.tuples(*(st.integers(0, h) for h in lattice.heights)), min_size=min_size, max_size=5)


@st.composite
def monotone_cases(draw: Callable, make: Callable[..., Known] = Known) -> Known:
    """A random up-set as the full condition, within a random larger one for the sizes."""
    lattice = draw(lattices)
    full = up_set(lattice, draw(nodes_in(lattice)))
    sizes = full | up_set(lattice, draw(nodes_in(lattice)))
    return make(lattice, sizes, full, max_concurrency=draw(st.integers(1, 4)))


@st.composite
def scattered_cases(draw: Callable, make: Callable[..., Known] = Known) -> Known:
    """Verdicts of any pattern within a monotone condition on sizes."""
    lattice = draw(lattices)
    sizes = up_set(lattice, draw(nodes_in(lattice)))
    bits = draw(st.lists(st.booleans(), min_size=len(lattice), max_size=len(lattice)))
    full = sizes & np.array(bits, dtype=bool).reshape(lattice.shape)
    return make(lattice, sizes, full, monotone=False, max_concurrency=draw(st.integers(1, 4)))
