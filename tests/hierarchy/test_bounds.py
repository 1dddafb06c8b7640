"""Bounds of labels: what is read from each form of label, and that no value lies outside of those of its label."""

from __future__ import annotations

import math
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.hierarchy import Hierarchy, cuts, dates, from_rows, ranges, suppress
from qblock.hierarchy.bounds import Reader, date_texts, double_texts, range_text
from qblock.hierarchy.builders import MONTHS, WEEKS
from qblock.hierarchy.cuts import Grid

INF = math.inf


@pytest.mark.parametrize(
    ("kind", "label", "low", "high"),
    [
        ("integer", "15-19", 15, 20),
        ("integer", "-10 to -6", -10, -5),
        ("integer", "5", 5, 6),
        ("integer", "95-100", 95, 101),
        ("integer", "<20", -INF, 20),
        ("integer", "<=20", -INF, 21),
        ("integer", ">20", 21, INF),
        ("integer", ">= 90", 90, INF),
        ("integer", "90+", 90, INF),
        ("integer", "20 \u2013 29", 20, 30),
        ("integer", "15-19 (other 2)", 15, 20),
        ("integer", "15-19 or (missing)", 15, 20),
        ("integer", ">=15 or (missing)", 15, INF),
        ("integer", "(missing)", -INF, INF),
        ("integer", "19-15", -INF, INF),
        ("integer", "forty", -INF, INF),
        ("integer", "1.5", -INF, INF),
        ("integer", "", -INF, INF),
        ("integer", "*", -INF, INF),
        ("decimal", "[1.5, 2)", 1.5, 2),
        ("decimal", "[0.1, 0.2)", 0.1, 0.2),
        ("decimal", "[95, 100]", 95, math.nextafter(100, INF)),
        ("decimal", "(95, 100]", math.nextafter(95, INF), math.nextafter(100, INF)),
        ("decimal", "0.1", 0.1, math.nextafter(0.1, INF)),
        ("decimal", "[5, inf)", 5, INF),
        ("float", "1e-05", 1e-05, math.nextafter(1e-05, INF)),
        ("float", "NaN", -INF, INF),
        ("float", "Infinity", -INF, INF),
    ],
)
def test_the_bounds_of_a_label_of_numbers(kind: Any, label: str, low: float, high: float) -> None:
    assert tuple(map(float, double_texts(Reader("numbers", kind).bounds(label)))) == (low, high)


@pytest.mark.parametrize(
    ("label", "first", "until"),
    [
        ("2026", "2026-01-01", "2027-01-01"),
        ("2026-Q4", "2026-10-01", "2027-01-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2024-02", "2024-02-01", "2024-03-01"),
        ("2026-W53", "2026-12-28", "2027-01-04"),
        ("2026-01-02", "2026-01-02", "2026-01-03"),
        ("2026-01-02 23:59:59.5", "2026-01-02", "2026-01-03"),
        ("2026-01-02 23:59:59+00", "2026-01-02", "2026-01-03"),
        ("2000-01-01 to 2000-01-30", "2000-01-01", "2000-01-31"),
        ("2024-01 to 2024-03", "2024-01-01", "2024-04-01"),
        ("2020-2022", "2020-01-01", "2023-01-01"),
        ("[2020-01-01, 2021-01-01)", "2020-01-01", "2021-01-01"),
        (">=2020", "2020-01-01", "infinity"),
        ("<2020", "-infinity", "2020-01-01"),
        ("9999", "9999-01-01", "infinity"),
        ("9999-12-31", "9999-12-31", "infinity"),
        ("0044-03-15 BC", "-infinity", "infinity"),
        ("2026-13", "-infinity", "infinity"),
        ("2026-02-30", "-infinity", "infinity"),
        ("*", "-infinity", "infinity"),
        ("[2024-01-05 10:00, 2024-01-06)", "2024-01-05", "2024-01-06"),
        ("[2024-01-05 10:00, 2024-01-06 12:00)", "2024-01-05", "2024-01-07"),
        ("<2024-01-05 10:00", "-infinity", "2024-01-06"),
        ("<2024-01-05", "-infinity", "2024-01-05"),
        (">=2024-01-05 10:00 or (missing)", "2024-01-05", "infinity"),
    ],
)
def test_the_bounds_of_a_label_of_dates(label: str, first: str, until: str) -> None:
    assert date_texts(Reader("dates", "date").bounds(label)) == (first, until)


def test_years_of_weeks_begin_with_their_first_week() -> None:
    assert date_texts(Reader("dates", "date", weeks=True).bounds("2026")) == ("2025-12-29", "2027-01-04")


def test_ranges_are_written_exactly_and_open_where_their_type_ends() -> None:
    numbers = Reader("numbers", "integer")
    assert range_text(numbers.bounds("15-19")) == "[15,20)"
    assert range_text(numbers.bounds("*")) == "(,)"
    assert range_text(Reader("numbers", "decimal").bounds("[0.1, 0.2)")) == "[0.1,0.2)"
    assert range_text(numbers.bounds("2147483640-2147483649"), 2**31 - 1) == "[2147483640,)"
    assert range_text(Reader("dates", "date").bounds("2026-W53")) == "[2026-12-28,2027-01-04)"


