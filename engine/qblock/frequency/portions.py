"""Which of a node's blocks are counted: all of them, some, or one of several parts of them. Blocks are always whole."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Portion:
    """sampled: some of the blocks, whichever are cheapest to count; else the part of this number, of so many."""

    sampled: bool = False
    number: int = 0
    of: int = 1

    @property
    def all(self) -> bool:
        """Whether it is all of them."""
        return not self.sampled and self.of == 1


ALL, SAMPLED = Portion(), Portion(sampled=True)
