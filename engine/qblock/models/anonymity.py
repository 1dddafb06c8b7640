"""k-anonymity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qblock.blocks import Blocks, Reference
from qblock.models.about import About, Bound, Parameter, at_least
from qblock.models.base import Model, Monotone
from qblock.models.ratios import Integers


@dataclass(frozen=True, kw_only=True)
class KAnonymity(Model):
    """Every block has at least k rows (Sweeney 2002; LD section 2.2). Ignores the sensitive attribute."""

    name = "k_anonymity"
    about = About(
        citation="Sweeney 2002; LD 2.2",
        condition="n(q) >= k",
        meaning="everybody is hidden among at least {k} people who look the same",
        parameters=(Parameter("k", "whole", at_least(1), 4),),
        bounds=(Bound("k", "larger"),),
        uses_sensitive=False,
        multi_attribute=True,
    )

    k: int

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=True, entities=True)

    def _least_rows(self, reference: Reference) -> int:
        return int(self.k)

    def _least_entities(self) -> int:
        return int(self.k)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        return blocks.rows, np.ones_like(blocks.rows)
