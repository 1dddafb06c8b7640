"""Cuts long chains of undecided nodes where the verdict tells most, and tags everything that it implies.

Tagging both ways is the idea of Flash (Kohlmayer et al., "Flash: efficient, stable and optimal k-anonymity", 2012),
which searches whole paths by bisection. A path is only one of the many chains through a node, and its middle is seldom
where the border runs: here each question goes to the node that divides all chains best, given the verdicts so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qblock.blocks import Floats, Mask
from qblock.lattice import Node, down, up
from qblock.search.strategies.best_only import BestOnly
from qblock.search.strategies.boundary_estimate import BoundaryEstimate
from qblock.search.strategies.lattice_state import Ask, LatticeState
from qblock.search.strategies.tags import Tags, count_down, count_up

EXPONENT = 0.6
"""Of the open nodes that are asked until all are decided: about this power of their number."""
SAMPLED = 0.1
"""What a sample of the blocks costs, of all of them."""
STALE = 0.02
"""The plan is made anew when so much of what was open is decided."""


def run(state: LatticeState, *, decide_all: bool = True) -> None:
    """Decide the lattice; what is not monotone is scanned, after a phase of block sizes."""
    state.decide(
        lambda tags, ask: decide(
            tags,
            ask,
            lambda wanted: state.plan_hubs(wanted, sizes=tags is state.sizes),
            state.best_only if tags is state.full else None,
            state.evaluator.max_concurrency,
        ),
        decide_all=decide_all,
    )


def decide(
    tags: Tags,
    ask: Ask,
    cost_of: Callable[[Floats], Floats] = lambda wanted: np.ones_like(wanted),
    best_only: BestOnly | None = None,
    max_concurrency: int = 1,
) -> None:
    """Close all open nodes of a monotone condition. `ask` decides open nodes and what follows from them.

    cost_of: is told how often each node may still be asked, and gives what each costs, with the same shape. best_only:
    where only the nodes matter that may be best.
    """
    estimate = BoundaryEstimate(tags.lattice)
    planned, gain = 0, np.zeros(tags.lattice.shape)
    while remaining := int(np.count_nonzero(mask := tags.open & best_only.may_win() if best_only else tags.open)):
        if remaining < planned * (1 - STALE) or not planned:
            planned, gain = remaining, _gain(mask, estimate.chances(), cost_of)
        nodes = _best(mask, gain, max_concurrency)
        for node, verdict in zip(nodes, ask(nodes), strict=True):
            estimate.learn(node, verdict)


def _gain(mask: Mask, chance: Floats, cost_of: Callable[[Floats], Floats]) -> Floats:
    """float64 over the lattice: how much of the lattice the verdict of each node is expected to decide, per cost.

    A pass decides the open nodes above, a fail those below; the geometric mean of the two, each weighted by its chance,
    prefers an even question. Half the cost of the bottom is added to every cost: a statement is never free.
    """
    cost = cost_of(_wanted(mask, chance))
    even = np.sqrt(chance * count_up(mask) * (1 - chance) * count_down(mask))
    result: Floats = even / (cost + cost[(0,) * cost.ndim] / 2 + 1)
    return result


def _wanted(mask: Mask, chance: Floats) -> Floats:
    """float64 over the lattice: how often each node's counts may be read in full."""
    doubt = np.where(mask, chance * (1 - chance), 0.0)
    questions = np.count_nonzero(mask) ** EXPONENT
    # What fails is mostly refuted by a sample of the blocks.
    result: Floats = doubt * (questions / max(doubt.sum(), 1e-9)) * (chance + SAMPLED)
    return result


def _best(mask: Mask, gain: Floats, max_concurrency: int) -> list[Node]:
    """The open node with the largest gain, and more of them of which none decides another."""
    nodes: list[Node] = []
    left = np.where(mask, gain, -1.0)
    while len(nodes) < max_concurrency:
        flat = int(np.argmax(left))
        if left.flat[flat] < 0:
            break
        node = tuple(int(i) for i in np.unravel_index(flat, mask.shape))
        nodes.append(node)
        left[up(node)] = left[down(node)] = -1.0
    return nodes
