"""The oracle: every node is asked for the full condition, and no property of any model is used."""

from __future__ import annotations

import itertools

import numpy as np

from qblock.search.strategies.survey import Survey


def run(survey: Survey, *, decide_all: bool = True) -> None:
    """Decide every node on its own, finer nodes first, whatever `decide_all` says."""
    nodes = survey.lattice.nodes()
    while batch := list(itertools.islice(nodes, survey.evaluator.at_once)):
        survey.expect(survey.full.open.astype(np.float64), sizes=False)
        survey.ask_full(batch, spread=False)
