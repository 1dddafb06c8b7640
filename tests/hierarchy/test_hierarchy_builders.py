"""Hierarchies built from the values of a column."""

from __future__ import annotations

import math
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.canonical import decimal_text
from qblock.comparison import Kind
from qblock.errors import InputError
from qblock.hierarchy import (
    Grid,
    Hierarchy,
    UnfitValuesError,
    cuts,
    dates,
    digits,
    edges,
    flat,
    from_csv,
    ranges,
    suppress,
)
from qblock.hierarchy.bounds import Reader
from qblock.hierarchy.builders import check_edges, check_ends, check_units, check_widths
from qblock.spec import CsvFile, Dates, Digits, Ranges, Suppress
from qblock.spec.sources import build


def chain(hierarchy: Hierarchy, leaf: str) -> list[str | None]:
    """The labels of one leaf, finest first."""
    at = hierarchy.leaves.index(leaf)
    return [level[at] for level in hierarchy.labels]


def test_suppress():
    hierarchy = suppress("sex", ["m", "f", "m"])
    assert hierarchy.level_names == ("sex", "sex_any")
    assert hierarchy.labels == (("f", "m"), ("*", "*"))


def test_numbers_are_sorted_as_numbers():
    assert suppress("n", ["10", "9", "-1"], "integer").leaves == ("-1", "9", "10")
    assert suppress("n", ["10.5", "9", "-1.25", "1e-3"], "decimal").leaves == ("-1.25", "1e-3", "9", "10.5")
    assert suppress("n", ["10", "9"], "text").leaves == ("10", "9")


def test_digits_from_the_right():
    hierarchy = digits("zip", ["13068", "13053", "14850"], 5)
    assert hierarchy.level_names == ("zip", "zip_1", "zip_2", "zip_3", "zip_4", "zip_any")
    assert chain(hierarchy, "13053") == ["13053", "1305*", "130**", "13***", "1****", "*"]


def test_digits_from_the_left():
    assert chain(digits("tail", ["123"], 3, "left"), "123") == ["123", "*23", "**3", "*"]


def test_integers_are_padded_above_the_leaf():
    hierarchy = digits("zip", ["501", "10001"], 5, kind="integer")
    assert chain(hierarchy, "501")[:3] == ["501", "0050*", "005**"]


def test_one_digit():
    assert digits("d", ["1", "2"], 1).labels == (("1", "2"), ("*", "*"))


def test_values_of_another_length_are_counted_and_not_named():
    with pytest.raises(UnfitValuesError) as caught:
        digits("zip", ["13053", "secret", "1"], 5)
    assert str(caught.value) == (
        "digits: 5 of zip: 2 values of the column are not 5 characters long; correct the number, use a CSV "
        "file, or write `uncovered: top` (they become *)"
    )
    assert caught.value.values == ("1", "secret")


@pytest.mark.parametrize("value", ["-5", "100000"])
def test_integers_that_are_no_code(value: str):
    with pytest.raises(UnfitValuesError, match="1 value of the column is not 5 digits long"):
        digits("zip", [value], 5, kind="integer")


def test_digits_of_a_date_column():
    with pytest.raises(InputError, match="digits of born: a column of type date has no digits; use ranges, dates"):
        digits("born", ["2020-01-01"], 10, kind="date")


def test_ranges_of_whole_numbers():
    hierarchy = ranges("age", ["17", "5", "100", "19"], [5, 10, 20])
    assert hierarchy.level_names == ("age", "age_5", "age_10", "age_20", "age_any")
    assert chain(hierarchy, "17") == ["17", "15-19", "10-19", "0-19", "*"]
    assert chain(hierarchy, "100") == ["100", "100-104", "100-109", "100-119", "*"]


