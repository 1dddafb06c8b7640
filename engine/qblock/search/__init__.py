"""Search of the generalization lattice: strategies, choice among satisfying nodes, and utility metrics."""

from __future__ import annotations

from qblock.errors import InputError
from qblock.search.chains import chains
from qblock.search.evaluator import Evaluator, Outcome, Progress
from qblock.search.exhaustive import exhaustive
from qblock.search.survey import Survey

STRATEGIES = ("chains", "exhaustive")


def search(
    evaluator: Evaluator, *, strategy: str = "chains", progress: Progress | None = None, decide_all: bool = True
) -> Outcome:
    """Find all satisfying nodes of the evaluator's lattice, and the minimal ones among them.

    decide_all=False: a scan (see Outcome.optimality) may leave nodes undecided that cannot be minimal; "exhaustive"
    decides every node all the same. Raises InputError for an unknown strategy; whatever the evaluator or `progress`
    raises (KeyboardInterrupt too) passes through.
    """
    survey = Survey(evaluator, progress)
    if strategy == "chains":
        chains(survey, decide_all=decide_all)
    elif strategy == "exhaustive":
        exhaustive(survey)
    else:
        raise InputError(f"search strategy {strategy!r} is unknown; use one of {', '.join(STRATEGIES)}")
    return survey.outcome(strategy, pruned=strategy != "exhaustive")


__all__ = ["STRATEGIES", "Evaluator", "Outcome", "Progress", "search"]
