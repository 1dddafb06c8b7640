"""Contiguous runs of blocks, so that temporary arrays stay small whatever the size of a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from qblock.blocks import Blocks, Floats

PAIRS = 1 << 18
CELLS = 5 << 18
"""Numbers in one dense temporary array: 10 MB of doubles."""


def parts(blocks: Blocks, width: int = 0) -> Iterator[Blocks]:
    """Views of consecutive blocks with at most PAIRS pairs and, with a row width, at most CELLS dense cells.

    A single block may exceed both.
    """
    first, size = 0, len(blocks)
    while first < size:
        last = int(np.searchsorted(blocks.start, blocks.start[first] + PAIRS, side="right")) - 1
        if width:
            last = min(last, first + CELLS // width)
        last = min(max(last, first + 1), size)
        pairs = slice(int(blocks.start[first]), int(blocks.start[last]))
        run = slice(first, last)
        yield replace(
            blocks,
            start=blocks.start[first : last + 1] - blocks.start[first],
            value=blocks.value[pairs],
            count=blocks.count[pairs],
            rows=blocks.rows[run],
            keys=None if blocks.keys is None else blocks.keys[run],
            population=None if blocks.population is None else blocks.population[run],
            containing=tuple(replace(c, index=c.index[run]) for c in blocks.containing),
            guards=None if blocks.guards is None else blocks.guards.select(np.arange(first, last)),
        )
        first = last


def by_parts(function: Callable[[Blocks], Floats], blocks: Blocks, width: int = 0) -> Floats:
    """float64[B]: a function of blocks, applied part by part."""
    results = [function(part) for part in parts(blocks, width)]
    return np.concatenate(results) if results else np.zeros(0)


def grouped(blocks: Blocks, group: np.typing.NDArray[np.int64]) -> Blocks:
    """The same blocks counted by group instead of value: group is int64[V], the group of each value, -1 for none.

    A block may have any number of groups; a block without any grouped value keeps one pair of group 0, count 0.
    """
    size = int(group.max(initial=0)) + 1
    code = group[blocks.value]
    count = np.where(code < 0, 0, blocks.count)
    key = blocks.owner * size + np.maximum(code, 0)
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(key) else np.zeros(0, np.int64)
    key, count = key[first], np.add.reduceat(count[order], first) if len(first) else count
    start = np.searchsorted(key, np.arange(len(blocks) + 1, dtype=np.int64) * size).astype(np.int64)
    return replace(blocks, start=start, value=key % size, count=count, containing=())
