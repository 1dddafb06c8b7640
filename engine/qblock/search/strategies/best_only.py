"""The best node alone: what cannot be better than a node that was measured is not asked."""

from __future__ import annotations

import math
from collections.abc import Callable

from qblock.blocks import Floats, Mask
from qblock.lattice import Node

SLACK = 1e-10
"""Relative: bounds and metrics are sums of doubles, and a node that may tie must be measured."""


class BestOnly:
    """The search for a best node, smaller values being better.

    bounds: float64 over the lattice, what no node's value is below; measure: the value of a node that satisfies.
    """

    def __init__(self, bounds: Floats, measure: Callable[[Node], float]) -> None:
        self.bounds = bounds
        self.best = math.inf
        self._measure = measure

    def passed(self, node: Node) -> None:
        """A node satisfies: measure it, unless it is no better than another."""
        if self.bounds[node] <= self._limit:
            self.best = min(self.best, self._measure(node))

    def may_win(self) -> Mask:
        """bool over the lattice: the nodes that may be as good as the best one so far."""
        result: Mask = self.bounds <= self._limit
        return result

    @property
    def _limit(self) -> float:
        return self.best + SLACK * abs(self.best) if math.isfinite(self.best) else math.inf
