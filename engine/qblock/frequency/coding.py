"""Packed keys: one row's codes of all attributes in a few whole numbers, of which a node is a mask.

Clearing the low bits of a path code generalizes it (hierarchy.paths), so that `key & mask` is the block of a row at any
node, and a mask says which sensitive attributes are told apart, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qblock.blocks import Ints
from qblock.hierarchy import Hierarchy
from qblock.hierarchy.paths import BITS, PathPart
from qblock.lattice import Node

Mask = tuple[int, ...]
"""The bits of each word that are kept."""


@dataclass(frozen=True)
class Place:
    """Where a number is within a key: shift bits up in a word."""

    word: int
    shift: int


def finer(fine: Mask, coarse: Mask) -> bool:
    """Whether what has `fine` tells apart all that `coarse` does."""
    return all(o & ~w == 0 for w, o in zip(fine, coarse, strict=True))


class Coding:
    """The layout of keys over these hierarchies and sensitive attributes.

    values: the number of values of each sensitive attribute.
    words: how many whole numbers a key has; quasi: the places of the parts of each quasi-identifier's path codes;
    sensitive: of each sensitive attribute's code; sizes: how many values each has.
    """

    def __init__(self, hierarchies: Sequence[Hierarchy], values: Sequence[int]) -> None:
        self.hierarchies = tuple(hierarchies)
        self.parts: tuple[tuple[PathPart, ...], ...] = tuple(h.paths for h in hierarchies)
        self.sizes = tuple(values)
        self._widths = [max(0, n - 1).bit_length() for n in values]
        used: list[int] = [0]

        def place(width: int) -> Place:
            word = next((i for i, bits in enumerate(used) if bits + width <= BITS), len(used))
            if word == len(used):
                used.append(0)
            used[word] += width
            return Place(word, used[word] - width)

        def place_quasi() -> tuple[tuple[Place, ...], ...]:
            return tuple(tuple(place(part.width) for part in parts) for parts in self.parts)

        if sum(self._widths) + sum(part.width for parts in self.parts for part in parts) <= BITS:
            # Lowest, so that sorted keys are in the order of blocks.
            self.sensitive = tuple(place(width) for width in self._widths)
            self.quasi = place_quasi()
        else:
            # In words of their own, which block sizes do not need.
            self.quasi = place_quasi()
            used = [BITS for _ in used]
            self.sensitive = tuple(place(width) for width in self._widths)
        self.words = len(used)

    def mask(self, node: Node, sensitive: Sequence[int] = ()) -> Mask:
        """The mask of a node's blocks, and of the values of the sensitive attributes that are named."""
        kept = [0] * self.words
        for level, parts, places in zip(node, self.parts, self.quasi, strict=True):
            for part, place in zip(parts, places, strict=True):
                kept[place.word] |= part.mask(level) << place.shift
        for i in sensitive:
            place = self.sensitive[i]
            kept[place.word] |= ((1 << self._widths[i]) - 1) << place.shift
        return tuple(kept)

    def coarse(self, node: Node, blocks: int) -> Mask | None:
        """The mask of a node that generalizes this one and has at least so many combinations of labels, of as few
        attributes and as coarse as possible; None where there is none."""
        labels = [self.labels[i][level] for i, level in enumerate(node)]
        levels, product = [h.height for h in self.hierarchies], 1
        for i in sorted(range(len(node)), key=lambda i: -labels[i]):
            if product >= blocks:
                break
            needed = -(-blocks // product)
            enough = [level for level in range(node[i], levels[i]) if self.labels[i][level] >= needed]
            levels[i] = max(enough, default=node[i])
            product *= self.labels[i][levels[i]]
        return self.mask(tuple(levels)) if product >= blocks else None

    @cached_property
    def labels(self) -> list[list[int]]:
        """By quasi-identifier and level: how many labels there are."""
        return [[len(labels.distinct) for labels in hierarchy.columns] for hierarchy in self.hierarchies]

    def equivalent_range(self, node: Node) -> tuple[Node, Node]:
        """The finest and the coarsest node with the same blocks, where levels merge nothing."""
        finest, coarsest = [], []
        for level, widths in zip(node, self._merging, strict=True):
            low = high = level
            while low and not widths[low - 1]:
                low -= 1
            while high < len(widths) and not widths[high]:
                high += 1
            finest.append(low)
            coarsest.append(high)
        return tuple(finest), tuple(coarsest)

    @cached_property
    def _merging(self) -> list[list[int]]:
        """By quasi-identifier and level below the top: the bits that the next level clears."""
        return [
            [bits for part in parts for bits in part.bits][: hierarchy.height]
            for hierarchy, parts in zip(self.hierarchies, self.parts, strict=True)
        ]

    def keys(self, node: Node, words: Sequence[Ints]) -> Ints:
        """int64[R, Q]: the codes of a node's labels (the smallest leaf that carries each) in keys int64[R] by word."""
        keys = np.zeros((len(words[0]), len(node)), dtype=np.int64)
        for i, level in enumerate(node):
            if level < self.hierarchies[i].height:
                keys[:, i] = self._codes(i, level, words)
        return keys

    def codes(self, attribute: int, level: int, words: Sequence[Ints]) -> Ints:
        """int64[R]: the codes of an attribute's labels in keys by word."""
        if level == self.hierarchies[attribute].height:
            return np.zeros(len(words[0]), dtype=np.int64)
        return self._codes(attribute, level, words)

    def bits(self, attribute: int, level: Ints, codes: Ints) -> list[Ints]:
        """By word, int64[R]: what labels, by level and code, put into a key; the inverse of `codes`."""
        words: list[Ints] = [np.zeros(len(codes), dtype=np.int64) for _ in range(self.words)]
        for depth in np.unique(level).tolist():
            here = np.flatnonzero(level == depth)
            for part, place in zip(self.parts[attribute], self.quasi[attribute], strict=True):
                # A label's code is a leaf that it has.
                words[place.word][here] |= (part.codes[codes[here]] & part.mask(depth)) << place.shift
        return words

    def values(self, sensitive: int, words: Sequence[Ints]) -> Ints:
        """int64[R]: the codes of a sensitive attribute."""
        place = self.sensitive[sensitive]
        codes: Ints = words[place.word] >> place.shift & (1 << self._widths[sensitive]) - 1
        return codes

    def _codes(self, attribute: int, level: int, words: Sequence[Ints]) -> Ints:
        parts, places = self.parts[attribute], self.quasi[attribute]
        codes = self.hierarchies[attribute].codes[level].astype(np.int64)
        if len(parts) == 1:
            order, leaves = self._ascending[attribute]
            prefix = words[places[0].word] >> places[0].shift & parts[0].mask(level)
            # A label's code is a prefix of its leaves' codes: the next leaf is one of them.
            return codes[order[np.searchsorted(leaves, prefix)]]
        known = np.stack([part.codes & part.mask(level) for part in parts], axis=1)
        prefixes = [words[place.word] >> place.shift & p.mask(level) for p, place in zip(parts, places, strict=True)]
        _, number = np.unique(np.concatenate((known, np.stack(prefixes, axis=1))), axis=0, return_inverse=True)
        number = number.reshape(-1)
        leaf = np.zeros(len(number), dtype=np.int64)
        leaf[number[: len(known)]] = np.arange(len(known))
        result: Ints = codes[leaf[number[len(known) :]]]
        return result

    @cached_property
    def _ascending(self) -> list[tuple[Ints, Ints]]:
        orders = [np.argsort(parts[0].codes, kind="stable") for parts in self.parts]
        return [(order, parts[0].codes[order]) for order, parts in zip(orders, self.parts, strict=True)]
