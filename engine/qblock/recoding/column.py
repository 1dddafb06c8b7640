"""Numbers that grow at their end, as those of the parts of a map do."""

from __future__ import annotations

from typing import Any

import numpy as np

from qblock.blocks import Ints

LEAST = 16
"""Of what is kept room for."""


class Column:
    """One number of each thing, or rows of `width` numbers."""

    def __init__(self, width: int | None = None, dtype: Any = np.int64) -> None:
        self._kept = np.zeros(LEAST if width is None else (LEAST, width), dtype=dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def all(self) -> Ints:
        """All of them; what is written to it is kept until more come."""
        return self._kept[: self._length]

    def extend(self, more: Any) -> None:
        """Add numbers, or rows, at the end."""
        if not len(more):
            return
        length = self._length + len(more)
        if length > len(self._kept):
            kept = np.zeros((max(length, len(self._kept) * 3 // 2), *self._kept.shape[1:]), dtype=self._kept.dtype)
            kept[: self._length] = self.all
            self._kept = kept
        self._kept[self._length : length] = more
        self._length = length
