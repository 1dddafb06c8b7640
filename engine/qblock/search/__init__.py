"""Search of the generalization lattice: strategies, choice among satisfying nodes, and utility metrics."""

from __future__ import annotations

from qblock.errors import InputError
from qblock.search.strategies import chains, exhaustive, incognito
from qblock.search.strategies.contest import Contest
from qblock.search.strategies.evaluator import Evaluator, Outcome, Tally
from qblock.search.strategies.survey import Survey

RUN = {"chains": chains.run, "incognito": incognito.run, "exhaustive": exhaustive.run}
STRATEGIES = tuple(RUN)


def search(
    evaluator: Evaluator,
    *,
    strategy: str = "chains",
    tally: Tally | None = None,
    decide_all: bool = True,
    contest: Contest | None = None,
) -> Outcome:
    """Find all satisfying nodes of the evaluator's lattice, and the minimal ones among them.

    decide_all=False: a scan (see Outcome.optimality) may leave nodes undecided that cannot be minimal; "exhaustive"
    decides every node nevertheless. contest: only a best node is asked for (not with "incognito", which goes by subsets
    and finds all). Raises InputError for an unknown strategy; whatever the evaluator or `tally` raises
    (KeyboardInterrupt too) passes through.
    """
    if strategy not in RUN:
        raise InputError(f"search strategy {strategy!r} is unknown; use one of {', '.join(STRATEGIES)}")
    survey = Survey(evaluator, tally, contest)
    RUN[strategy](survey, decide_all=decide_all)
    return survey.outcome(strategy, pruned=strategy != "exhaustive")


__all__ = ["STRATEGIES", "Evaluator", "Outcome", "search"]
