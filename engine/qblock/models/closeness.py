"""t-closeness."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Floats, Reference
from qblock.models.base import Bound, Exact, Model, Monotone, require
from qblock.models.chunks import by_parts


@dataclass(frozen=True, kw_only=True)
class TCloseness(Model):
    """The distribution of the sensitive value in each block is within t of the table's (Li, Li, Venkatasubramanian)."""

    name = "t_closeness"
    citation = "CL III"
    condition = "D(p_q, P) <= t"
    bounds = (Bound("t", "smaller"),)
    needs = frozenset({"distribution", "domain"})

    t: int | Fraction
    distance: str = "equal"
    bandwidth: int | Fraction | None = None

    def __post_init__(self) -> None:
        require(self.name, "distance", self.distance, self.distance in ("equal",), "equal")
        require(self.name, "t", self.t, 0 <= self.t <= 1, "0 <= t <= 1")

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

    def measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        def part(run: Blocks) -> Floats:
            gain = run.count / run.total[run.owner] - reference.shares[run.value]
            return np.asarray(run.sum(np.maximum(gain, 0.0)), dtype=np.float64)

        return by_parts(part, blocks)

    def exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        n, size = int(block.total[0]), int(reference.totals.sum())
        gains = (c * size - int(reference.totals[v]) * n for v, c in block.histogram(0).items())
        return Fraction(sum(gain for gain in gains if gain > 0), n * size)
