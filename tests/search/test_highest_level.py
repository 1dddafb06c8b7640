"""`max` of a hierarchy: what is searched is the lattice up to there, and everything else is as it is without."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from frequency.test_samples import PRIVACY, eager, people
from integration.sources import make_spec, opened, spec_text

from qblock.errors import InputError, Refused
from qblock.metrics import METRICS
from qblock.search.audit import audit_spec
from qblock.search.compare import compare
from qblock.search.nodes import parse_node
from qblock.search.result import refusal
from qblock.search.run import open_task, run_search
from qblock.search.strategies import STRATEGIES
from qblock.search.utility import MARGINAL, Metrics
from qblock.spec import load_spec
from qblock.versions.pending.differences import check_node
from qblock.versions.policy.common import leaving_at

pytestmark = pytest.mark.either_engine

__all__ = ["eager"]
MODELS = {
    **PRIVACY,
    "lattice": ([{"nt_closeness": {"n": 90, "t": 0.35, "sensitive": "ill"}}, {"k_anonymity": {"k": 2}}], {}),
    "entities": ([{"nt_closeness": {"n": 90, "t": 0.35, "sensitive": "ill"}}], {"entity": "who", "count": "entities"}),
}
SOME = [(3, 1), (2, 2), (1, 2), (1, 1), (0, 2), (0, 0)]
"""`max` of age and of place, of 3 and 2 levels."""


def up_to(attributes: dict[str, Any], **highest: int) -> dict[str, Any]:
    limited = copy.deepcopy(attributes)
    for name, level in highest.items():
        limited[name]["hierarchy"]["max"] = level
    return limited


@pytest.fixture
def crowd(warehouse: Any, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """240 rows over 4 x 3 x 2 nodes, of 150 people."""
    rows = people(tmp_path, 240, 3)
    who = [i % 150 for i in range(240)]
    url = warehouse("t", {column.name: column.values for column in rows.columns} | {"who": who})
    return url, rows.attributes()


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("case", MODELS)
def test_the_search_is_that_of_the_whole_lattice_up_to_there(crowd: Any, tmp_path: Path, case: str) -> None:
    url, attributes = crowd
    privacy, more = MODELS[case]
    with opened(url, "t", attributes, tmp_path, privacy, search={"strategy": "exhaustive"}, **more) as task:
        whole = run_search(task).outcome
        tightest = {node: task.assess(node).tightest for node in task.lattice.nodes()}
    assert whole is not None
    seen = 0
    for age, place in SOME:
        with opened(url, "t", up_to(attributes, age=age, place=place), tmp_path, privacy, **more) as task:
            inside = whole.satisfied[: age + 1, : place + 1]
            assert task.lattice.heights == (age, place, 1)
            for strategy in STRATEGIES:
                result = run_search(task, strategy=strategy)
                assert result.outcome is not None
                seen += bool(result.minimal)
                decided = result.outcome.decided
                assert result.outcome.satisfied[decided].tolist() == inside[decided].tolist()
                assert result.minimal == [n for n in whole.minimal if n[0] <= age and n[1] <= place]
                assert (result.chosen is None) == (not inside.any())
            answer = result.to_json()
            assert (answer["heights"], answer["nodes_total"]) == ([age, place, 1], inside.size)
            for node in task.lattice.nodes():
                assert task.assess(node).tightest == tightest[node]
    assert seen


@pytest.mark.parametrize("case", ["k", "suppressed", "recursive"])
def test_metrics_are_what_they_are_without(crowd: Any, tmp_path: Path, case: str) -> None:
    """Also those that look at heights: of the hierarchy, which goes on to `*`."""
    url, attributes = crowd
    privacy, more = PRIVACY[case]
    names = [metric.name for metric in METRICS]
    with opened(url, "t", attributes, tmp_path, privacy, **more) as task:
        whole = {node: Metrics(task).of(task.assess(node), tuple(names)) for node in task.lattice.nodes()}
    for by in (*MARGINAL, "discernibility"):
        attributes_ = up_to(attributes, age=2, place=1)
        with opened(url, "t", attributes_, tmp_path, privacy, search={"choose_by": by}, **more) as task:
            run_search(task)  # sizes are known then, of nodes above `max` too
            metrics = Metrics(task)
            for node in task.lattice.nodes():
                assert metrics.of(task.assess(node), tuple(names)) == whole[node]
            all_of_them, alone = run_search(task), run_search(task, best_only=True)
            assert all_of_them.chosen is not None
            assert alone.chosen is not None
            assert alone.chosen.node == all_of_them.chosen.node
            if by in MARGINAL:
                contest = metrics.best_only(by)
                assert contest is not None
                sign = -1 if by == "precision" else 1
                for node in task.lattice.nodes():
                    assert contest.bounds[node] == pytest.approx(sign * metrics.unsuppressed(node, by))


def test_nodes_are_written_within_it(crowd: Any, tmp_path: Path) -> None:
    url, attributes = crowd
    attributes = up_to(attributes, age=1, place=2)
    with opened(url, "t", attributes, tmp_path) as task:
        assert parse_node(task, "top") == (1, 2, 1)
        assert parse_node(task, "age=1") == (1, 0, 0)
        with pytest.raises(InputError, match=r"node 'age=2': .*: age 0\.\.1 \(max\), place 0\.\.2, sex 0\.\.1$"):
            parse_node(task, "age=2")
        assert len(compare(task).rows) == 2 * 3 * 2
    spec = make_spec(url, "t", attributes, [{"k_anonymity": {"k": 1}}], tmp_path, search={"node": [2, 0, 0]})
    for ask in (audit_spec, run_search_of):
        with pytest.raises(InputError, match=r"node \[2, 0, 0\] is not in the lattice; levels: age 0\.\.1 \(max\)"):
            ask(spec)


def run_search_of(spec: Any) -> None:
    with open_task(spec) as task:
        run_search(task)


def test_max_beyond_the_hierarchy_is_refused_with_its_line(crowd: Any, tmp_path: Path) -> None:
    url, attributes = crowd
    for level in (0, 3, 4):
        text = spec_text("t", up_to(attributes, age=level), [{"k_anonymity": {"k": 1}}])
        (tmp_path / "spec.yaml").write_text(text, "utf-8")
        spec = load_spec(tmp_path / "spec.yaml", {"URL": url})
        if level < 4:
            run_search_of(spec)
            continue
        line = 1 + text.splitlines().index("      max: 4")
        with pytest.raises(InputError) as caught:
            run_search_of(spec)
        assert caught.value.exit_status == 2
        assert str(caught.value) == (
            f"{spec.path}:{line}: max 4 of age is above the top of its hierarchy, which is level 3 (`*`); write 0 to 3"
        )


@pytest.mark.parametrize(
    ("highest", "said"),
    [
        (
            {"age": 2},
            r"general node within `max` satisfies k 25\. `max` of age is in the way: raise it, or ask for less$",
        ),
        ({"place": 1}, "`max` of place is in the way: raise it"),
        ({"age": 2, "place": 1}, "`max` of age and of place are in the way: raise them"),
    ],
)
def test_a_refusal_says_that_max_is_in_the_way(crowd: Any, tmp_path: Path, highest: Any, said: str) -> None:
    url, attributes = crowd
    with opened(url, "t", up_to(attributes, **highest), tmp_path, [{"k_anonymity": {"k": 240}}]) as task:
        assert re.search(said, str(refusal(run_search(task))))


def test_a_refusal_names_the_one_that_is_enough(crowd: Any, tmp_path: Path) -> None:
    url, attributes = crowd
    with opened(url, "t", up_to(attributes, age=1, place=2), tmp_path, [{"k_anonymity": {"k": 200}}]) as task:
        assert "`max` of age is in the way" in str(refusal(run_search(task)))
    with opened(url, "t", up_to(attributes, age=1, place=1), tmp_path, [{"k_anonymity": {"k": 241}}]) as task:
        said = str(refusal(run_search(task)))
        assert "in the way" not in said
        assert "Ask for less" in said
        assert "coarser" not in said


def test_a_published_node_above_it_is_no_node_any_more(crowd: Any, tmp_path: Path) -> None:
    url, attributes = crowd
    kept: Any = SimpleNamespace(node=(2, 0, 0))
    with opened(url, "t", up_to(attributes, age=2), tmp_path) as task:
        check_node(kept, task.source)
    with opened(url, "t", up_to(attributes, age=1), tmp_path) as task:
        with pytest.raises(Refused, match="no longer in the lattice"):
            check_node(kept, task.source)
        with pytest.raises(Refused, match="no longer in the lattice"):
            leaving_at(kept, task.source, kept.node, doubted=False)


def test_one_max_of_several_is_in_the_way(crowd: Any, tmp_path: Path) -> None:
    """Of 240 rows no value of age's level 0 has 40."""
    url, attributes = crowd
    with opened(url, "t", up_to(attributes, age=0, place=1), tmp_path, [{"k_anonymity": {"k": 80}}]) as task:
        assert "`max` of age is in the way" in str(refusal(run_search(task)))


def test_what_is_alike_is_within_it(warehouse: Any, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["11", "11"]})
    attributes = {"a": {"role": "quasi_identifier", "hierarchy": {"digits": 2, "max": 1}}}
    with opened(url, "t", attributes, tmp_path) as task:
        assert task.equivalent_range((1,)) == ((0,), (1,))
