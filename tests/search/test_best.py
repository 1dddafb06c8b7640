"""The best node alone is the best of all, with fewer questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from frequency.test_samples import PRIVACY, people
from integration.sources import opened

from qblock.search.run import run_search
from qblock.search.utility import MARGINAL

pytestmark = pytest.mark.either_engine


@pytest.mark.parametrize("by", [*MARGINAL, "discernibility"])
@pytest.mark.parametrize("case", PRIVACY)
def test_the_best_node_alone_is_the_best_of_all(warehouse: Any, tmp_path: Path, case: str, by: str) -> None:
    privacy, more = PRIVACY[case]
    rows = people(tmp_path, 240, 3)
    url = warehouse("t", {column.name: column.values for column in rows.columns})
    results = []
    for best_only in (False, True):
        with opened(url, "t", rows.attributes(), tmp_path, privacy=privacy, search={"choose_by": by}, **more) as task:
            results.append(run_search(task, best_only=best_only))
    whole, best = results
    assert best.chosen.node == whole.chosen.node
    assert best.metrics == whole.metrics
    if by in MARGINAL:
        assert (best.minimal, best.outcome.optimality, best.to_json()["satisfying"]) == ([], "best", None)
    else:
        assert best.minimal == whole.minimal


@pytest.mark.parametrize("case", ["recursive", "suppressed"])
def test_nodes_that_cannot_win_are_not_decided(warehouse: Any, tmp_path: Path, case: str) -> None:
    privacy, more = PRIVACY[case]
    rows = people(tmp_path, 240, 3)
    url = warehouse("t", {column.name: column.values for column in rows.columns})
    search = {"choose_by": "loss"}
    decided = []
    for best_only in (False, True):
        with opened(url, "t", rows.attributes(), tmp_path, privacy=privacy, search=search, **more) as task:
            outcome = run_search(task, best_only=best_only).outcome
            decided.append((int(outcome.decided.sum()), outcome.nodes_evaluated))
    assert decided[1][0] < decided[0][0]
    assert decided[1][1] <= decided[0][1]


def test_no_node_is_best_where_none_satisfies(warehouse: Any, tmp_path: Path) -> None:
    rows = people(tmp_path, 40, 3)
    url = warehouse("t", {column.name: column.values for column in rows.columns})
    privacy = [{"k_anonymity": {"k": 41}}]
    with opened(url, "t", rows.attributes(), tmp_path, privacy=privacy, search={"choose_by": "loss"}) as task:
        assert run_search(task, best_only=True).chosen is None
