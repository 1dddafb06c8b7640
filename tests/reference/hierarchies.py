"""Hierarchies built label by label, each from its leaf alone, with exact fractions and the calendar of Python.

Every function gives the rows: one for each leaf, the leaf first and `*` last. Unfit has the values without a place.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction

TOP = "*"
Row = tuple[str | None, ...]


class Unfit(Exception):
    def __init__(self, values: Iterable[str]) -> None:
        self.values = tuple(values)
        super().__init__(*self.values)


def number(text: str, integer: bool) -> Fraction | None:
    try:
        return Fraction(int(text)) if integer else Fraction(text)
    except ValueError:
        return None


def ascending(values: Iterable[str], kind: str) -> list[str]:
    if kind not in ("integer", "decimal", "float"):
        return sorted(set(values))
    numbers = {value: number(value, kind == "integer") for value in values}
    if unfit := sorted(value for value, found in numbers.items() if found is None):
        raise Unfit(unfit)
    return sorted(numbers, key=lambda value: (numbers[value], value))


def suppressed(values: Iterable[str], kind: str) -> list[Row]:
    return [(value, TOP) for value in ascending(values, kind)]


def masked(values: Iterable[str], n: int, from_: str, kind: str) -> list[Row]:
    rows, unfit = [], []
    for value in ascending(values, kind):
        text = value.zfill(n) if kind == "integer" else value
        if len(text) != n or (kind == "integer" and not text.isdigit()):
            unfit.append(value)
        hidden = [text[: n - m] + TOP * m if from_ == "right" else TOP * m + text[m:] for m in range(1, n)]
        rows.append((value, *hidden, TOP))
    if unfit:
        raise Unfit(unfit)
    return rows


def plain(value: Fraction) -> str:
    """Without an exponent; p/q where there is no finite decimal."""
    for decimals in range(200):
        if (scaled := value * 10**decimals).denominator == 1:
            digits = str(abs(scaled.numerator)).rjust(decimals + 1, "0")
            point = len(digits) - decimals
            return "-" * (value < 0) + digits[:point] + ("." + digits[point:] if decimals else "")
    return f"{value.numerator}/{value.denominator}"


def intervals(values: Iterable[str], widths: Sequence[Fraction], start: Fraction, kind: str) -> list[Row]:
    whole = kind == "integer" and all(given.denominator == 1 for given in (start, *widths))

    def label(value: Fraction, width: Fraction) -> str:
        low = start + (value - start) // width * width
        if not whole:
            return f"[{plain(low)}, {plain(low + width)})"
        first, last = int(low), int(low + width) - 1
        return str(first) if first == last else f"{first}{'-' if first >= 0 else ' to '}{last}"

    leaves = ascending(values, kind)
    return [(leaf, *(label(number(leaf, kind == "integer") or Fraction(0), w) for w in widths), TOP) for leaf in leaves]


def cells(
    values: Iterable[str], start: Fraction, width: Fraction, low: Fraction, high: Fraction, kind: str
) -> list[Row]:
    """Of the values from low to high: the cuts of each level are walked to, one after the other."""
    whole = kind == "integer" and all(given.denominator == 1 for given in (start, width, low, high))

    def edges(width: Fraction) -> list[Fraction]:
        cuts = [start + i * width for i in range(-200, 201)]
        assert cuts[0] <= low < high <= cuts[-1]
        return [low, *(cut for cut in cuts if low < cut < high), high]

    def label(value: Fraction, edges: list[Fraction]) -> str:
        cell = max(i for i, edge in enumerate(edges[:-1]) if edge <= value)
        (first, last), ends = edges[cell : cell + 2], cell == len(edges) - 2
        if not whole:
            return f"[{plain(first)}, {plain(last)}{']' if ends else ')'}"
        last -= not ends
        return str(first) if first == last else f"{first}{'-' if first >= 0 else ' to '}{last}"

    levels = [edges(width)]
    while len(finer := levels[-1]) > len(coarser := edges(width * 2 ** len(levels))) > 2:
        levels.append(coarser)
    assert len(finer) > 2
    numbers = {leaf: number(leaf, kind == "integer") or Fraction(0) for leaf in ascending(values, kind)}
    return [(leaf, *(label(n, e) for e in levels), TOP) for leaf, n in numbers.items() if low <= n <= high]


def calendar(values: Iterable[str], units: Sequence[str]) -> list[Row]:
    rows, unfit = [], []
    for value in sorted(set(values)):
        try:
            if value.endswith("BC") or value[4:5] != "-" or value[10:11] not in ("", " ", "T"):
                raise ValueError
            day = date.fromisoformat(value[:10])
        except ValueError:
            unfit.append(value)
            continue
        year, week, _ = day.isocalendar()
        known = {
            "day": f"{day.year:04}-{day.month:02}-{day.day:02}",
            "week": f"{year:04}-W{week:02}",
            "iso_year": f"{year:04}",
            "month": f"{day.year:04}-{day.month:02}",
            "quarter": f"{day.year:04}-Q{(day.month - 1) // 3 + 1}",
            "year": f"{day.year:04}",
        }
        rows.append((value, *(known[unit] for unit in units), TOP))
    if unfit:
        raise Unfit(unfit)
    return rows


def codes(rows: Sequence[Row]) -> list[list[int]]:
    """By level: the first row with each row's label."""
    return [[level.index(label) for label in level] for level in map(list, zip(*rows, strict=True))]


def digest(names: Sequence[str], rows: Iterable[Row]) -> str:
    lines = [json.dumps(list(names), ensure_ascii=False), *sorted(json.dumps(r, ensure_ascii=False) for r in rows)]
    return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()


def wrong(rows: Sequence[Row], observed: bool) -> bool:
    """Whether rows with at least two levels are no hierarchy, looking at every pair."""
    if not rows:
        return not observed
    for row in rows:
        null = row[0] is None and set(row[1:]) == {TOP}
        if row[-1] != TOP or not all(row[1:]) or not (row[0] or null or observed):
            return True
        if any(one == TOP != other for one, other in itertools.pairwise(row[1:])):
            return True
    pairs = [(one, other) for i, one in enumerate(rows) for other in rows[:i]]
    if any(one[0] == other[0] for one, other in pairs):
        return True
    return any(
        one[level] == other[level] and one[level + 1] != other[level + 1]
        for one, other in pairs
        for level in range(1, len(one) - 1)
    )
