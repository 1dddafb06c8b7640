"""How large blocks are, and numbers for their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Ints


@dataclass(frozen=True, eq=False)
class Sizes:
    """The histogram of block sizes of a node: blocks[i] blocks have size[i] rows (or entities), ascending."""

    size: Ints
    blocks: Ints

    @property
    def number(self) -> int:
        return int(self.blocks.sum())

    def rows_below(self, least: int) -> int:
        """Rows in blocks of fewer than `least`."""
        below = self.size < least
        return int((self.size[below] * self.blocks[below]).sum())


def number(keys: Ints, leaves: Sequence[int]) -> tuple[Ints, Ints]:
    """Number distinct keys int64[R, Q] in ascending order: (int64[R] the numbers, int64[B, Q] the distinct keys)."""
    if np.prod([float(n) for n in leaves]) < 2**62:
        single = np.zeros(len(keys), dtype=np.int64)
        for i, n in enumerate(leaves):
            single = single * n + keys[:, i]
        _, first, index = np.unique(single, return_index=True, return_inverse=True)
    else:
        _, first, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return index.reshape(-1).astype(np.int64), keys[first]


def positions(keys: Ints, among: Ints, leaves: Sequence[int]) -> Ints:
    """int64[R]: where each of keys int64[R, Q] is in among int64[B, Q], which are distinct and have all of them."""
    numbers, distinct = number(np.concatenate((among, keys)), leaves)
    place = np.zeros(len(distinct), dtype=np.int64)
    place[numbers[: len(among)]] = np.arange(len(among), dtype=np.int64)
    positions_of_keys: Ints = place[numbers[len(among) :]]
    return positions_of_keys
