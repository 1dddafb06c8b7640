"""Count queries answered from a published table, and how far off the answers are (models.md section 9)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Floats, Ints, Mask
from qblock.hierarchy import Hierarchy
from qblock.lattice import Node
from qblock.metrics.formulas import generalize, number_rows


@dataclass(frozen=True)
class Query:
    """How many rows have a leaf of the given ones for each quasi-identifier, and one of the sensitive values?

    leaves: for each quasi-identifier the leaf indexes, or None for no restriction; values: codes of sensitive values,
    or None.
    """

    leaves: tuple[tuple[int, ...] | None, ...]
    values: tuple[int, ...] | None = None


def query_errors(
    queries: Sequence[Query],
    leaf_codes: Ints,
    value: Ints,
    count: Ints,
    levels: Node,
    hierarchies: Sequence[Hierarchy],
    *,
    kept: Mask | None = None,
    floor: Fraction | int | None = None,
) -> Floats:
    """float64[queries]: |estimate - true| / max(true, floor), the floor N/1000 unless given.

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
    errors = np.zeros(len(queries))
    for number, query in enumerate(queries):
        true, estimate = count.astype(np.float64), pair_rows.copy()
        for attribute, wanted in enumerate(query.leaves):
            if wanted is None:
                continue
            hierarchy, level = hierarchies[attribute], levels[attribute]
            inside = np.zeros(hierarchy.codes.shape[1])
            inside[list(wanted)] = 1
            true *= inside[leaf_codes[:, attribute]]
            share = np.bincount(hierarchy.codes[level], weights=inside, minlength=len(inside))
            estimate *= (share / hierarchy.leaves_under(level))[pair_labels[:, attribute]]
        if query.values is not None:
            true *= np.isin(value, query.values)
            estimate *= np.isin(pair_value, query.values)
        answer = float(true.sum())
        away, base = abs(float(estimate.sum()) - answer), max(answer, least)
        errors[number] = away / base if base else (0.0 if not away else math.inf)
    return errors


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
