"""The best node that a search comes to in a given time, in a lattice of any size: only nodes that are asked are held.

It begins at the top, so that there is an answer after the first question. A descent makes one attribute finer at a
time, the one that promises most, and ends at a node that is minimal if the condition is monotone. Every other minimal
node is coarser in some attribute: for each attribute, a floor one level above the end, and a descent to there. Floors
are taken up in the order of the ends that they come from, and left out where nothing above them can be better. A walk
that ends by itself has come to every minimal node that may be the best.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from qblock.lattice import Node
from qblock.search.strategies.best_only import SLACK
from qblock.search.strategies.evaluator import Evaluator, Outcome, Tally

Over = Callable[[], bool]
"""Whether the time of a search is over."""
WALKED = "The best of the nodes that were asked in the given time: one that was not asked may be better."
ALL_WALKED = "No other minimal node is better: each was measured, or cannot be."
TOP_FAILS = "The most general node fails, and so does every other one."
TOP_ALONE = "The most general node fails; whether another one satisfies the spec was not looked for."


class Walk:
    """promise: what is known of a node without a count; measure: the metric of a node that satisfies; of both smaller
    ones are better. bounded: whether no measure is below the promise. over: whether the time is over."""

    def __init__(
        self,
        evaluator: Evaluator,
        ask: Callable[[Node], bool],
        promise: Callable[[Node], float],
        measure: Callable[[Node], float],
        over: Over,
        *,
        bounded: bool = False,
        tally: Tally | None = None,
    ) -> None:
        self._evaluator, self._ask, self._over, self._tally = evaluator, ask, over, tally
        self._promise, self._measure, self._bounded = promise, measure, bounded
        self._monotone = evaluator.sizes_monotone if evaluator.sizes_only else evaluator.monotone
        width = len(evaluator.lattice.heights)
        self._verdicts: dict[Node, bool] = {}
        self._failed, self._ends = _Nodes(width), _Nodes(width)
        self._waiting: list[tuple[float, Node, Node]] = []
        """Floors, each with the end that it comes from and the value of that."""
        self._floors: set[Node] = set()
        self._values: dict[Node, float] = {}
        self.best: tuple[float, int, Node] | None = None

    def begin(self) -> bool:
        """Ask the top, and descend from it once; whether the top passes."""
        top, _ = self._evaluator.equivalent_range(self._evaluator.lattice.top)
        if not self._passes(top):
            return False
        self._end(top, self._evaluator.lattice.bottom)
        return True

    def go_on(self) -> None:
        """Go on from the best end, until the time is over or nothing that may be better is left."""
        while self._waiting and not self._over():
            _, floor, end = heapq.heappop(self._waiting)
            start = tuple(map(max, end, floor))
            if not self._hopeless(floor) and self._passes(start):
                self._end(start, floor)

    def outcome(self, *, minimal_best: bool) -> Outcome:
        """What is known of the lattice. minimal_best: whether a best node is minimal."""
        ended = not self._waiting and not self._over()
        proved = minimal_best and self._monotone and ended and self.best is not None
        failed = TOP_FAILS if self._monotone else TOP_ALONE
        return Outcome(
            strategy="walk",
            lattice=self._evaluator.lattice,
            satisfied=None,
            decided=None,
            minimal=[],
            sizes_evaluated=0,
            full_evaluated=len(self._verdicts),
            nodes_evaluated=len(self._verdicts),
            optimality="best" if proved else "within",
            why=failed if self.best is None else ALL_WALKED if proved else WALKED,
            passed=tuple(sorted(node for node, verdict in self._verdicts.items() if verdict)),
            best=None if self.best is None else self.best[2],
        )

    def _end(self, start: Node, floor: Node) -> None:
        """Descend to the end above a floor; it is measured, and the floors beside it wait."""
        node = self._descended(start, floor)
        if node not in self._values:
            self._ends.add(node)
            # What cannot be measured in time is no better than what was.
            late = self.best is not None and self._over()
            value = self._values[node] = math.inf if late else float(f"{self._measure(node):.12g}")
            ranked = (value, sum(node), node)
            self.best = ranked if self.best is None else min(self.best, ranked)
        coarsest = self._evaluator.equivalent_range(node)[1]
        for i, (level, top) in enumerate(zip(coarsest, self._evaluator.lattice.top, strict=True)):
            beside = (*floor[:i], level + 1, *floor[i + 1 :])
            if level < top and beside not in self._floors and not self._hopeless(beside):
                self._floors.add(beside)
                heapq.heappush(self._waiting, (self._values[node], beside, node))

    def _hopeless(self, floor: Node) -> bool:
        """Whether nothing above a floor can be as good as the best node."""
        if not self._bounded or self.best is None:
            return False
        best = self.best[0]
        return self._promise(floor) > best + SLACK * abs(best)

    def _descended(self, node: Node, floor: Node) -> Node:
        """The end of a descent."""
        able = list(range(len(node)))
        while able and not self._over():
            steps = [(i, finer) for i in able if (finer := self._finer(node, i, floor)) is not None]
            if not steps:
                break
            attribute, finer = min(steps, key=lambda step: (self._promise(step[1]), step[0]))
            if self._passes(finer):
                node = finer
            else:
                # Of a monotone condition it fails below, too.
                able.remove(attribute)
        return node

    def _passes(self, node: Node) -> bool:
        if node in self._verdicts:
            return self._verdicts[node]
        if self._monotone and self._failed.any_above(node):
            return False
        if self._monotone and self._ends.any_below(node):
            return True
        verdict = self._verdicts[node] = self._ask(node)
        if not verdict:
            self._failed.add(node)
        if self._tally is not None:
            self._tally(len(self._verdicts), 0, 0.0)
        return verdict

    def _finer(self, node: Node, i: int, floor: Node) -> Node | None:
        """The node with one attribute one level finer, beyond levels that merge nothing."""
        if node[i] <= floor[i]:
            return None
        return self._evaluator.equivalent_range((*node[:i], node[i] - 1, *node[i + 1 :]))[0]


class _Nodes:
    """Nodes, of which it is asked whether any is above or below another."""

    def __init__(self, width: int) -> None:
        self._levels, self._number = np.zeros((64, width), dtype=np.int16), 0

    def add(self, node: Node) -> None:
        if self._number == len(self._levels):
            self._levels = np.concatenate((self._levels, np.zeros_like(self._levels)))
        self._levels[self._number] = node
        self._number += 1

    def any_above(self, node: Node) -> bool:
        return bool((self._levels[: self._number] >= np.array(node)).all(axis=1).any())

    def any_below(self, node: Node) -> bool:
        return bool((self._levels[: self._number] <= np.array(node)).all(axis=1).any())
