"""Blocks by their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qblock.results.report import SizeShown


def by_size(sizes: Sequence[int], blocks: Sequence[int]) -> Iterator[SizeShown]:
    """Blocks by size, each class up to twice as large as the one before. blocks: how many there are of each size."""
    least, most = min(sizes), max(sizes)
    high = 1
    while high < least:
        high = 2 * high + 1
    low = least
    while low <= most:
        within = [(size, n) for size, n in zip(sizes, blocks, strict=True) if low <= size <= high]
        rows = sum(size * n for size, n in within)
        yield SizeShown(low=low, high=min(high, most), blocks=sum(n for _, n in within), rows=rows)
        low, high = high + 1, 2 * high + 1
