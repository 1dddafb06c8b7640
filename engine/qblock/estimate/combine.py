"""Counts, means and sums over rows of which it is certain, possible or impossible that they meet the conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qblock.estimate.columns import Number

ONE = Number(1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Part:
    """Published rows that read alike. rows: how many; weight: the sum of their weights; surely: whether they meet all
    conditions, else possibly; share: of them that are expected to; number: behind each, of the column that is asked
    for."""

    rows: int
    weight: float
    surely: bool
    share: float
    number: Number = ONE


@dataclass(frozen=True)
class Between:
    """at_least, at_most: certain, None where nothing bounds it; expected: None where nothing is."""

    at_least: float | None
    expected: float | None
    at_most: float | None


def count_of(parts: Sequence[Part]) -> Between:
    """How many rows meet the conditions, by their weights."""
    return sum_of([replace(part, number=ONE) for part in parts])


def sum_of(parts: Sequence[Part]) -> Between:
    """The sum of their numbers. A row that possibly meets the conditions adds 0 where it does not."""
    parts = _with_expected(parts)
    expected = sum(p.weight * p.share * p.number.expected for p in parts if p.number.expected is not None)
    unknown = any(p.share > 0 and p.number.expected is None for p in parts)
    return Between(_least_sum(parts), None if unknown else expected, _negated(_least_sum(_mirrored(parts))))


def mean_of(parts: Sequence[Part]) -> Between:
    """The mean of their numbers, if any row meets the conditions."""
    parts = [part for part in _with_expected(parts) if part.weight > 0]
    total = weight = 0.0
    for part in parts:
        if part.number.expected is not None:
            total += part.weight * part.share * part.number.expected
            weight += part.weight * part.share
    return Between(_least_mean(parts), total / weight if weight else None, _negated(_least_mean(_mirrored(parts))))


def _least_sum(parts: Sequence[Part]) -> float | None:
    total = 0.0
    for part in parts:
        least = part.number.least
        if least is None:
            return None
        total += part.weight * (least if part.surely else min(least, 0.0))
    return total


def _least_mean(parts: Sequence[Part]) -> float | None:
    """The least mean: of the rows that surely count, and of those others that lower it."""
    if not parts or any(part.number.least is None for part in parts):
        return None
    total = sum(part.weight * (part.number.least or 0.0) for part in parts if part.surely)
    weight = sum(part.weight for part in parts if part.surely)
    others = [part for part in parts if not part.surely]
    for part in sorted(others, key=lambda part: part.number.least or 0.0):
        least = part.number.least or 0.0
        if weight and least * weight >= total:
            break
        total, weight = total + part.weight * least, weight + part.weight
    return total / weight


def _mirrored(parts: Sequence[Part]) -> list[Part]:
    """The same with every number's sign turned, so that the most becomes the least."""
    return [
        replace(part, number=Number(_negated(part.number.most), _negated(part.number.least), None)) for part in parts
    ]


def _negated(number: float | None) -> float | None:
    return None if number is None else 0.0 - number


def _with_expected(parts: Sequence[Part]) -> list[Part]:
    """A row of which nothing says what is expected has the mean of the others, as far as its label allows."""
    known = [(p.weight * p.share, p.number.expected) for p in parts if p.number.expected is not None]
    weight = sum(share for share, _ in known)
    if not weight:
        return list(parts)
    mean = sum(share * expected for share, expected in known) / weight
    return [
        part if part.number.expected is not None else replace(part, number=_expecting(part.number, mean))
        for part in parts
    ]


def _expecting(number: Number, mean: float) -> Number:
    least = mean if number.least is None else max(mean, number.least)
    return replace(number, expected=least if number.most is None else min(least, number.most))
