"""Hierarchies computed from the values of a column, as the spec's short forms ask for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from qblock.canonical import decimal_text
from qblock.comparison import NUMBERS, Kind
from qblock.errors import InputError, choices, counted, quoted
from qblock.hierarchy.core import MOST_EDGES, TOP, Hierarchy, check_labels, check_levels
from qblock.hierarchy.cuts import Grid
from qblock.hierarchy.files import with_top
from qblock.hierarchy.labels import Labels, Texts, as_texts, matching, one_text, places, texts, whole
from qblock.hierarchy.written import LabelForm, Numbers, half_open, inclusive, sorted_numbers, whole_ranges, writer

WEEKS = ("day", "week", "iso_year")
MONTHS = ("day", "month", "quarter", "year")
UNITS = (*WEEKS, *MONTHS[1:])
Number = int | Fraction
OR_TOP = "or write `uncovered: top` (they become *)"
MOMENTS: tuple[Kind, ...] = ("date", "timestamp", "timestamptz", "text")
"""Kinds of columns that may hold dates."""


class UnfitValuesError(InputError):
    """Values that a builder cannot place. The message has their number; `values` names them, for interactive use:
    they belong between `problem` and `remedy`."""

    def __init__(self, problem: str, remedy: str, values: Sequence[str]) -> None:
        self.problem, self.remedy, self.values = problem, remedy, tuple(values)
        super().__init__(f"{problem}; {remedy}")


def flat(attribute: str, values: Iterable[str | None]) -> Hierarchy:
    """A domain without generalization: level 0 alone, in the order given. Raises InputError for duplicates."""
    listed = tuple(values)
    if len(set(listed)) < len(listed):
        twice = next(value for index, value in enumerate(listed) if value in listed[:index])
        raise InputError(f"the domain of {attribute} names {quoted(twice)} twice; remove one")
    return Hierarchy(attribute, (attribute,), (listed,))


def suppress(attribute: str, values: Iterable[str], kind: Kind = "text") -> Hierarchy:
    """Two levels: the value, and `*`."""
    return with_top(attribute, (attribute,), (Labels.leaves_of(_sorted(attribute, values, kind)),))


def digits(
    attribute: str, values: Iterable[str], n: int, from_: Literal["right", "left"] = "right", kind: Kind = "text"
) -> Hierarchy:
    """Codes of n characters with one more of them masked at each level: 13053, 1305*, 130**, ... , `*`.

    Integers are padded with zeros to n digits, above level 0. Raises UnfitValuesError for another length or a sign.
    """
    if kind not in ("integer", "text"):
        raise InputError(f"digits of {attribute}: a column of type {kind} has no digits; use ranges, dates or suppress")
    leaves = _sorted(attribute, values, kind)
    check_labels(attribute, n + 1, len(leaves), n)
    padded = pc.utf8_lpad(leaves, n, "0") if kind == "integer" else leaves
    fit = whole(pc.utf8_length(padded)) == n
    if kind == "integer":
        fit &= whole(matching(padded, "[0-9]*"))
    unfit = [leaf for leaf in _those(leaves, ~fit) if kind != "integer" or not _is_code(leaf, n)]
    if unfit:
        what = f"not {n} digits long" if kind == "integer" else f"not {n} characters long"
        raise _unfit(attribute, f"digits: {n}", unfit, what, f"correct the number, use a CSV file, {OR_TOP}")
    level = Labels.leaves_of(leaves)
    levels, shown, nothing = [level], padded, one_text("")
    for masked in range(1, n):
        mask = one_text(TOP * masked)
        kept = (0, n - masked) if from_ == "right" else (1, n)
        # Of each text of the level below once: what is left of it, and which of them have the same.
        left = Labels.of(pc.utf8_slice_codeunits(shown, *kept))
        shown = left.distinct
        parts = (shown, mask) if from_ == "right" else (mask, shown)
        labels = pc.binary_join_element_wise(*parts, nothing)
        level = level.below(Labels(labels, left.of_leaf))
        levels.append(level)
    return with_top(attribute, [attribute, *(f"{attribute}_{masked}" for masked in range(1, n))], levels)


def check_widths(widths: tuple[int | Fraction, ...]) -> None:
    """Raise ValueError unless the widths are positive, growing, and each a multiple of the one before."""
    if not widths:
        raise ValueError("there is no width; write one or more: [5, 10, 20]")
    check_levels(len(widths) + 2, "Write fewer widths")
    if min(widths) <= 0:
        raise ValueError(f"the width {decimal_text(min(widths))} is out of range; valid: above 0")
    for fine, coarse in itertools.pairwise(widths):
        if coarse <= fine or Fraction(coarse) % Fraction(fine):
            raise ValueError(
                f"{decimal_text(coarse)} is not a multiple of {decimal_text(fine)}, so the ranges do not nest. Each "
                "width must be a multiple of the one before it: [5, 10, 20]"
            )


def outer_cuts(width: Number, start: Number, from_: Number | None, to: Number | None) -> tuple[int | None, int | None]:
    """The numbers i of the first and the last cut start + i width that is not below from_ and not above to."""
    first = None if from_ is None else math.ceil(Fraction(from_ - start) / Fraction(width))
    return first, None if to is None else math.floor(Fraction(to - start) / Fraction(width))


def check_ends(widths: Sequence[Number], start: Number, from_: Number | None, to: Number | None) -> None:
    """Raise ValueError unless ranges of each width have a cut between both ends, where both are given."""
    if from_ is None or to is None:
        return
    if from_ >= to:
        raise ValueError(f"from {decimal_text(from_)} is not below to {decimal_text(to)}; write from < to")
    for width in widths:
        first, last = outer_cuts(width, start, from_, to)
        if first is not None and last is not None and first > last:
            raise ValueError(
                f"no range of width {decimal_text(width)} begins between from {decimal_text(from_)} and to "
                f"{decimal_text(to)}; leave the width out, or move from, to or start"
            )


def ranges(
    attribute: str,
    values: Iterable[str],
    widths: Sequence[Number],
    start: Number = 0,
    kind: Kind = "integer",
    from_: Number | None = None,
    to: Number | None = None,
    labels: LabelForm = "plain",
) -> Hierarchy:
    """Intervals [start + i w, start + (i + 1) w) of each width w, and `*`.

    An integer column with whole widths and start prints both ends inclusively (15-19; -10 to -6 where there is a
    sign), unless labels are half open; any other [1.5, 2). from_, to: what lies below the first of these cuts from
    from_ on, or from the last one up to `to` on, is of one open label (<15, >=90): bottom and top coding. The widths
    pass check_widths and check_ends. Raises UnfitValuesError for NaN and infinity.
    """
    _check_numbers("ranges", attribute, kind)
    numbers = _numbers(attribute, values, kind)
    integers = inclusive(kind, labels, (start, *widths))
    per = math.lcm(numbers.per, *(Fraction(number).denominator for number in (start, *widths)))
    low, *steps = (int(Fraction(number) * per) for number in (start, *widths))
    outer = [outer_cuts(width, start, from_, to) for width in widths]
    most = max((abs(cut) for cut in outer[0] if cut is not None), default=0) * steps[0]
    counts = numbers.scaled(per, abs(low) + steps[-1] + most)
    names, levels = [attribute], [Labels.leaves_of(numbers.leaves)]
    counts = counts - low
    for width, step, below, (first, last) in zip(widths, steps, [1, *steps], outer, strict=False):
        # So many intervals below make up each of these: only those are placed that have values.
        counts = counts // (step // below)
        counts = counts if first is None else np.maximum(counts, first - 1)
        counts, index = _runs(counts if last is None else np.minimum(counts, last))
        ends = [low + count * step for count in counts.tolist()]
        shown = whole_ranges(ends, step) if integers else half_open(ends, step, per)
        # Ascending: what is open is at the ends.
        if first is not None and len(ends) and counts[0] < first:
            shown[0] = f"<{decimal_text(Fraction(low + first * step, per))}"
        if last is not None and len(ends) and counts[-1] >= last:
            shown[-1] = f">={decimal_text(Fraction(ends[-1], per))}"
        parents = Labels(texts(shown), index)
        levels.append(levels[-1].below(parents))
        names.append(f"{attribute}_{decimal_text(Fraction(width))}")
    return with_top(attribute, names, levels)


def check_finest(step: Number | None, points: Sequence[Number]) -> None:
    """Raise ValueError unless cells of this width, one of which begins at 0, end at all these points."""
    for point in points if step is not None else ():
        if Fraction(point) % Fraction(step or 1):
            raise ValueError(
                f"{decimal_text(Fraction(point))} is not a multiple of finest {decimal_text(Fraction(step or 1))}, so "
                "cells would cross a label; write a finest that all are multiples of"
            )


def check_edges(given: Sequence[Number]) -> None:
    """Raise ValueError for edges that do not ascend, or that are too many."""
    if not given:
        raise ValueError("the list is empty; write where ranges begin, in order: [0, 1, 5, 10]")
    if len(given) > MOST_EDGES:
        raise ValueError(f"the list has {len(given):,} edges; valid: at most {MOST_EDGES:,}. Use a CSV file")
    for lower, upper in itertools.pairwise(given):
        if lower >= upper:
            raise ValueError(f"{decimal_text(Fraction(upper))} is not above {decimal_text(Fraction(lower))}; sort them")


def edges(
    attribute: str,
    values: Iterable[str],
    given: Sequence[Number],
    kind: Kind = "integer",
    labels: LabelForm = "plain",
) -> Hierarchy:
    """Ranges from each of these numbers to the next one, and `*`: 0, 1-4, 5-9 and >=10 of [0, 1, 5, 10].

    What lies below the first is of one open label (<0), and so is what lies from the last on. Labels are written as
    those of `ranges`. The edges pass check_edges. Raises UnfitValuesError for NaN and infinity.
    """
    _check_numbers("edges", attribute, kind)
    numbers = _numbers(attribute, values, kind)
    integers = inclusive(kind, labels, given)
    per = math.lcm(numbers.per, *(Fraction(edge).denominator for edge in given))
    begins = [int(Fraction(edge) * per) for edge in given]
    counts = numbers.scaled(per, max(map(abs, begins)))
    used, index = _runs(np.searchsorted(np.array(begins, dtype=counts.dtype), counts, side="right"))
    shown = []
    for place in used.tolist():
        if place == 0:
            shown.append(f"<{decimal_text(Fraction(begins[0], per))}")
        elif place == len(begins):
            shown.append(f">={decimal_text(Fraction(begins[-1], per))}")
        else:
            low, width = begins[place - 1], begins[place] - begins[place - 1]
            shown += whole_ranges([low], width) if integers else half_open([low], width, per)
    leaves = Labels.leaves_of(numbers.leaves)
    return with_top(attribute, [attribute, f"{attribute}_edges"], [leaves, leaves.below(Labels(texts(shown), index))])


def cuts(
    attribute: str, values: Iterable[str], grid: Grid, kind: Kind = "integer", labels: LabelForm = "plain"
) -> Hierarchy:
    """Cells of a grid (see Grid), of its least width, of twice, four times as much and so on, and `*`.

    Labels are as those of `ranges`, of dates `2000-01-01 to 2000-01-30`; what a cell has of them lies between the
    bounds, and the last one has its end: 95-100, [95, 100]. A value outside the bounds gets no leaf, so that it counts
    as not covered. Raises InputError for a column of another kind, UnfitValuesError for what is no number, or no date.
    """
    leaves, counts, per = _places_on(grid, attribute, values, kind)
    start, low, high = (int(grid.place(point) * per) for point in (grid.start, grid.low, grid.high))
    inside = np.flatnonzero((counts >= low) & (counts <= high))
    leaves, counts = leaves.take(places(inside)), counts[inside]
    written = writer(grid, kind, per, labels)
    last = grid.span[1]
    names, levels = [attribute], [Labels.leaves_of(leaves)]
    cells = counts
    for number, width in enumerate(grid.widths()):
        step = int(width * per)
        # high itself is in the last cell, also where it is a cut.
        cells = cells // 2 if number else np.minimum((counts - start) // step, last)
        last = last // 2 if number else last
        cells, index = _runs(cells)
        shown = [
            written(max(low, start + cell * step), high if cell == last else start + (cell + 1) * step, cell == last)
            for cell in cells.tolist()
        ]
        levels.append(levels[-1].below(Labels(texts(shown), index)))
        names.append(f"{attribute}_{decimal_text(Fraction(width))}")
    return with_top(attribute, names, levels)


def _places_on(grid: Grid, attribute: str, values: Iterable[str], kind: Kind) -> tuple[Texts, NDArray[Any], int]:
    """The distinct values, ascending, the place of each on a grid, and how many of its units make up 1."""
    if grid.of_dates:
        if kind not in MOMENTS:
            raise InputError(
                f"cuts of {attribute}: the column is of type {kind}, and the cuts are dates; write numbers"
            )
        leaves = _sorted(attribute, values, kind)
        starts, days = _days("cuts", attribute, leaves)
        return leaves, np.array([day.toordinal() for day in days], dtype=np.int64)[starts.of_leaf], 1
    if kind not in NUMBERS:
        what = _not_a_number(attribute, kind)
        if kind in MOMENTS and kind != "text":
            what = "and the cuts are numbers; write dates"
        raise InputError(f"cuts of {attribute}: the column is of type {kind}, {what}")
    numbers = _numbers(attribute, values, kind)
    per = math.lcm(numbers.per, grid.per)
    most = sum(abs(Fraction(grid.place(point))) for point in (grid.start, grid.low, grid.high)) + grid.min_width
    return numbers.leaves, numbers.scaled(per, int(most * per)), per


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

    The units pass check_units. Raises UnfitValuesError for texts that are not dates.
    """
    if kind not in MOMENTS:
        raise InputError(f"dates of {attribute}: the column is of type {kind}, not a date; use another hierarchy")
    leaves = _sorted(attribute, values, kind)
    level, days = _days("dates", attribute, leaves)
    levels = [Labels.leaves_of(leaves)]
    for unit in units:
        # Units nest: of each label below, any of its days.
        parents = Labels.of([LABELS[unit](day) for day in days])
        days = [days[place] for place in parents.first.tolist()]
        level = level.below(parents)
        levels.append(level)
    return with_top(attribute, [attribute, *(f"{attribute}_{unit}" for unit in units)], levels)