def test_negative_ranges_read_unambiguously():
    hierarchy = ranges("t", ["-1", "-10", "0", "3"], [5])
    assert hierarchy.labels[1] == ("-10 to -6", "-5 to -1", "0-4", "0-4")
    assert ranges("t", ["-1", "1"], [5], start=-2).labels[1] == ("-2 to 2", "-2 to 2")


def test_ranges_of_width_one_and_with_a_start():
    assert ranges("t", ["-1", "7"], [1]).labels[1] == ("-1", "7")
    assert chain(ranges("age", ["17"], [5, 10], start=3), "17") == ["17", "13-17", "13-22", "*"]


def test_ranges_of_decimals_are_half_open():
    hierarchy = ranges("w", ["5.25", "-1", "2.5", "2.4999"], [Fraction("2.5"), 5], kind="decimal")
    assert hierarchy.level_names == ("w", "w_2.5", "w_5", "w_any")
    assert chain(hierarchy, "5.25") == ["5.25", "[5, 7.5)", "[5, 10)", "*"]
    assert chain(hierarchy, "-1") == ["-1", "[-2.5, 0)", "[-5, 0)", "*"]
    assert chain(hierarchy, "2.5")[1] != chain(hierarchy, "2.4999")[1]


def test_ranges_are_exact_where_doubles_are_not():
    """0.3 / 0.1 is 2.9999999999999996 in doubles."""
    hierarchy = ranges("w", ["0.3", "0.7"], [Fraction("0.1")], kind="float")
    assert hierarchy.labels[1] == ("[0.3, 0.4)", "[0.7, 0.8)")


def test_whole_numbers_with_a_fractional_width_are_half_open():
    assert ranges("n", ["3"], [Fraction(3, 2)], kind="integer").labels[1] == ("[3, 4.5)",)
    assert ranges("n", ["1"], [Fraction(1, 3)], kind="integer").labels[1] == ("[1, 4/3)",)


@pytest.mark.parametrize(
    ("widths", "message"), [([5, 12], "12 is not a multiple of 5"), ([], "no width"), ([0], "above 0")]
)
def test_widths_that_do_not_nest(widths: list[int], message: str):
    with pytest.raises(ValueError, match=message):
        check_widths(tuple(widths))


def test_ranges_need_finite_numbers():
    with pytest.raises(InputError, match="ranges of name: the column is of type text, not a number"):
        ranges("name", ["1"], [5], kind="text")
    with pytest.raises(UnfitValuesError, match="2 values of the column are not finite numbers") as caught:
        ranges("w", ["NaN", "1", "Infinity"], [5], kind="float")
    assert caught.value.values == ("Infinity", "NaN")


def test_edges_of_whole_numbers():
    hierarchy = edges("children", ["10", "0", "4", "1", "5", "12", "-3"], [0, 1, 5, 10])
    assert hierarchy.leaves == ("-3", "0", "1", "4", "5", "10", "12")
    assert hierarchy.labels[1] == ("<0", "0", "1-4", "1-4", "5-9", ">=10", ">=10")
    assert hierarchy.labels[2] == ("*",) * 7
    assert edges("n", ["-7", "3"], [-10, 0]).labels[1] == ("-10 to -1", ">=0")
    assert edges("n", ["1"], [0, Fraction(3, 2)]).labels[1] == ("[0, 1.5)",)


@given(
    values=st.lists(st.decimals(-40, 40, places=2), min_size=1, max_size=20),
    given_edges=st.sets(st.integers(-30, 30), min_size=1, max_size=6),
)
def test_a_value_is_between_the_edges_that_its_label_says(values: list[Decimal], given_edges: set[int]):
    begins = sorted(given_edges)
    made = edges("n", [decimal_text(Fraction(value)) for value in values], begins, "decimal")
    for leaf, label in zip(made.leaves, made.labels[1], strict=True):
        below = [edge for edge in begins if edge <= Fraction(leaf)]
        above = [edge for edge in begins if edge > Fraction(leaf)]
        if not below:
            assert label == f"<{above[0]}"
        elif not above:
            assert label == f">={below[-1]}"
        else:
            assert label == f"[{below[-1]}, {above[0]})"


