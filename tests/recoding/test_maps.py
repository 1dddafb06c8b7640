"""Recoding maps of small random tables, from the command line's point of view: what is found, said and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.sources import make_spec
from search.whole import HIERARCHIES, load, rows_of, text_of

from qblock.errors import InputError
from qblock.search.result import SearchResult
from qblock.search.run import open_task, run_search
from qblock.spec import Spec, read_spec

MAP = "search: {recoding: multidimensional, choose_by: loss}\n"
LEAVES = {name: list(paths) for name, paths in HIERARCHIES.items()}


def found(warehouse: Any, folder: Path, rows: list[Any], privacy: list[str], more: str = MAP) -> dict[str, Any]:
    """What a search answers, with the boxes."""
    return answered(load(warehouse, folder, rows, privacy, more))


def answered(spec: Spec) -> dict[str, Any]:
    with open_task(spec) as task:
        result = run_search(task)
        return {**result.to_json(), "box_labels": boxes_of(result)}


def boxes_of(result: SearchResult) -> list[tuple[str, ...]]:
    assert result.recoded is not None
    return result.recoded.boxes


def test_a_map_shows_more_than_a_node(warehouse: Any, tmp_path: Path) -> None:
    rows = rows_of(3, 60)
    answer = found(warehouse, tmp_path, rows, ["k_anonymity: {k: 4}"])
    assert answer["chosen"]["boxes"] == len(answer["box_labels"]) > 1
    assert answer["chosen"]["metrics"]["loss"] < answer["full_domain"]["metrics"]["loss"]
    assert answer["chosen"]["tightest"][0]["holds"]
    assert answer["looked_at_sensitive"] is False
    assert sum(one["share"] for one in answer["chosen"]["attributes"][0]["labels"]) == pytest.approx(1)


def test_any_order_of_rows_gives_the_same_map(warehouse: Any, tmp_path: Path) -> None:
    rows = rows_of(5, 80)
    spec = load(warehouse, tmp_path, rows, ["entropy_l_diversity: {l: 2, sensitive: s}"], MAP)
    warehouse("turned", {name: [row[name] for row in rows[::-1]] for name in rows[0]})
    one, other = answered(spec), answered(replace(spec, source=replace(spec.source, table="turned")))
    assert one["box_labels"] == other["box_labels"]
    assert one["chosen"] == other["chosen"]
    assert one["looked_at_sensitive"] is True


def test_children_that_fail_are_published_together(warehouse: Any, tmp_path: Path) -> None:
    rows = [{"person": f"p{i}", "a": "a0", "b": b, "s": "u", "y": 1} for i, b in enumerate("0000112")]
    for row in rows:
        row["b"] = "b" + row["b"]
    answer = found(warehouse, tmp_path, rows, ["k_anonymity: {k: 3}"])
    assert answer["box_labels"] == [("a0", "* (other 1)"), ("a0", "b0")]


def test_a_workload_of_another_attribute_changes_no_other_metric(warehouse: Any, tmp_path: Path) -> None:
    privacy = ["k_anonymity: {k: 4}"]
    spec = load(warehouse, tmp_path, rows_of(3, 60), privacy, MAP)
    asked = text_of(spec.source.url.url, privacy, MAP.replace("}", ", workload: [{a: [a0], y: [1, 2]}]}"))
    about_y = answered(read_spec(asked, tmp_path / "spec.yaml", {}))["chosen"]["metrics"]
    assert about_y.pop("query_error") > 0
    assert about_y == answered(spec)["chosen"]["metrics"]


def test_where_nothing_satisfies_there_is_no_map(warehouse: Any, tmp_path: Path) -> None:
    answer = found_or_none(warehouse, tmp_path, "k_anonymity: {k: 30}")
    assert answer["chosen"] is None
    assert "there is no map" in answer["why"]


def found_or_none(warehouse: Any, folder: Path, entry: str) -> dict[str, Any]:
    with open_task(load(warehouse, folder, rows_of(3, 20), [entry], MAP)) as task:
        return run_search(task).to_json()


def test_failing_parts_are_suppressed_within_the_limit(warehouse: Any, tmp_path: Path) -> None:
    rows = [{"person": f"p{i}", "a": "a0", "b": "b0" if i < 8 else "b1", "s": "u", "y": 1} for i in range(10)]
    spec = load(warehouse, tmp_path, rows, ["k_anonymity: {k: 4}"], f"suppression_limit: 2\n{MAP}")
    answer = answered(spec)
    assert answer["box_labels"] == [("a0", "b0")]
    assert answer["chosen"]["suppressed"] == 2
    kept = answered(replace(spec, suppression_limit=1))
    assert kept["box_labels"] == [("a0", "*")]


def test_people_are_counted_once(warehouse: Any, tmp_path: Path) -> None:
    rows = [{"person": f"p{i % 3}", "a": "a0", "b": "b0" if i < 6 else "b1", "s": "u", "y": 1} for i in range(12)]
    answer = found(
        warehouse, tmp_path, rows, ["k_anonymity: {k: 3}"], f"count: entities\nversions: {{joint: none}}\n{MAP}"
    )
    assert answer["box_labels"] == [("a0", "b0"), ("a0", "b1")]


@pytest.mark.parametrize(
    ("more", "privacy", "said"),
    [
        (MAP.replace("loss", "height"), "k_anonymity: {k: 2}", "search: choose_by"),
        (MAP, "nt_closeness: {n: 5, t: 0.3, sensitive: s}", "partition or own_or_top"),
        ("", "nt_closeness: {n: 5, t: 0.3, sensitive: s, variant: partition}", "recoding: multidimensional"),
        (MAP.replace("}", ", node: [1, 1]}"), "k_anonymity: {k: 2}", "has no levels"),
        (
            "search: {box: {least: 5}}\n",
            "k_anonymity: {k: 2}",
            "`search: {recoding: multidimensional, box: {least: 5}}`",
        ),
        (
            MAP.replace("}", ", box: {least: 0}}"),
            "k_anonymity: {k: 2}",
            "0 is out of range; valid: a whole number >= 1",
        ),
    ],
)
def test_what_a_map_cannot_have_is_refused(tmp_path: Path, more: str, privacy: str, said: str) -> None:
    with pytest.raises(InputError, match=said if "choose_by" not in said else "cannot choose between splits"):
        read_spec(text_of("duckdb:///x.duckdb", [privacy], more), tmp_path / "spec.yaml", {})


def test_a_label_never_stands_for_two_sets_of_values(warehouse: Any, tmp_path: Path) -> None:
    spec = load(warehouse, tmp_path, rows_of(3, 40), ["k_anonymity: {k: 2}"], MAP)
    # `a2` is a value, and the label of two others.
    (tmp_path / "a.csv").write_text("v,w,top\na0,a2,*\na1,a2,*\na2,x,*\na3,x,*\n", "utf-8")
    with open_task(spec) as task, pytest.raises(InputError, match="would stand for different values"):
        _ = boxes_of(run_search(task))


def test_of_two_cuts_as_near_to_the_median_the_lower_one_is_taken(warehouse: Any, tmp_path: Path) -> None:
    """Three rows, one and three: either cut beside the one in the middle leaves three and four."""
    ages = [1, 1, 1, 2, 3, 3, 3]
    url = warehouse("people", {"age": ages, "s": ["u", "v", "w", "u", "v", "w", "u"]})
    attributes = {"age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}}, "s": "sensitive"}
    search = {"recoding": "multidimensional", "choose_by": "loss"}
    spec = make_spec(url, "people", attributes, [{"k_anonymity": {"k": 3}}], tmp_path, search=search)
    assert answered(spec)["box_labels"] == [("1",), (">=2",)]
