"""What a published node is worth (models.md section 9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from reference.distance import kullback_leibler
from reference.tables import Block, Node, Row, Table

Passes = Callable[[Block], bool]


def height(node: Node) -> int:
    return sum(node)


def _published(table: Table, node: Node, passes: Passes | None) -> list[Block]:
    return [block for block in table.blocks(node).values() if passes is None or passes(block)]


def average_block_size(table: Table, node: Node, passes: Passes | None = None) -> Fraction:
    blocks = _published(table, node, passes)
    return Fraction(sum(len(block.rows) for block in blocks), len(blocks))


def discernibility(table: Table, node: Node, passes: Passes | None = None) -> int:
    """Each published row costs its block's size, each suppressed one the table's."""
    blocks = _published(table, node, passes)
    published = sum(len(block.rows) for block in blocks)
    return sum(len(block.rows) ** 2 for block in blocks) + (len(table.rows) - published) * len(table.rows)


def leaves(table: Table, name: str, label: str, level: int) -> set[Any]:
    """The leaves of a hierarchy under a label."""
    return {leaf for leaf, path in table.hierarchies[name].items() if path[level] == label}


def volume(table: Table, row: Row, node: Node) -> int:
    """How many leaf combinations the generalized row covers."""
    product = 1
    for name, label, level in zip(table.hierarchies, table.label(row, node), node, strict=True):
        product *= len(leaves(table, name, label, level))
    return product


def divergence(table: Table, node: Node, passes: Passes | None = None) -> Decimal:
    """KL of the published rows from the original ones, spread evenly over the leaves they may come from."""
    blocks = _published(table, node, passes)
    total = sum(len(block.rows) for block in blocks)
    terms = []
    for block in blocks:
        tuples = Counter((*(row[name] for name in table.hierarchies), row[table.sensitive]) for row in block.rows)
        for key, c in tuples.items():
            same = sum(row[table.sensitive] == key[-1] for row in block.rows)
            terms.append((Fraction(c, total), Fraction(c * volume(table, block.rows[0], node), same)))
    return kullback_leibler(terms)


def loss(table: Table, node: Node, passes: Passes | None = None) -> float:
    """Iyengar's loss as ARX joins it: the geometric mean over the attributes of 1 + loss, minus 1.

    An attribute's loss is the mean over its cells of (leaves covered - 1) / (leaves - 1); a suppressed cell covers all.
    """
    kept = {id(row) for block in _published(table, node, passes) for row in block.rows}
    product = 1.0
    for place, (name, paths) in enumerate(table.hierarchies.items()):
        cells = []
        for row in table.rows:
            label = table.label(row, node)[place]
            covered = len(leaves(table, name, label, node[place])) if id(row) in kept else len(paths)
            cells.append(Fraction(covered - 1, len(paths) - 1) if len(paths) > 1 else Fraction(0))
        product *= 1 + sum(cells) / len(cells)
    return float(product ** (1 / len(table.hierarchies))) - 1


def count_query(table: Table, wanted: dict[str, set[Any]], values: set[Any]) -> int:
    """How many raw rows a count query asks for; attributes that are not named are not restricted."""
    return sum(
        row[table.sensitive] in values and all(row[name] in accepted for name, accepted in wanted.items())
        for row in table.rows
    )


def estimate(
    table: Table, node: Node, wanted: dict[str, set[Any]], values: set[Any], passes: Passes | None = None
) -> Fraction:
    """The answer from what is published, each row spread evenly over its leaves."""
    total = Fraction(0)
    for row in [row for block in _published(table, node, passes) for row in block.rows]:
        if row[table.sensitive] not in values:
            continue
        share = Fraction(1)
        for name, label, level in zip(table.hierarchies, table.label(row, node), node, strict=True):
            under = leaves(table, name, label, level)
            share *= Fraction(len(under & wanted.get(name, under)), len(under))
        total += share
    return total
