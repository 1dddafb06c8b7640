"""Count queries over a published table: answers by hand and from the definition, and the random workloads."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.lattice import Node
from qblock.metrics.formulas import Query, query_answers, random_workload

from .tables import Hierarchy, Table, inpatients, tables_at_a_node

AGES = Hierarchy.of("abcd", "aacc", "aaaa")


def errors(table: Table, node: Node, *queries: Query, least: int = 1, **more: object) -> list[float]:
    leaves, kept = table.leaves, table.published(node, least).kept
    measured = query_answers(
        queries, leaves.codes, leaves.value, leaves.count, node, table.hierarchies, kept=kept, **more
    ).errors
    return measured.tolist()


def slow(table: Table, node: Node, query: Query, least: int, floor: Fraction) -> Fraction:
    """The definition, row by row: each row counts with the part of its block that the query covers."""
    kept = table.blocks(node, least)
    true, estimate = 0, Fraction(0)
    for row in table.rows:
        if query.values is not None and row[-1] not in query.values:
            continue
        true += all(wanted is None or row[i] in wanted for i, wanted in enumerate(query.leaves))
        share = Fraction(1)
        for i, wanted in enumerate(query.leaves):
            labels = table.hierarchies[i].codes[node[i]].tolist()
            under = {leaf for leaf, label in enumerate(labels) if label == labels[row[i]]}
            share *= 1 if wanted is None else Fraction(len(under & set(wanted)), len(under))
        estimate += share if table.block(row, node) in kept else 0
    return abs(estimate - true) / max(Fraction(true), floor)


def test_by_hand() -> None:
    table = Table((AGES,), ((0, 0), (0, 0), (0, 1), (3, 0)))
    # "a b" holds 2 rows with value 0, half of which are taken for "a": 1 of 2
    assert errors(table, (1,), Query(((0,),), (0,))) == [0.5]
    # nobody is "b": 1.5 rows are estimated, and the floor 4/1000 keeps the error finite
    assert errors(table, (1,), Query(((1,),))) == [pytest.approx(1.5 / 0.004)]
    assert errors(table, (1,), Query(((1,),)), floor=3) == [0.5]
    # whole labels are exact
    assert errors(table, (1,), Query(((0, 1),), (1,)), Query((None,), (0,))) == [0, 0]
    # the row of "c d" is suppressed: missing from the estimate, not from the truth
    assert errors(table, (1,), Query((None,)), least=2) == [0.25]


def test_an_empty_table_without_a_floor() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    measured = query_answers([Query((None,))], nothing.reshape(0, 1), nothing, nothing, (0,), [AGES]).errors
    assert measured.tolist() == [0]


@given(case=tables_at_a_node(), least=st.integers(1, 3), data=st.data())
def test_against_the_definition(case: tuple[Table, Node], least: int, data: st.DataObject) -> None:
    table, node = case
    leaves = tuple(
        data.draw(st.none() | st.sets(st.integers(0, h.codes.shape[1] - 1)).map(lambda s: tuple(sorted(s))))
        for h in table.hierarchies
    )
    query = Query(leaves, data.draw(st.none() | st.sets(st.integers(0, 2)).map(lambda s: tuple(sorted(s)))))
    floor = data.draw(st.fractions(Fraction(1, 100), 5))
    measured = errors(table, node, query, least=least, floor=floor)
    assert measured == [pytest.approx(float(slow(table, node, query, least, floor)), abs=1e-9)]


def test_inpatient_query(golden: dict[str, dict], shared: Path) -> None:
    entry = golden["utility.query"]
    table, labels = inpatients(shared)
    ages, conditions = labels[1][0], labels[3][0]
    query = Query(
        (None, tuple(ages.index(age) for age in entry["query"]["age"]), None),
        tuple(conditions.index(condition) for condition in entry["query"]["condition"]),
    )
    node = tuple(golden["ldiv.figure2"]["node"])
    assert errors(table, node, query) == [pytest.approx(entry["expected"]["relative_error"]["float"])]


def test_a_node_without_a_workload_gets_the_default_one() -> None:
    table = Table((AGES,), ((0, 0), (0, 0), (1, 1), (3, 2)))
    published = table.published((1,), queries=None)
    assert published.query_errors.tolist() == errors(table, (1,), *random_workload([AGES], 3))


def test_random_workloads_come_from_their_seed() -> None:
    parts = [AGES, AGES, Hierarchy.of("ab", "aa")]
    workload = random_workload(parts, 3, queries=30, seed=7)
    assert workload == random_workload(parts, 3, queries=30, seed=7)
    assert workload != random_workload(parts, 3, queries=30, seed=8)


@given(attributes=st.integers(0, 4), values=st.integers(0, 4), seed=st.integers(0, 99))
def test_random_workloads_restrict_as_many_attributes_as_asked(attributes: int, values: int, seed: int) -> None:
    parts = [AGES, AGES, Hierarchy.of("ab", "aa")]
    selectivity = Fraction(1, 8)
    restricted = min(attributes, 3)
    for query in random_workload(parts, values, queries=5, attributes=attributes, selectivity=selectivity, seed=seed):
        part = float(selectivity) ** (1 / max(1, restricted + (values > 0)))
        assert sum(wanted is not None for wanted in query.leaves) == restricted
        for wanted, hierarchy in zip(query.leaves, parts, strict=True):
            size = hierarchy.codes.shape[1]
            assert wanted is None or len(set(wanted)) == max(1, round(size * part))
            assert wanted is None or set(wanted) <= set(range(size))
        assert (query.values is None) == (values == 0)
        assert query.values is None or len(set(query.values)) == max(1, round(values * part))
