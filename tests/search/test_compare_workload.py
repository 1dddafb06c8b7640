"""compare --workload: the error of somebody's own count queries at every node, against their definition."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import qblock
from qblock.cli.app import run

Row = tuple[int, str, str]
ROWS = st.lists(st.tuples(st.integers(20, 45), st.sampled_from("abc"), st.sampled_from("xyz")), min_size=2, max_size=16)
QUERIES = (
    {"age": {"from": 20, "to": 33}},
    {"town": ["a"], "ill": ["x"]},
    {"age": {"from": 30}, "town": ["a", "b"], "ill": ["x", "y"]},
)
"""About values that a first row of each kind makes sure of."""
SURE: list[Row] = [(20, "a", "x"), (45, "b", "y")]


def spec_of(folder: Path, rows: list[Row], *, limit: int = 0) -> dict[str, Any]:
    pd.DataFrame(rows, columns=["age", "town", "ill"]).to_parquet(folder / "rows.parquet")
    return {
        "version": 1,
        "release": "people",
        "source": {"file": str(folder / "rows.parquet")},
        "attributes": {
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5, 10]}},
            "town": {"role": "quasi_identifier", "hierarchy": "suppress"},
            "ill": "sensitive",
        },
        "privacy": [{"k_anonymity": {"k": 3}}],
        "suppression_limit": limit,
        "publish": {"url": f"duckdb:///{folder}/release.duckdb"},
        "versions": {"joint": "none"},
    }


def label(name: str, value: Any, level: int) -> Any:
    """What a row shows: ranges of 5 and 10, and `*`."""
    if name == "age" and level < 3:
        return value if level == 0 else value // (5 * level) * 5 * level
    return value if name == "town" and level == 0 else "*"


def wanted(query: dict[str, Any], name: str, value: Any) -> bool:
    condition = query.get(name)
    if isinstance(condition, dict):
        return bool(condition.get("from", value) <= value <= condition.get("to", value))
    return condition is None or value in condition


def answers(rows: list[Row], query: dict[str, Any], node: tuple[int, int], least: int) -> tuple[int, Fraction]:
    """How many rows are asked for, and how many are expected from what is published.

    Each row of a block of `least` rows counts with the share of its labels that is asked for."""
    values = [sorted({row[0] for row in rows}), sorted({row[1] for row in rows})]
    blocks = Counter((label("age", row[0], node[0]), label("town", row[1], node[1])) for row in rows)
    true = sum(all(wanted(query, name, row[i]) for i, name in enumerate(("age", "town", "ill"))) for row in rows)
    expected = Fraction(0)
    for row in rows:
        shown = (label("age", row[0], node[0]), label("town", row[1], node[1]))
        if blocks[shown] < least or not wanted(query, "ill", row[2]):
            continue
        share = Fraction(1)
        for i, name in enumerate(("age", "town")):
            under = [value for value in values[i] if label(name, value, node[i]) == shown[i]]
            share *= Fraction(sum(wanted(query, name, value) for value in under), len(under))
        expected += share
    return true, expected


def error(rows: list[Row], query: dict[str, Any], node: tuple[int, int], least: int) -> Fraction:
    true, expected = answers(rows, query, node, least)
    return abs(expected - true) / max(Fraction(true), Fraction(len(rows), 1000))


def mean_error(rows: list[Row], node: tuple[int, int], least: int) -> float:
    return float(sum(error(rows, query, node, least) for query in QUERIES) / len(QUERIES))


def write_queries(folder: Path, text: str | None = None) -> Path:
    lines = "".join(f"- {query}\n" for query in QUERIES)
    (folder / "queries.yaml").write_text(lines if text is None else text, "utf-8")
    return folder / "queries.yaml"


@settings(max_examples=8, deadline=None, derandomize=True)
@given(rows=ROWS, limit=st.integers(0, 4))
def test_the_error_of_every_node_is_that_of_the_definition(
    rows: list[Row], limit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, rows = tmp_path_factory.mktemp("rows"), SURE + rows
    release = qblock.Release(spec_of(folder, rows, limit=min(limit, len(rows) - 1)))
    answer = release.compare(workload=write_queries(folder))
    assert (answer.workload.queries, answer.workload.drawn) == (3, False)
    assert {node.levels for node in answer.nodes} == set(product(range(4), range(2)))
    for node in answer.nodes:
        assert node.metrics["query_error"] == pytest.approx(mean_error(rows, node.levels, 1))
    best = answer.asked[0].best
    if best:
        levels = best["query_error"].levels
        assert best["query_error"].value == pytest.approx(mean_error(rows, levels, 3))
        satisfying = [node.levels for node in answer.nodes if all(node.satisfied.values())]
        assert best["query_error"].value <= min(mean_error(rows, node, 3) for node in satisfying) + 1e-9


def test_drawn_queries_and_none(tmp_path: Path) -> None:
    release = qblock.Release(spec_of(tmp_path, SURE * 5))
    drawn = release.compare(workload=write_queries(tmp_path, "{queries: 7, seed: 3}\n"))
    assert (drawn.workload.queries, drawn.workload.drawn) == (7, True)
    plain = release.compare()
    assert plain.workload is None
    assert "workload" not in plain.to_dict()
    assert "query_error" not in plain.nodes[0].metrics
    assert plain.to_dict()["nodes"][0]["tightest"] == drawn.to_dict()["nodes"][0]["tightest"]


def test_both_recodings_are_measured_by_it(tmp_path: Path) -> None:
    rows = SURE * 5 + [(21, "a", "y"), (44, "b", "x")]
    release = qblock.Release(spec_of(tmp_path, rows))
    answer = release.compare_recodings(workload=write_queries(tmp_path))
    assert (answer.workload.queries, answer.workload.drawn) == (3, False)
    side = answer.recodings.full_domain
    assert side.metrics["query_error"] == pytest.approx(mean_error(rows, side.levels, 1))


def test_the_command_shows_it_beside_the_other_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:

    spec, queries = tmp_path / "spec.yaml", write_queries(tmp_path)
    spec.write_text(yaml.safe_dump(spec_of(tmp_path, SURE * 5)), "utf-8")
    files = ["--csv", str(tmp_path / "all.csv"), "--parquet", str(tmp_path / "all.parquet")]
    assert run(["compare", str(spec), "--workload", str(queries), "--quiet", *files]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "best query" in printed
    assert "query error: the mean over 3 queries of --workload" in printed
    table = pd.read_parquet(tmp_path / "all.parquet")
    assert list(table["query_error"]) == pytest.approx(list(pd.read_csv(tmp_path / "all.csv")["query_error"]))
    assert run(["compare", str(spec), "--workload", str(queries), "--recoding", "both", "--quiet"]) == 0
    assert "query error: over 3 queries of --workload" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "queries.yaml:1: the file is empty"),
        ("- {aeg: [1]}\n", "queries.yaml:1: aeg is neither a quasi_identifier nor sensitive; did you mean age?"),
        ("- {age: 5}\n", "queries.yaml:1: query 1, age: neither values nor a range; write [a, b] or {from: a, to: b}"),
        ("5\n", "queries.yaml:1: the file is not a workload; valid: {queries: 500, seed: 1}, or a list of queries"),
        ("{querys: 5}\n", "querys is not a key of a drawn workload; did you mean queries?"),
        ("- {age: [\n", "queries.yaml:2: not YAML"),
        ("- {town: [secret]}\n", "query 1, town: (not shown) is not a value of town"),
        ("- {age: {from: 90}}\n", "query 1, age: no value of age is in this range"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(text: str, said: str, tmp_path: Path) -> None:
    release = qblock.Release(spec_of(tmp_path, SURE * 5))
    file = write_queries(tmp_path, text)
    for ask in (release.compare, release.compare_recodings):
        with pytest.raises(qblock.InputError) as caught:
            ask(workload=file)
        assert said in str(caught.value)
        assert str(caught.value).startswith(str(file))
