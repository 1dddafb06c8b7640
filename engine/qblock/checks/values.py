"""What the values of a column say: spellings, codes for unknown, values that single out rows, impossible ones."""

from __future__ import annotations

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import pairwise

import numpy as np

from qblock.search.task import Task
from qblock.spellings import plain

LEAST_ROWS = 20
"""Fewer rows with a value tell nothing of it."""
NINES = re.compile(r"-?9+|-1|-[78]|-[78]{2,}")
DAYS = frozenset({"0001-01-01", "1753-01-01", "1900-01-01", "1901-01-01", "1970-01-01", "2999-12-31", "9999-12-31"})
TIMES_COMMON, NEIGHBOURS = 5, 5
"""How many times more frequent a code within the other values is than any of so many on each side of it."""
FAR = Fraction(1, 10)
"""A code outside of the other values is so far away from them, as a share of their range."""
UNIQUE = 0.1
"""The share of rows with a value of their own beyond which models that count values mean nothing."""
OLDEST = 120
AGE = re.compile(r"(^|_)age(_|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Column:
    """The distinct values of a column as text, with the rows of each. kind: how it compares."""

    name: str
    kind: str
    sensitive: bool
    rows: Mapping[str, int]


def columns(task: Task) -> Iterator[Column]:
    """The quasi-identifiers and sensitive attributes of a source, without NULL; of one that a map recodes, whose
    quasi-identifiers are labels, the sensitive attributes."""
    source = task.source
    for name, counted in _counted(task):
        rows = {text: n for text, n in counted.items() if text is not None}
        yield Column(name, source.columns[name].kind, name in source.sensitives, rows)


def never_null(task: Task) -> list[str]:
    """Those of which no row is NULL."""
    return [name for name, counted in _counted(task) if not counted.get(None)]


def _counted(task: Task) -> Iterator[tuple[str, dict[str | None, int]]]:
    source = task.source
    top = source.frequency_sets.lattice.top
    names = source.quasi_identifiers if source.recoding is None else ()
    for i, name in enumerate(names):
        node = tuple(0 if j == i else height for j, height in enumerate(top))
        (blocks,) = source.frequency_sets.blocks(node, ())
        assert blocks.keys is not None
        leaves = source.hierarchies[i].leaves
        yield name, {leaves[code]: n for code, n in zip(blocks.keys[:, i].tolist(), blocks.total.tolist(), strict=True)}
    for name, values in source.sensitives.items():
        yield name, dict(zip(values.reference.domain, values.reference.totals.tolist(), strict=True))


def spellings(column: Column) -> tuple[int, int] | None:
    """How many values differ from another one by case, spaces or composition alone, and how many they are without."""
    if column.kind != "text":
        return None
    alike: dict[str, int] = defaultdict(int)
    for text in column.rows:
        alike[plain(text)] += 1
    spelled = [n for n in alike.values() if n > 1]
    return (sum(spelled), len(spelled)) if spelled else None


def unknown_codes(column: Column) -> list[str]:
    """Values that look like codes for an unknown one: 99, -1, 1900-01-01, either far outside the others, or far more
    frequent."""
    if column.kind in ("date", "timestamp", "timestamptz"):
        return _days(column)
    numbers = _numbers(column)
    codes = [text for text in numbers if NINES.fullmatch(text) and column.rows[text] >= LEAST_ROWS]
    others = sorted((number, column.rows[text]) for text, number in numbers.items() if text not in codes)
    return [text for text in codes if len(others) > 2 and _is_code(numbers[text], column.rows[text], others)]


def _is_code(number: Fraction, rows: int, others: Sequence[tuple[Fraction, int]]) -> bool:
    """others: the other numbers, ascending, with the rows of each."""
    (low, _), (high, _) = others[0], others[-1]
    if low <= number <= high:
        place = bisect(others, (number, 0))
        return rows >= TIMES_COMMON * max(n for _, n in others[max(0, place - NEIGHBOURS) : place + NEIGHBOURS])
    steps = sorted(b - a for (a, _), (b, _) in pairwise(others))
    far = max(low - number, number - high) >= max(FAR * (high - low), 2 * steps[len(steps) // 2])
    return far and rows >= float(np.median([n for _, n in others]))


def _days(column: Column) -> list[str]:
    codes = [text for text, n in column.rows.items() if text[:10] in DAYS and n >= LEAST_ROWS]
    others = [n for text, n in column.rows.items() if text not in codes]
    return [text for text in codes if others and column.rows[text] >= TIMES_COMMON * float(np.median(others))]


def _numbers(column: Column) -> dict[str, Fraction]:
    """The numbers of a column; also of one of text whose values are all whole numbers."""
    if column.kind not in ("integer", "decimal", "float", "text"):
        return {}
    if column.kind == "text" and not all(re.fullmatch(r"-?[0-9]{1,9}", text) for text in column.rows):
        return {}
    return {text: Fraction(text) for text in column.rows if re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", text)}


def unique(column: Column) -> tuple[int, int] | None:
    """Of a sensitive attribute, how many values are of one row alone, of how many."""
    rows = np.fromiter(column.rows.values(), dtype=np.int64, count=len(column.rows))
    alone = int((rows == 1).sum())
    many = column.sensitive and alone >= LEAST_ROWS and alone >= UNIQUE * rows.sum()
    return (alone, len(rows)) if many else None


def impossible(column: Column, today: date) -> tuple[int, str] | None:
    """How many rows are of the future, or of people too old to live, and which of the two."""
    if column.kind in ("date", "timestamp", "timestamptz"):
        later = sum(n for text, n in column.rows.items() if text[:10] > today.isoformat() and text[:10] not in DAYS)
        return (later, "in the future") if later else None
    if not AGE.search(column.name):
        return None
    old = sum(column.rows[text] for text, number in _numbers(column).items() if not 0 <= number <= OLDEST)
    codes = sum(column.rows[text] for text in unknown_codes(column))
    # Of most rows it is an age in months.
    some = codes < old < sum(column.rows.values()) / 2
    return (old - codes, f"below 0 or above {OLDEST} years") if some else None
