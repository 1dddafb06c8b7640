"""Every strategy finds, on every engine, exactly the nodes that the slow reference finds."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from engines import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.draws import worst
from reference.lattices import minimal

from integration.hostile import few
from integration.sources import make_spec
from integration.worlds import Expected, World, fill, task_of, worlds
from qblock.search.result import SearchResult
from qblock.search.run import open_task, run_search
from qblock.search.strategies import STRATEGIES

pytestmark = pytest.mark.either_engine


def check_answer(result: SearchResult, expected: dict[tuple[int, ...], Expected]) -> None:
    """Satisfying and minimal nodes, and the choice among them by the default metric."""
    satisfying = sorted(node for node, found in expected.items() if found.satisfied)
    assert result.outcome is not None
    assert result.outcome.satisfying() == satisfying
    assert result.minimal == minimal(satisfying)
    answer = result.to_json()
    assert answer["minimal"] == [list(node) for node in result.minimal]
    assert answer["satisfying"] == len(satisfying)
    if not satisfying:
        assert result.chosen is None
        assert answer["chosen"] is None
        return
    best = min(satisfying, key=lambda node: (expected[node].discernibility, sum(node), node))
    assert result.chosen is not None
    assert result.chosen.node == best
    assert answer["chosen"]["suppressed"] == expected[best].suppressed


def check_nodes(result: SearchResult, world: World, expected: dict[tuple[int, ...], Expected]) -> None:
    """The list of all nodes: verdicts, tightest values and metrics."""
    nodes = result.to_json()["nodes"]
    assert sorted(tuple(entry["levels"]) for entry in nodes) == sorted(expected)
    for entry in nodes:
        found = expected[tuple(entry["levels"])]
        assert entry["satisfied"] == found.satisfied
        assert entry["suppressed"] == found.suppressed
        assert entry["metrics"]["height"] == sum(entry["levels"])
        assert entry["metrics"]["discernibility"] == found.discernibility
        assert entry["metrics"]["average_block_size"] == pytest.approx(float(found.average_block_size))
        assert entry["metrics"]["kl_divergence"] == pytest.approx(found.divergence, abs=1e-12)
        assert [given["model"] for given in entry["tightest"]] == [one.name for one in world.asked]
        for one, mine, theirs in zip(world.asked, entry["tightest"], found.tightest, strict=True):
            for bound, value in zip(one.model.about.bounds, mine["values"], strict=True):
                assert (value["parameter"], value["attained"]) == (bound.parameter, bound.attained)
                if world.people and (one.name, bound.parameter) == ("nt_closeness", "n"):
                    continue  # the whole table counts with its rows there
                exact = worst(theirs[bound.parameter], bound.stricter)
                if isinstance(exact, Decimal):
                    assert value["value"] == pytest.approx(float(exact), rel=1e-12, abs=1e-12)
                elif exact == math.inf:
                    assert value["value"] == "inf"
                else:
                    assert Fraction(value.get("exact", value["value"])) == exact, (entry["levels"], one)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_under_a_budget_a_coarser_node_may_fail(warehouse, tmp_path: Path, strategy: str) -> None:
    """models.md section 10: (5,5) passes and (3,0) fails, 3 rows are dropped; their union fails, and drops 13."""
    rows = {"q": ["a"] * 10 + ["b"] * 3, "s": ["x", "y"] * 5 + ["x"] * 3}
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "s": {"role": "sensitive"}}
    asked = [{"frequency_l_diversity": {"l": 2}}]
    spec = make_spec(warehouse("t", rows), "t", attributes, asked, tmp_path, suppression_limit=3)
    with open_task(spec) as task:
        found = run_search(task, strategy=strategy)
    assert found.minimal == [(0,)]
    assert found.outcome is not None
    assert found.outcome.satisfied.tolist() == [True, False]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_attributes_under_a_budget(warehouse, tmp_path: Path, strategy: str) -> None:
    """models.md section 10: a value of w that only the failing block has makes a part of its own in the union."""
    rows = {"q": ["a"] * 4 + ["b"], "v": ["x", "x", "y", "y", "x"], "w": ["m", "n", "m", "n", "o"]}
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "v": "sensitive", "w": "sensitive"}
    asked = [{"distinct_l_diversity": {"l": 2, "sensitive": ["v", "w"]}}]
    spec = make_spec(warehouse("t", rows), "t", attributes, asked, tmp_path, suppression_limit=1)
    with open_task(spec) as task:
        found = run_search(task, strategy=strategy)
    assert found.minimal == [(0,)]
    assert found.outcome is not None
    assert found.outcome.satisfied.tolist() == [True, False]
    assert found.outcome.optimality == "scanned"


@pytest.fixture
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table is brought into this process where it would be if it were larger."""
    monkeypatch.setattr("qblock.source.open.LEAST_COUNTED", 0)


@pytest.mark.usefixtures("however_small")
@pytest.mark.parametrize("count", ["rows", "entities"])
@settings(few, max_examples=examples(5))
@given(data=st.data())
def test_random_tables(warehouse, tmp_path: Path, count: str, data: st.DataObject) -> None:
    number = len(list(tmp_path.glob("case*")))
    (folder := tmp_path / f"case{number}").mkdir()
    world = data.draw(worlds(folder, count == "entities"))
    url = fill(world, warehouse, f"case{number}")
    expected = world.expected()
    where = data.draw(st.sampled_from(["warehouse", "local", "auto"]))
    with task_of(world, url, f"case{number}", folder, roll_up=where) as task:
        assert task.budget == world.budget
        for strategy in data.draw(st.permutations(STRATEGIES)):
            result = run_search(task, strategy=strategy, all_nodes=strategy == "chains")
            check_answer(result, expected)
            if result.nodes is not None:
                check_nodes(result, world, expected)
    if data.draw(st.booleans()):
        return
    node = data.draw(st.sampled_from(list(expected)))
    with task_of(world, url, f"case{number}", folder, node=list(node)) as task:
        pinned = run_search(task)
        assert (pinned.chosen is not None) == expected[node].satisfied
        assert pinned.to_json()["strategy"] == "pinned"
        assert pinned.minimal == []
        if pinned.chosen is not None:
            assert pinned.levels() == dict(zip("abc", node, strict=False))
        else:
            assert str(list(node)) in pinned.why