LABELS: dict[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "week": lambda day: "{:04d}-W{:02d}".format(*day.isocalendar()[:2]),
    "iso_year": lambda day: f"{day.isocalendar()[0]:04d}",
    "month": lambda day: f"{day.year:04d}-{day.month:02d}",
    "quarter": lambda day: f"{day.year:04d}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04d}",
}


def _unfit(attribute: str, form: str, values: list[str], what: str, remedy: str) -> UnfitValuesError:
    are = "is" if len(values) == 1 else "are"
    return UnfitValuesError(
        f"{form} of {attribute}: {counted(len(values), 'value')} of the column {are} {what}", remedy, values
    )


def _check_numbers(form: str, attribute: str, kind: Kind) -> None:
    if kind not in NUMBERS:
        raise InputError(f"{form} of {attribute}: the column is of type {kind}, {_not_a_number(attribute, kind)}")


def _not_a_number(attribute: str, kind: Kind) -> str:
    """What to do of a column of another type; of a text as of any CSV file without types."""
    if kind != "text":
        return "not a number; use a CSV file, or suppress"
    return (
        f"not a number; cast it in a view, of a CSV file write `types: {{{attribute}: integer}}` below source, or use "
        "another hierarchy"
    )


def _sorted(attribute: str, values: Iterable[str], kind: Kind) -> Texts:
    """The distinct values, ascending."""
    if kind in NUMBERS:
        return _numbers(attribute, values, kind).leaves
    distinct = as_texts(values).unique()
    return distinct.take(pc.array_sort_indices(distinct))


