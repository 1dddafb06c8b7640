"""Fetched keys in the order of blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qblock.blocks import Ints
from qblock.frequency.coding import Mask


def order_of(words: Sequence[Ints]) -> Ints:
    """The ascending order of keys by word, the first one first."""
    return np.argsort(words[0]) if len(words) == 1 else np.lexsort(tuple(reversed(words)))


def by_block(words: Sequence[Ints], alone: Mask, value: Ints, n: Ints) -> tuple[Ints, Ints, Ints, list[Ints]]:
    """Pairs of a block and a value, sorted: the first pair of each block, values and counts, and the blocks' keys.

    words: ascending keys; alone: the mask of the blocks. Words are not in the order of blocks where the value is not in
    their lowest bits.
    """
    block = [word & bits for word, bits in zip(words, alone, strict=True)]
    if not _ascending(block):
        order = np.lexsort((value, *reversed(block)))
        block, value, n = [word[order] for word in block], value[order], n[order]
    new = np.ones(len(n), dtype=bool)
    if len(n):
        new[1:] = block[0][1:] != block[0][:-1]
        for word in block[1:]:
            new[1:] |= word[1:] != word[:-1]
    first = np.flatnonzero(new)
    return first, value, n, [word[first] for word in block]


def _ascending(words: Sequence[Ints]) -> bool:
    if len(words) > 1:
        return False
    return bool((words[0][1:] >= words[0][:-1]).all())
