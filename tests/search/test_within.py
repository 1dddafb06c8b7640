"""A search with a time: its answer satisfies the spec whenever it ends, and is the best where it ends by itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration.sources import make_spec, opened

import qblock
from qblock.lattice import Lattice, Node
from qblock.search.lattice import Outcome
from qblock.search.progress import Deadline
from qblock.search.result import refusal
from qblock.search.run import run_search
from qblock.search.strategies import MOST_DECIDED, search_within

from .fakes import Known, monotone_cases, scattered_cases
from .test_wide import K3, MAP, attributes, values

EVER = lambda: False  # noqa: E731


def after(questions: int) -> Callable[[], bool]:
    """A time that is over when it was asked for so often."""
    number = itertools.count(1)
    return lambda: next(number) > questions


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every lattice is walked, and none is decided."""
    monkeypatch.setattr("qblock.search.strategies.MOST_DECIDED", 0)
    monkeypatch.setattr("qblock.search.run.MOST_DECIDED", 0)


def cost(weights: list[int], node: Node) -> float:
    return float(sum(w * level for w, level in zip(weights, node, strict=False)))


def search_case(case: Known, over: Callable[[], bool], weights: list[int], **more: Any) -> Outcome:
    def measure(node: Node) -> float:
        assert case.full[node]
        return cost(weights, node)

    return search_within(case, over, promise=lambda node: cost(weights, node), measure=measure, **more)


weighted = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@pytest.mark.usefixtures("walked")
@given(case=monotone_cases(), weights=weighted, bounded=st.booleans())
def test_a_walk_that_ends_by_itself_has_a_best_node(case: Known, weights: list[int], bounded: bool) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("qblock.search.strategies.MOST_DECIDED", 0)
        outcome = search_case(case, EVER, weights, bounded=bounded)
    costs = [cost(weights, node) for node in case.lattice.nodes() if case.full[node]]
    if not costs:
        assert (outcome.best, outcome.optimality) == (None, "within")
        assert case.asked_full == [case.lattice.top]
        return
    assert outcome.optimality == "best"
    assert outcome.best is not None
    assert case.full[outcome.best]
    assert cost(weights, outcome.best) == min(costs)
    assert all(case.full[node] for node in outcome.passed)


