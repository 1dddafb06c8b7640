"""The choice of one node among those that satisfy."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable

from qblock.errors import InputError, Refused
from qblock.lattice import Node, height
from qblock.metrics import BY_NAME, Metric
from qblock.search.strategies.contest import SLACK
from qblock.search.strategies.evaluator import Outcome, Tally


def metric_named(name: str) -> Metric:
    """The metric of that name. Raises InputError naming the known ones."""
    if name not in BY_NAME:
        raise InputError(f"choose_by {name!r} is unknown; use one of {', '.join(BY_NAME)}")
    return BY_NAME[name]


def candidates(outcome: Outcome, choose_by: str, *, suppression: bool) -> list[Node]:
    """Nodes that are sure to include a best one by the metric, sorted.

    Without suppression a metric that never improves upward is best at a minimal node, whether or not the condition is
    monotone: every satisfying node generalizes a minimal one. Otherwise all satisfying nodes must be compared.
    """
    if metric_named(choose_by).grows and not suppression:
        return list(outcome.minimal)
    return outcome.satisfying()


def choose(
    nodes: Iterable[Node],
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
    sign = 1 if metric_named(choose_by).better == "smaller" else -1

    def limit(node: Node) -> float:
        found = None if bound is None else bound(node)
        return -math.inf if found is None else sign * found

    waiting = [(limit(node), node) for node in nodes]
    heapq.heapify(waiting)
    best: tuple[float, int, Node] | None = None
    measured = 0
    while waiting:
        expected, node = heapq.heappop(waiting)
        if best is not None and (expected > best[0] + SLACK * abs(best[0]) or over()):
            break
        now = limit(node)
        if now > expected:
            heapq.heappush(waiting, (now, node))
            continue
        ranked = (sign * _rounded(metric_of(node)), height(node), node)
        best = ranked if best is None else min(best, ranked)
        measured += 1
        if tally is not None:
            tally(measured, len(waiting), 0.0)
    if best is None:
        raise Refused("no node of the lattice satisfies what is asked; ask for less, or allow more suppression")
    return best[2]


def _rounded(value: float) -> float:
    return float(f"{value:.12g}") if isinstance(value, float) else value
