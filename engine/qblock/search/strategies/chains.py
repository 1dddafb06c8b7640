"""Cuts long chains of undecided nodes where the verdict tells most, and tags everything that it implies.

Tagging both ways is the idea of Flash (Kohlmayer et al., "Flash: efficient, stable and optimal k-anonymity", 2012),
which searches whole paths by bisection. A path is only one of the many chains through a node, and its middle is seldom
where the border runs: here each question goes to the node that divides all chains best, given the verdicts so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from qblock.lattice import Node
from qblock.search.strategies.border import Guess
from qblock.search.strategies.survey import Survey
from qblock.search.strategies.tags import Tags, count_down, count_up

CANDIDATES = 32
"""How many of the most telling nodes are compared by what they cost."""


def run(survey: Survey, *, decide_all: bool = True) -> None:
    """Decide the lattice in two phases, block sizes first."""
    cost = survey.evaluator.cost
    survey.two_phases(lambda tags, ask: decide(tags, ask, cost), decide_all=decide_all)


def decide(tags: Tags, ask: Callable[[Node], bool], cost: Callable[[Node], int]) -> None:
    """Close all open nodes of a monotone condition. `ask` decides an open node and what follows from it."""
    guess = Guess(tags.lattice)
    while tags.open.any():
        node = next_node(tags, guess, cost)
        guess.learn(node, ask(node))


def next_node(tags: Tags, guess: Guess, cost: Callable[[Node], int]) -> Node:
    """The open node whose verdict is expected to decide most per cost.

    A pass decides the open nodes above, a fail those below; the geometric mean of the two, each weighted by its chance,
    prefers an even question. Half the cost of the bottom is added to every cost: a statement is never free.
    """
    mask = tags.open
    chance = guess.chances()
    gain = np.where(mask, np.sqrt(chance * count_up(mask) * (1 - chance) * count_down(mask)), -1.0).ravel()
    best = np.argsort(-gain, kind="stable")[: min(CANDIDATES, int(mask.sum()))]
    nodes = [tuple(int(i) for i in np.unravel_index(flat, mask.shape)) for flat in best.tolist()]
    constant = cost(tags.lattice.bottom) / 2 + 1
    return max(zip(gain[best].tolist(), nodes, strict=True), key=lambda pair: pair[0] / (cost(pair[1]) + constant))[1]