@pytest.mark.parametrize(
    ("given_edges", "problem"), [([], "empty"), ([0, 0], "0 is not above 0"), ([5, 1], "1 is not")]
)
def test_edges_that_do_not_ascend_are_refused(given_edges: list[int], problem: str):
    with pytest.raises(ValueError, match=problem):
        check_edges(given_edges)


def test_edges_need_numbers():
    with pytest.raises(InputError, match="edges of a: the column is of type text, not a number"):
        edges("a", ["x"], [0], "text")
    with pytest.raises(UnfitValuesError, match="not a finite number"):
        edges("a", ["NaN"], [0], "float")


def test_cuts_of_whole_numbers():
    """The last cell has the upper bound itself, and no label goes beyond it."""
    hierarchy = cuts("age", ["7", "95", "100", "0"], Grid(0, 5, 0, 100))
    assert hierarchy.level_names == ("age", "age_5", "age_10", "age_20", "age_40", "age_80", "age_any")
    assert chain(hierarchy, "7") == ["7", "5-9", "0-9", "0-19", "0-39", "0-79", "*"]
    assert chain(hierarchy, "95") == ["95", "95-100", "90-100", "80-100", "80-100", "80-100", "*"]
    assert chain(hierarchy, "100")[1:] == chain(hierarchy, "95")[1:]


def test_cells_at_bounds_that_are_no_cuts_are_narrower():
    hierarchy = cuts("age", ["4", "3", "10", "50", "61"], Grid(50, 20, 3, 61))
    assert hierarchy.labels[1] == ("3-9", "3-9", "10-29", "50-61", "50-61")
    assert hierarchy.labels[2] == ("3-9", "3-9", "10-49", "50-61", "50-61")
    assert hierarchy.labels[3] == ("3-49", "3-49", "3-49", "50-61", "50-61")
    assert hierarchy.height == 4
    assert cuts("t", ["-7", "-2", "-1"], Grid(0, 5, -8, 5)).labels[1] == ("-8 to -6", "-5 to -1", "-5 to -1")


def test_cuts_are_where_they_are_whatever_the_values_are():
    one, other = cuts("n", ["7"], Grid(0, 5, 0, 100)), cuts("n", ["7", "8", "99"], Grid(0, 5, 0, 100))
    assert one.level_names == other.level_names
    assert chain(one, "7") == chain(other, "7")


def test_cuts_of_decimals_are_exact():
    grid = Grid(0, Fraction("0.1"), 0, 1)
    hierarchy = cuts("w", ["0.3", "0.7", "1", "0.95"], grid, "float")
    assert hierarchy.labels[1] == ("[0.3, 0.4)", "[0.7, 0.8)", "[0.9, 1]", "[0.9, 1]")
    assert cuts("n", ["1"], Grid(0, Fraction(3, 2), 0, 3), "integer").labels[1] == ("[0, 1.5)",)


def test_cuts_of_dates():
    grid = Grid(date(2000, 1, 1), 30, date(1999, 12, 20), date(2000, 3, 15))
    values = ["1999-12-20", "2000-01-30", "2000-01-31", "2000-03-15"]
    hierarchy = cuts("born", values, grid, "date")
    assert hierarchy.level_names[:2] == ("born", "born_30")
    assert chain(hierarchy, "2000-01-30")[1:3] == ["2000-01-01 to 2000-01-30", "2000-01-01 to 2000-02-29"]
    assert chain(hierarchy, "2000-01-31")[1] == "2000-01-31 to 2000-02-29"
    assert chain(hierarchy, "1999-12-20")[1] == "1999-12-20 to 1999-12-31"
    assert chain(hierarchy, "2000-03-15")[1] == "2000-03-01 to 2000-03-15"
    moments = ["2000-03-15 23:59:59", "2000-03-16 00:00:00", "1999-12-19 23:59:59"]
    assert cuts("at", moments, grid, "timestamp").leaves == ("2000-03-15 23:59:59",)
    assert cuts("at", ["2000-01-02"], Grid(date(2000, 1, 1), 1, date(2000, 1, 1), date(2000, 1, 9)), "text").labels[
        1
    ] == ("2000-01-02",)


