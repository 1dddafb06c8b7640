"""The nodes that a forecast compares: what the search found, and coarser ones whose smallest blocks are larger."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from qblock.lattice import Node
from qblock.search.choose import candidates as sure_candidates
from qblock.search.choose import choose
from qblock.search.lattice import minimal_mask, nodes_of
from qblock.search.result import SearchResult
from qblock.search.run import BySizes
from qblock.search.strategies import search
from qblock.search.task import Task
from qblock.search.utility import Metrics

TIMES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
"""How large the smallest block of a candidate is at least, in what closes a cohort in time."""
MINIMAL = 4
"""Minimal nodes that are compared, the one with most blocks first."""


def candidates(result: SearchResult, enough: float) -> list[Node]:
    """At most a dozen nodes that satisfy the spec, without repetition. enough: rows of a block in which a cohort closes
    in time.

    Beside the chosen and minimal nodes the best by `choose_by` among those without blocks of fewer rows than some
    multiples of `enough`: a job goes on as its smallest blocks do.
    """
    task, outcome = result.task, result.outcome
    assert outcome is not None
    assert result.chosen is not None
    by = task.spec.search.choose_by
    metrics = Metrics(task, by_sizes=task.spec.search.choose_from == "sizes")
    nodes = [result.chosen.node, *sorted(outcome.minimal, key=lambda node: (-task.sizes(node).number, node))[:MINIMAL]]
    for times in TIMES if outcome.optimality != "within" else ():
        larger = search(BySizes(task, partial(_at_least, task, enough * times))).satisfied
        assert larger is not None
        assert outcome.satisfied is not None
        large = larger & outcome.satisfied
        if not large.any():
            break
        among = replace(outcome, satisfied=large, minimal=nodes_of(minimal_mask(large)))
        sure = sure_candidates(among, by, suppression=task.budget > 0, best=metrics.bounds(by))
        nodes.append(choose(sure, lambda n: metrics.rank(n, by), by, lambda n: metrics.bound(n, by)))
    return list(dict.fromkeys(nodes))


def _at_least(task: Task, least: float, node: Node) -> bool:
    """Whether the blocks of a node all have so many rows, but for those that may be suppressed."""
    sizes = task.sizes(node)
    small = sizes.size < least
    return int((sizes.size[small] * sizes.blocks[small]).sum()) <= task.budget
