"""The full-domain generalization lattice: one level per quasi-identifier."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Node = tuple[int, ...]


def height(node: Node) -> int:
    """Sum of a node's levels (LD section 6)."""
    return sum(node)


def is_generalization(coarse: Node, fine: Node) -> bool:
    """Whether every level of `coarse` is at least that of `fine` (a node generalizes itself)."""
    return all(c >= f for c, f in zip(coarse, fine, strict=True))


def up(node: Node) -> tuple[slice, ...]:
    """The index of all generalizations of a node, itself included, in an array over the lattice."""
    return tuple(slice(level, None) for level in node)


def down(node: Node) -> tuple[slice, ...]:
    """The index of all specializations of a node, itself included."""
    return tuple(slice(None, level + 1) for level in node)


def minimal(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that generalize no other node of the set, sorted."""
    kept: list[Node] = []
    for node in sorted(set(nodes), key=lambda n: (height(n), n)):
        if not any(is_generalization(node, other) for other in kept):
            kept.append(node)
    return sorted(kept)


@dataclass(frozen=True)
class Lattice:
    """All nodes between `bottom` (every level 0) and `top` (every attribute at its height)."""

    heights: Node

    @property
    def bottom(self) -> Node:
        return (0,) * len(self.heights)

    @property
    def top(self) -> Node:
        return self.heights

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(h + 1 for h in self.heights)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __contains__(self, node: Node) -> bool:
        return len(node) == len(self.heights) and all(0 <= n <= h for n, h in zip(node, self.heights, strict=True))

    def nodes(self) -> Iterator[Node]:
        """Every node, finer ones first: by height, then by levels."""
        for total in range(sum(self.heights) + 1):
            yield from _of_height(self.heights, total)

    def parents(self, node: Node) -> list[Node]:
        """The direct generalizations of a node."""
        return [(*node[:i], n + 1, *node[i + 1 :]) for i, n in enumerate(node) if n < self.heights[i]]

    def children(self, node: Node) -> list[Node]:
        """The direct specializations of a node."""
        return [(*node[:i], n - 1, *node[i + 1 :]) for i, n in enumerate(node) if n > 0]


def _of_height(heights: Node, total: int) -> Iterator[Node]:
    """The nodes whose levels add up to a total, in order of their levels."""
    if not heights:
        yield ()
        return
    least = max(0, total - sum(heights[1:]))
    for level in range(least, min(heights[0], total) + 1):
        for rest in _of_height(heights[1:], total - level):
            yield (level, *rest)
