"""Hierarchies computed from the values of a column, as the spec's short forms ask for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Literal

from qblock.canonical import decimal_text
from qblock.comparison import NUMBERS, Kind
from qblock.errors import InputError, choices, quoted
from qblock.hierarchy.core import TOP, Hierarchy
from qblock.hierarchy.files import with_top

WEEKS = ("day", "week", "iso_year")
MONTHS = ("day", "month", "quarter", "year")
UNITS = (*WEEKS, *MONTHS[1:])


class UnfitValuesError(InputError):
    """Values that a builder cannot place. The message has their number; `values` names them, for interactive use."""

    def __init__(self, message: str, values: Sequence[str]) -> None:
        self.values = tuple(values)
        super().__init__(message)


def flat(attribute: str, values: Iterable[str | None]) -> Hierarchy:
    """A domain without generalization: level 0 alone, in the order given. Raises InputError for duplicates."""
    listed = tuple(values)
    if len(set(listed)) < len(listed):
        twice = next(value for index, value in enumerate(listed) if value in listed[:index])
        raise InputError(f"the domain of {attribute} names {quoted(twice)} twice; remove one")
    return Hierarchy(attribute, (attribute,), (listed,))


def suppress(attribute: str, values: Iterable[str], kind: Kind = "text") -> Hierarchy:
    """Two levels: the value, and `*`."""
    return with_top(attribute, (attribute,), (_sorted(attribute, values, kind),))


def digits(
    attribute: str, values: Iterable[str], n: int, from_: Literal["right", "left"] = "right", kind: Kind = "text"
) -> Hierarchy:
    """Codes of n characters with one more of them masked at each level: 13053, 1305*, 130**, ... , `*`.

    Integers are padded with zeros to n digits, above level 0. Raises UnfitValuesError for another length or a sign.
    """
    if n < 1:
        raise InputError(f"digits of {attribute}: {n} is out of range; valid: a whole number >= 1")
    if kind not in ("integer", "text"):
        raise InputError(f"digits of {attribute}: a column of type {kind} has no digits; use ranges, dates or suppress")
    leaves = _sorted(attribute, values, kind)
    padded = [leaf.zfill(n) if kind == "integer" else leaf for leaf in leaves]
    unfit = [
        leaf
        for leaf, text in zip(leaves, padded, strict=True)
        if len(text) != n or (kind == "integer" and not text.isdigit())
    ]
    if unfit:
        what = f"are not {n} digits long" if kind == "integer" else f"are not {n} characters long"
        raise _unfit(attribute, f"digits: {n}", unfit, what, "correct the number, or use a CSV file")
    levels = [leaves]
    for masked in range(1, n):
        mask = TOP * masked
        levels.append([text[:-masked] + mask if from_ == "right" else mask + text[masked:] for text in padded])
    return with_top(attribute, [attribute, *(f"{attribute}_{masked}" for masked in range(1, n))], levels)


def check_widths(widths: tuple[int | Fraction, ...]) -> None:
    """Raise ValueError unless the widths are positive, growing, and each a multiple of the one before."""
    if not widths:
        raise ValueError("there is no width; write one or more: [5, 10, 20]")
    if min(widths) <= 0:
        raise ValueError(f"the width {decimal_text(min(widths))} is out of range; valid: above 0")
    for fine, coarse in itertools.pairwise(widths):
        if coarse <= fine or Fraction(coarse) % Fraction(fine):
            raise ValueError(
                f"{decimal_text(coarse)} is not a multiple of {decimal_text(fine)}, so the ranges do not nest; "
                "each width must be a multiple of the one before it: [5, 10, 20]"
            )


def ranges(
    attribute: str,
    values: Iterable[str],
    widths: Sequence[int | Fraction],
    start: int | Fraction = 0,
    kind: Kind = "integer",
) -> Hierarchy:
    """Intervals [start + i w, start + (i + 1) w) of each width w, and `*`.

    An integer column with whole widths and start prints both ends inclusively (15-19; -10 to -6 where there is a
    sign), any other [1.5, 2). Raises InputError for widths that do not nest, UnfitValuesError for NaN and infinity.
    """
    try:
        check_widths(tuple(widths))
    except ValueError as error:
        raise InputError(f"ranges of {attribute}: {error}") from None
    if kind not in NUMBERS:
        raise InputError(
            f"ranges of {attribute}: the column is of type {kind}, not a number; use a CSV file, or suppress"
        )
    leaves = _sorted(attribute, values, kind)
    whole = kind == "integer" and all(Fraction(number).denominator == 1 for number in (start, *widths))
    numbers: list[Fraction] | list[int] = [int(v) for v in leaves] if whole else [Fraction(v) for v in leaves]
    label: Callable[[Fraction, Fraction], str] = _whole_range if whole else _half_open
    names, levels = [attribute], [leaves]
    for width in widths:
        low, step = (int(start), int(width)) if whole else (Fraction(start), Fraction(width))
        known: dict[int, str] = {}
        level = []
        for number in numbers:
            index = (number - low) // step
            if index not in known:
                known[index] = label(Fraction(low + index * step), Fraction(low + (index + 1) * step))
            level.append(known[index])
        levels.append(level)
        names.append(f"{attribute}_{decimal_text(Fraction(width))}")
    return with_top(attribute, names, levels)


def check_units(units: tuple[str, ...]) -> None:
    """Raise ValueError unless each unit nests in the next: day, week, iso_year or day, month, quarter, year."""
    if not units:
        raise ValueError("there is no unit; write [week, iso_year] or [month, quarter, year]")
    unknown = [unit for unit in units if unit not in UNITS]
    if unknown:
        raise ValueError(f"{unknown[0]} is not a unit of dates; {choices(UNITS, unknown[0])}")
    if not any(list(units) == [unit for unit in chain if unit in units] for chain in (WEEKS, MONTHS)):
        raise ValueError(
            f"[{', '.join(units)}] does not nest; write levels of [day, week, iso_year] or of "
            "[day, month, quarter, year], finer first (weeks do not nest in months)"
        )


def dates(attribute: str, values: Iterable[str], units: Sequence[str], kind: Kind = "date") -> Hierarchy:
    """Calendar units of ISO dates and times: week 2026-W05, iso_year 2026, month 2026-01, quarter 2026-Q1, year 2026.

    Raises InputError for units that do not nest, UnfitValuesError for texts that are not dates.
    """
    try:
        check_units(tuple(units))
    except ValueError as error:
        raise InputError(f"dates of {attribute}: {error}") from None
    if kind not in ("date", "timestamp", "timestamptz", "text"):
        raise InputError(f"dates of {attribute}: the column is of type {kind}, not a date; use another hierarchy")
    leaves = _sorted(attribute, values, kind)
    day_of = cache(_day)
    days = [day_of(leaf[:11], leaf.endswith("BC")) for leaf in leaves]
    unfit = [leaf for leaf, day in zip(leaves, days, strict=True) if day is None]
    if unfit:
        raise _unfit(attribute, "dates", unfit, "are not ISO dates of the years 1 to 9999", "use a CSV file")
    known = {day: [LABELS[unit](day) for unit in units] for day in set(days) if day is not None}
    levels = [[known[day][level] for day in days if day is not None] for level in range(len(units))]
    return with_top(attribute, [attribute, *(f"{attribute}_{unit}" for unit in units)], [leaves, *levels])


LABELS: dict[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "week": lambda day: "{:04d}-W{:02d}".format(*day.isocalendar()[:2]),
    "iso_year": lambda day: f"{day.isocalendar()[0]:04d}",
    "month": lambda day: f"{day.year:04d}-{day.month:02d}",
    "quarter": lambda day: f"{day.year:04d}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04d}",
}


def _unfit(attribute: str, form: str, values: list[str], what: str, remedy: str) -> UnfitValuesError:
    count = f"{len(values)} value{'s' if len(values) > 1 else ''}"
    return UnfitValuesError(f"{form} of {attribute}: {count} of the column {what}; {remedy}", values)


def _sorted(attribute: str, values: Iterable[str], kind: Kind) -> list[str]:
    distinct = set(values)
    if kind not in NUMBERS:
        return sorted(distinct)
    numbers: dict[str, Fraction | int] = {}
    unfit = []
    for value in distinct:
        try:
            numbers[value] = int(value) if kind == "integer" else Fraction(value)
        except ValueError:
            unfit.append(value)
    if unfit:
        raise _unfit(attribute, "hierarchy", sorted(unfit), "are not finite numbers", "remove them from the source")
    return sorted(distinct, key=lambda value: (numbers[value], value))


def _day(start: str, bc: bool) -> date | None:
    """The day of a text's first eleven characters."""
    if bc:
        return None
    try:
        return date.fromisoformat(start[:10]) if start[10:] in ("", " ", "T") and start[4:5] == "-" else None
    except ValueError:
        return None


def _whole_range(low: Fraction, high: Fraction) -> str:
    first, last = int(low), int(high) - 1
    if first == last:
        return str(first)
    return f"{first}-{last}" if first >= 0 else f"{first} to {last}"


def _half_open(low: Fraction, high: Fraction) -> str:
    return f"[{decimal_text(low)}, {decimal_text(high)})"
