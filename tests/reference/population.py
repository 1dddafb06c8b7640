"""k-map and delta-presence: the table against a population (models.md section 12)."""

from __future__ import annotations

from fractions import Fraction

from reference.exact import Exact
from reference.tables import Block


def k_map_tightest(block: Block) -> int:
    assert block.population is not None
    return block.population


def k_map_holds(block: Block, k: int) -> bool:
    return k_map_tightest(block) >= k


def presence(block: Block) -> Fraction:
    assert block.population is not None
    return Fraction(block.size(), block.population)


def delta_presence_holds(blocks: list[Block], empty: int, least: Exact, most: Exact) -> bool:
    """For every block of the population; `empty` of them hold no row of the table."""
    shares = [presence(block) for block in blocks] + [Fraction(0)] * empty
    return all(least <= share <= most for share in shares)


def delta_presence_tightest(blocks: list[Block], empty: int) -> tuple[Fraction, Fraction]:
    shares = [presence(block) for block in blocks] + [Fraction(0)] * empty
    return min(shares), max(shares)
