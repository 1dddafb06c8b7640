"""How numbers, and ranges of numbers and of dates, are read from texts and written as labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from qblock.canonical import decimal_text
from qblock.comparison import Kind
from qblock.hierarchy.cuts import Grid
from qblock.hierarchy.labels import Texts, all_match, places, whole

DIGITS = 18
"""That 64 bits have, whatever they are."""
LONGEST = 4000
"""Digits that Python reads without being told to."""
MISSING = "(missing)"
"""How the leaf of NULL, and of values that a hierarchy does not cover, reads where it stands alone: `*` would read like
all values."""
LabelForm = Literal["plain", "half_open"]
"""How ranges of whole numbers are written: 15-19, or [15, 20), as those of other numbers are in any case."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """leaves: texts by value, then by text; counts: the number of each is counts / per, an array of int64, or of
    Python's integers where these are too large. unfit: texts that are no finite numbers, which are in neither."""

    leaves: Texts
    counts: NDArray[Any]
    per: int
    unfit: tuple[str, ...] = ()

    def scaled(self, per: int, most: int = 0) -> NDArray[Any]:
        """The numbers times `per`, a multiple of self.per; most: the size of what is computed with them."""
        factor = per // self.per
        if self.counts.dtype == object:
            return self.counts * factor
        size = max(abs(int(self.counts[0])), abs(int(self.counts[-1]))) if len(self.counts) else 0
        if max(size * factor + most, factor) < 2**62:
            return self.counts * np.int64(factor)
        return self.counts.astype(object) * factor


def sorted_numbers(distinct: Texts, integer: bool) -> Numbers:
    """Distinct texts as numbers, in ascending order."""
    ordered = distinct.take(pc.array_sort_indices(distinct))
    counts, per, unfit = _parsed(ordered, integer)
    if unfit:
        return Numbers(ordered, counts, per, tuple(unfit))
    order = np.argsort(counts, kind="stable")
    return Numbers(ordered.take(places(order)), counts[order], per)


