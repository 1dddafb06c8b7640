"""Whole lattices: which nodes satisfy, with or without a suppression budget, and which of them are minimal."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from reference.tables import Block, Node, Table

Passes = Callable[[Block], bool]


def suppressed_rows(table: Table, node: Node, passes: Passes) -> int:
    """Rows in the failing blocks of a node; they would be dropped whole."""
    return sum(len(block.rows) for block in table.blocks(node).values() if not passes(block))


def budget_rows(table: Table, budget: int | Fraction) -> Fraction:
    """A fraction below 1 is of the rows; anything else a number of rows."""
    return budget * len(table.rows) if 0 < budget < 1 else Fraction(budget)


def satisfying(table: Table, passes: Passes, budget: int | Fraction = 0) -> list[Node]:
    """Every node whose failing blocks hold at most the budget of rows."""
    limit = budget_rows(table, budget)
    return [node for node in table.nodes() if suppressed_rows(table, node, passes) <= limit]


def minimal(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that no other node of the set lies below, componentwise."""
    found = list(nodes)
    return sorted(
        node
        for node in found
        if not any(other != node and all(o <= n for o, n in zip(other, node, strict=True)) for other in found)
    )