def inside(reader: Reader, hierarchy: Hierarchy, value: Any) -> None:
    """Every label of every leaf holds it, and none has more than its own value at the first level."""
    for level in range(hierarchy.height + 1):
        for leaf, label in zip(hierarchy.leaves, hierarchy.labels[level], strict=True):
            low, high = reader.bounds(label)
            assert low is None or low <= value(leaf), (label, leaf)
            assert high is None or value(leaf) < high, (label, leaf)
            assert level == hierarchy.height or (low is not None and high is not None), label


NUMBERS = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=8)


@given(NUMBERS, st.integers(-50, 50), st.lists(st.integers(2, 5), min_size=1, max_size=3), st.integers(1, 7))
def test_whole_numbers_lie_in_the_bounds_of_their_ranges(
    values: list[int], start: int, factors: list[int], width: int
) -> None:
    widths = [width]
    for factor in factors:
        widths.append(widths[-1] * factor)
    made = ranges("n", map(str, values), widths, start, "integer")
    inside(Reader("numbers", "integer"), made, Fraction)


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=8), st.sampled_from(["0.5", "1.5", "2"]), st.booleans())
def test_values_lie_in_the_bounds_of_open_ranges(values: list[int], width: str, whole: bool) -> None:
    least, kind = Fraction(width), "integer" if whole else "decimal"
    made = ranges("n", map(str, values), [least, 2 * least], 0, kind, from_=Fraction(-41, 2), to=30)  # type: ignore[arg-type]
    reader = Reader("numbers", kind)  # type: ignore[arg-type]
    for level in (1, 2):
        for leaf, label in zip(made.leaves, made.labels[level], strict=True):
            low, high = reader.bounds(label)
            assert (low is None) == str(label).startswith("<")
            assert (high is None) == str(label).startswith(">=")
            assert low is None or low <= Fraction(leaf or "")  # type: ignore[operator]
            assert high is None or Fraction(leaf or "") < high  # type: ignore[operator]


@given(st.lists(st.decimals(-1000, 1000, places=3), min_size=1, max_size=8), st.sampled_from(["0.25", "1", "2.5"]))
def test_decimals_lie_in_the_bounds_of_their_ranges(values: list[Any], width: str) -> None:
    least = Fraction(width)
    made = ranges("n", map(str, values), [least, 4 * least], Fraction(1, 3), "decimal")
    reader = Reader("numbers", "decimal")
    for level in range(1, made.height):
        for leaf, label in zip(made.leaves, made.labels[level], strict=True):
            if "/" in str(label):
                continue  # an end that has no decimal text is open
            low, high = reader.bounds(label)
            assert low is not None
            assert high is not None
            assert low <= Fraction(leaf or 0) < high


@given(st.lists(st.integers(0, 120), min_size=1, max_size=8))
def test_numbers_lie_in_the_bounds_of_their_cells(values: list[int]) -> None:
    made = cuts("n", map(str, values), Grid(0, 7, 0, 120), "integer")
    inside(Reader("numbers", "integer"), made, Fraction)


@given(st.lists(st.dates(date(2, 1, 1), date(9998, 12, 31)), min_size=1, max_size=8), st.sampled_from([WEEKS, MONTHS]))
def test_days_lie_in_the_bounds_of_their_units(values: list[date], units: tuple[str, ...]) -> None:
    made = dates("d", map(str, values), units, "date")
    inside(Reader("dates", "date", weeks=units is WEEKS), made, date.fromisoformat)


def test_days_lie_in_the_bounds_of_their_cells() -> None:
    first, last = date(2000, 1, 1), date(2000, 12, 31)
    days = [str(first + timedelta(days=i)) for i in range(366)]
    made = cuts("d", days, Grid(first, 30, first, last), "date")
    inside(Reader("dates", "date"), made, date.fromisoformat)


def test_numbers_that_are_hidden_or_as_they_are_have_bounds() -> None:
    made = suppress("n", ["1", "2", "30"], "integer")
    inside(Reader("numbers", "integer"), made, Fraction)


def test_a_label_of_a_file_that_does_not_hold_all_its_leaves_is_open() -> None:
    rows = [("20", "20-29", "*"), ("35", "20-29", "*"), ("41", "40-49", "*"), ("n/a", "50-59", "*")]
    stated = from_rows(("age", "ten", "all"), rows, attribute="age")
    reader = Reader("numbers", "integer", stated=stated)
    assert [double_texts(reader.bounds(label)) for label in ("20-29", "50-59")] == [("-inf", "inf")] * 2
    assert double_texts(reader.bounds("40-49")) == ("40.0", "50.0")
    assert double_texts(reader.bounds("35")) == ("35.0", "36.0")
    joined = Reader("numbers", "integer", stated=stated, joined=True)
    assert double_texts(joined.bounds("20-49")) == ("-inf", "inf")
    right = from_rows(("age", "ten", "all"), [("20", "20-29", "*"), ("41", "40-49", "*")], attribute="age")
    assert double_texts(Reader("numbers", "integer", stated=right, joined=True).bounds("20-49")) == ("20.0", "50.0")
