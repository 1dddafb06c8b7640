"""What an attacker gains, per node (models.md section 8)."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Any

from reference.proximity import close, numbers
from reference.tables import Block


def homogeneous(blocks: list[Block]) -> tuple[int, int]:
    """(number of blocks with a single sensitive value, rows in them); none when dom(S) has one value."""
    found = [b for b in blocks if len(b.counts()) == 1 and len(b.table.values()) >= 2]
    return len(found), sum(len(b.rows) for b in found)


def after_eliminating(block: Block, gone: Collection[Any]) -> Fraction:
    """The largest posterior once some values are ruled out."""
    left = {v: n for v, n in block.counts().items() if v not in gone}
    return Fraction(max(left.values()), sum(left.values()))


def background(block: Block, j: int) -> Fraction:
    """Worst case over j eliminated values: r_1 against the tail from r_{j+2} on."""
    ranked = sorted(block.counts().values(), reverse=True)
    return Fraction(ranked[0], ranked[0] + sum(ranked[j + 1 :]))


def skewness(block: Block) -> Fraction:
    table = block.table.whole()
    return max(block.share(v) / table.share(v) for v in block.counts())


def similarity(block: Block, group: Collection[Any]) -> Fraction:
    return sum((block.share(v) for v in group), Fraction(0))


def proximity(block: Block, epsilon: Fraction) -> Fraction:
    rows = numbers(block)
    return max(Fraction(sum(close(x, y, epsilon, False) for y in rows), len(rows)) for x in rows)
