"""Values that parameters name are compared as their column compares them, and NULL is no text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from integration.sources import execute, make_spec, opened

from qblock.adversary import external_stubbornness
from qblock.errors import InputError
from qblock.search.run import open_task
from qblock.search.workload import workload_of
from qblock.spec import read_spec
from source.test_sources import QUASI

pytestmark = pytest.mark.either_engine

KNOWS = {"epsilon": 100, "adversary": "III"}


def verdict(url: str, folder: Path, model: Mapping[str, Any], **sensitive: Any) -> Any:
    attributes = {"a": QUASI, "s": {"role": "sensitive", **sensitive}}
    with opened(url, "t", attributes, folder, [model]) as task:
        return task.assess(task.lattice.bottom).tightest[0]


def value(url: str, folder: Path, model: Mapping[str, Any], **sensitive: Any) -> Any:
    return verdict(url, folder, model, **sensitive).values[0].value


def test_null_does_not_take_the_weight_of_the_empty_string(warehouse, tmp_path: Path) -> None:
    """Without a weight of its own NULL has the share 0, and the block that holds it no finite epsilon."""
    url = warehouse("t", {"a": ["x"] * 4, "s": ["", None, "b", "b"]})
    weights = {"epsilon_privacy": {**KNOWS, "prior": {"values": {"": 1, "b": 1}}}}
    assert value(url, tmp_path, weights, nulls="value") == math.inf
    both = {"epsilon_privacy": {**KNOWS, "prior": {"values": {"": 1, "b": 2, None: 1}}}}
    assert value(url, tmp_path, both, nulls="value") == 1
    execute(url, "DELETE FROM t WHERE s IS NULL")
    with pytest.raises(InputError, match="weight to NULL, which is not in the domain of s"):
        value(url, tmp_path, both)


def test_a_null_key_is_not_the_text_null(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 6, "s": ["null", None, None, "", "", ""]})
    text = """
version: 1
release: r
source: {url: "${URL}", table: t}
attributes:
  a: {role: quasi_identifier, hierarchy: suppress}
  s: {role: sensitive, nulls: value}
privacy:
  - epsilon_privacy: {epsilon: 9, adversary: III, prior: {values: {"null": 1, null: 2, "": 3}}}
