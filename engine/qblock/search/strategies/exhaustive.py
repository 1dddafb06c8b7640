"""The oracle: every node is asked for the full condition, and no property of any model is used."""

from __future__ import annotations

import numpy as np

from qblock.search.strategies.survey import Survey


def run(survey: Survey, *, decide_all: bool = True) -> None:
    """Decide every node on its own, finer nodes first, whatever `decide_all` says."""
    for node in survey.lattice.nodes():
        survey.evaluator.expect(survey.full.open.astype(np.float64), sizes=False)
        survey.ask_full(node, spread=False)
