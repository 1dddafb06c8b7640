"""The worked examples of the papers, from the rows in a database up."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from reference.worked import exact, read_rows, same_digits

from integration.sources import opened
from qblock.search.audit import audit_table
from qblock.search.run import run_search
from qblock.search.strategies import STRATEGIES

pytestmark = pytest.mark.either_engine

HELD = {
    "k": ("k_anonymity", {}, "k"),
    "distinct_l": ("distinct_l_diversity", {}, "l"),
    "frequency_l": ("frequency_l_diversity", {}, "l"),
    "entropy_l": ("entropy_l_diversity", {}, "l"),
    "t_equal": ("t_closeness", {"distance": "equal"}, "t"),
    "III_uniform_smallest_eps": ("epsilon_privacy", {"adversary": "III", "prior": "uniform"}, "epsilon"),
    "III_table_smallest_eps": ("epsilon_privacy", {"adversary": "III", "prior": "table"}, "epsilon"),
}
"""Figures of a worked example: model, parameters as reported, and the parameter tightened."""


def load(warehouse: Any, file: Path, table: str = "t") -> str:
    """The rows of a file as text columns; a `count` column is spelled out."""
    rows = read_rows(file)
    return warehouse(table, {name: [row[name] for row in rows] for name in rows[0]})


def value_of(entry: dict[str, Any], parameter: str) -> Any:
    """An exact number of an answer; a float where logarithms are involved."""
    found = next(value for value in entry["values"] if value["parameter"] == parameter)
    if found["value"] == "inf":
        return float("inf")
    value = found.get("exact", found["value"])
    return value if isinstance(value, float) else Fraction(value)


def tightest(found: list[dict[str, Any]], model: str, given: dict[str, Any]) -> dict[str, Any]:
    matching = [
        entry
        for entry in found
        if entry["model"] == model and all(entry["asked"].get(key) == value for key, value in given.items())
    ]
    assert len(matching) == 1, (model, given, found)
    return matching[0]


@pytest.mark.parametrize(
    "name",
    ["ldiv.figure2", "ldiv.figure3", "closeness.table2", "thesis.2_9", "thesis.2_10", "thesis.2_11", "thesis.2_12"],
)
def test_published_tables(warehouse, golden, shared: Path, name: str) -> None:
    entry = golden[name]
    expected = entry["expected"]
    url = load(warehouse, shared / "golden" / entry["file"])
    found = audit_table(url, "t", entry["qi"], [entry["sensitive"]])
    for figure, (model, given, parameter) in HELD.items():
        value = value_of(tightest(found["tightest"], model, given), parameter)
        if figure == "entropy_l":
            assert float(value) == pytest.approx(expected[figure]["float"], rel=1e-14)
        else:
            assert value == exact(expected[figure]), figure
    recursive = tightest(found["tightest"], "recursive_cl_diversity", {"c": 3, "l": 2})
    assert value_of(recursive, "l") == expected["recursive_largest_l"]["3"]
    assert value_of(recursive, "c") == exact(expected["recursive_infimum_c (strict: c must exceed it)"]["2"])
    assert found["rows"] == expected["N"]
    assert found["metrics"]["discernibility"] == expected["discernibility"]
    assert found["metrics"]["average_block_size"] == float(exact(expected["avg_block"]))
    homogeneity = found["attacks"][0]["homogeneity"]
    assert (homogeneity["blocks"], homogeneity["rows"]) == (
        expected["homogeneous_blocks"],
        expected["homogeneous_tuples"],
    )


def inpatients(warehouse: Any, shared: Path) -> tuple[str, dict[str, Any]]:
    folder = shared / "golden"
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier", "hierarchy": {"file": str(folder / f"inpatient_hierarchy_{name}.csv")}}
        for name in ("zip", "age", "nationality")
    }
    return load(warehouse, folder / "inpatient_raw.csv"), attributes | {"condition": "sensitive"}


def test_every_node_of_the_inpatients(warehouse, golden, shared: Path, tmp_path: Path) -> None:
    url, attributes = inpatients(warehouse, shared)
    privacy = [
        {"k_anonymity": {"k": 1}},
        {"distinct_l_diversity": {"l": 1}},
        {"entropy_l_diversity": {"l": 1}},
        {"recursive_cl_diversity": {"c": 3, "l": 1}},
    ]
    with opened(url, "t", attributes, tmp_path, privacy) as task:
        nodes = run_search(task, all_nodes=True).to_json()["nodes"]
    expected = golden["ldiv.lattice"]["expected"]["nodes"]
    assert {str(tuple(node["levels"])) for node in nodes} == expected.keys()
    for node in nodes:
        want = expected[str(tuple(node["levels"]))]
        k, distinct, entropy, recursive = node["tightest"]
        assert value_of(k, "k") == want["k"]
        assert value_of(distinct, "l") == want["distinct_l"]
        assert value_of(entropy, "l") == pytest.approx(want["entropy_l"], rel=1e-14)
        assert value_of(recursive, "l") == want["recursive_l_c3"]
        assert node["metrics"]["kl_divergence"] == pytest.approx(want["kl"], abs=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_minimal_nodes_of_the_inpatients(warehouse, golden, shared: Path, tmp_path: Path, strategy: str) -> None:
    url, attributes = inpatients(warehouse, shared)
    expected = golden["ldiv.lattice"]["expected"]
    for asked, key in (
        ({"k_anonymity": {"k": 4}}, "minimal 4-anonymous"),
        ({"distinct_l_diversity": {"l": 3}}, "minimal distinct-3"),
        ({"entropy_l_diversity": {"l": 2.8}}, "minimal entropy-2.8"),
    ):
        with opened(url, "t", attributes, tmp_path, [asked]) as task:
            assert run_search(task, strategy=strategy).to_json()["minimal"] == expected[key]


def test_entropy_at_and_beside_the_threshold(warehouse, golden, shared: Path, tmp_path: Path) -> None:
    url, attributes = inpatients(warehouse, shared)
    expected = golden["ldiv.figure3"]["expected"]
    node = golden["ldiv.figure3"]["node"]
    for text, holds in ((2.8, expected["entropy_ok_at_14/5"]), (2.83, expected["entropy_ok_at_283/100"])):
        asked = [{"entropy_l_diversity": {"l": text}}]
        with opened(url, "t", attributes, tmp_path, asked, search={"node": node}) as task:
            assert (run_search(task).chosen is not None) is holds
    for c, holds in ((2, False), (2.001, True)):  # the infimum of c at l = 3 is 2, and is never reached
        asked = [{"recursive_cl_diversity": {"c": c, "l": 3}}]
        with opened(url, "t", attributes, tmp_path, asked, search={"node": node}) as task:
            assert (run_search(task).chosen is not None) is holds


NODES = {
    "T": [0, 0],
    "T_a (age suppressed)": [1, 0],
    "T_g (gender suppressed)": [0, 1],
    "T_top": [1, 1],
}


def of_nodes(task: Any) -> dict[tuple[int, ...], list[dict[str, Any]]]:
    return {tuple(node["levels"]): node["tightest"] for node in run_search(task, all_nodes=True).to_json()["nodes"]}


def test_realistic_adversaries(warehouse, golden, shared: Path, tmp_path: Path) -> None:
    url = load(warehouse, shared / "golden" / "vldb_table3.csv")
    attributes = {name: {"role": "quasi_identifier", "hierarchy": "suppress"} for name in ("age", "gender")}
    shape = {"values": {"Flu": 12000, "Cancer": 18000}}
    one = {"epsilon": 1, "adversary": "I", "at_most": False, "stubbornness": 30000, "prior": shape}
    privacy = [
        {"epsilon_privacy": one},
        {"epsilon_privacy": {"epsilon": 1, "adversary": "III", "prior": shape}},
        {"epsilon_privacy": {"epsilon": 1, "adversary": "II", "stubbornness": 1000}},
        {"epsilon_privacy": {"epsilon": 1, "adversary": "II", "stubbornness": 30000}},
    ]
    with opened(url, "t", {**attributes, "disease": "sensitive"}, tmp_path, privacy) as task:
        assert task.source.rows == 25000
        found = of_nodes(task)
    first, second = golden["vldb.table3_classI"]["expected"], golden["vldb.table3_classII"]["expected"]
    for name, levels in NODES.items():
        mine = [value_of(entry, "epsilon") for entry in found[tuple(levels)]]
        assert mine[0] == exact(first[name]["exact"])
        assert mine[1] == exact(first[name]["classIII(.4,.6)"])
        assert mine[2] == exact(second["sigma=1000"][name]["exact"])
        assert mine[3] == exact(second["sigma=30000"][name]["exact"])


def test_a_condition_that_is_not_monotone_is_scanned(warehouse, golden, shared: Path, tmp_path: Path) -> None:
    """(n,t)-closeness on a chain whose levels pass, fail and pass again; its hierarchy is a table of the warehouse."""
    file = shared / "golden" / "nt_counterexample.csv"
    url = load(warehouse, file)
    names = ["l0", "l1", "l2", "l3"]
    with file.open(encoding="utf-8", newline="") as text:
        leaves = sorted({tuple(row[name] for name in names) for row in csv.DictReader(text)})
    warehouse("levels", dict(zip(names, zip(*leaves, strict=True), strict=True)))
    hierarchy = {"table": "levels", "levels": names}
    attributes = {"l0": {"role": "quasi_identifier", "hierarchy": hierarchy}, "s": "sensitive"}
    entry = golden["closeness.nt_not_monotone"]
    asked = [{"nt_closeness": {"n": entry["n"], "t": 0, "distance": "equal", "variant": "lattice"}}]
    with opened(url, "t", attributes, tmp_path, asked) as task:
        assert task.lattice.heights == (4,)  # `*` is added above T
        found = of_nodes(task)
        for level in range(4):
            assert value_of(found[(level,)][0], "t") == exact(entry["expected"][f"level {level} smallest t"])
        for strategy in STRATEGIES:
            result = run_search(task, strategy=strategy)
            assert result.outcome is not None
            assert result.outcome.satisfying() == [(0,), (2,), (3,), (4,)]
            assert result.minimal == [(0,)]
            assert result.outcome.optimality == "scanned"


def test_dropping_an_attribute_can_break_a_condition(warehouse, golden, shared: Path, tmp_path: Path) -> None:
    url = load(warehouse, shared / "golden" / "nt_grid.csv")
    attributes = {name: {"role": "quasi_identifier", "hierarchy": "suppress"} for name in "xy"}
    entry = golden["closeness.nt_no_subset_property"]
    asked = [{"nt_closeness": {"n": entry["n"], "t": 0.25, "distance": "equal", "variant": "lattice"}}]
    with opened(url, "t", {**attributes, "s": "sensitive"}, tmp_path, asked) as task:
        found = of_nodes(task)
        for levels, name in (((0, 0), "{x,y} smallest t"), ((0, 1), "{x}"), ((1, 0), "{y}"), ((1, 1), "{}")):
            assert value_of(found[levels][0], "t") == exact(entry["expected"][f"QI {name}"])
        for strategy in STRATEGIES:
            outcome = run_search(task, strategy=strategy).outcome
            assert outcome is not None
            assert outcome.satisfying() == [(0, 0), (1, 0), (1, 1)]


def test_several_sensitive_attributes_at_once(warehouse, golden, shared: Path, tmp_path: Path) -> None:
    url = load(warehouse, shared / "golden" / "multi_sensitive.csv")
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "S": "sensitive", "V": "sensitive"}
    models = ("distinct_l_diversity", "entropy_l_diversity")
    asked = [{model: {"l": 1, "sensitive": names}} for model in models for names in ("S", "V", ["S", "V"])]
    expected = golden["ldiv.multi"]["expected"]
    with opened(url, "t", attributes, tmp_path, asked) as task:
        found = of_nodes(task)[(0,)]
    for i, name in enumerate("SV"):
        assert value_of(found[i], "l") == expected[f"{name} alone"]["distinct_l"]
        assert same_digits(Fraction(value_of(found[3 + i], "l")), expected[f"{name} alone"]["entropy_l"]["float"])
    together = [value for key, value in expected.items() if key.startswith("multi-attribute distinct_l")]
    assert value_of(found[2], "l") == min(together)
    assert found[2]["sensitive"] == ["S", "V"]