def _parsed(values: Texts, integer: bool) -> tuple[NDArray[Any], int, list[str]]:
    if integer and all_match(values, f"-?[0-9]{{1,{DIGITS}}}"):
        return whole(values.cast(pa.int64())), 1, []
    longest = pc.max(pc.binary_length(values)).as_py() or 0
    if not integer and longest <= LONGEST and all_match(values, r"-?[0-9]+(\.[0-9]+)?"):
        return *_decimals(values), []
    parsed: list[Fraction | None] = []
    listed = values.to_pylist()
    for value in listed:
        try:
            parsed.append(Fraction(int(value)) if integer else Fraction(value))
        except ValueError:
            parsed.append(None)
    unfit = [value for value, number in zip(listed, parsed, strict=True) if number is None]
    numbers = [number for number in parsed if number is not None]
    per = math.lcm(*(number.denominator for number in numbers))
    return _objects([number.numerator * (per // number.denominator) for number in numbers]), per, unfit


def _decimals(values: Texts) -> tuple[NDArray[Any], int]:
    """Plain decimals without an exponent, in tens of as many decimals as one of them has."""
    lengths, point = whole(pc.binary_length(values)), whole(pc.find_substring(values, "."))
    decimals = np.where(point < 0, 0, lengths - point - 1)
    scale = int(decimals.max(initial=0))
    if int((lengths - decimals).max(initial=0)) + scale <= DIGITS:
        exact = values.cast(pa.decimal128(2 * DIGITS, scale))
        low: NDArray[Any] = np.frombuffer(exact.buffers()[1] or b"", dtype=np.int64)[::2]
        return np.ascontiguousarray(low[exact.offset : exact.offset + len(exact)]), 10**scale
    listed = [value.partition(".") for value in values.to_pylist()]
    return _objects([int(f"{before}{after}") * 10 ** (scale - len(after)) for before, _, after in listed]), 10**scale


def _objects(numbers: list[int]) -> NDArray[Any]:
    objects = np.empty(len(numbers), dtype=object)
    objects[:] = numbers
    return objects


def decimal_texts(counts: list[int], per: int) -> list[str]:
    """The texts of counts / per, as `decimal_text` writes them."""
    digits = next((digits for digits in range(per.bit_length()) if 10**digits % per == 0), None)
    if digits is None:
        return [decimal_text(Fraction(count, per)) for count in counts]
    if not digits:
        return list(map(str, counts))
    texts, tens = [], 10**digits // per
    for count in counts:
        text = str(abs(count) * tens).zfill(digits + 1)
        text = f"{text[:-digits]}.{text[-digits:]}".rstrip("0").rstrip(".")
        texts.append(f"-{text}" if count < 0 else text)
    return texts


def inclusive(kind: Kind, labels: LabelForm, numbers: Sequence[int | Fraction]) -> bool:
    """Whether ranges between these numbers are written with their last value."""
    return labels == "plain" and kind == "integer" and all(Fraction(number).denominator == 1 for number in numbers)


def whole_ranges(lows: Sequence[int], width: int) -> list[str]:
    """Ranges of one width with both ends: 15-19, -10 to -6, and 15 where there is no other."""
    if width == 1:
        return list(map(str, lows))
    return [f"{low}-{low + width - 1}" if low >= 0 else f"{low} to {low + width - 1}" for low in lows]


def half_open(lows: Sequence[int], width: int, per: int) -> list[str]:
    """Ranges without their upper end, [1.5, 2); all numbers times `per`."""
    begins, ends = decimal_texts(list(lows), per), decimal_texts([low + width for low in lows], per)
    return [f"[{low}, {high})" for low, high in zip(begins, ends, strict=True)]


def writer(grid: Grid, kind: Kind, per: int, labels: LabelForm) -> Callable[[int, int, bool], str]:
    """How a cell is written: from its lower end, its upper one, and whether this one belongs to it."""
    if grid.of_dates:
        return lambda low, high, closed: _dates_from_to(low, high - (not closed))
    if inclusive(kind, labels, (Fraction(1, grid.per),)):
        return lambda low, high, closed: whole_ranges([low], high - low + closed)[0]
    return lambda low, high, closed: "[{}, {}{}".format(*decimal_texts([low, high], per), "])"[not closed])


def _dates_from_to(low: int, high: int) -> str:
    return f"{date.fromordinal(low)}" + (f" to {date.fromordinal(high)}" if high > low else "")


def interval_of_numbers(low: str | None, high: str | None, closed: bool, *, whole: bool) -> str:
    """low <= number < high, of which one may be open: 25-29, [2.5, 3), <15, >=90. closed: whether high belongs to it;
    whole: whether ranges of whole numbers have both ends."""
    if low is None:
        return f"<{'=' * closed}{high}"
    if high is None:
        return f">={low}"
    if whole and (first := Fraction(low)).denominator == 1 and (end := Fraction(high)).denominator == 1:
        return whole_ranges([int(first)], int(end - first) + closed)[0]
    return f"[{low}, {high}{'])'[not closed]}"


def interval_of_moments(low: str | None, high: str | None, closed: bool, *, units: bool) -> str:
    """The same of dates, from the first to the last month, or day; of times half-open. units: whether months may be
    written."""
    days = [None if end is None or len(end) > len("2024-01-01") else date.fromisoformat(end) for end in (low, high)]
    first, end = days
    if low is not None and high is not None:
        if first is None or end is None:
            return f"[{low}, {high}{'])'[not closed]}"
        if units and not closed and first.day == end.day == 1:
            last = end - timedelta(days=1)
            return " to ".join(dict.fromkeys(f"{day.year:04}-{day.month:02}" for day in (first, last)))
        return _dates_from_to(first.toordinal(), end.toordinal() - (not closed))
    if low is None:
        return f"<{'=' * closed}{high}"
    return f">={low}"
