"""Utility metrics: values worked by hand, the published examples, the definitions row by row, and their laws."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qblock.lattice import Node
from qblock.metrics import BY_NAME, METRICS, Metric, Published, formulas
from qblock.metrics.registry import markdown

from .tables import Hierarchy, Table, inpatients, tables_at_a_node

DOCUMENTED = (Path(__file__).resolve().parents[2] / "docs" / "spec.md").read_text("utf-8")
HALVES = Hierarchy.of("abcd", "aacc", "aaaa")
PAIR = Hierarchy.of("ab", "aa")
SINGLE = Hierarchy.of("a")
SMALL = Table((HALVES, PAIR), ((0, 0, 0), (0, 0, 1), (1, 0, 0), (2, 1, 0)))


def metrics(table: Table, node: Node, least: int = 1) -> dict[str, float]:
    published = table.published(node, least)
    return {metric.name: metric.of(published) for metric in METRICS}


def test_small_table_by_hand() -> None:
    # node (1, 0): blocks {a b, a} with 3 rows and {c d, b} with 1
    figures = metrics(SMALL, (1, 0))
    assert figures["height"] == 1
    assert figures["average_block_size"] == 2
    assert figures["discernibility"] == 9 + 1
    assert figures["precision"] == 1 - (1 / 2 + 0) / 2
    # first attribute: share 1/2 of 4 leaves, (1/2 - 1/4) / (3/4) = 1/3; second: 0
    assert figures["loss"] == pytest.approx(math.sqrt(4 / 3) - 1, abs=1e-15)
    # a occurs 2 times and b once among the 3 rows of "a b"; c is alone
    assert figures["non_uniform_entropy"] == pytest.approx(2 * math.log2(3 / 2) + math.log2(3), abs=1e-12)
    # (a,0) 1 of 2 rows with value 0, (b,0) the other, (a,1) alone with value 1, (c,0): each spread over 2 leaves
    assert figures["kl_divergence"] == pytest.approx((0 + 0 + math.log(2) + math.log(2)) / 4, abs=1e-15)


def test_suppressed_rows_by_hand() -> None:
    # the same node with blocks of fewer than 2 rows suppressed: 1 row
    figures = metrics(SMALL, (1, 0), least=2)
    assert figures["average_block_size"] == 3
    assert figures["discernibility"] == 9 + 1 * 4
    assert figures["precision"] == 1 - ((3 * 1 / 2 + 1) / 4 + 1 / 4) / 2
    first, second = ((3 / 2 + 1) / 4 - 1 / 4) / (3 / 4), ((3 / 2 + 1) / 4 - 1 / 2) / (1 / 2)
    assert figures["loss"] == pytest.approx(math.sqrt((1 + first) * (1 + second)) - 1, abs=1e-15)
    # the suppressed (c, b) loses log2(4/1) in both attributes
    assert figures["non_uniform_entropy"] == pytest.approx(2 * math.log2(3 / 2) + math.log2(3) + 4, abs=1e-12)
    assert figures["kl_divergence"] == pytest.approx(math.log(2) / 3, abs=1e-15)


def test_bottom_loses_nothing_and_top_everything() -> None:
    bottom, top = metrics(SMALL, (0, 0)), metrics(SMALL, (2, 1))
    assert (bottom["loss"], bottom["precision"], bottom["kl_divergence"], bottom["query_error"]) == (0, 1, 0, 0)
    assert bottom["non_uniform_entropy"] == 0
    assert top["loss"] == pytest.approx(1, abs=1e-15)
    assert top["precision"] == 0
    leaves = SMALL.leaves
    whole = formulas.non_uniform_entropy(leaves.codes, leaves.count, (2, 1), SMALL.hierarchies, normalized=True)
    assert whole == pytest.approx(1, abs=1e-15)


def test_an_attribute_with_one_value_loses_nothing() -> None:
    table = Table((SINGLE,), ((0, 0), (0, 1)))
    assert (
        metrics(table, (0,)).items()
        >= {
            "height": 0,
            "average_block_size": 2,
            "discernibility": 4,
            "kl_divergence": 0,
            "loss": 0,
            "precision": 1,
            "non_uniform_entropy": 0,
            "query_error": 0,
        }.items()
    )
    assert metrics(table, (0,), least=3)["precision"] == 1


def test_nothing_published() -> None:
    figures = metrics(SMALL, (0, 0), least=99)
    assert figures["average_block_size"] == math.inf
    assert figures["discernibility"] == 4 * 4
    assert figures["kl_divergence"] == math.inf
    assert figures["loss"] == pytest.approx(1, abs=1e-15)
    assert figures["precision"] == 0
    assert set(SMALL.published((0, 0), 99).query_errors.tolist()) == {0, 1}


def test_divergence_is_the_same_in_whatever_order_leaves_come() -> None:
    rng = np.random.default_rng(1)
    codes, value = np.arange(400)[:, None] % 4, np.arange(400) // 4
    count = rng.integers(1, 1000, 400)
    sums_in_order, sums = set(), set()
    for _ in range(20):
        order = rng.permutation(400)
        sums_in_order.add(formulas.kl_divergence(codes[order], value[order], count[order], (1,), [HALVES]))
        sizes = count[order], value[order] + 1
        sums.add(formulas.kl_of_sums(*sizes, count, codes, count, (1,), [HALVES]))
    assert len(sums_in_order) == len(sums) == 1


def test_discernibility_is_exact_beyond_64_bits() -> None:
    sizes, many = np.array([2**32 + 1]), np.array([1])
    assert formulas.discernibility(sizes, many, 3, 2**62) == (2**32 + 1) ** 2 + 3 * 2**62


@given(case=tables_at_a_node(), least=st.integers(1, 3))
def test_against_the_definitions(case: tuple[Table, Node], least: int) -> None:
    table, node = case
    blocks = table.blocks(node, least)
    assume(blocks)
    kept = sum(blocks.values())
    figures = metrics(table, node, least)
    assert figures["average_block_size"] == pytest.approx(kept / len(blocks))
    assert figures["discernibility"] == sum(n * n for n in blocks.values()) + (len(table.rows) - kept) * len(table.rows)
    assert figures["kl_divergence"] == pytest.approx(table.kl(node, least), abs=1e-12)
    assert figures["loss"] == pytest.approx(table.loss(node, least), abs=1e-12)
    assert figures["non_uniform_entropy"] == pytest.approx(table.entropy(node, least), abs=1e-9)


@pytest.mark.parametrize("metric", [m for m in METRICS if m.grows], ids=lambda m: m.name)
@given(case=tables_at_a_node())
def test_what_grows_never_improves_upward(metric: Metric, case: tuple[Table, Node]) -> None:
    table, node = case
    value = metric.of(table.published(node))
    for parent in table.lattice.parents(node):
        coarser = metric.of(table.published(parent))
        assert coarser >= value - 1e-9 if metric.better == "smaller" else coarser <= value + 1e-9


@given(case=tables_at_a_node(), least=st.integers(1, 3))
def test_shares_stay_within_0_and_1(case: tuple[Table, Node], least: int) -> None:
    table, node = case
    published = table.published(node, least)
    leaves = table.leaves
    share = formulas.non_uniform_entropy(
        leaves.codes, leaves.count, node, table.hierarchies, published.kept, normalized=True
    )
    for value in (share, BY_NAME["loss"].of(published), BY_NAME["precision"].of(published)):
        assert -1e-12 <= value <= 1 + 1e-12


@given(case=tables_at_a_node(), least=st.integers(1, 3))
def test_suppressing_rows_never_pays_in_the_metrics_of_all_rows(case: tuple[Table, Node], least: int) -> None:
    table, node = case
    for name in ("discernibility", "loss", "precision", "non_uniform_entropy"):
        whole, part = BY_NAME[name].of(table.published(node)), BY_NAME[name].of(table.published(node, least))
        assert part >= whole - 1e-9 if BY_NAME[name].better == "smaller" else part <= whole + 1e-9


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 2**40)] * 3), max_size=8),
    repeated=st.lists(st.integers(0, 7), max_size=4),
)
def test_row_numbers_are_equal_for_equal_rows_alone(rows: list[tuple[int, ...]], repeated: list[int]) -> None:
    rows = [*rows, *(rows[i % len(rows)] for i in repeated if rows)]
    numbers = formulas.number_rows(np.array(rows, dtype=np.int64).reshape(len(rows), 3))
    assert all((numbers[i] == numbers[j]) == (a == b) for i, a in enumerate(rows) for j, b in enumerate(rows))


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
@given(case=tables_at_a_node(), least=st.integers(1, 3))
def test_every_metric_stays_within_its_range(metric: Metric, case: tuple[Table, Node], least: int) -> None:
    table, node = case
    value = metric.of(table.published(node, least))
    assert metric.least - 1e-12 <= value <= metric.most + 1e-12


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
@given(case=tables_at_a_node())
def test_no_node_is_better_than_the_table_as_it_is(metric: Metric, case: tuple[Table, Node]) -> None:
    """Which direction is better: generalizing, and suppressing all, never is."""
    table, node = case
    sign = 1 if metric.better == "smaller" else -1
    bottom = sign * metric.of(table.published((0,) * len(node)))
    assert bottom <= sign * metric.of(table.published(node)) + 1e-9
    assert bottom <= sign * metric.of(table.published(node, len(table.rows) + 1)) + 1e-9


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
def test_every_metric_declares_what_is_derived_from_it(metric: Metric) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", metric.name)
    assert metric.meaning
    assert metric.meaning.isascii()
    assert "|" not in metric.meaning
    assert metric.least < metric.most
    # Sensitive values are only in the leaf frequency set.
    assert not metric.sensitive or metric.needs in ("leaf", "workload")
    assert f"| `{metric.name}` | {metric.meaning} |" in DOCUMENTED


def test_the_page_of_the_spec_has_the_table_of_metrics() -> None:
    assert markdown() in DOCUMENTED


def test_metrics_without_sensitive_values_do_not_look_at_them() -> None:
    mixed, equal = (
        Table(SMALL.hierarchies, tuple((*row[:-1], value) for row, value in zip(SMALL.rows, values, strict=True)))
        for values in ((0, 1, 0, 1), (0, 0, 0, 0))
    )
    for node in SMALL.lattice.nodes():
        for metric in METRICS:
            if not metric.sensitive:
                assert metric.of(mixed.published(node)) == pytest.approx(metric.of(equal.published(node)), abs=1e-12)


def test_names_and_needs() -> None:
    assert list(BY_NAME) == [metric.name for metric in METRICS]
    bare = Published((1, 0), SMALL.hierarchies, 4, 0, np.array([1, 3]), np.array([1, 1]))
    for metric in METRICS:
        if metric.needs == "sizes":
            assert metric.of(bare) == metric.of(SMALL.published((1, 0)))
        else:
            with pytest.raises(ValueError, match="without the counts"):
                metric.of(bare)


@pytest.mark.parametrize("figure", ["ldiv.figure2", "ldiv.figure3"])
def test_inpatient_figures(golden: dict[str, dict], shared: Path, figure: str) -> None:
    table, _ = inpatients(shared)
    entry = golden[figure]
    figures, expected = metrics(table, tuple(entry["node"])), entry["expected"]
    assert figures["height"] == expected["height"]
    assert figures["average_block_size"] == expected["avg_block"]["float"]
    assert figures["discernibility"] == expected["discernibility"]
    assert figures["kl_divergence"] == pytest.approx(expected["kl"]["float"], abs=1e-12)


def test_inpatient_lattice(golden: dict[str, dict], shared: Path) -> None:
    table, _ = inpatients(shared)
    nodes = golden["ldiv.lattice"]["expected"]["nodes"]
    assert {ast.literal_eval(name) for name in nodes} == set(table.lattice.nodes())
    for name, expected in nodes.items():
        figures = metrics(table, ast.literal_eval(name))
        assert figures["kl_divergence"] == pytest.approx(expected["kl"], abs=1e-12)
