# ruff: noqa: E741 - l is the letter of the papers
"""k-anonymity and the diversity family (models.md section 2), and (alpha,k)-anonymity (section 12)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from reference.exact import CONTEXT, Exact, ln, negative, plus, times
from reference.tables import Block


def k_holds(block: Block, k: int) -> bool:
    return block.size() >= k


def k_tightest(block: Block) -> int:
    return block.size()


def distinct_holds(block: Block, l: int) -> bool:
    return len(block.counts()) >= l


def distinct_tightest(block: Block) -> int:
    return len(block.counts())


def frequency_holds(block: Block, l: Exact) -> bool:
    """No value has more than a share of 1/l."""
    return all(block.share(value) <= 1 / Fraction(l) for value in block.counts())


def frequency_tightest(block: Block) -> Fraction:
    return min(1 / block.share(value) for value in block.counts())


def entropy_holds(block: Block, l: Exact) -> bool:
    """-sum p ln p >= ln l, as integers: n^n >= l^n * product of n_s^n_s, with both sides raised to the n-th power."""
    asked, n = Fraction(l), block.mass()
    product = math.prod(count**count for count in block.counts().values())
    return n**n * asked.denominator**n >= asked.numerator**n * product


def entropy_tightest(block: Block) -> Decimal:
    entropy = negative(plus(*(times(block.share(value), ln(block.share(value))) for value in block.counts())))
    return CONTEXT.exp(entropy)


def recursive_holds(block: Block, c: Exact, l: int) -> bool:
    return _recursive(block.counts(), Fraction(c), l)


def _recursive(counts: dict[Any, int], c: Fraction, l: int) -> bool:
    """LD section 4.2 in words: every value that an attacker eliminates leaves a (c,l-1)-diverse block."""
    if l == 1:
        return True
    if not counts:
        return False
    if l == 2:
        most = max(counts.values())
        return most < c * (sum(counts.values()) - most)
    return all(_recursive({v: n for v, n in counts.items() if v != gone}, c, l - 1) for gone in counts)


def recursive_tightest_c(block: Block, l: int) -> Exact:
    """The infimum of c: the worst ratio over everything that an attacker can eliminate (l-2 values)."""
    return pd_tightest_c(block, l, ())


def recursive_tightest_l(block: Block, c: Exact) -> Exact:
    return largest_l(block, lambda l: recursive_holds(block, c, l))


def largest_l(block: Block, holds: Callable[[int], bool]) -> Exact:
    """The largest l >= 1 such that all of 2..l hold; infinite when more than V+1 do."""
    for l in itertools.count(2):
        if l > len(block.table.values()) + 3:
            return math.inf
        if not holds(l):
            return l - 1
    raise AssertionError


def _eliminations(block: Block, l: int, allowed: Collection[Any]) -> Iterator[tuple[int, int]]:
    """(count of s, mass of the others left) for each value s that must not be disclosed, each l-2 others eliminated."""
    counts = block.counts()
    for s in counts:
        if s in allowed:
            continue
        others = [v for v in counts if v != s]
        for size in range(min(l - 2, len(others)) + 1):
            for gone in itertools.combinations(others, size):
                yield counts[s], sum(counts[v] for v in others if v not in gone)


def pd_holds(block: Block, c: Exact, l: int, allowed: Collection[Any]) -> bool:
    """Every value outside `allowed` stays below c times what remains when any l-2 others are eliminated."""
    return l == 1 or all(count < Fraction(c) * rest for count, rest in _eliminations(block, l, allowed))


def pd_printed(block: Block, c: Exact, l: int, allowed: Collection[Any]) -> bool:
    """The two cases of LD section 4.3 as printed, with the decree for r_y = 0 and l = 1."""
    ranked = sorted(block.counts().items(), key=lambda item: -item[1])
    positions = [rank for rank, (value, _) in enumerate(ranked, 1) if value not in allowed]
    if l == 1 or not positions:
        return True
    y, r = positions[0], [None, *(count for _, count in ranked)]
    m = len(ranked)
    if y <= l - 1:
        return bool(r[y] < Fraction(c) * sum(r[j] for j in range(l, m + 1)))
    return bool(r[y] < Fraction(c) * sum(r[j] for j in range(l - 1, m + 1) if j != y))


def pd_tightest_c(block: Block, l: int, allowed: Collection[Any]) -> Exact:
    if l == 1:
        return Fraction(0)
    ratios = [Fraction(count, rest) if rest else math.inf for count, rest in _eliminations(block, l, allowed)]
    return max(ratios, default=Fraction(0))


def pd_tightest_l(block: Block, c: Exact, allowed: Collection[Any]) -> Exact:
    return largest_l(block, lambda l: pd_holds(block, c, l, allowed))


def npd_holds(
    block: Block,
    c1: Exact,
    c2: Exact,
    l: int,
    allowed: Collection[Any],
    protected: Collection[Any],
) -> bool:
    """pd-recursive, and every protected value has at least c2 percent of every block."""
    return pd_holds(block, c1, l, allowed) and all(100 * block.share(w) >= c2 for w in protected)


def npd_tightest_c2(block: Block, protected: Collection[Any]) -> Exact:
    return min((100 * block.share(w) for w in protected), default=math.inf)


def alpha_k_holds(block: Block, alpha: Exact, k: int, values: Collection[Any] | None = None) -> bool:
    return block.size() >= k and alpha_tightest(block, values) <= alpha


def alpha_tightest(block: Block, values: Collection[Any] | None = None) -> Fraction:
    return max((block.share(v) for v in (block.table.values() if values is None else values)), default=Fraction(0))


def multi_attribute_blocks(block: Block, sensitives: Collection[str]) -> dict[str, list[Block]]:
    """LD section 4.5: for each sensitive attribute, the block split by all the other ones."""
    from dataclasses import replace

    found: dict[str, list[Block]] = {}
    for name in sensitives:
        table = replace(block.table, sensitive=name, domain=None)
        parts: dict[tuple[Any, ...], list[Any]] = {}
        for row in block.rows:
            parts.setdefault(tuple(row[other] for other in sensitives if other != name), []).append(row)
        found[name] = [Block(table, rows) for rows in parts.values()]
    return found