def _numbers(attribute: str, values: Iterable[str], kind: Kind) -> Numbers:
    numbers = sorted_numbers(as_texts(values).unique(), kind == "integer")
    if numbers.unfit:
        raise _unfit(
            attribute,
            "hierarchy",
            list(numbers.unfit),
            "not a finite number" if len(numbers.unfit) == 1 else "not finite numbers",
            f"remove them from the source, {OR_TOP}",
        )
    return numbers


def _those(leaves: Texts, which: NDArray[Any]) -> list[str]:
    return [leaves[place].as_py() for place in np.flatnonzero(which).tolist()]


def _is_code(leaf: str, n: int) -> bool:
    """Whether a whole number has n digits of any script."""
    return len(leaf.zfill(n)) == n and leaf.zfill(n).isdigit()


def _runs(ascending: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Each number once, and which of them each one is."""
    new = np.ones(len(ascending), dtype=bool)
    new[1:] = ascending[1:] != ascending[:-1]
    return ascending[new], (np.cumsum(new) - 1).astype(np.int32)


def _days(form: str, attribute: str, leaves: Texts) -> tuple[Labels, list[date]]:
    """What the leaves start with, and the day of each of these. Raises UnfitValuesError."""
    starts = Labels.of(pc.utf8_slice_codeunits(leaves, 0, 11))
    days = [_day(start) for start in starts.distinct.to_pylist()]
    known = np.array([day is not None for day in days], dtype=bool)[starts.of_leaf]
    fit = known & ~whole(pc.ends_with(leaves, "BC"))
    if not fit.all():
        unfit = _those(leaves, ~fit)
        what = "not an ISO date" if len(unfit) == 1 else "not ISO dates"
        raise _unfit(attribute, form, unfit, f"{what} of the years 1 to 9999", f"use a CSV file, {OR_TOP}")
    return starts, [day for day in days if day is not None]


def _day(start: str) -> date | None:
    """The day of a text's first eleven characters."""
    try:
        return date.fromisoformat(start[:10]) if start[10:] in ("", " ", "T") and start[4:5] == "-" else None
    except ValueError:
        return None
