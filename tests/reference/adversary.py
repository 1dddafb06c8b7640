"""epsilon-privacy against the classes I to IV of EP (models.md section 6), from the definition.

Every known set of b rows of the block, every individual outside of it and every predicate is tried, and for a class
every extreme member. The extremes suffice: p_out is linear (class II) or a quotient of linear functions (class I) of
the prior, so that it is monotone along a segment; `interior` tries further members to test just that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from reference.exact import Exact
from reference.tables import Block, Table

Prior = dict[Any, Fraction]
Predicate = frozenset[Any]


def singletons(table: Table) -> list[Predicate]:
    return [frozenset([value]) for value in table.values()]


def negatives(table: Table) -> list[Predicate]:
    return [frozenset(table.values()) - {value} for value in table.values()]


def groups(table: Table) -> list[Predicate]:
    """The values under each label of the taxonomy, the leaves included, the whole domain not."""
    paths = table.taxonomy or {}
    found: dict[Predicate, None] = {}
    for level in range(len(next(iter(paths.values())))):
        for label in dict.fromkeys(path[level] for path in paths.values()):
            found[frozenset(v for v, path in paths.items() if path[level] == label)] = None
    return [group for group in found if group and len(group) < len(table.values())]


def uniform(table: Table) -> Prior:
    return {value: Fraction(1, len(table.values())) for value in table.values()}


def observed(table: Table) -> Prior:
    return {value: table.whole().share(value) for value in table.values()}


def external(table: Table, counts: dict[Any, int]) -> Prior:
    """sigma(s) = a(s) + 1 for another data set with counts a(s)."""
    return {value: Fraction(counts.get(value, 0) + 1) for value in table.values()}


def ratio(x: Fraction, y: Fraction) -> Exact:
    """x/y where 0/0 is no violation (1) and x/0 is one for every epsilon."""
    if y == 0:
        return Fraction(1) if x == 0 else math.inf
    return x / y


def needed(p_in: Fraction, p_out: Fraction) -> Exact:
    """The least epsilon (at least 1) that allows this pair of beliefs."""
    return max(Fraction(1), ratio(p_in, p_out), ratio(1 - p_out, 1 - p_in))


def beliefs_inside(block: Block, phi: Predicate, b: int) -> Iterator[tuple[bool, Fraction]]:
    """(u is in phi, p_in) for every individual u and every set of b other rows of its block."""
    rows = [value in phi for value, n in block.counts().items() for _ in range(n)]
    for u in dict.fromkeys(rows):
        others = list(rows)
        others.remove(u)
        inside = sum(others)
        for known_inside in range(b + 1):
            if known_inside <= inside and b - known_inside <= len(others) - inside:
                yield u, Fraction(sum(rows) - known_inside, len(rows) - b)


def smallest_for(block: Block, phi: Predicate, b: int, sigma: Prior) -> Exact:
    """Class I, exactly this prior: the largest epsilon that some individual and some known set need."""
    n, x = block.mass(), sum(block.count(value) for value in phi)
    inside, total = sum((sigma[v] for v in phi), Fraction(0)), sum(sigma.values(), Fraction(0))
    worst: Exact = Fraction(1)
    for u, p_in in beliefs_inside(block, phi, b):
        others = n - 1 + total
        p_out = Fraction(x - u + inside) / others if others else Fraction(0)
        worst = max(worst, needed(p_in, p_out))
    return worst


def smallest_stubborn(block: Block, phi: Predicate, b: int, shape: Prior) -> Exact:
    """Class III: p_out is the prior share of phi."""
    p_out = sum((shape[v] for v in phi), Fraction(0)) / sum(shape.values())
    return max((needed(p_in, p_out) for _, p_in in beliefs_inside(block, phi, b)), default=Fraction(1))


def members_one(sigma: Fraction, shape: Prior, at_most: bool, interior: int = 0) -> list[Prior]:
    """Class I: the priors of this shape with stubbornness sigma, or with any at most that with all sigma(s) >= 1."""
    total = sum(shape.values())
    share = {v: Fraction(w) / total for v, w in shape.items()}
    least = 1 / min(p for p in share.values() if p)
    levels = [sigma]
    if at_most and least < sigma:
        levels += [least + (sigma - least) * i / (interior + 1) for i in range(interior + 1)]
    return [{v: level * p for v, p in share.items()} for level in levels]


def members_two(sigma: Fraction, values: Sequence[Any], interior: int = 0) -> list[Prior]:
    """Class II: the corners of {sigma(s) >= 1, sum = sigma}; `interior` adds mixtures of two corners."""
    corners = [{v: (sigma - len(values) + 1 if v == heavy else Fraction(1)) for v in values} for heavy in values]
    mixed = [
        {v: (x[v] * i + y[v] * (interior + 1 - i)) / (interior + 1) for v in values}
        for x, y in itertools.combinations(corners, 2)
        for i in range(1, interior + 1)
    ]
    return corners + mixed


def epsilon_tightest(
    block: Block,
    adversary: str,
    predicates: Iterable[Predicate] | None = None,
    shape: Prior | None = None,
    sigma: Exact | None = None,
    b: int = 0,
    at_most: bool = True,
    interior: int = 0,
) -> Exact:
    """The smallest epsilon of one block, with the edge cases set by decree written out."""
    table = block.table
    if len(table.values()) == 1:
        return Fraction(1)
    asked = singletons(table) if predicates is None else list(predicates)
    if not asked:
        return Fraction(1)
    if adversary == "IV" or block.mass() <= b:
        return math.inf
    worst: Exact = Fraction(1)
    for phi in asked:
        x = sum(block.count(value) for value in phi)
        if x == 0:
            continue
        if adversary == "III":
            assert shape is not None
            certain = all(shape[v] == 0 for v in shape if v not in phi)
            found = smallest_stubborn(block, phi, b, shape)
        else:
            assert sigma is not None
            if adversary == "I":
                assert shape is not None
                members = members_one(Fraction(sigma), shape, at_most, interior)
            else:
                members = members_two(Fraction(sigma), table.values(), interior)
            certain = x == block.mass() and any(all(m[v] == 0 for v in m if v not in phi) for m in members)
            found = max(smallest_for(block, phi, b, member) for member in members)
        if certain:
            found = Fraction(1) if b == 0 else math.inf
        worst = max(worst, found)
    return worst


def epsilon_holds(block: Block, epsilon: Exact, adversary: str, **more: Any) -> bool:
    return epsilon_tightest(block, adversary, **more) <= epsilon


def closed_form(n: int, x: int, b: int, s: Fraction, sp: Fraction) -> Exact:
    """Class I, exactly sigma, one predicate with x > 0 of the n > b rows; for blocks that are too large to search."""
    left = n - b
    if n - x + s - sp == 0:
        return Fraction(1) if b == 0 else math.inf
    if x + sp <= 1 or left <= x:
        return math.inf
    return max(
        Fraction(1), x * (n + s - 1) / (left * (x + sp - 1)), left * (n - x + s - sp) / ((n + s - 1) * (left - x))
    )


def closed_form_stubborn(n: int, x: int, b: int, p: Fraction) -> Exact:
    """Class III, likewise."""
    left = n - b
    if p == 1:
        return Fraction(1) if b == 0 else math.inf
    if p == 0 or left <= x:
        return math.inf
    return max(Fraction(1), x / (left * p), (1 - p) * left / (left - x))


def theorem_one(block: Block, sigma: Prior, b: int = 0) -> Exact:
    """EP Theorem 1 as printed (singletons): a sufficient condition, unsound where some sigma(s) < 1."""
    n, s = block.mass(), sum(sigma.values())
    worst: Exact = Fraction(1)
    for value, x in block.counts().items():
        left, sp = n - b, sigma[value]
        first = ratio(Fraction(n + s), Fraction(left)) if sp < 1 else ratio(x * (n + s), left * (x + sp - 1))
        worst = max(worst, first, ratio(left * (n - x + s - sp + 1), (n + s - 1) * (left - x)))
    return worst


def theorem_two(block: Block, sigma: Exact, b: int = 0) -> Exact:
    """EP Theorem 2 as printed."""
    n, s, left = block.mass(), Fraction(sigma), block.mass() - b
    worst: Exact = ratio(n + s, Fraction(left))
    for x in block.counts().values():
        worst = max(worst, ratio(left * (n - x + s), (n + s - 1) * (left - x)))
    return worst


def dirichlet(histogram: Sequence[int], sigma: Sequence[int]) -> list[Fraction]:
    """The predictive probabilities after a histogram."""
    total = sum(histogram) + sum(sigma)
    return [Fraction(h + s, total) for h, s in zip(histogram, sigma, strict=True)]
