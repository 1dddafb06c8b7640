"""t-closeness, (n,t)-closeness, beta-likeness, delta-disclosure (models.md sections 4 and 12)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from reference.distance import distance
from reference.exact import Exact, at_most, decimal_of, less, ln, magnitude, negative
from reference.tables import Block


def t_tightest(block: Block, kind: str, bandwidth: Exact | None = None, under: str | None = None) -> Exact:
    """The distance of the block to the table."""
    return distance(block.table, block.shares(), block.table.whole().shares(), kind, bandwidth, under)


def t_holds(block: Block, t: Exact, kind: str, bandwidth: Exact | None = None, under: str | None = None) -> bool:
    return at_most(t_tightest(block, kind, bandwidth, under), t)


def _supersets(block: Block, n: int, variant: str) -> list[Block]:
    """The sets of at least n rows that a block may be close to instead of the table."""
    others = block.containing if variant == "lattice" else [block.table.rows]
    sets = [block, *(Block(block.table, rows) for rows in others)]
    return [large for large in sets if large.size() >= n]


def nt_tightest_t(
    block: Block, n: int, variant: str, kind: str, bandwidth: Exact | None = None, under: str | None = None
) -> Exact:
    """The least distance to one of the large sets; the block itself is one when it is large."""
    distances = [
        distance(block.table, block.shares(), large.shares(), kind, bandwidth, under)
        for large in _supersets(block, n, variant)
    ]
    return min(distances, key=decimal_of) if distances else math.inf


def nt_holds(
    block: Block, n: int, t: Exact, variant: str, kind: str, bandwidth: Exact | None = None, under: str | None = None
) -> bool:
    return at_most(nt_tightest_t(block, n, variant, kind, bandwidth, under), t)


def nt_tightest_n(
    block: Block, t: Exact, variant: str, kind: str, bandwidth: Exact | None = None, under: str | None = None
) -> int:
    """The largest n for which (n,t) holds: the size of the largest containing set within t."""
    sizes = [
        large.size()
        for large in _supersets(block, 1, variant)
        if at_most(distance(block.table, block.shares(), large.shares(), kind, bandwidth, under), t)
    ]
    return max(sizes)


def beta_gains(block: Block) -> dict[object, Fraction]:
    """{value: relative gain of its share over the table's}, for the values whose share grew."""
    table = block.table.whole()
    return {
        value: (block.share(value) - table.share(value)) / table.share(value)
        for value in block.counts()
        if block.share(value) > table.share(value)
    }


def beta_holds(block: Block, beta: Exact, variant: str) -> bool:
    for value, gain in beta_gains(block).items():
        if gain > beta:
            return False
        if variant == "enhanced" and less(_surprise(block, value), gain):
            return False
    return True


def _surprise(block: Block, value: object) -> Decimal:
    return negative(ln(block.table.whole().share(value)))


def beta_tightest(block: Block, variant: str) -> Exact:
    """The largest gain; enhanced: infinite when a gain exceeds its own -ln P_s."""
    gains = beta_gains(block)
    if variant == "enhanced" and any(less(_surprise(block, value), gain) for value, gain in gains.items()):
        return math.inf
    return max(gains.values(), default=Fraction(0))


def disclosure_tightest(block: Block, absent: str) -> Exact:
    """max |ln(p_q/P_s)| over the values of the table; a value absent from the block is infinite unless skipped."""
    worst: Exact = Decimal(0)
    for value in block.table.whole().counts():
        if block.count(value):
            change = magnitude(ln(block.share(value) / block.table.whole().share(value)))
            worst = max(worst, change)
        elif absent == "violation":
            return math.inf
    return worst


def disclosure_holds(block: Block, delta: Exact, absent: str) -> bool:
    return less(disclosure_tightest(block, absent), delta)


def partition_holds(parts: list[list[Block]], n: int, close: Callable[[Block, Block], bool]) -> bool:
    """The check of CL section IV: each part comes with the parts on its path from the root, itself last.

    A part of n rows passes; a smaller one when a stored ancestor part of n rows is close enough.
    """
    return all(
        path[-1].size() >= n or any(ancestor.size() >= n and close(path[-1], ancestor) for ancestor in path[:-1])
        for path in parts
    )