def test_values_outside_the_bounds_get_no_leaf():
    assert cuts("n", ["-1", "0", "10", "11"], Grid(0, 5, 0, 10)).leaves == ("0", "10")
    assert cuts("n", ["10.001", "-0.5"], Grid(0, 5, 0, 10), "decimal").leaves == ()


@pytest.mark.parametrize("kind", ["text", "date", "boolean"])
def test_cuts_of_numbers_need_numbers(kind: Kind):
    with pytest.raises(InputError, match=f"cuts of a: the column is of type {kind}"):
        cuts("a", ["1"], Grid(0, 5, 0, 10), kind)


def test_cuts_of_dates_need_dates():
    grid = Grid(date(2000, 1, 1), 1, date(2000, 1, 1), date(2000, 1, 9))
    with pytest.raises(InputError, match="cuts of a: the column is of type integer, and the cuts are dates"):
        cuts("a", ["1"], grid, "integer")
    with pytest.raises(UnfitValuesError, match="cuts of a: 1 value of the column is not an ISO date"):
        cuts("a", ["x", "2000-01-01"], grid, "text")
    with pytest.raises(UnfitValuesError, match="1 value of the column is not a finite number"):
        cuts("a", ["NaN"], Grid(0, 5, 0, 10), "float")


def test_dates_by_week():
    hierarchy = dates("seen", ["2026-01-31", "2027-01-01", "2024-12-30"], ["week", "iso_year"])
    assert hierarchy.level_names == ("seen", "seen_week", "seen_iso_year", "seen_any")
    assert chain(hierarchy, "2026-01-31") == ["2026-01-31", "2026-W05", "2026", "*"]
    assert chain(hierarchy, "2027-01-01") == ["2027-01-01", "2026-W53", "2026", "*"]
    assert chain(hierarchy, "2024-12-30") == ["2024-12-30", "2025-W01", "2025", "*"]


def test_dates_by_month():
    hierarchy = dates("seen", ["2026-01-31", "2026-12-01"], ["month", "quarter", "year"])
    assert chain(hierarchy, "2026-01-31") == ["2026-01-31", "2026-01", "2026-Q1", "2026", "*"]
    assert chain(hierarchy, "2026-12-01") == ["2026-12-01", "2026-12", "2026-Q4", "2026", "*"]


def test_times_have_days():
    hierarchy = dates("at", ["2026-01-31 10:00:00", "2026-01-31T11:30:00"], ["day", "month"], "timestamp")
    assert set(hierarchy.labels[1]) == {"2026-01-31"}


@pytest.mark.parametrize("value", ["2026-02-30", "soon", "infinity", "20260131", "2026-01-31x", "12026-01-31"])
def test_texts_that_are_no_date(value: str):
    with pytest.raises(UnfitValuesError, match="1 value of the column is not an ISO date") as caught:
        dates("seen", [value, "2026-01-31"], ["month"], "text")
    assert caught.value.values == (value,)
    assert value not in str(caught.value)


def test_dates_of_a_number_column_and_units_that_do_not_nest():
    with pytest.raises(InputError, match="dates of n: the column is of type integer, not a date"):
        dates("n", ["1"], ["month"], "integer")
    with pytest.raises(ValueError, match=r"\[week, month\] does not nest"):
        check_units(("week", "month"))


def test_flat_domain():
    domain = flat("ward", ["b", "a", None])
    assert (domain.labels, domain.height) == ((("b", "a", None),), 0)
    with pytest.raises(InputError, match="the domain of ward names 'a' twice"):
        flat("ward", ["a", "b", "a"])