"""
    with open_task(read_spec(text, tmp_path / "s.yaml", {"URL": url})) as task:
        ((part,),) = task.counts(task.lattice.bottom).parts
        found = dict(zip(part.reference.domain, part.reference.prior or (), strict=True))
    assert found == {"null": 1, None: 2, "": 3}
    twice = text.replace('"null": 1, null: 2', "null: 1, ~: 2")
    with pytest.raises(InputError, match=r"prior.values.\(not shown\): the key ~ appears twice"):
        read_spec(twice, tmp_path / "s.yaml", {"URL": url})


def test_a_column_may_still_be_called_null(tmp_path: Path) -> None:
    attributes = {"null": QUASI, "s": "sensitive"}
    spec = make_spec("duckdb:///x", "t", attributes, [{"k_anonymity": {"k": 2}}], tmp_path)
    assert spec.quasi_identifiers == ("null",)


@pytest.mark.parametrize("type_", ["VARCHAR", "INTEGER"])
def test_nulls_of_a_prior_table_are_counted(warehouse, tmp_path: Path, type_: str) -> None:
    url = warehouse("t", {"a": ["x"] * 4, "s": ["1", "2", None, None]}, {"s": type_})
    warehouse("before", {"v": ["1"] * 3 + ["2"] * 2 + [None] * 9 + ["7"], "y": [1] * 13 + [2, 1]}, {"v": type_})
    model = {"epsilon_privacy": {"epsilon": 9, "adversary": "I", "prior": {"from_table": "before", "column": "v"}}}
    attributes = {"a": QUASI, "s": {"role": "sensitive", "nulls": "value"}}
    with opened(url, "t", attributes, tmp_path, [model]) as task:
        ((part,),) = task.counts(task.lattice.bottom).parts
        reference = part.reference
    assert dict(zip(reference.domain, reference.prior or (), strict=True)) == {"1": 3, "2": 2, None: 9}
    assert external_stubbornness(reference) == 3 + 2 + 9 + 3
    model["epsilon_privacy"]["prior"]["where"] = {"y": 1}
    with opened(url, "t", attributes, tmp_path, [model]) as task:
        ((part,),) = task.counts(task.lattice.bottom).parts
        assert part.reference.prior == (3, 2, 8)


def test_a_prior_table_of_another_type(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 2, "s": [Decimal("1.5"), None]}, {"s": "DECIMAL(12,4)"})
    warehouse("before", {"v": ["1.5", "1.50", "x", None], "y": [Decimal("2.50")] * 4}, {"y": "DECIMAL(12,4)"})
    prior = {"from_table": "before", "column": "v", "where": {"y": 2.5}}
    model = {"epsilon_privacy": {"epsilon": 9, "adversary": "I", "prior": prior}}
    attributes = {"a": QUASI, "s": {"role": "sensitive", "nulls": "value"}}
    with opened(url, "t", attributes, tmp_path, [model]) as task:
        ((part,),) = task.counts(task.lattice.bottom).parts
        assert part.reference.prior == (2, 1)
    prior["where"] = {"y": "much"}
    with pytest.raises(InputError, match=r"'much' is not a value of column y of the prior's table before"):
        value(url, tmp_path, model, nulls="value")


NAMING: list[dict[str, Any]] = [
    {"pd_recursive_cl_diversity": {"c": 2, "l": 2, "allowed": ["{}"]}},
    {"npd_recursive_cl_diversity": {"c1": 2, "c2": 1, "l": 1, "allowed": ["{}"], "protected": ["{}"]}},
    {"alpha_k_anonymity": {"alpha": 0.5, "k": 1, "values": ["{}"]}},
    {"epsilon_privacy": {**KNOWS, "predicates": [["{}"]]}},
    {"epsilon_privacy": {**KNOWS, "prior": {"values": {"{}": 3, "{other}": 1}}}},
]
SPELLINGS: list[tuple[str, list[Any], str, list[str]]] = [
    ("DECIMAL(12,4)", [Decimal("1.5"), Decimal("20")], "2e1", ["1.5", "1.50", "1.5000", "15e-1", "+1.5"]),
    ("BIGINT", [7, 20], "+20", ["7", "007", "+7"]),
    ("DOUBLE PRECISION", [0.1, 20.0], "2e1", ["0.1", "0.10", "1e-1"]),
    (
        "TIMESTAMP",
        [datetime(2024, 1, 1), datetime(2024, 5, 1, 12)],
        "2024-05-01T12:00",
        ["2024-01-01 00:00:00", "2024-01-01", "2024-01-01T00:00", "2024-01-01 00:00:00.000"],
    ),
    ("BOOLEAN", [True, False], "FALSE", ["true", "TRUE", "True"]),
]


def filled(model: Any, name: str, other: str) -> Any:
    if isinstance(model, dict):
        return {filled(key, name, other): filled(item, name, other) for key, item in model.items()}
    if isinstance(model, list):
        return [filled(item, name, other) for item in model]
    return {"{}": name, "{other}": other}.get(model, model) if isinstance(model, str) else model


@pytest.mark.parametrize(("type_", "values", "other", "spellings"), SPELLINGS, ids=[s[0] for s in SPELLINGS])
def test_every_spelling_of_a_value_is_that_value(
    warehouse, tmp_path: Path, type_: str, values: list[Any], other: str, spellings: list[str]
) -> None:
    one, two = values
    url = warehouse("t", {"a": ["x"] * 3 + ["y"] * 2, "s": [one, one, two, one, two]}, {"s": type_})
    for model in NAMING:
        found = [value(url, tmp_path, filled(model, spelling, other)) for spelling in spellings]
        assert found == found[:1] * len(found), model
    for key in ("order", "domain"):
        declared = {"role": "sensitive", key: [spellings[-1], other]}
        with opened(url, "t", {"a": QUASI, "s": declared}, tmp_path) as task:
            assert sorted(task.source.sensitives["s"].reference.totals.tolist()) == [2, 3]


def test_one_value_named_twice_is_one_value(warehouse, tmp_path: Path) -> None:
    """Two spellings in `protected` do not ask for a block of two rows."""
    url = warehouse("t", {"a": ["x", "y"], "s": [Decimal("1.5")] * 2}, {"s": "DECIMAL(12,4)"})
    model = {"npd_recursive_cl_diversity": {"c1": 1, "c2": 9, "l": 1, "protected": ["1.5", "1.50"]}}
    attributes = {"a": QUASI, "s": "sensitive"}
    with opened(url, "t", attributes, tmp_path, [model]) as task:
        assert task.least == 1
        assert task.passes(task.lattice.bottom)
    twice = {"epsilon_privacy": {**KNOWS, "prior": {"values": {"1.5": 1, "1.50": 1}}}}
    with pytest.raises(InputError, match=r"gives two weights to '1\.50*'; remove one"):
        value(url, tmp_path, twice)


def test_text_is_compared_as_text(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 2, "s": ["1.5", "1.50"]})
    model = {"pd_recursive_cl_diversity": {"c": 2, "l": 2, "allowed": ["1.500"]}}
    with pytest.raises(InputError, match=r"allowed names '1\.500', which is not in the domain"):
        value(url, tmp_path, model)
    prior = {"epsilon_privacy": {**KNOWS, "prior": {"values": {"1.5": 1, "1.50": 3}}}}
    assert value(url, tmp_path, prior) == Fraction(2)
    with pytest.raises(InputError, match="NULL"):
        value(url, tmp_path, {"pd_recursive_cl_diversity": {"c": 2, "l": 2, "allowed": [None]}})


def test_order_and_domain_may_spell_a_value_differently(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 2, "s": [Decimal("1.5"), Decimal("2")]}, {"s": "DECIMAL(12,4)"})
    closeness = {"t_closeness": {"t": 1, "distance": "ordered"}}
    (tmp_path / "s.csv").write_text("s,g\n2.0,*\n1.50,*\n", encoding="utf-8")
    for more in ({"domain": ["2.00", "1.5"]}, {"taxonomy": {"file": "s.csv"}}):
        assert value(url, tmp_path, closeness, order=["1.5000", "2"], **more) == 0
    with pytest.raises(InputError, match="order and domain of s do not list the same values"):
        value(url, tmp_path, closeness, order=["1.5", "2"], domain=["1.5", "3"])


def test_values_of_a_workload(warehouse, tmp_path: Path) -> None:
    url = warehouse("t", {"a": ["x"] * 3, "s": [Decimal("1.5"), Decimal("2"), None]}, {"s": "DECIMAL(12,4)"})
    attributes = {"a": QUASI, "s": {"role": "sensitive", "nulls": "value"}}
    search = {"workload": [{"s": ["1.5", None]}, {"s": ["1.50", "2e0"]}]}
    with opened(url, "t", attributes, tmp_path, search=search) as task:
        _, queries = workload_of(task.source)
        domain = task.source.sensitives["s"].reference.domain
    asked = [[domain[code] for code in query.values or ()] for query in queries]
    assert [None if text is None else Fraction(text) for text in asked[0]] == [Fraction(3, 2), None]
    assert [Fraction(text or 0) for text in asked[1]] == [Fraction(3, 2), Fraction(2)]
