"""Blocks without some of their values, as who knows that these are not a person's sees them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from qblock.blocks import CELLS, PAIRS, Blocks, Floats, Ints, Mask

WHOLE_TIMES = 64
"""So many products of a matrix take no longer than to count one value of one case."""
MOST = CELLS
"""Numbers in the matrix of what stays; of more, sums are not looked at."""


@dataclass(frozen=True, eq=False)
class Left:
    """Cases, each of a block and of the values that it loses; sums over what is left are products of matrices.

    block, pattern: int64[C] each, which block and which values; values: bool[patterns, V], what each pattern takes.
    """

    blocks: Blocks
    block: Ints
    pattern: Ints
    values: Mask

    @property
    def dense(self) -> bool:
        """Whether products of whole matrices are cheaper than to count what is left of each case."""
        stays = len(self.values) * len(self._taken)
        counts = int(self.blocks.support[self.block].sum())
        return stays <= MOST and len(self.blocks) * stays <= WHOLE_TIMES * counts

    def runs(self) -> Iterator[tuple[slice, Left]]:
        """The cases of some blocks after another, so many that sums take no more than a portion; these are in order."""
        if not self.dense:
            yield slice(0, len(self.block)), self
            return
        size = max(1, CELLS // max(len(self.values), len(self._taken)))
        for first in range(0, len(self.blocks), size):
            blocks = self.blocks.select(np.arange(first, min(first + size, len(self.blocks))))
            cases = slice(*np.searchsorted(self.block, (first, first + size)).tolist())
            yield cases, replace(self, blocks=blocks, block=self.block[cases] - first, pattern=self.pattern[cases])

    def portions(self, cases: Ints) -> list[Ints]:
        """Cases by number in portions that can be counted at once."""
        pairs = np.cumsum(self.blocks.support[self.block[cases]])
        return np.split(cases, np.flatnonzero(np.diff(pairs // PAIRS)) + 1) if len(cases) else []

    def counted(self, cases: Ints) -> Blocks:
        """The counts that are left in each of some cases; someone has a value that stays."""
        blocks = self.blocks.select(self.block[cases])
        stays = ~self.values[self.pattern[cases][blocks.owner], blocks.value]
        start = np.concatenate(([0], np.cumsum(blocks.sum(stays.astype(np.int64)))))
        value, count = blocks.value[stays], blocks.count[stays]
        return Blocks(start, value, count, np.add.reduceat(count, start[:-1]))

    def sum(self, pairs: Ints | Floats) -> Floats:
        """float64[C]: numbers of at least 0 of the pairs [P] of a block and a value, summed over what is left.

        Whole numbers exactly, others to about 1e-12: nothing is subtracted.
        """
        blocks, place = self.blocks, self._place[self.blocks.value]
        taken = place >= 0
        table = np.zeros((len(blocks), len(self._taken)))
        table[blocks.owner[taken], place[taken]] = pairs[taken]
        sums: Floats = table @ self._stays
        sums += blocks.sum(np.where(taken, 0.0, pairs))[:, None]
        return sums[self.block, self.pattern]

    @cached_property
    def total(self) -> Floats:
        """float64[C]: the sum of the counts that are left."""
        return self.sum(self.blocks.count)

    @cached_property
    def support(self) -> Floats:
        """float64[C]: how many values are left."""
        return self.sum(np.ones_like(self.blocks.count))

    @cached_property
    def _taken(self) -> Ints:
        """The values that some pattern takes."""
        return np.flatnonzero(self.values.any(axis=0))

    @cached_property
    def _place(self) -> Ints:
        """int64[V]: which of these a value is, or -1."""
        place = np.full(self.values.shape[1], -1, dtype=np.int64)
        place[self._taken] = np.arange(len(self._taken))
        return place

    @cached_property
    def _stays(self) -> Floats:
        return (~self.values[:, self._taken]).T.astype(np.float64)
