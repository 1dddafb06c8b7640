"""The engine's metrics and query estimates against the reference, with and without suppressed blocks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from golden.asking import Source
from hypothesis import given
from hypothesis import strategies as st
from reference import utility
from reference.tables import Block, Table

from laws.cases import quick
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node
from qblock.metrics import BY_NAME, Published
from qblock.metrics.formulas import Query, kept_leaves, query_answers


@st.composite
def raw_tables(draw: st.DrawFn) -> tuple[Table, Node, int]:
    """Up to 10 rows over two quasi-identifiers, a node, and the size below which a block is suppressed."""
    hierarchies: dict[str, dict[str, list[str]]] = {}
    for name in ("x", "y"):
        leaves = [f"{name}{i}" for i in range(draw(st.integers(1, 4)))]
        groups = draw(st.lists(st.sampled_from("gh"), min_size=len(leaves), max_size=len(leaves)))
        middle = draw(st.booleans())
        hierarchies[name] = {
            leaf: [leaf, *([group] if middle else []), "*"] for leaf, group in zip(leaves, groups, strict=True)
        }
    row = st.fixed_dictionaries(
        {n: st.sampled_from(sorted(h)) for n, h in hierarchies.items()} | {"s": st.sampled_from("abc")}
    )
    table = Table(draw(st.lists(row, min_size=1, max_size=10)), hierarchies=hierarchies)
    return table, draw(st.sampled_from(table.nodes())), draw(st.integers(1, 3))


def source(table: Table) -> Source:
    found = []
    for name, paths in table.hierarchies.items():
        height = len(next(iter(paths.values())))
        labels = tuple(tuple(path[level] for path in paths.values()) for level in range(height))
        found.append(Hierarchy(name, tuple(map(str, range(height))), labels))
    return Source.of(table.rows, found, "s")


def published(raw: Source, node: Node, least: int) -> Published:
    blocks = raw.blocks(node)
    assert blocks.keys is not None
    kept = blocks.rows >= least
    rows = raw.reference.rows
    return Published.of_blocks(
        node, raw.hierarchies, blocks.keys[kept], blocks.rows[kept], rows, raw.leaves, queries=()
    )


@quick
@given(found=raw_tables())
def test_metrics(found: tuple[Table, Node, int]) -> None:
    table, node, least = found
    at = published(source(table), node, least)

    def passes(block: Block) -> bool:
        return len(block.rows) >= least

    def metric(name: str) -> Any:
        return BY_NAME[name].of(at)

    assert metric("height") == utility.height(node)
    assert metric("discernibility") == utility.discernibility(table, node, passes)
    assert metric("loss") == pytest.approx(utility.loss(table, node, passes), abs=1e-12)
    if at.suppressed == len(table.rows):
        assert metric("average_block_size") == metric("kl_divergence") == math.inf
        return
    assert metric("average_block_size") == pytest.approx(float(utility.average_block_size(table, node, passes)))
    assert metric("kl_divergence") == pytest.approx(float(utility.divergence(table, node, passes)), abs=1e-12)


@quick
@given(found=raw_tables(), data=st.data())
def test_query_errors(found: tuple[Table, Node, int], data: st.DataObject) -> None:
    table, node, least = found
    raw = source(table)
    at = published(raw, node, least)
    wanted: dict[str, set[Any]] = {}
    leaves: list[tuple[int, ...] | None] = []
    for hierarchy in raw.hierarchies:
        places = data.draw(st.none() | st.sets(st.sampled_from(range(len(hierarchy.leaves)))))
        leaves.append(None if places is None else tuple(places))
        if places is not None:
            wanted[hierarchy.attribute] = {hierarchy.leaves[place] for place in places}
    values = data.draw(st.sets(st.sampled_from(range(len(raw.domain)))))
    names = {raw.domain[value] for value in values}
    floor = data.draw(st.sampled_from([Fraction(1, 2), Fraction(3)]))
    assert at.keys is not None
    kept = kept_leaves(raw.leaves.codes, at.keys, node, raw.hierarchies)
    found_error = query_answers(
        [Query(tuple(leaves), tuple(values))],
        raw.leaves.codes,
        raw.leaves.value,
        raw.leaves.count,
        node,
        raw.hierarchies,
        kept=kept,
        floor=floor,
    ).errors
    true = utility.count_query(table, wanted, names)
    answer = utility.estimate(table, node, wanted, names, lambda block: len(block.rows) >= least)
    assert found_error[0] == pytest.approx(float(abs(answer - true) / max(Fraction(true), floor)))
