"""The choice of one node among those that satisfy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from qblock.errors import InputError, Refused
from qblock.lattice import Node, height
from qblock.search.evaluator import Outcome
from qblock.search.metrics import BY_NAME, Metric


def metric_named(name: str) -> Metric:
    """The metric of that name. Raises InputError naming the known ones."""
    if name not in BY_NAME:
        raise InputError(f"choose_by {name!r} is unknown; use one of {', '.join(BY_NAME)}")
    return BY_NAME[name]


def candidates(outcome: Outcome, choose_by: str, *, suppression: bool) -> list[Node]:
    """The nodes among which a best one by the metric is sure to be, sorted.

    Without suppression a metric that never improves upward is best at a minimal node, whether or not the condition is
    monotone: every satisfying node generalizes a minimal one. Otherwise all satisfying nodes must be compared.
    """
    if metric_named(choose_by).grows and not suppression:
        return list(outcome.minimal)
    return outcome.satisfying()


def choose(nodes: Iterable[Node], metric_of: Callable[[Node], float], choose_by: str) -> Node:
    """The best node by the metric; ties by the smaller height, then by the smaller levels from the first attribute on.

    metric_of is called once per node; doubles that agree in 12 digits are a tie. Raises Refused where there is no node.
    """
    sign = 1 if metric_named(choose_by).better == "smaller" else -1
    ranked = [(sign * _rounded(metric_of(node)), height(node), node) for node in nodes]
    if not ranked:
        raise Refused("no node of the lattice satisfies what is asked; weaken it, or allow more suppression")
    return min(ranked)[2]


def _rounded(value: float) -> float:
    return float(f"{value:.12g}") if isinstance(value, float) else value