def test_build_follows_the_form_of_the_spec():
    values = ["12", "13"]
    assert build(Suppress(), "a", values, "integer") == suppress("a", values, "integer")
    assert build(Digits(digits=2, from_="left"), "a", values, "text") == digits("a", values, 2, "left")
    assert build(Ranges(ranges=(5, 10), start=2), "a", values, "integer") == ranges("a", values, [5, 10], 2)
    assert build(Dates(dates=("month",)), "a", ["2026-01-31"], "date") == dates("a", ["2026-01-31"], ["month"])
    with pytest.raises(TypeError, match="from a file is read, not built"):
        build(CsvFile(file="a.csv"), "a", values, "text")


WIDTHS = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(
    lambda factors: [math.prod(factors[: i + 1]) for i in range(len(factors))]
)


@given(st.sets(st.integers(-500, 500), min_size=1, max_size=30), WIDTHS, st.integers(-20, 20))
def test_ranges_nest_and_hold_their_values(values: set[int], widths: list[int], start: int):
    hierarchy = ranges("n", [str(v) for v in values], widths, start)
    assert hierarchy.check() == []
    for level, width in enumerate(widths, 1):
        for leaf, label in zip(hierarchy.leaves, hierarchy.labels[level], strict=True):
            assert leaf is not None
            assert label is not None
            low, high = label.split(" to ") if " to " in label else label.split("-")
            assert int(low) <= int(leaf) <= int(high)
            assert int(high) - int(low) == width - 1
            assert (int(low) - start) % width == 0


LEVELS = {
    "ranges": lambda values, **more: ranges("n", values, [5, 10], from_=15, to=90, **more),
    "edges": lambda values, **more: edges("n", values, [0, 1, 5, 10], **more),
    "cuts": lambda values, **more: cuts("n", values, Grid(0, 5, -20, 100), **more),
}


@pytest.mark.parametrize("form", LEVELS)
@given(st.sets(st.integers(-20, 100), min_size=1, max_size=30))
def test_half_open_labels_of_whole_numbers_are_those_of_decimals(form: str, values: set[int]):
    texts = list(map(str, values))
    whole, decimals = (LEVELS[form](texts, kind=kind, labels="half_open") for kind in ("integer", "decimal"))
    assert whole.labels == decimals.labels == LEVELS[form](texts, kind="decimal").labels
    assert whole.check() == []
    plain = LEVELS[form](texts)
    bounds = Reader("numbers", "integer").bounds
    for level, other in zip(whole.labels, plain.labels, strict=True):
        assert list(map(bounds, level)) == list(map(bounds, other))
    for leaf, label in zip(whole.leaves, whole.labels[1], strict=True):
        low, high = bounds(label)
        value = int(leaf or "")
        assert low is None or low <= value
        assert high is None or value < high


def test_half_open_labels_of_whole_numbers_read():
    labels = ranges("age", ["17", "-1"], [5, 10], labels="half_open").labels
    assert labels[1:] == (("[-5, 0)", "[15, 20)"), ("[-10, 0)", "[10, 20)"), ("*", "*"))
    assert edges("n", ["0", "7"], [0, 1, 10], labels="half_open").labels[1] == ("[0, 1)", "[1, 10)")
    assert cuts("n", ["0", "10"], Grid(0, 5, 0, 10), labels="half_open").labels[1] == ("[0, 5)", "[5, 10]")


def test_ranges_with_top_and_bottom_coding():
    hierarchy = ranges("age", ["3", "14", "15", "19", "89", "90", "104"], [5, 10, 20], from_=15, to=90)
    assert hierarchy.labels[1] == ("<15", "<15", "15-19", "15-19", "85-89", ">=90", ">=90")
    assert hierarchy.labels[2] == ("<20", "<20", "<20", "<20", "80-89", ">=90", ">=90")
    assert hierarchy.labels[3] == ("<20", "<20", "<20", "<20", ">=80", ">=80", ">=80")
    assert hierarchy.check() == []


