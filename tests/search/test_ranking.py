"""The choice by each metric, with and without suppression, against the definitions; and workloads of the spec."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
import yaml
from reference import diversity, lattices, utility
from reference.tables import Block, Node, Table

from qblock.errors import InputError
from qblock.frequency import FrequencySets
from qblock.metrics import BY_NAME
from qblock.search.run import open_task, run_search
from qblock.search.task import Task
from qblock.search.utility import MARGINAL, Metrics
from qblock.spec import Spec, read_spec
from qblock.spec.schema import json_schema
from qblock.spec.sections import Search
from qblock.spec.workload import Between, DrawnWorkload, WrittenWorkload

from .whole import HIERARCHIES, NUMBERS, load, rows_of, slow, text_of

pytestmark = pytest.mark.either_engine

Passes = Callable[[Block], bool]
WORKLOAD = "[{a: [a0, a2], y: {from: 2, to: 4}}, {b: [b1]}, {a: {from: a1}, b: [b0, b2], y: [9]}, {y: {to: 1}}]"
WANTED: list[tuple[dict[str, set[str]], set[int]]] = [
    ({"a": {"a0", "a2"}}, {2, 4}),
    ({"b": {"b1"}}, set(NUMBERS)),
    ({"a": {"a1", "a2", "a3"}, "b": {"b0", "b2"}}, {9}),
    ({}, {1}),
]
"""The same queries: the values of each quasi-identifier, and of y."""


def published(table: Table, node: Node, passes: Passes) -> list[bool]:
    """Of each row whether it is published."""
    kept = {id(row) for block in table.blocks(node).values() if passes(block) for row in block.rows}
    return [id(row) in kept for row in table.rows]


def precision(table: Table, node: Node, passes: Passes) -> float:
    cells = []
    for kept in published(table, node, passes):
        for level, paths in zip(node, HIERARCHIES.values(), strict=True):
            height = len(next(iter(paths.values()))) - 1
            cells.append(Fraction(level, height) if kept else Fraction(1))
    return float(1 - sum(cells) / len(cells))


def entropy(table: Table, node: Node, passes: Passes) -> float:
    bits = 0.0
    for row, kept in zip(table.rows, published(table, node, passes), strict=True):
        for (name, paths), level in zip(HIERARCHIES.items(), node, strict=True):
            shown = len(next(iter(paths.values()))) - 1 if not kept else level
            together = sum(paths[other[name]][shown] == paths[row[name]][shown] for other in table.rows)
            bits -= math.log2(sum(other[name] == row[name] for other in table.rows) / together)
    return bits


def query_error(table: Table, node: Node, passes: Passes) -> float:
    other, errors = slow(table.rows, "y"), []
    for wanted, values in WANTED:
        true = utility.count_query(other, wanted, values)
        estimated = utility.estimate(other, node, wanted, values, lambda block: passes(Block(table, block.rows)))
        error = abs(estimated - true)
        errors.append(error / max(Fraction(true), Fraction(len(table.rows), 1000)))
    return float(sum(errors) / len(errors))


SLOW: dict[str, Callable[[Table, Node, Passes], Any]] = {
    "height": lambda t, n, p: sum(n),
    "average_block_size": lambda t, n, p: float(utility.average_block_size(t, n, p)),
    "discernibility": utility.discernibility,
    "kl_divergence": lambda t, n, p: float(utility.divergence(t, n, p)),
    "loss": utility.loss,
    "precision": precision,
    "non_uniform_entropy": entropy,
    "query_error": query_error,
}
ENTRIES: dict[str, Passes] = {
    "k_anonymity: {k: 3}": lambda block: diversity.k_holds(block, 3),
    "distinct_l_diversity: {l: 3, sensitive: s}": lambda block: diversity.distinct_holds(block, 3),
    "frequency_l_diversity: {l: 1.75, sensitive: s}": lambda b: diversity.frequency_holds(b, Fraction(7, 4)),
}


def asking(opened: Task, entry: str, more: str) -> Task:
    """The same source for another spec."""
    text = text_of(opened.spec.source.url.url, [entry], more)
    return Task(replace(opened.source, spec=read_spec(text, opened.spec.path, {})))


@pytest.mark.parametrize("limit", [0, 4])
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_metric_chooses_the_best_node(warehouse: Any, tmp_path: Path, entry: str, limit: int) -> None:
    rows = rows_of(21, 48)
    more = f"suppression_limit: {limit}\nsearch: {{workload: {WORKLOAD}, choose_by: %s}}\n"
    spec = load(warehouse, tmp_path, rows, [entry])
    table, passes = slow(rows), ENTRIES[entry]
    nodes = lattices.satisfying(table, passes, limit)
    assert 1 < len(nodes) < 6
    with open_task(spec) as opened:
        for name, of in SLOW.items():
            values = {node: of(table, node, passes) for node in nodes}
            sign = 1 if BY_NAME[name].better == "smaller" else -1
            best = min(nodes, key=lambda n, v=values, s=sign: (float(f"{s * v[n]:.9g}"), sum(n), n))
            task = asking(opened, entry, more % name)
            result = run_search(task)
            assert result.chosen is not None
            assert result.chosen.node == best, name
            assert result.metrics[name] == pytest.approx(values[best], abs=1e-12)
            assert result.metrics["query_error"] == pytest.approx(query_error(table, best, passes), abs=1e-12)
            metrics = Metrics(task)
            for node in nodes:
                assert metrics.rank(node, name) == pytest.approx(values[node], abs=1e-12)
                bound = metrics.bound(node, name)
                assert bound is None or sign * bound <= sign * values[node] + 1e-9
                assert (bound is None) == (not limit or name not in (*MARGINAL, "discernibility"))


def test_the_block_sizes_alone_choose_where_they_are_asked_to(
    warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, limit = rows_of(21, 48), 9
    more = f"suppression_limit: {limit}\nsearch: {{choose_from: sizes, choose_by: %s}}\n"
    spec = load(warehouse, tmp_path, rows, ["distinct_l_diversity: {l: 3, sensitive: s}"], more % "loss")
    table = slow(rows)
    nodes = lattices.satisfying(table, lambda b: b.size() >= 3, limit)
    values = {node: utility.loss(table, node, lambda b: b.size() >= 3) for node in nodes}
    fetched = []
    blocks = FrequencySets.blocks
    with open_task(spec) as task:
        monkeypatch.setattr(
            FrequencySets, "blocks", lambda self, n, s, **more: fetched.append((n, *s)) or blocks(self, n, s, **more)
        )
        result = run_search(task)
    best = min(nodes, key=lambda node: (float(f"{values[node]:.9g}"), sum(node), node))
    assert [seen for seen in fetched if len(seen) > 1] == [(best, 0)]
    for name in ("kl_divergence", "query_error"):
        with pytest.raises(InputError, match=f"'{name}' uses sensitive values, and `choose_from: sizes` must not"):
            read_spec(text_of("duckdb:///a", ["k_anonymity: {k: 3}"], more % name), "spec.yaml", {})
    assert result.choice == "sizes"


def test_people_with_several_rows(warehouse: Any, tmp_path: Path) -> None:
    rows = rows_of(23, 60, people=25)
    entry, more = "k_anonymity: {k: 4}", "count: entities\nsuppression_limit: 8\nsearch: {choose_by: %s}\n"
    spec = load(warehouse, tmp_path, rows, [entry], more % "loss")
    table = slow(rows, entity="person")
    passes: Passes = lambda block: diversity.k_holds(block, 4)  # noqa: E731
    nodes = lattices.satisfying(table, passes, 8)
    with open_task(spec) as opened:
        for name in ("discernibility", "loss", "average_block_size"):
            values = {node: SLOW[name](table, node, passes) for node in nodes}
            result = run_search(asking(opened, entry, more % name))
            assert result.chosen is not None
            assert result.chosen.node == min(nodes, key=lambda n, v=values: (float(f"{v[n]:.9g}"), sum(n), n))


def test_the_spec_offers_every_metric() -> None:
    assert set(get_args(get_type_hints(Search)["choose_by"])) == set(BY_NAME) == set(SLOW)


def workload(text: str) -> Any:
    return spec_of(text).search.workload


def spec_of(text: str) -> Spec:
    entry = text_of("duckdb:///a.duckdb", ["k_anonymity: {k: 2}"], f"search: {{workload: {text}}}\n")
    jsonschema.validate(yaml.safe_load(entry), json_schema())
    return read_spec(entry, "spec.yaml", {})


def test_a_drawn_workload(warehouse: Any, tmp_path: Path) -> None:
    assert workload("{queries: 500, seed: 1}") == DrawnWorkload(500, 1)
    assert workload("{selectivity: 0.1, attributes: 1}") == DrawnWorkload(200, 0, 1, Fraction(1, 10))
    entry = "k_anonymity: {k: 2}"
    with open_task(load(warehouse, tmp_path, rows_of(1, 30), [entry])) as opened:
        values = []
        for given in ("", ", workload: {}", ", workload: {seed: 1}"):
            task = asking(opened, entry, f"search: {{choose_by: query_error{given}}}\n")
            values.append(Metrics(task).rank(task.lattice.top, "query_error"))
    assert values[0] == values[1] != values[2]


def test_a_written_workload() -> None:
    assert workload(WORKLOAD) == WrittenWorkload(
        (
            (("a", ("a0", "a2")), ("y", Between("2", "4"))),
            (("b", ("b1",)),),
            (("a", Between("a1")), ("b", ("b0", "b2")), ("y", ("9",))),
            (("y", Between(None, "1")),),
        )
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a list is not a workload; valid: {queries: 500"),
        ("{queries: 0}", "queries: 0 is out of range; valid: 1 to 100000"),
        ("{seed: 1.5}", "seed: 1.5 is not a whole number"),
        ("{selectivity: 0}", "selectivity: 0 is out of range"),
        ("{selectivity: {a: 0}}", "selectivity: a mapping is not a number"),
        ("{queries: [5]}", "queries: a list is not a whole number"),
        ("{quries: 5}", "quries is not a key of a drawn workload; did you mean queries?"),
        ("[{c: [1]}]", "c is neither a quasi_identifier nor sensitive"),
        ("[{person: [1]}]", "person is neither a quasi_identifier nor sensitive; valid: a, b, s, y"),
        ("[{a: a0}]", "query 1, a: neither values nor a range"),
        ("[{a: [a0]}, {}]", "query 2 is not a mapping"),
        ("[{a: {from: [a0]}}]", "query 1, a: a value is not a text or a number"),
        ("[{s: [u]}, {y: [1]}]", "its queries restrict s and y; only one sensitive attribute may be asked"),
    ],
)
def test_a_wrong_workload_is_refused_with_its_line(text: str, message: str) -> None:
    entry = text_of("duckdb:///a.duckdb", ["k_anonymity: {k: 2}"], f"search: {{workload: {text}}}\n")
    with pytest.raises(InputError, match=r"^spec\.yaml:13: search\.workload: ") as caught:
        read_spec(entry, "spec.yaml", {})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{a: [a7]}]", "'a7' is not a value of a"),
        ("[{b: [null]}]", "NULL is not a value of b"),
        ("[{y: {from: 10}}]", "range"),
    ],
)
def test_values_that_nobody_can_have(warehouse: Any, tmp_path: Path, text: str, message: str) -> None:
    more = f"search: {{choose_by: query_error, workload: {text}}}\n"
    spec = load(warehouse, tmp_path, rows_of(1, 20), ["k_anonymity: {k: 2}"], more)
    with open_task(spec) as task, pytest.raises(InputError, match=r"spec\.yaml:13: query 1, ") as caught:
        run_search(task)
    assert message in str(caught.value)
