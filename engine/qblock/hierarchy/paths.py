"""Path codes: each leaf as the numbers of its ancestors within their parents, so that clearing bits generalizes it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Ints
from qblock.hierarchy.labels import Labels

BITS = 63
"""Of a whole number that every engine has."""


@dataclass(frozen=True, eq=False)
class PathPart:
    """Some levels of a hierarchy in one whole number. first: the lowest of them; bits: of each level from there on;
    codes: int64[leaves], a level above in higher bits."""

    first: int
    bits: tuple[int, ...]
    codes: Ints

    @property
    def width(self) -> int:
        return sum(self.bits)

    def mask(self, level: int) -> int:
        """The bits that a generalization to this level keeps."""
        cleared = sum(self.bits[: max(0, level - self.first)])
        return (1 << self.width) - (1 << cleared)


def path_parts(columns: Sequence[Labels]) -> tuple[PathPart, ...]:
    """The path codes of a hierarchy's leaves: one part, or more where they need more than 63 bits, low levels first.

    columns: of its levels. Two leaves agree in the bits that `mask` keeps of all parts if and only if they carry the
    same label at that level.
    """
    numbers = []
    for labels, above in itertools.zip_longest(columns, columns[1:]):
        first = labels.first.astype(np.int64)
        parents = above.of_leaf[labels.first].astype(np.int64) if above is not None else first * 0
        # Each label once, not each leaf.
        numbers.append(_within(parents, first)[labels.of_leaf])
    parts: list[PathPart] = []
    first, packed = 0, np.zeros(len(columns[0]), dtype=np.int64)
    bits: list[int] = []
    for level, number in enumerate(numbers):
        width = int(number.max(initial=0)).bit_length()
        if sum(bits) + width > BITS:
            parts.append(PathPart(first, tuple(bits), packed))
            first, bits, packed = level, [], packed * 0
        packed = packed | number << sum(bits)
        bits.append(width)
    return (*parts, PathPart(first, tuple(bits), packed))


def _within(parent: Ints, child: Ints) -> Ints:
    """The number of each child among the children of its parent, in the order of their codes."""
    order = np.lexsort((child, parent))
    p, c = parent[order], child[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = p[1:] != p[:-1]
    new = starts.copy()
    new[1:] |= c[1:] != c[:-1]
    running = np.cumsum(new)
    at_start = np.maximum.accumulate(np.where(starts, running, 0))
    result = np.empty(len(order), dtype=np.int64)
    result[order] = running - at_start
    return result
