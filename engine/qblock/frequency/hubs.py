"""Which frequency sets are worth storing: those that many nodes above them will be counted from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from qblock.blocks import Floats
from qblock.frequency.coding import Coding
from qblock.lattice import Node, down, up

LEAST_ROWS = 100_000
"""A table that is counted at once needs no hubs."""
STATEMENT = 15_000
"""A statement costs as much as reading so many rows, however few it reads."""
BUILDING = 1.3
STORING = 1.5
"""Storing a set costs so much of reading each row of its source once, and of each of its own."""
FIRST, AGAIN = 5, 2
"""Hubs are thought of when the table was read so often, for the first time and then again."""
CANDIDATES = 16
AT_ONCE = 3
RIDGE = 0.3


def worth_hubs(rows: int) -> bool:
    """Whether a table of so many rows is large enough for hubs."""
    return rows >= LEAST_ROWS


class ExpectedRows:
    """How many rows the frequency set of each node has, guessed from those that are known.

    As if the labels of the attributes occurred independently: the logarithm of the combinations that there may be is a
    sum of one number for each level, and N rows fall on them evenly. Where that is wrong, other hubs are stored, and
    the answers are the same.
    """

    def __init__(self, labels: Sequence[Sequence[int]], rows: int, values: float) -> None:
        self.rows = rows
        self._heights = [len(counts) - 1 for counts in labels]
        steps = [np.log(counts[level + 1] / counts[level]) for counts in labels for level in range(len(counts) - 1)]
        self._prior = np.append(steps, sum(np.log(counts[0]) for counts in labels) + np.log(values))
        self._nodes: list[Floats] = []
        self._observed: list[float] = []

    def learn(self, node: Node, rows: int) -> None:
        """Take a node's rows into account."""
        steps = [np.arange(height) < level for level, height in zip(node, self._heights, strict=True)]
        self._nodes.append(np.append(np.concatenate(steps).astype(np.float64), 1.0))
        full = min(rows / self.rows, 0.995)
        self._observed.append(np.log(max(-self.rows * np.log1p(-full), 1.0)))

    def everywhere(self, shape: tuple[int, ...]) -> Floats:
        """float64 over a lattice of this shape, with the same bottom."""
        weights = self._prior
        if self._nodes:
            features = np.array(self._nodes)
            rest = np.array(self._observed) - features @ weights
            curve = features.T @ features + RIDGE * np.eye(len(weights))
            weights = weights + np.linalg.solve(curve, features.T @ rest)
        total = np.full(shape, weights[-1])
        start = 0
        for axis, height in enumerate(self._heights):
            values = np.append(0.0, np.cumsum(weights[start : start + height]))[: shape[axis]]
            total += values.reshape([-1 if i == axis else 1 for i in range(total.ndim)])
            start += height
        rows: Floats = -self.rows * np.expm1(-np.exp(np.minimum(total, 50.0)) / self.rows)
        return rows


class Hubs:
    """The plan of one kind of question: about block sizes, or with some sensitive attributes.

    rows: of the coded table; rows_read: of all tables so far; shape: of the nodes that are searched, a lattice with the
    same bottom; most, least: float64 over them, bounds of the rows of each frequency set; cost: rows that its counts
    are read from.
    """

    def __init__(
        self, coding: Coding, sensitive: tuple[int, ...], rows: int, rows_read: int, shape: tuple[int, ...]
    ) -> None:
        values = float(np.prod([coding.sizes[i] for i in sensitive])) if sensitive else 1.0
        self._rows = rows
        self._expected = ExpectedRows(coding.labels, rows, values)
        self.most: Floats = np.full(shape, float(rows))
        self.least: Floats = np.ones(shape)
        self.cost: Floats = np.full(shape, float(rows))
        self._next = rows_read + FIRST * rows

    def learn(self, node: Node, rows: int) -> None:
        """Take into account how many rows a node's frequency set has."""
        # Of a node beyond those that are searched, only what it says of these.
        above, below = up(node), down(node)
        np.minimum(self.most[above], rows, out=self.most[above])
        np.maximum(self.least[below], rows, out=self.least[below])
        self._expected.learn(node, rows)

    def look(self, wanted: Floats, rows_read: int, store: Callable[[Node], int]) -> Floats:
        """Store what pays, if enough rows were read since the last look; `cost`.

        wanted: float64 over the lattice, how often each node may be asked; store: stores a node's frequency set and
        returns its rows.
        """
        if rows_read >= self._next:
            for _ in range(AT_ONCE):
                best = self._best(wanted)
                if best is None:
                    break
                rows = store(best)
                self.learn(best, rows)
                self.cost[up(best)] = np.minimum(self.cost[up(best)], rows)
            self._next = rows_read + AGAIN * self._rows
        return self.cost

    def _best(self, wanted: Floats) -> Node | None:
        """The hub with the largest gain, in rows; None where none has any."""
        guess = np.clip(self._expected.everywhere(wanted.shape), self.least, self.most)
        building = BUILDING * self.cost + STORING * guess + STATEMENT
        rough = _above(wanted * self.cost) - _above(wanted) * guess - building
        best, most = None, 0.0
        for flat in np.argsort(-rough, axis=None)[:CANDIDATES].tolist():
            node = tuple(int(i) for i in np.unravel_index(flat, rough.shape))
            saved = wanted[up(node)] * np.maximum(self.cost[up(node)] - guess[node], 0)
            gain = float(saved.sum()) - float(building[node])
            if gain > most:
                best, most = node, gain
        return best


def _above(values: Floats) -> Floats:
    """float64 over the lattice: the sum over all generalizations of each node, itself included."""
    result: Floats = values.copy()
    for axis in range(result.ndim):
        along = np.moveaxis(result, axis, 0)
        for level in range(len(along) - 2, -1, -1):
            along[level] += along[level + 1]
    return result
