"""How useful a node's published table still is: models.md section 9, and loss, precision and non-uniform entropy.

Loss is ARX's. Non-uniform entropy is ARX's only where nothing is suppressed: see there.

Sizes are in rows, also where entities are counted. `rows` is N, the rows of the source; `suppressed` those of them that
are not published. A code of a label is the smallest leaf index that carries the label at that level.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Floats, Ints, Mask
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node

WIDE = 2**62
Weights = Sequence[Fraction] | None
"""Of the attributes, each above 0; None, or all equal, where they count alike."""


def scaled(weights: Weights) -> Floats | None:
    """float64[Q]: the weights as shares of the largest; None where attributes count alike."""
    if weights is None or len(set(weights)) < 2:
        return None
    most = max(weights)
    return np.array([float(weight / most) for weight in weights])


def weighted_mean(values: Sequence[float], weights: Weights = None) -> float:
    """The mean of one value for each attribute, of which there is at least one."""
    shares = scaled(weights)
    if shares is None:
        return math.fsum(values) / len(values)
    return math.fsum(shares * np.array(values)) / math.fsum(shares)


def weighted_sum(values: Sequence[float], weights: Weights = None) -> float:
    """The sum of one value for each attribute, with weights as many times their mean."""
    return math.fsum(values) if scaled(weights) is None else len(values) * weighted_mean(values, weights)


def average_block_size(multiplicity: Ints, suppressed: int, rows: int) -> float:
    """Published rows per published block (LD section 6); infinite where nothing is published.

    multiplicity: how many blocks there are of each size.
    """
    blocks = int(multiplicity.sum())
    return (rows - suppressed) / blocks if blocks else math.inf


def discernibility(sizes: Ints, multiplicity: Ints, suppressed: int, rows: int) -> int:
    """Sum of n(q)^2 over the published blocks, and N for each suppressed row (LD section 6). Exact.

    sizes, multiplicity: the distinct sizes of published blocks and how many blocks have each.
    """
    squares = sum(size * size * many for size, many in zip(sizes.tolist(), multiplicity.tolist(), strict=True))
    return int(squares) + suppressed * rows


def precision(
    levels: Node, hierarchies: Sequence[Hierarchy], suppressed: int, rows: int, weights: Weights = None
) -> float:
    """1 minus the mean of level/height over all cells (Sweeney 2002); a suppressed row's cells count as their top.

    An attribute of height 0 has nothing to lose. 1 for an empty table. weights: the mean is weighted.
    """
    if not rows or not levels:
        return 1.0
    published = (rows - suppressed) / rows
    shares = [
        published * level / h.height + (1 - published) if h.height else 0.0
        for level, h in zip(levels, hierarchies, strict=True)
    ]
    return 1 - weighted_mean(shares, weights)


def loss(
    keys: Ints,
    block_rows: Ints,
    levels: Node,
    hierarchies: Sequence[Hierarchy],
    suppressed: int,
    rows: int,
    weights: Weights = None,
) -> float:
    """Iyengar's loss as ARX rescales and joins it, from 0 (nothing generalized) to 1.

    For an attribute with D leaves, x is the mean over all rows of the share of the leaves under the published value
    (1 for a suppressed row), rescaled to (x - 1/D) / (1 - 1/D), 0 where D = 1. The attributes' values are joined as the
    geometric mean of 1 + x, minus 1, which weights weigh. keys: int64[B, Q] codes of the published blocks; block_rows:
    int64[B].
    """
    if not rows or not levels:
        return 0.0
    logs = []
    for attribute, (level, hierarchy) in enumerate(zip(levels, hierarchies, strict=True)):
        under = hierarchy.leaves_under(level)
        leaves = len(under)
        covered = int((under[keys[:, attribute]] * block_rows).sum()) + suppressed * leaves
        # (x - 1/D) / (1 - 1/D) with x = covered / (N D), brought to one fraction so that 0 and 1 are reached exactly
        logs.append(math.log1p((covered - rows) / (rows * (leaves - 1))) if leaves > 1 else 0.0)
    return math.expm1(weighted_mean(logs, weights))


def non_uniform_entropy(
    leaf_codes: Ints,
    leaf_rows: Ints,
    levels: Node,
    hierarchies: Sequence[Hierarchy],
    kept: Mask | None = None,
    *,
    normalized: bool = False,
    weights: Weights = None,
) -> float:
    """Bits lost: -log2(rows of the leaf / rows of the published label), summed over rows and attributes.

    The source is Gionis and Tassa (2009). Both counts are of the whole source, and a suppressed row's labels are taken
    as the top, whose count is N: so a row's loss never falls when it is suppressed. The figure is ARX's where
    nothing is suppressed, and only there: with suppressed rows the two differ. leaf_codes: int64[L, Q];
    leaf_rows: int64[L]; kept: bool[L], the leaf tuples that are published, all when absent. normalized: each attribute
    as a share of what the top loses, 0 where that is nothing, and the mean of the attributes: from 0 to 1. weights: of
    the attributes' bits, as many times their mean.
    """
    total = int(leaf_rows.sum())
    values = []
    for attribute, (level, hierarchy) in enumerate(zip(levels, hierarchies, strict=True)):
        codes = leaf_codes[:, attribute]
        leaves = hierarchy.codes.shape[1]
        counts = np.bincount(codes, weights=leaf_rows, minlength=leaves)
        labels = hierarchy.codes[level]
        label_counts = np.bincount(labels, weights=counts, minlength=leaves)[labels]
        published = counts if kept is None else np.bincount(codes[kept], weights=leaf_rows[kept], minlength=leaves)
        seen = counts > 0
        bits = published[seen] * np.log2(label_counts[seen] / counts[seen])
        top = np.log2(total / counts[seen]) if total else bits
        lost = float((bits + (counts - published)[seen] * top).sum())
        if normalized:
            most = float((counts[seen] * top).sum())
            lost = lost / most if most else 0.0
        values.append(lost)
    if not values:
        return 0.0
    return weighted_mean(values, weights) if normalized else weighted_sum(values, weights)


def kl_divergence(leaf_codes: Ints, value: Ints, count: Ints, levels: Node, hierarchies: Sequence[Hierarchy]) -> float:
    """Divergence in nats of the original from the published table, whose rows spread evenly over their blocks' leaves.

    Sum of (c/N') ln(c vol(q) / n(q,s)) over the distinct published (leaf tuple, sensitive value), c rows each; vol(q)
    the leaf tuples under q. 0 at the bottom, never falling upward; infinite where nothing is published.
    leaf_codes: int64[L, Q], value, count: int64[L], distinct and without suppressed rows.
    """
    total = int(count.sum())
    if not total:
        return math.inf
    labels = generalize(leaf_codes, levels, hierarchies)
    _, pair = np.unique(number_rows(np.column_stack((labels, value))), return_inverse=True)
    together = np.bincount(pair, weights=count)[pair]
    volume = np.zeros(len(count))
    for attribute, (level, hierarchy) in enumerate(zip(levels, hierarchies, strict=True)):
        volume += np.log(hierarchy.leaves_under(level)[leaf_codes[:, attribute]])
    return total_of(count / total * (np.log(count / together) + volume))


def kl_of_sums(
    leaf_sizes: Ints,
    multiplicity: Ints,
    pairs: Ints,
    keys: Ints,
    rows: Ints,
    levels: Node,
    hierarchies: Sequence[Hierarchy],
) -> float:
    """`kl_divergence` where nothing is suppressed, without any leaf.

    It is the sum of c ln c over leaves, less that of n(q,s) ln n(q,s) over blocks and values, and with that of
    n(q) ln vol(q) over blocks, per row.

    leaf_sizes, multiplicity: the numbers of rows of distinct (leaf tuple, value), and how many have each; pairs:
    int64[P], the n(q,s); keys: int64[B, Q]; rows: int64[B].
    """
    total = int(rows.sum())
    if not total:
        return math.inf
    volume = np.zeros(len(rows))
    for attribute, (level, hierarchy) in enumerate(zip(levels, hierarchies, strict=True)):
        volume += np.log(hierarchy.leaves_under(level)[keys[:, attribute]])
    size = leaf_sizes.astype(np.float64)
    sums = (
        total_of(multiplicity * (size * np.log(size))),
        -float((pairs * np.log(pairs)).sum()),
        float((rows * volume).sum()),
    )
    return max(0.0, math.fsum(sums) / total)


def total_of(values: Floats | Ints) -> float:
    """The sum, the same to the last bit in whatever order an engine gave the values."""
    return float(np.sort(values).sum())


def generalize(leaf_codes: Ints, levels: Node, hierarchies: Sequence[Hierarchy]) -> Ints:
    """int64[L, Q]: the codes of leaf tuples at a node."""
    columns = [h.codes[level][leaf_codes[:, i]] for i, (level, h) in enumerate(zip(levels, hierarchies, strict=True))]
    return np.column_stack(columns) if columns else leaf_codes


def kept_leaves(leaf_codes: Ints, keys: Ints, levels: Node, hierarchies: Sequence[Hierarchy]) -> Mask:
    """bool[L]: the leaf tuples whose block at a node is among the published `keys` (int64[B, Q])."""
    numbers = number_rows(np.concatenate((generalize(leaf_codes, levels, hierarchies), keys)))
    return np.isin(numbers[: len(leaf_codes)], numbers[len(leaf_codes) :])


def number_rows(columns: Ints) -> Ints:
    """int64[R]: a number for each row of int64[R, C], all at least 0, equal for equal rows alone."""
    result = np.zeros(len(columns), dtype=np.int64)
    span = 1
    for column in columns.T if len(columns) else ():
        size = int(column.max()) + 1
        if span * size > WIDE:
            distinct, result = np.unique(result, return_inverse=True)
            span = len(distinct)
        result = result * size + column
        span *= size
    return result


def mean(values: Floats) -> float:
    """The mean; 0 of nothing."""
    return float(values.mean()) if len(values) else 0.0


@dataclass(frozen=True)
class Query:
    """How many rows have a leaf of the given ones for each quasi-identifier, and one of the sensitive values?

    leaves: for each quasi-identifier the leaf indexes, or None for no restriction; values: codes of sensitive values,
    or None.
    """

    leaves: tuple[tuple[int, ...] | None, ...]
    values: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class Answers:
    """Of each query (float64[queries]) how many rows answer it in the source, and how many are expected from what is
    published. least: below it, an error is not relative to the truth any more."""

    true: Floats
    expected: Floats
    least: float

    @property
    def errors(self) -> Floats:
        """float64[queries]: |expected - true| / max(true, least)."""
        away, base = np.abs(self.expected - self.true), np.maximum(self.true, self.least)
        errors: Floats = np.where(away > 0, math.inf, 0.0)
        np.divide(away, base, out=errors, where=base > 0)
        return errors


def query_answers(
    queries: Sequence[Query],
    leaf_codes: Ints,
    value: Ints,
    count: Ints,
    levels: Node,
    hierarchies: Sequence[Hierarchy],
    *,
    kept: Mask | None = None,
    floor: Fraction | int | None = None,
) -> Answers:
    """The answers of a workload at a node; the floor of errors is N/1000 unless given.

    The estimate assumes that the rows of a block are spread evenly over its leaves. leaf_codes: int64[L, Q], value,
    count: int64[L]: the leaf frequency set of the whole source; kept: bool[L], what is published of it, all when
    absent. Suppressed rows are missing from the estimate, not from the truth.
    """
    least = float(Fraction(int(count.sum()), 1000) if floor is None else floor)
    labels = generalize(leaf_codes, levels, hierarchies)
    published = np.ones(len(count), dtype=bool) if kept is None else kept
    numbers = number_rows(np.column_stack((labels, value)))[published]
    _, first, pair = np.unique(numbers, return_index=True, return_inverse=True)
    pair_rows: Floats = np.bincount(pair, weights=count[published], minlength=len(first)).astype(np.float64)
    pair_labels, pair_value = labels[published][first], value[published][first]

    def share(attribute: int, inside: Floats) -> Floats:
        hierarchy, level = hierarchies[attribute], levels[attribute]
        wanted = np.bincount(hierarchy.codes[level], weights=inside, minlength=len(inside))
        shares: Floats = (wanted / hierarchy.leaves_under(level))[pair_labels[:, attribute]]
        return shares

    return answers_of(queries, hierarchies, (leaf_codes, value, count), (pair_rows, pair_value), share, least)


def answers_of(
    queries: Sequence[Query],
    hierarchies: Sequence[Hierarchy],
    leaves: tuple[Ints, Ints, Ints],
    pairs: tuple[Floats, Ints],
    share: Callable[[int, Floats], Floats],
    least: float,
) -> Answers:
    """The answers from pairs of blocks and values.

    Args:
        leaves: codes int64[L, Q], value and count int64[L] of the leaf frequency set of the whole source.
        pairs: rows and value of each pair of a published block and a value.
        share: of each pair, how much of its label of an attribute are leaves that are asked for (float64[leaves]: 1).
        least: below it, errors are not relative to the truth any more.
    """
    (codes, value, count), (rows, pair_value) = leaves, pairs
    answers, estimates = np.zeros(len(queries)), np.zeros(len(queries))
    for number, query in enumerate(queries):
        true, estimate = count.astype(np.float64), rows.copy()
        for attribute, wanted in enumerate(query.leaves):
            if wanted is not None:
                inside = np.zeros(hierarchies[attribute].codes.shape[1])
                inside[list(wanted)] = 1
                true *= inside[codes[:, attribute]]
                estimate *= share(attribute, inside)
        if query.values is not None:
            true *= np.isin(value, query.values)
            estimate *= np.isin(pair_value, query.values)
        answers[number], estimates[number] = true.sum(), estimate.sum()
    return Answers(answers, estimates, least)


def random_workload(
    hierarchies: Sequence[Hierarchy],
    values: int,
    *,
    queries: int = 200,
    attributes: int = 2,
    selectivity: Fraction = Fraction(1, 20),
    seed: int = 0,
) -> tuple[Query, ...]:
    """Count queries that each restrict `attributes` quasi-identifiers and the sensitive attribute, drawn from a seed.

    A restricted attribute with D leaves asks for a random set of round(D selectivity^(1/(attributes + 1))) of them, at
    least one, so that about `selectivity` of evenly spread rows would answer. values: size of the sensitive domain; 0
    leaves it unrestricted.
    """
    draw = random.Random(seed)
    restricted = min(attributes, len(hierarchies))
    part = float(selectivity) ** (1 / (restricted + (1 if values else 0))) if restricted or values else 1.0

    def draw_codes(size: int) -> tuple[int, ...]:
        return tuple(sorted(draw.sample(range(size), max(1, round(size * part)))))

    result = []
    for _ in range(queries):
        chosen = set(draw.sample(range(len(hierarchies)), restricted))
        leaves = tuple(draw_codes(h.codes.shape[1]) if i in chosen else None for i, h in enumerate(hierarchies))
        result.append(Query(leaves, draw_codes(values) if values else None))
    return tuple(result)
