"""A running guess of where the border between failing and passing nodes lies, to ask the most telling node next."""

from __future__ import annotations

import numpy as np

from qblock.blocks import Floats
from qblock.lattice import Lattice, Node

PRIOR = 2.0
"""Weight of each level before anything is known: coarser nodes are likelier to pass."""
RIDGE = 0.05
STEPS = 4
CLIP = 30.0


class BoundaryEstimate:
    """A logistic model that adds up one weight per level of each attribute, refitted to the verdicts so far.

    It only orders the questions. Block counts fall by a factor per level, nearly independent of the other attributes,
    which is why a sum per level fits; where it does not, more nodes are asked, with the same answer.
    """

    def __init__(self, lattice: Lattice) -> None:
        self.lattice = lattice
        self.prior = np.append(np.full(sum(lattice.heights), PRIOR), 0.0)
        self.weights = self.prior.copy()
        self.rows: list[Floats] = []
        self.verdicts: list[bool] = []

    def learn(self, node: Node, verdict: bool) -> None:
        """Take a verdict into account."""
        self.rows.append(self._features(node))
        self.verdicts.append(verdict)

    def _fit(self) -> None:
        """A few Newton steps with a ridge towards the prior, from where the last ones ended."""
        features, verdicts = np.array(self.rows), np.array(self.verdicts, dtype=np.float64)
        for _ in range(STEPS):
            chance = _logistic(features @ self.weights)
            slope = features.T @ (chance - verdicts) + RIDGE * (self.weights - self.prior)
            curve = (features.T * (chance * (1 - chance))) @ features + RIDGE * np.eye(len(self.weights))
            self.weights = self.weights - np.linalg.solve(curve, slope)

    def chances(self) -> Floats:
        """float64 over the lattice: the guessed probability that each node passes."""
        if self.rows:
            self._fit()
        total = np.full(self.lattice.shape, self.weights[-1])
        start = 0
        for axis, height in enumerate(self.lattice.heights):
            steps = np.tri(height + 1, height, -1) - 0.5
            values = steps @ self.weights[start : start + height]
            total += values.reshape([-1 if i == axis else 1 for i in range(total.ndim)])
            start += height
        return _logistic(total)

    def _features(self, node: Node) -> Floats:
        steps = [np.arange(height) < level for level, height in zip(node, self.lattice.heights, strict=True)]
        return np.append(np.concatenate(steps) - 0.5, 1.0)


def _logistic(x: Floats) -> Floats:
    result: Floats = 1.0 / (1.0 + np.exp(-np.clip(x, -CLIP, CLIP)))
    return result