@given(case=monotone_cases() | scattered_cases(), weights=weighted, questions=st.integers(0, 12), walked=st.booleans())
def test_whenever_the_time_is_over_the_answer_passes(
    case: Known, weights: list[int], questions: int, walked: bool
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("qblock.search.strategies.MOST_DECIDED", 0 if walked else MOST_DECIDED)
        outcome = search_case(case, after(questions), weights)
    if outcome.best is not None:
        assert case.full[outcome.best]
    elif outcome.optimality == "within":
        # Nothing passed of what was asked, the top first of all.
        assert not case.full[case.lattice.top]
        assert not any(case.full[node] for node in case.asked_full)
    if outcome.optimality != "within" and outcome.decided is not None:
        assert outcome.decided.all()
    assert all(case.full[node] for node in outcome.satisfying())


def test_what_is_promised_less_is_not_asked_where_the_promise_is_a_bound() -> None:
    lattice = Lattice((3, 3, 3, 3))
    full = np.zeros(lattice.shape, dtype=bool)
    full[1:, 1:, :, :] = True
    numbers = []
    for bounded in (False, True):
        case = Known(lattice, np.ones_like(full), full)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("qblock.search.strategies.MOST_DECIDED", 0)
            outcome = search_case(case, EVER, [1, 1, 1, 1], bounded=bounded)
        assert outcome.best == (1, 1, 0, 0)
        numbers.append(len(case.asked_full))
    assert numbers[1] <= numbers[0] < len(lattice) / 4


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """`clock(n)`: the time of a search is over when it was asked for n times."""

    def over_after(questions: int) -> None:
        def deadline(within: Any) -> Deadline:
            ticks = itertools.count(-1)
            seconds = 0 if within is None else within.total_seconds() / max(questions, 1)
            return Deadline(within, clock=lambda: next(ticks) * seconds)

        monkeypatch.setattr("qblock.search.run.Deadline", deadline)

    return over_after


MODELS: list[list[dict[str, Any]]] = [
    [{"k_anonymity": {"k": 4}}],
    [{"entropy_l_diversity": {"l": 1.5, "sensitive": "s"}}, {"k_anonymity": {"k": 2}}],
    [{"t_closeness": {"t": 0.6, "sensitive": "s"}}],
]


@pytest.mark.either_engine
@pytest.mark.usefixtures("walked")
@pytest.mark.parametrize("privacy", MODELS, ids=lambda models: "+".join(next(iter(m)) for m in models))
@pytest.mark.parametrize("by", ["loss", "discernibility"])
def test_a_walk_with_time_enough_chooses_what_a_search_does(
    warehouse: Any, tmp_path: Path, privacy: list[Any], by: str
) -> None:
    url = warehouse("t", values(3, 80))
    with opened(url, "t", attributes(3), tmp_path, privacy, search={"choose_by": by}) as task:
        whole = run_search(task)
    search = {"choose_by": by, "within": "9h"}
    with opened(url, "t", attributes(3), tmp_path, privacy, search=search) as task:
        walk = run_search(task)
    assert whole.chosen is not None
    assert walk.chosen is not None
    assert walk.chosen.node == whole.chosen.node
    assert walk.metrics == whole.metrics
    said = walk.to_json()
    assert (said["strategy"], said["optimality"], said["complete"]) == ("walk", "best", True)
    assert (said["minimal"], said["satisfying"]) == ([], None)


@pytest.mark.either_engine
@pytest.mark.parametrize("ticks", [0, 1, 5, 30])
@pytest.mark.parametrize("limit", [0, 10])
def test_the_best_node_so_far_of_a_wide_table_satisfies_all_models(
    warehouse: Any, tmp_path: Path, clock: Callable[[int], None], ticks: int, limit: int
) -> None:
    clock(ticks)
    url = warehouse("t", values(20, 60))
    privacy = [{"k_anonymity": {"k": 5}}, {"distinct_l_diversity": {"l": 2, "sensitive": "s"}}]
    search = {"choose_by": "loss", "within": "1m"}
    with opened(url, "t", attributes(20), tmp_path, privacy, search=search, suppression_limit=limit) as task:
        result = run_search(task)
        assert result.chosen is not None
        assessment = task.assess(result.chosen.node)
    assert assessment.satisfied
    assert assessment.suppressed <= limit
    sizes = assessment.counts.rows[assessment.kept]
    assert sizes.min() >= 5
    said = result.to_json()
    assert (said["optimality"], said["complete"], said["strategy"]) == ("within", False, "walk")
    assert said["nodes_evaluated"] <= ticks + 2


@pytest.mark.either_engine
@pytest.mark.parametrize("ticks", [0, 1, 2, 3])
def test_a_map_is_whole_after_any_round(
    warehouse: Any, tmp_path: Path, clock: Callable[[int], None], ticks: int
) -> None:
    clock(ticks)
    url = warehouse("t", values(6, 90))
    with opened(url, "t", attributes(6), tmp_path, K3, search={**MAP, "within": "1m"}) as task:
        result = run_search(task)
        assert result.recoded is not None
        rows = result.recoded.assessment.counts.rows
        said = result.to_json()
    assert result.recoded.specialized.rounds == max(ticks - 1, 0)
    assert rows.sum() == 90
    assert rows.min() >= 3
    assert (said["complete"], said["chosen"]["start"], said["full_domain"]) == (False, "top", None)
    assert "The given time was over" in said["why"]


@pytest.mark.either_engine
def test_with_time_enough_a_map_is_complete(warehouse: Any, tmp_path: Path) -> None:
    url = warehouse("t", values(2, 60))
    with opened(url, "t", attributes(2), tmp_path, K3, search={**MAP, "within": "9h"}) as task:
        assert run_search(task).to_json()["complete"]


@pytest.mark.either_engine
@pytest.mark.usefixtures("walked")
def test_where_the_top_fails_nothing_is_the_answer(warehouse: Any, tmp_path: Path) -> None:
    url = warehouse("t", values(3, 20))
    with opened(url, "t", attributes(3), tmp_path, [{"k_anonymity": {"k": 21}}], search={"within": "9h"}) as task:
        result = run_search(task)
        assert result.chosen is None
        assert "no node satisfies the spec: k_anonymity asks k 21" in str(refusal(result))


@pytest.mark.either_engine
def test_a_release_of_a_wide_table_publishes_what_was_come_to_in_time(
    warehouse: Any, engine_name: str, tmp_path: Path, clock: Callable[[int], None]
) -> None:
    clock(40)
    url = warehouse("t", values(16, 120))
    publish = {"url": f"duckdb:///{tmp_path / 'out.duckdb'}"} if engine_name == "duckdb" else {}
    spec = make_spec(
        url,
        "t",
        attributes(16),
        [{"k_anonymity": {"k": 4}}],
        tmp_path,
        search={"choose_by": "loss", "within": "1m"},
        publish=publish,
        versions={"joint": "none"},
    )
    release = qblock.Release(spec)
    said = release.publish().to_dict()
    assert said["status"] == "published"
    assert said["tightest"][0]["values"][0]["value"] >= 4
    assert (said["optimality"], said["search"]["complete"]) == ("within", False)
    assert not release.verify().problems
