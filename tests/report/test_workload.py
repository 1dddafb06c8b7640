"""The page on count queries: figures against the definition, row by row; true counts are on internal pages alone."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from search.test_compare_workload import QUERIES, ROWS, SURE, Row, answers, error, spec_of

import qblock

MANY = [{"age": {"from": 20 + i}, "ill": ["x"]} for i in range(14)]


SPREAD: list[Row] = [(20 + i % 26, "aabc"[i % 4], "xyz"[i // 3 % 3]) for i in range(90)]


def release_of(folder: Path, rows: list[Row], limit: int = 0, **search: Any) -> qblock.Release:
    """From a file, beside which the ledger is."""
    spec = spec_of(folder, rows, limit=limit) | ({"search": search} if search else {})
    (folder / "spec.yaml").write_text(yaml.safe_dump(spec), "utf-8")
    return qblock.Release(folder / "spec.yaml")


@settings(max_examples=4, deadline=None, derandomize=True)
@given(rows=ROWS, limit=st.integers(0, 4))
def test_figures_are_those_of_the_definition(
    rows: list[Row], limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [*SURE, *rows, *SURE]
    release = release_of(tmp_path_factory.mktemp("rows"), rows, limit, workload=list(QUERIES))
    shown = release.report(candidate=True).internal.workload
    errors = [error(rows, query, shown.levels, 3) for query in QUERIES]
    assert (shown.queries, shown.drawn) == (3, False)
    assert shown.median == pytest.approx(float(median(errors)))
    assert shown.worst == pytest.approx(float(max(errors)))
    assert [query.error for query in shown.worst_queries] == pytest.approx(sorted(map(float, errors), reverse=True))
    for query in shown.worst_queries:
        true, expected = answers(rows, QUERIES[query.number - 1], shown.levels, 3)
        assert query.true == true
        assert query.expected == pytest.approx(float(expected))


def test_suppressed_rows_are_missing_from_what_is_expected(tmp_path: Path) -> None:
    rows = [*SURE * 3, (33, "c", "z")]
    queries = [{"town": ["a"]}, {"town": ["c"]}]
    shown = release_of(tmp_path, rows, 1, workload=queries, node=[0, 0]).report(candidate=True).internal.workload
    figures = [(query.number, query.true, query.expected, query.error) for query in shown.worst_queries]
    assert figures == [(2, 1, 0, 1), (1, 3, 3, 0)]
    assert (shown.median, shown.worst) == (0.5, 1)


def test_the_worst_ten_are_named_as_they_are_written(tmp_path: Path) -> None:
    report = release_of(tmp_path, SPREAD, workload=[*MANY, {"town": ["a", "b"]}]).report(candidate=True)
    shown = report.internal.workload
    assert (shown.queries, len(shown.worst_queries)) == (15, 10)
    errors = [query.error for query in shown.worst_queries]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == shown.worst > 0
    written = [*(f"age from {20 + i}; ill x" for i in range(14)), "town a or b"]
    assert all(query.query == written[query.number - 1] for query in shown.worst_queries)
    page = report.text("md")
    assert "## Count queries (internal)" in page
    assert "The worst 10 of 15 queries; true counts are of the source" in page
    assert f"{100 * shown.median:,.1f} % in the median" in page


def test_drawn_queries_name_no_value(tmp_path: Path) -> None:
    rows = [(age, f"secret {town}", ill) for age, town, ill in SPREAD]
    shown = release_of(tmp_path, rows, workload={"queries": 30}).report(candidate=True).internal.workload
    assert (shown.queries, shown.drawn) == (30, True)
    assert all("ill: " in query.query for query in shown.worst_queries)
    assert "secret" not in json.dumps(shown.to_dict())
    by_metric = release_of(tmp_path, rows, choose_by="query_error").report(candidate=True)
    assert by_metric.internal.workload.queries == 200


def test_without_a_workload_or_a_node_the_page_says_how_to_name_one(tmp_path: Path) -> None:
    without = release_of(tmp_path, SPREAD).report(candidate=True)
    nowhere = release_of(tmp_path, SURE, workload=[{"town": ["a"]}]).report(candidate=True)  # two people; k is 3
    for report in (without, nowhere):
        assert report.internal.workload is None
        assert "No count query is named, or no node satisfies the spec" in report.text("md")


def test_readers_see_nothing_of_it(tmp_path: Path) -> None:
    release = release_of(tmp_path, SPREAD, workload=MANY)
    assert release.publish().status == "published"
    inside, outside = release.report(internal=True), release.report()
    assert inside.internal.workload.levels == tuple(release.history().events[-1].node)
    for form in ("html", "md", "json"):
        assert "workload" not in outside.text(form)
        assert "Count queries" not in outside.text(form)
    assert "true counts are of the source" in inside.text("html")


def test_of_a_map_it_is_about_the_blocks_that_readers_see(tmp_path: Path) -> None:
    release = release_of(tmp_path, SPREAD, workload=MANY, recoding="multidimensional")
    assert release.publish().status == "published"
    report = release.report(internal=True)
    assert report.internal.workload.levels is None
    assert "answered from the map" in report.text("md")
