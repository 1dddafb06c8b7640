"""The oracle: every node is asked for the full condition, and no property of any model is used."""

from __future__ import annotations

import itertools

import numpy as np

from qblock.search.strategies.lattice_state import LatticeState


def run(state: LatticeState, *, decide_all: bool = True) -> None:
    """Decide every node on its own, finer nodes first, whatever `decide_all` says."""
    nodes = state.lattice.nodes()
    while batch := list(itertools.islice(nodes, state.evaluator.max_concurrency)):
        state.plan_hubs(state.full.open.astype(np.float64), sizes=False)
        state.ask_full(batch, spread=False)
