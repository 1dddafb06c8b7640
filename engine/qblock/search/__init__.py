"""Search of the generalization lattice: strategies, choice among satisfying nodes, and utility metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qblock.errors import InputError
from qblock.lattice import Node
from qblock.search.strategies import chains, exhaustive, incognito
from qblock.search.strategies.best_only import BestOnly
from qblock.search.strategies.evaluator import Evaluator, Outcome, OutOfTime, Tally
from qblock.search.strategies.lattice_state import LatticeState
from qblock.search.strategies.walk import WALKED, Over, Walk

RUN = {"chains": chains.run, "incognito": incognito.run, "exhaustive": exhaustive.run}
STRATEGIES = tuple(RUN)
MOST_DECIDED = 100_000
"""Of a lattice that is decided as far as the time goes; in a larger one a search with a time walks."""


def search(
    evaluator: Evaluator,
    *,
    strategy: str = "chains",
    tally: Tally | None = None,
    decide_all: bool = True,
    best_only: BestOnly | None = None,
) -> Outcome:
    """Find all satisfying nodes of the evaluator's lattice, and the minimal ones among them.

    decide_all=False: a scan (see Outcome.optimality) may leave nodes undecided that cannot be minimal; "exhaustive"
    decides every node nevertheless. best_only: only a best node is asked for (not with "incognito", which goes by
    subsets and finds all). Raises InputError for an unknown strategy; whatever the evaluator or `tally` raises
    (KeyboardInterrupt too) passes through.
    """
    if strategy not in RUN:
        raise InputError(f"search strategy {strategy!r} is unknown; use one of {', '.join(STRATEGIES)}")
    state = LatticeState(evaluator, tally, best_only)
    RUN[strategy](state, decide_all=decide_all)
    return state.outcome(strategy, pruned=strategy != "exhaustive")


def search_within(
    evaluator: Evaluator,
    over: Over,
    *,
    promise: Callable[[Node], float],
    measure: Callable[[Node], float],
    bounded: bool = False,
    minimal_best: bool = True,
    strategy: str = "chains",
    tally: Tally | None = None,
    best_only: BestOnly | None = None,
) -> Outcome:
    """As `search`, until the time is over; then the outcome says which of the nodes that were come to is the best.

    promise, measure, bounded: as of `Walk`; minimal_best: whether a best node is minimal. A lattice of more than
    MOST_DECIDED nodes is walked, and nothing is held for each of its nodes.
    """
    if len(evaluator.lattice) > MOST_DECIDED:
        walk = Walk(evaluator, evaluator.passes, promise, measure, over, bounded=bounded, tally=tally)
        if walk.begin():
            walk.go_on()
        return walk.outcome(minimal_best=minimal_best)
    state = LatticeState(evaluator, tally, best_only, over)

    def ask(node: Node) -> bool:
        return state.ask_full([node])[0] if state.full.is_open(node) else bool(state.full.passed[node])

    try:
        Walk(evaluator, ask, promise, measure, over).begin()
        RUN[strategy](state, decide_all=True)
        return state.outcome(strategy, pruned=strategy != "exhaustive")
    except OutOfTime:
        outcome = state.outcome(strategy)
        best = min(outcome.each_satisfying(), key=lambda node: (promise(node), sum(node), node), default=None)
        return replace(outcome, optimality="within", minimal=[], why=WALKED, best=best)


__all__ = ["STRATEGIES", "Evaluator", "Outcome", "search", "search_within"]
