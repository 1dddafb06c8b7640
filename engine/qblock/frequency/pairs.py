"""Fetched keys in the order of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from qblock.blocks import Ints
from qblock.frequency.coding import Mask
from qblock.hierarchy.paths import BITS


def order_of(words: Sequence[Ints], mask: Mask) -> Ints:
    """The ascending order of keys by word, the first one first. mask: the bits that they have."""
    if len(words) > 1:
        single = squeezed(words, mask)
        if single is None:
            return np.lexsort(tuple(reversed(words)))
        words = [single]
    return np.argsort(words[0])


def squeezed(words: Sequence[Ints], mask: Mask) -> Ints | None:
    """Keys of several words as one number each, in the same order; None where the mask has too many bits for that.

    To sort one number takes a fraction of what it takes to sort by two.
    """
    spans = [[(_lowest(bits), bits.bit_length())] if bits else [] for bits in mask]
    if sum(end - start for runs in spans for start, end in runs) > BITS:
        spans = [list(_runs(bits)) for bits in mask]
        if sum(end - start for runs in spans for start, end in runs) > BITS:
            return None
    single: Ints = np.zeros(len(words[0]), dtype=np.int64)
    for word, runs in zip(words, spans, strict=True):
        for start, end in runs:
            single = single << (end - start) | word >> start & (1 << end - start) - 1
    return single


def _runs(bits: int) -> Iterator[tuple[int, int]]:
    """Where bits without a gap start and end, the highest ones first."""
    while bits:
        end = bits.bit_length()
        start = (~bits & (1 << end) - 1).bit_length()
        yield start, end
        bits &= (1 << start) - 1


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def by_block(words: Sequence[Ints], alone: Mask, value: Ints, n: Ints) -> tuple[Ints, Ints, Ints, list[Ints]]:
    """Pairs of a block and a value, sorted: the first pair of each block, values and counts, and the blocks' keys.

    words: ascending keys; alone: the mask of the blocks. Words are not in the order of blocks where the value is not in
    their lowest bits.
    """
    block = [word & bits for word, bits in zip(words, alone, strict=True)]
    telling = [word for word, bits in zip(block, alone, strict=True) if bits] or block[:1]
    if not _ascending(telling):
        order = np.lexsort((value, *reversed(telling)))
        block, value, n = [word[order] for word in block], value[order], n[order]
        telling = [word[order] for word in telling]
    new = np.ones(len(n), dtype=bool)
    if len(n):
        new[1:] = telling[0][1:] != telling[0][:-1]
        for word in telling[1:]:
            new[1:] |= word[1:] != word[:-1]
    first = np.flatnonzero(new)
    return first, value, n, [word[first] for word in block]


def _ascending(words: Sequence[Ints]) -> bool:
    if len(words) > 1:
        return False
    return bool((words[0][1:] >= words[0][:-1]).all())
