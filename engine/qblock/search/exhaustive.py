"""The oracle: every node is asked for the full condition, and no property of any model is used."""

from __future__ import annotations

from qblock.search.survey import Survey


def exhaustive(survey: Survey) -> None:
    """Decide every node on its own, finer nodes first."""
    for node in survey.lattice.nodes():
        survey.ask_full(node, spread=False)
