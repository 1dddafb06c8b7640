"""Labels as bits of packed keys, of which a table may have some words only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qblock.blocks import Ints
from qblock.frequency.coding import Coding, Mask
from qblock.lattice import Node


class Keys:
    """used: the numbers of the words that the table has. Masks and bits are given by these words."""

    def __init__(self, coding: Coding, used: Sequence[int]) -> None:
        self.coding, self.used = coding, tuple(used)
        self._top = tuple(hierarchy.height for hierarchy in coding.hierarchies)
        self._masks: dict[tuple[int, int], Mask] = {}

    def mask(self, attribute: int, level: int) -> Mask:
        """The bits that tell an attribute's labels of a level apart."""
        if (attribute, level) not in self._masks:
            node = tuple(level if i == attribute else top for i, top in enumerate(self._top))
            self._masks[attribute, level] = self.narrow(self.coding.mask(node))
        return self._masks[attribute, level]

    def of_node(self, node: Node) -> Mask:
        """The bits that tell the blocks of a node apart."""
        return self.narrow(self.coding.mask(node))

    def of_values(self, sensitive: Sequence[int]) -> Mask:
        """The bits of sensitive attributes."""
        return self.narrow(self.coding.mask(self._top, sensitive))

    def narrow(self, mask: Mask) -> Mask:
        return tuple(mask[i] for i in self.used)

    def words(self, columns: Sequence[Ints]) -> list[Ints]:
        """All words of keys of which these are there."""
        nothing = np.zeros(len(columns[0]), dtype=np.int64)
        known = dict(zip(self.used, columns, strict=True))
        return [known.get(i, nothing) for i in range(self.coding.words)]

    def codes(self, attribute: int, level: Ints, columns: Sequence[Ints]) -> Ints:
        """int64[R]: the codes of an attribute's labels in keys; level: int64[R]."""
        words = self.words(columns)
        code = np.zeros(len(level), dtype=np.int64)
        for depth in np.unique(level).tolist():
            here = level == depth
            code[here] = self.coding.codes(attribute, depth, [word[here] for word in words])
        return code

    def bits(self, attribute: int, level: Ints, code: Ints) -> list[Ints]:
        """int64[R] by word: what labels put into a key."""
        words = self.coding.bits(attribute, level, code)
        return [words[i] for i in self.used]

    def bits_of_node(self, node: Node, keys: Ints) -> list[Ints]:
        """What the labels of blocks put into a key; keys: int64[B, Q], their codes."""
        words = [np.zeros(len(keys), dtype=np.int64) for _ in self.used]
        for attribute, level in enumerate(node):
            same = np.full(len(keys), level, dtype=np.int64)
            for word, bits in zip(words, self.bits(attribute, same, keys[:, attribute]), strict=True):
                word |= bits
        return words
