"""The choice of one node among those that satisfy."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from qblock.blocks import Floats, Ints, Mask
from qblock.errors import InputError, Refused
from qblock.lattice import Node, height
from qblock.metrics import BY_NAME, Metric
from qblock.search.lattice import SLACK, Outcome, Tally


def metric_named(name: str) -> Metric:
    """The metric of that name. Raises InputError naming the known ones."""
    if name not in BY_NAME:
        raise InputError(f"choose_by {name!r} is unknown; use one of {', '.join(BY_NAME)}")
    return BY_NAME[name]


class Ranked:
    """The nodes of a mask in the order of what each is at best, smaller being better; held as numbers alone."""

    def __init__(self, mask: Mask, best: Floats | Ints | None) -> None:
        """best: over the lattice; None where nothing is known."""
        self._shape = mask.shape
        self._places = np.flatnonzero(mask)
        self._best: Floats | Ints | None = None
        if best is not None:
            known = best.reshape(-1)[self._places]
            order = np.argsort(known, kind="stable")
            self._places, self._best = self._places[order], known[order]

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[tuple[float, Node]]:
        for i, place in enumerate(self._places):
            node = tuple(int(level) for level in np.unravel_index(place, self._shape))
            yield -math.inf if self._best is None else float(self._best[i]), node


def candidates(
    outcome: Outcome, choose_by: str, *, suppression: bool, best: Floats | Ints | None = None
) -> Ranked | list[Node]:
    """Nodes that are sure to include a best one by the metric. best: over the lattice, what each node is at best,
    smaller being better.

    Without suppression a metric that never improves upward is best at a minimal node, whether or not the condition is
    monotone: every satisfying node generalizes a minimal one. Otherwise all satisfying nodes must be compared.
    """
    if outcome.satisfied is None or (metric_named(choose_by).grows and not suppression and outcome.minimal):
        return list(outcome.minimal)
    return Ranked(outcome.satisfied, best)


def choose(
    nodes: Ranked | Iterable[Node],
    metric_of: Callable[[Node], float],
    choose_by: str,
    bound: Callable[[Node], float | None] | None = None,
    tally: Tally | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Node:
    """The best node by the metric; ties by the smaller height, then by the smaller levels from the first attribute on.

    metric_of is called at most once per node; doubles that agree in 12 digits are a tie. bound: a value that the
    metric of a node is never better than, or None; it may get tighter while other nodes are measured. Nodes whose bound
    is worse than the best value are not measured. tally: is told after each measurement. over: ends the choice after
    the first one. Raises Refused where there is no node.
    """
    sign = metric_named(choose_by).sign

    def limit(node: Node) -> float:
        best_possible = None if bound is None else bound(node)
        return -math.inf if best_possible is None else sign * best_possible

    ranked = nodes if isinstance(nodes, Ranked) else sorted((limit(node), node) for node in nodes)
    left, stream = len(ranked), iter(ranked)
    following, again = next(stream, None), list[tuple[float, Node]]()
    best: tuple[float, int, Node] | None = None
    measured = 0
    while again or following is not None:
        if following is None or (again and again[0] < following):
            expected, node = heapq.heappop(again)
        else:
            (expected, node), following = following, next(stream, None)
        if best is not None and (expected > best[0] + SLACK * abs(best[0]) or over()):
            break
        now = limit(node)
        if now > expected + SLACK * abs(expected):
            heapq.heappush(again, (now, node))
            continue
        value = (sign * _rounded(metric_of(node)), height(node), node)
        best = value if best is None else min(best, value)
        measured += 1
        left -= 1
        if tally is not None:
            tally(measured, left, 0.0)
    if best is None:
        raise Refused("no node of the lattice satisfies what is asked; ask for less, or allow more suppression")
    return best[2]


def _rounded(value: float) -> float:
    return float(f"{value:.12g}") if isinstance(value, float) else value