def test_one_end_may_be_coded_alone():
    assert ranges("t", ["-9", "0"], [5], from_=-5).labels[1] == ("<-5", "0-4")
    assert ranges("w", ["0.5", "2.5"], [Fraction("0.5")], kind="float", to=2).labels[1] == ("[0.5, 1)", ">=2")
    assert ranges("t", ["-9", "10"], [5], to=10**30).labels[1] == ("-10 to -6", "10-14")


def test_ends_without_a_cut_between_them_are_refused():
    with pytest.raises(ValueError, match="no range of width 5 begins between from 1 and to 4"):
        check_ends([5], 0, 1, 4)


@given(
    st.sets(st.integers(-500, 500), min_size=1, max_size=30),
    WIDTHS,
    st.integers(-20, 20),
    st.integers(-300, 300),
    st.integers(120, 400),
)
def test_coded_ranges_nest_and_differ_from_others_at_the_ends_alone(
    values: set[int], widths: list[int], start: int, from_: int, span: int
):
    """By the definition: the cuts of a width that lie between both ends, of which each width has one."""
    to = from_ + max(span, widths[-1])
    coded, plain = (ranges("n", map(str, values), widths, start, from_=a, to=b) for a, b in ((from_, to), (None, None)))
    assert coded.check() == []
    for level, width in enumerate(widths, 1):
        cuts_ = [cut for cut in range(from_, to + 1) if (cut - start) % width == 0]
        for leaf, label, other in zip(coded.leaves, coded.labels[level], plain.labels[level], strict=True):
            value = int(leaf or "")
            if value < cuts_[0]:
                assert label == f"<{cuts_[0]}"
            elif value >= cuts_[-1]:
                assert label == f">={cuts_[-1]}"
            else:
                assert label == other


@given(st.sets(st.decimals(-100, 100, places=3).map(str), min_size=1, max_size=20), WIDTHS, st.integers(1, 40))
def test_decimal_ranges_nest_and_hold_their_values(values: set[str], widths: list[int], parts: int):
    exact = [Fraction(w, parts) for w in widths]
    hierarchy = ranges("n", values, exact, kind="decimal")
    assert hierarchy.check() == []
    for level, width in enumerate(exact, 1):
        for leaf, label in zip(hierarchy.leaves, hierarchy.labels[level], strict=True):
            assert leaf is not None
            assert label is not None
            low, high = (Fraction(end) for end in label.strip("[)").split(", "))
            assert low <= Fraction(leaf) < high
            assert high - low == width


@given(
    st.sets(st.text("0123456789", min_size=4, max_size=4), min_size=1, max_size=30), st.sampled_from(["left", "right"])
)
def test_digits_nest(values: set[str], from_: str):
    hierarchy = digits("n", values, 4, from_)  # type: ignore[arg-type]
    assert hierarchy.check() == []
    assert hierarchy.height == 4


@given(
    st.sets(st.integers(0, 4000).map(lambda n: (date(1999, 1, 1) + timedelta(n)).isoformat()), min_size=1, max_size=30),
    st.sampled_from([("week", "iso_year"), ("month", "quarter", "year"), ("day", "week"), ("day", "year")]),
)
def test_dates_nest(values: set[str], units: tuple[str, ...]):
    assert dates("d", values, units).check() == []


def test_the_census_ages(shared: Path):
    """The hierarchy file of the census data is what `ranges` builds."""
    given_ = from_csv(shared / "data/adult/hierarchies/age.csv")
    built = ranges("age", [leaf for leaf in given_.leaves if leaf], [5, 10, 20])
    assert (built.level_names, built.labels) == (given_.level_names, given_.labels)
