"""Distances between distributions over dom(S) (models.md section 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from reference.exact import CONTEXT, Exact, ln, plus, times
from reference.tables import Table

Distribution = Sequence[Fraction]
Ground = list[list[Fraction]]


def ground(table: Table, kind: str) -> Ground:
    """The ground distances between the values of dom(S), each in [0,1]."""
    values = table.values()
    size = len(values)
    if kind == "equal":
        return [[Fraction(int(i != j)) for j in range(size)] for i in range(size)]
    if kind == "ordered":
        return [[Fraction(abs(i - j), max(size - 1, 1)) for j in range(size)] for i in range(size)]
    paths = [(table.taxonomy or {})[value] for value in values]
    return [[_ancestor(x, y) for y in paths] for x in paths]


def _ancestor(x: list[Any], y: list[Any]) -> Fraction:
    """Level of the lowest common ancestor over the height of the taxonomy."""
    height = len(x) - 1
    level = next(level for level in range(height + 1) if x[level:] == y[level:])
    return Fraction(level, height) if height else Fraction(0)


def earth_mover(p: Distribution, q: Distribution, distances: Ground) -> Fraction:
    """The least cost of moving p to q: a transport problem, solved by cheapest augmenting paths.

    Masses are scaled to integers; nodes are the values with too much (left) and with too little (right) mass.
    """
    scale = math.lcm(*(x.denominator for x in [*p, *q]))
    excess = [int((x - y) * scale) for x, y in zip(p, q, strict=True)]
    supply = {i: e for i, e in enumerate(excess) if e > 0}
    demand = {i: -e for i, e in enumerate(excess) if e < 0}
    flow: dict[tuple[int, int], int] = {}
    while any(supply.values()):
        path = _cheapest_path(supply, demand, flow, distances)
        amount = min(supply[path[0]], demand[path[-1]])
        amount = min([amount, *(flow[path[k + 1], path[k]] for k in range(1, len(path) - 1, 2))])
        for k in range(len(path) - 1):
            forward = k % 2 == 0
            arc = (path[k], path[k + 1]) if forward else (path[k + 1], path[k])
            flow[arc] = flow.get(arc, 0) + (amount if forward else -amount)
        supply[path[0]] -= amount
        demand[path[-1]] -= amount
    return sum((amount * distances[i][j] for (i, j), amount in flow.items()), Fraction(0)) / scale


def _cheapest_path(
    supply: dict[int, int], demand: dict[int, int], flow: dict[tuple[int, int], int], distances: Ground
) -> list[int]:
    """Bellman and Ford over the residual graph: left to right at cost d, back along a positive flow at cost -d."""
    best: dict[int, tuple[Fraction, list[int]]] = {i: (Fraction(0), [i]) for i, left in supply.items() if left}
    for _ in range(len(supply) + len(demand)):
        for i in supply:
            for j in demand:
                cost = distances[i][j]
                if i in best and (j not in best or best[i][0] + cost < best[j][0]):
                    best[j] = (best[i][0] + cost, [*best[i][1], j])
                if flow.get((i, j)) and j in best and (i not in best or best[j][0] - cost < best[i][0]):
                    best[i] = (best[j][0] - cost, [*best[j][1], i])
    return min((best[j] for j, left in demand.items() if left and j in best), key=lambda found: found[0])[1]


def jensen_shannon(p: Distribution, q: Distribution) -> Decimal:
    """1/2 KL(p||a) + 1/2 KL(q||a) with a the mean of both, natural logarithm, 0 ln 0 = 0."""
    terms = []
    for x, y in zip(p, q, strict=True):
        for z in (x, y):
            if z:
                terms.append(times(z / 2, ln(z / ((x + y) / 2))))
    return plus(*terms)


def smooth(p: Distribution, distances: Ground, bandwidth: Fraction) -> list[Fraction]:
    """Epanechnikov smoothing over the ground distances, made to sum to 1 again."""

    def kernel(d: Fraction) -> Fraction:
        return 3 / (4 * bandwidth) * (1 - (d / bandwidth) ** 2) if abs(d) < bandwidth else Fraction(0)

    raw = [sum(x * kernel(d) for x, d in zip(p, row, strict=True)) / sum(kernel(d) for d in row) for row in distances]
    return [x / sum(raw) for x in raw]


def distance(
    table: Table, p: Distribution, q: Distribution, kind: str, bandwidth: Exact | None, under: str | None = None
) -> Exact:
    """D(p,q) of the kinds that t-closeness knows; kernel_js takes the ground distance `under`."""
    if kind == "kernel_js":
        distances = ground(table, under or "ordered")
        width = Fraction(bandwidth or 0)
        return jensen_shannon(smooth(p, distances, width), smooth(q, distances, width))
    return earth_mover(p, q, ground(table, kind))


def kullback_leibler(terms: list[tuple[Fraction, Fraction]]) -> Decimal:
    """sum of w ln r."""
    return plus(*(times(weight, ln(ratio)) for weight, ratio in terms)) if terms else CONTEXT.create_decimal(0)
