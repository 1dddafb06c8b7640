"""What is suppressed at the chosen node, and what it would take to show it: against every node counted on its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from frequency.test_samples import people
from integration.sources import opened, spec_text

from qblock.cli.app import run
from qblock.search.result import suppressed_attributes
from qblock.search.run import run_search

pytestmark = pytest.mark.either_engine

NODES = [(3, 1, 0), (3, 2, 1), (3, 0, 1), (2, 2, 1), (0, 0, 0), (3, 2, 0)]


@pytest.fixture
def crowd(warehouse: Any, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """240 rows over 4 x 3 x 2 nodes."""
    rows = people(tmp_path, 240, 3)
    columns = {column.name: column.values for column in rows.columns}
    # Two rows of each person, at one leaf where there are two.
    leaves = sorted(range(240), key=lambda i: tuple(columns[name][i] for name in ("age", "place", "sex")))
    who = dict(zip(leaves, (place // 2 for place in range(240)), strict=True))
    return warehouse("t", columns | {"who": [who[i] for i in range(240)]}), rows.attributes()


@pytest.mark.parametrize("limit", [0, 30])
@pytest.mark.parametrize("k", [4, 12, 30, 60, 120, 240])
def test_suppressed_attributes_against_every_node(crowd: Any, tmp_path: Path, k: int, limit: int) -> None:
    url, attributes = crowd
    privacy: list[Any] = [{"k_anonymity": {"k": k}}, {"distinct_l_diversity": {"l": 2, "sensitive": "ill"}}]
    more = {"suppression_limit": limit, "search": {"choose_by": "loss"}}
    with opened(url, "t", attributes, tmp_path, privacy, **more) as task:
        result = run_search(task)
        assert result.outcome is not None
        assert result.chosen is not None
        node, top = result.chosen.node, task.lattice.top
        named = [task.spec.quasi_identifiers[i] for i in range(3) if node[i] == top[i]]
        counted: list[Any] = []
        failing_rows = task.failing_rows
        task.failing_rows = lambda node: counted.append(node) or failing_rows(node)  # type: ignore[method-assign]
        entries = suppressed_attributes(result)
        assert len(counted) == len(entries)  # a node for each, and no more
        assert [entry.attribute for entry in entries] == named
        for entry in entries:
            i = task.spec.quasi_identifiers.index(entry.attribute)
            assert entry.level == top[i] - 1
            lower = (*node[:i], top[i] - 1, *node[i + 1 :])
            failing = task.assess(lower).counts.failing_rows
            assert entry.rows_to_suppress == (failing if failing < 240 else None)
            showing = [other for other in result.outcome.satisfying() if other[i] < top[i]]
            assert (entry.shown_at is None) == (not showing)
            if entry.shown_at is not None:
                assert entry.shown_at in showing
                assert task.assess(entry.shown_at).satisfied
            if entry.rows_to_suppress is not None:
                enough = {**more, "suppression_limit": max(1, entry.rows_to_suppress)}
                with opened(url, "t", attributes, tmp_path, privacy, **enough) as other:
                    assert other.assess(lower).satisfied
                if entry.rows_to_suppress > 1:
                    enough["suppression_limit"] = entry.rows_to_suppress - 1
                    with opened(url, "t", attributes, tmp_path, privacy, **enough) as other:
                        assert not other.assess(lower).satisfied


MODELS: list[list[Any]] = [
    [{"k_anonymity": {"k": 5}}],
    [{"k_anonymity": {"k": 5}}, {"entropy_l_diversity": {"l": 2, "sensitive": "ill"}}],
    [{"t_closeness": {"t": 0.3, "sensitive": "ill"}}],
    [{"k_anonymity": {"k": 2, "of": ["age", "place"]}}],
]


BOXES = {"search": {"recoding": "multidimensional", "box": {"least": 9}}}
ENTITIES = {"entity": "who", "count": "entities", "versions": {"joint": "none"}}


@pytest.mark.parametrize(
    ("privacy", "more"),
    # Of what one attacker knows neither maps nor people are asked.
    [(privacy, more) for privacy in MODELS for more in ({}, BOXES, ENTITIES) if not more or privacy is not MODELS[3]],
)
def test_failing_rows_are_those_of_the_blocks_that_fail(
    crowd: Any, tmp_path: Path, privacy: list[Any], more: dict[str, Any]
) -> None:
    url, attributes = crowd
    with opened(url, "t", attributes, tmp_path, privacy, **more) as task:
        for node in task.lattice.nodes():
            assert task.failing_rows(node) == task.counts(node).failing_rows
        failing = {task.failing_rows(node) for node in task.lattice.nodes()}
        assert len(failing) > 2


def test_of_the_nodes_that_show_it_the_best_is_named(crowd: Any, tmp_path: Path) -> None:
    url, attributes = crowd
    for by, sign in (("loss", 1), ("precision", -1)):
        search = {"choose_by": by, "weights": {"place": 50}}
        with opened(url, "t", attributes, tmp_path, [{"k_anonymity": {"k": 12}}], search=search) as task:
            result = run_search(task, all_nodes=True)
            assert result.nodes is not None
            entries = [entry for entry in suppressed_attributes(result) if entry.shown_at is not None]
            assert entries
            for entry in entries:
                i = task.spec.quasi_identifiers.index(entry.attribute)
                figures = {
                    tuple(n["levels"]): sign * n["metrics"][by]
                    for n in result.nodes
                    if n["satisfied"] and n["levels"][i] <= entry.level
                }
                assert figures[entry.shown_at] == pytest.approx(min(figures.values()), abs=1e-12)  # type: ignore[index]


@pytest.mark.parametrize("node", NODES)
def test_a_pinned_node_is_not_searched_for(crowd: Any, tmp_path: Path, node: tuple[int, ...]) -> None:
    url, attributes = crowd
    with opened(url, "t", attributes, tmp_path, search={"node": list(node)}) as task:
        entries = suppressed_attributes(run_search(task))
        assert [entry.attribute for entry in entries] == [
            name for name, level, top in zip(("age", "place", "sex"), node, (3, 2, 1), strict=True) if level == top
        ]
        assert all((entry.shown_at, entry.rows_to_suppress) == (None, 0) for entry in entries)


@pytest.mark.parametrize("models", [1, 2])
def test_block_sizes_alone_do_not_say_that_a_node_satisfies(crowd: Any, tmp_path: Path, models: int) -> None:
    """Unless nothing else is asked."""
    url, attributes = crowd
    privacy: list[Any] = [{"k_anonymity": {"k": 60}}, {"distinct_l_diversity": {"l": 2, "sensitive": "ill"}}]
    with opened(url, "t", attributes, tmp_path, privacy[:models], search={"choose_from": "sizes"}) as task:
        result = run_search(task)
        assert result.chosen is not None
        assert result.chosen.node == (3, 2, 0)
        assert {entry.attribute: entry.shown_at for entry in suppressed_attributes(result)} == {
            "age": None,
            "place": (3, 1, 1) if models == 1 else None,
        }


def test_what_is_suppressed_in_every_row_already_below_the_top(warehouse: Any, tmp_path: Path) -> None:
    """A level of `*` below the last one shows no more than that; an attribute of `*` alone cannot be shown."""
    (tmp_path / "a.csv").write_text("a,b,c,d\n1,x,*,*\n2,y,*,*\n", "utf-8")
    url = warehouse("t", {"a": ["1", "2"], "b": ["u", "u"]})
    quasi = {"role": "quasi_identifier"}
    attributes = {"a": {**quasi, "hierarchy": {"file": "a.csv"}}, "b": {**quasi, "hierarchy": "suppress"}}
    for node, expected in (((2, 0), [("a", 1, None)]), ((3, 0), [("a", 1, None)]), ((1, 1), [("b", 0, 2)])):
        search, privacy = {"node": list(node)}, [{"k_anonymity": {"k": 1 if node[1] else 2}}]
        with opened(url, "t", attributes, tmp_path, privacy, search=search) as task:
            entries = [
                (entry.attribute, entry.level, entry.rows_to_suppress)
                for entry in suppressed_attributes(run_search(task))
            ]
            assert entries == [(name, level, 0 if node[1] else rows) for name, level, rows in expected]


def test_no_node_has_nothing_hidden(crowd: Any, tmp_path: Path) -> None:
    url, attributes = crowd
    with opened(url, "t", attributes, tmp_path, [{"k_anonymity": {"k": 241}}]) as task:
        assert suppressed_attributes(run_search(task)) == []


def said(url: str, attributes: Any, folder: Path, capsys: Any, k: int, **more: Any) -> tuple[list[str], Any]:
    text = spec_text("t", attributes, [{"k_anonymity": {"k": k}}], **more)
    (folder / "spec.yaml").write_text(text.replace("${URL}", url), "utf-8")
    capsys.readouterr()
    assert run(["search", str(folder / "spec.yaml"), "--quiet"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert run(["search", str(folder / "spec.yaml"), "--json"]) == 0
    return out.split(" is suppressed (* in every row): "), json.loads(capsys.readouterr().out)


def test_the_search_says_it(crowd: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url, attributes = crowd
    parts, answer = said(url, attributes, tmp_path, capsys, 240)
    assert len(parts) == 4
    assert "no node that shows it satisfies" in parts[1]
    assert [entry["attribute"] for entry in answer["suppressed_attributes"]] == ["age", "place", "sex"]
    assert all(
        entry.keys() == {"attribute", "level", "shown_at", "rows_to_suppress"}
        for entry in answer["suppressed_attributes"]
    )
    parts, answer = said(url, attributes, tmp_path, capsys, 60)
    age = answer["suppressed_attributes"][0]
    assert (age["shown_at"], age["level"], age["rows_to_suppress"]) == (None, 2, 103)
    assert parts[1].startswith("no node that shows it satisfies. At age level 2, 103 rows would have to be suppressed.")
    parts, answer = said(url, attributes, tmp_path, capsys, 1)
    assert (len(parts), answer["suppressed_attributes"]) == (1, [])
    parts, answer = said(url, attributes, tmp_path, capsys, 12, search={"choose_by": "loss"})
    assert answer["suppressed_attributes"]
    for part, entry in zip(parts[1:], answer["suppressed_attributes"], strict=True):
        node = ", ".join(f"{n} level {m}" for n, m in zip(("age", "place", "sex"), entry["shown_at"], strict=True))
        remedy = f"`search: {{node: {entry['shown_at']}}}`"
        assert part.startswith(
            f"a node that satisfies shows it ({node}). To publish that node, write {remedy}. A weight"
        )
        assert f" for {entry['attribute']} (search.weights, with choose_by" in part
        pinned = {"search": {"node": entry["shown_at"]}}
        now = said(url, attributes, tmp_path, capsys, 12, **pinned)[1]
        assert now["chosen"]["levels"] == entry["shown_at"]
        assert entry["attribute"] not in {other["attribute"] for other in now["suppressed_attributes"]}
    parts, answer = said(url, attributes, tmp_path, capsys, 30, search={"choose_by": "loss", "answer": "best"})
    unknown = [entry for entry in answer["suppressed_attributes"] if entry["shown_at"] is None]
    assert unknown
    rows = unknown[0]["rows_to_suppress"]
    name = unknown[0]["attribute"]
    text = f"no node that shows it is known to satisfy. At {name} level {unknown[0]['level']}, {rows} rows"
    assert any(part.startswith(text) for part in parts)
