"""k-anonymity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qblock.blocks import Blocks, Reference
from qblock.models.base import Bound, Model, Monotone, require, whole
from qblock.models.ratios import Integers


@dataclass(frozen=True, kw_only=True)
class KAnonymity(Model):
    """Every block has at least k rows (Sweeney 2002; LD section 2.2). Ignores the sensitive attribute."""

    name = "k_anonymity"
    citation = "Sweeney 2002; LD 2.2"
    condition = "n(q) >= k"
    bounds = (Bound("k", "larger"),)
    whole = frozenset({"k"})
    uses_sensitive = False

    k: int

    def __post_init__(self) -> None:
        require(self.name, "k", self.k, whole(self.k) and self.k >= 1, "an integer k >= 1")

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=True)

    @property
    def monotone_for_entities(self) -> Monotone:
        return self.monotone

    def least_block_size(self, reference: Reference) -> int:
        return int(self.k)

    def least_block_entities(self, reference: Reference) -> int:
        return int(self.k)

    def ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        return blocks.rows, np.ones_like(blocks.rows)
