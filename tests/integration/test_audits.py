"""Audits: of a node of a spec, and of a table that anybody generalized by any means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engines import table_name

from integration.hostile import NAMES
from integration.sources import make_spec, quoted
from integration.test_worked_examples import inpatients, load, tightest
from qblock.errors import InputError, Refused
from qblock.models import BY_NAME
from qblock.search.audit import audit_spec, audit_table
from qblock.search.run import open_task, run_search
from qblock.spec import Spec

pytestmark = pytest.mark.either_engine

QUASI = ["zip", "age", "nationality"]


def searched(spec: Spec) -> None:
    with open_task(spec) as task:
        run_search(task)


def by_model(found: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {
        (entry["model"], str({k: v for k, v in entry["asked"].items() if k != "k"})): entry["values"]
        for entry in found["tightest"]
    }


@pytest.mark.parametrize(
    ("node", "text"),
    [("ldiv.figure2", "2,1,1"), ("ldiv.figure3", "zip=1,age=2,nationality=1")],
)
def test_a_node_and_the_table_published_from_it_are_equally_safe(
    warehouse, golden, shared: Path, tmp_path: Path, node: str, text: str
) -> None:
    url, attributes = inpatients(warehouse, shared)
    spec = make_spec(url, "t", attributes, [{"k_anonymity": {"k": 4}}], tmp_path)
    at_node = audit_spec(spec, text)
    load(warehouse, shared / "golden" / golden[node]["file"], "published")
    as_published = audit_table(url, "published", QUASI, ["condition"])
    assert by_model(at_node) == by_model(as_published)
    assert at_node["attacks"] == as_published["attacks"]
    assert at_node["satisfied"]
    assert at_node["levels"] == golden[node]["node"]
    assert as_published["levels"] == [0, 0, 0]
    for metric in ("discernibility", "average_block_size"):
        assert at_node["metrics"][metric] == as_published["metrics"][metric]
    assert at_node["metrics"]["kl_divergence"] == pytest.approx(golden[node]["expected"]["kl"]["float"])


def test_the_pinned_node_is_audited_else_the_table_as_it_is(warehouse, shared: Path, tmp_path: Path) -> None:
    url, attributes = inpatients(warehouse, shared)
    asked = [{"k_anonymity": {"k": 2}}]
    assert audit_spec(make_spec(url, "t", attributes, asked, tmp_path))["levels"] == [0, 0, 0]
    pinned = make_spec(url, "t", attributes, asked, tmp_path, search={"node": [1, 2, 1]})
    assert audit_spec(pinned)["levels"] == [1, 2, 1]
    assert audit_spec(pinned, "bottom")["levels"] == [0, 0, 0]
    assert audit_spec(pinned, "top")["levels"] == [3, 3, 1]
    for wrong in ("zip=4", "zip=1,zip=2", "zap=1", "1,2", "1,2,3,4", "a", "", "zip=-1", "zip=x", "0,0,2"):
        with pytest.raises(InputError, match=r"zip 0\.\.3, age 0\.\.3, nationality 0\.\.1"):
            audit_spec(pinned, wrong)
    beyond = make_spec(url, "t", attributes, asked, tmp_path, search={"node": [1, 4, 1]})
    for question in (audit_spec, searched):
        with pytest.raises(InputError, match=r"node \[1, 4, 1\] is not in the lattice; levels: zip 0\.\.3, age 0\.\.3"):
            question(beyond)


def test_null_and_a_star_are_blocks_apart(warehouse) -> None:
    url = warehouse("t", {"q": ["*", None, "x", "x", "*", "*"], "s": ["a", "b", None, "c", "a", "b"]})
    found = audit_table(url, "t", ["q"], ["s"])
    assert by_model(found)["k_anonymity", "{}"][0]["value"] == 1
    assert found["metrics"]["discernibility"] == 9 + 1 + 4
    assert found["rows"] == 6


def test_null_is_a_value_only_where_there_is_one(warehouse) -> None:
    """The domain decides the uniform prior: a value too many and the figure is wrong."""
    url = warehouse("t", {"q": ["x"] * 9, "s": ["a"] * 8 + ["b"], "n": ["a"] * 8 + [None]})
    for name in "sn":
        found = audit_table(url, "t", ["q"], [name])
        given = {"adversary": "III", "prior": "uniform"}
        assert tightest(found["tightest"], "epsilon_privacy", given)["values"][0]["exact"] == "9/2"


@pytest.mark.parametrize("source", ["INTEGER", "VARCHAR", "DECIMAL(6,2)"])
def test_a_prior_counts_equal_values_of_another_type(warehouse, tmp_path: Path, source: str) -> None:
    """Values of the prior's table that the source's type cannot hold have no part; each count weighs one more."""
    url = warehouse("t", {"q": ["x"] * 4, "s": ["1", "1", "1", "2"]}, {"q": "VARCHAR", "s": source})
    point = ".00" if source == "DECIMAL(6,2)" else ""
    warehouse("numbers", {"v": [1, 2, 2, 7]}, {"v": "INTEGER"})
    warehouse("texts", {"v": [f"1{point}", f"2{point}", f"2{point}", "none"]}, {"v": "VARCHAR"})
    priors: list[dict[str, Any]] = [{"from_table": table, "column": "v"} for table in ("numbers", "texts")]
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "s": {"role": "sensitive"}}
    reached = set()
    for prior in [*priors, {"values": {f"1{point}": 2, f"2{point}": 3}}]:
        asked = [{"epsilon_privacy": {"epsilon": 3, "adversary": "III", "prior": prior}}]
        found = audit_spec(make_spec(url, "t", attributes, asked, tmp_path))["tightest"][0]
        assert found["model"] == "epsilon_privacy"
        reached.add(found["values"][0]["exact"])
    assert reached == {"12/5"}


def test_hostile_names(warehouse, engine_name: str) -> None:
    for start in range(0, len(NAMES), 12):
        names = NAMES[start : start + 12]
        schema, table = (table_name(engine_name, name) for name in (f"{names[0]} ", f"{names[-1]} t"))
        columns = {name: ["1", "1", None, "*"] for name in names} | {"the other": ["a", "b", "a", "c"]}
        url = warehouse(table, columns, schema=schema)
        found = audit_table(url, quoted(schema, table), names, ["the other"])
        assert found["node"] == dict.fromkeys(names, 0)
        assert found["metrics"]["discernibility"] == 4 + 1 + 1


def test_what_cannot_be_audited(warehouse) -> None:
    url = warehouse("people", {"age": [1], "illness": ["x"]})
    with pytest.raises(InputError, match=r"no column 'agee'; did you mean age"):
        audit_table(url, "people", ["agee"], [])
    with pytest.raises(InputError, match=r"table peeple does not exist.*did you mean (public\.)?people"):
        audit_table(url, "peeple", ["age"], [])
    warehouse("nobody", {"age": []}, {"age": "INTEGER"})
    with pytest.raises(Refused, match="nobody is empty"):
        audit_table(url, "nobody", ["age"], [])


def covered(found: dict[str, Any]) -> set[str]:
    return {entry["model"] for entry in found["tightest"]} | {entry["model"] for entry in found["not_computed"]}


def test_every_model_is_computed_or_said_to_need_more(warehouse) -> None:
    """Of a table nothing is known beside its rows: texts have no order, and there is no population."""
    url = warehouse("t", {"q": list("xxyy"), "s": list("abab"), "n": [1, 2, 3, 4]})
    found = audit_table(url, "t", ["q"], ["s", "n"])
    assert covered(found) == set(BY_NAME)
    assert {(entry["what"], entry["why"].split(":")[0]) for entry in found["not_computed"]} == {
        ("k_map", "needs a population table"),
        ("delta_presence", "needs a population table"),
        ("t_closeness (s, distance=ordered)", "needs an order"),
        ("t_closeness (s, distance=hierarchical)", "needs a taxonomy"),
        ("t_closeness (n, distance=hierarchical)", "needs a taxonomy"),
        ("epsilon_m_anonymity (s, epsilon=0)", "needs numbers"),
        ("delta_l_diversity (s, delta=0, l=2)", "needs numbers"),
    }
    assert tightest(found["tightest"], "delta_l_diversity", {"delta": 3 / 20})["values"][0]["value"] == 2


def test_a_population_of_the_spec_serves_every_model_that_needs_one(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"q": list("xxy"), "s": list("aba")})
    warehouse("people", {"q": list("xxxxy")})
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    asked = [{"delta_presence": {"min": 0, "max": 0.75, "population": {"table": "people"}}}]
    found = audit_spec(make_spec(url, "t", attributes, asked, tmp_path))
    assert covered(found) == set(BY_NAME)
    (presence,) = [entry for entry in found["tightest"] if entry["model"] == "delta_presence"]
    assert (presence["holds"], [value["value"] for value in presence["values"]]) == (False, [0.5, 1])
    (mapped,) = [entry for entry in found["tightest"] if entry["model"] == "k_map"]
    assert (mapped["holds"], mapped["asked"]["population"], mapped["values"][0]["value"]) == (None, "people", 1)


def test_what_the_spec_asks_is_not_said_twice(warehouse, tmp_path: Path) -> None:
    """Another distance is another question; another number is none."""
    url = warehouse("t", {"q": list("xxyy"), "s": [1, 2, 1, 1]})
    attributes = {"q": {"role": "quasi_identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    asked = [{"recursive_cl_diversity": {"c": 5, "l": 3}}, {"t_closeness": {"t": 0.5, "distance": "ordered"}}]
    found = audit_spec(make_spec(url, "t", attributes, asked, tmp_path))["tightest"]
    (recursive,) = [entry for entry in found if entry["model"] == "recursive_cl_diversity"]
    assert recursive["holds"] is False
    assert recursive["meaning"] == (
        "among rows that look the same, the most frequent value of s occurs less than 5 times as often as the value "
        "of rank 3 and all rarer ones together"
    )
    assert [(entry["asked"]["distance"], entry["holds"]) for entry in found if entry["model"] == "t_closeness"] == [
        ("ordered", True),
        ("equal", None),
    ]
