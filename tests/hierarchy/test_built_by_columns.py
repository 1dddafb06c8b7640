"""What is computed by distinct labels is what each leaf alone would be given: rows, order, codes, digests, messages."""

from __future__ import annotations

import csv
import itertools
import operator
import tempfile
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import hierarchies as reference
from reference.hierarchies import Row

from qblock.errors import InputError
from qblock.hierarchy import (
    Grid,
    Hierarchy,
    UnfitValuesError,
    cuts,
    dates,
    digits,
    from_columns,
    from_csv,
    from_rows,
    ranges,
)
from qblock.hierarchy import suppress as suppress_
from qblock.hierarchy.labels import Labels, texts

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(
    ["", "*", "'", '"', "\\", "a b", "a", "é", "Å", "名", "\x7f", "\x1f", "\n", "\0", "NULL", "null", "None", "\ufeff"]
)
SCRIPTS = st.sampled_from(["0123456789", "٠١٢٣٤٥٦٧٨٩", "０１２３４５６７８９"])
INTEGERS = (
    st.integers(-300, 300).map(str)
    | st.integers(-(10**40), 10**40).map(str)
    | st.sampled_from(["007", "-0", "+5", "1_0", " 5", "²", "0x10", "9" * 18, "9" * 19, "-" + "9" * 18, str(2**62)])
    | st.builds(lambda n, digits: "".join(digits[int(d)] for d in str(n)), st.integers(0, 999), SCRIPTS)
)
DECIMALS = (
    st.decimals(-1000, 1000, places=3).map(lambda n: f"{n:f}")
    | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**25), max_value=10**25).map(lambda n: f"{n:f}")
    | INTEGERS
    | st.sampled_from(["1e5", "1E-7", ".5", "5.", "0.10", "-0.0", "NaN", "Infinity", "1/3", "0." + "0" * 300 + "1"])
)
MOMENTS = (
    st.dates().map(str)
    | st.datetimes().map(str)
    | st.datetimes().map(lambda at: at.isoformat())
    | st.datetimes().map(lambda at: f"{at}+00")
)
NO_MOMENTS = st.sampled_from(
    ["0044-03-15 BC", "0044-03-15 00:00:00 BC", "12026-01-31", "infinity", "-infinity", "", "2026-02-30", "20260131",
     "2026-W05-1", "２０２６-01-31", "2026-01-31x", "0000-01-01", "2026-01-31 BC", "x"]
)  # fmt: skip
UNITS = st.sampled_from(
    [["day"], ["week", "iso_year"], ["day", "week"], ["day", "month", "quarter", "year"], ["quarter"], ["iso_year"]]
)
WIDTHS = st.tuples(
    st.sampled_from([Fraction(1), Fraction(5), Fraction(10**30), Fraction(1, 2), Fraction(1, 3), Fraction(7, 40)]),
    st.lists(st.sampled_from([2, 3, 10, 10**12]), max_size=2),
).map(lambda drawn: list(itertools.accumulate(drawn[1], operator.mul, initial=drawn[0])))
STARTS = st.sampled_from([Fraction(0), Fraction(3), Fraction(-7, 2), Fraction(1, 3), Fraction(-(10**20))])


def without_a_place(expected: Callable[[], list[Row]]) -> tuple[list[Row], tuple[str, ...]]:
    try:
        return expected(), ()
    except reference.Unfit as unfit:
        return [], unfit.values


def compared(made: Callable[[], Hierarchy], expected: Callable[[], list[Row]]) -> None:
    """The same rows with the same codes and digest, or the same values that have no place."""
    rows, unfit = without_a_place(expected)
    if unfit:
        with pytest.raises(UnfitValuesError) as caught:
            made()
        assert caught.value.values == unfit
        assert (
            f": {len(unfit)} value{'s' * (len(unfit) > 1)} of the column {'is' if len(unfit) == 1 else 'are'} not "
            in str(caught.value)
        )
        return
    hierarchy = made()
    assert list(zip(*hierarchy.labels, strict=True)) == rows
    alike(hierarchy, rows)
    assert hierarchy.check(observed=True) == []
    null = hierarchy.with_null()
    alike(
        null, [*rows, (None, *("*" for _ in rows[0][1:]))] if rows else [(None, *("*" for _ in hierarchy.labels[1:]))]
    )


def alike(hierarchy: Hierarchy, rows: Sequence[Row]) -> None:
    plain = Hierarchy(hierarchy.attribute, hierarchy.level_names, tuple(zip(*rows, strict=True)))
    if rows:
        assert hierarchy == plain
        assert hierarchy.codes.tolist() == plain.codes.tolist() == reference.codes(rows)
    assert hierarchy.digest() == reference.digest(hierarchy.level_names, rows)


def of(values: Any) -> st.SearchStrategy[list[str]]:
    return st.lists(values, max_size=25)


@given(of(TEXT))
def test_suppress(values: list[str]) -> None:
    compared(lambda: suppress_("a", values), lambda: reference.suppressed(values, "text"))


@given(of(DECIMALS), st.sampled_from(["decimal", "float", "integer"]))
def test_suppressed_numbers(values: list[str], kind: Any) -> None:
    compared(lambda: suppress_("a", values, kind), lambda: reference.suppressed(values, kind))


@given(of(st.text("019é*", min_size=4, max_size=4)), st.sampled_from(["left", "right"]))
def test_codes_of_one_length(values: list[str], from_: Any) -> None:
    compared(lambda: digits("a", values, 4, from_), lambda: reference.masked(values, 4, from_, "text"))


@given(of(TEXT), st.integers(1, 5), st.sampled_from(["left", "right"]))
def test_codes_of_any_text(values: list[str], n: int, from_: Any) -> None:
    compared(lambda: digits("a", values, n, from_), lambda: reference.masked(values, n, from_, "text"))


@given(of(INTEGERS), st.integers(1, 20), st.sampled_from(["left", "right"]))
def test_codes_that_are_numbers(values: list[str], n: int, from_: Any) -> None:
    compared(lambda: digits("a", values, n, from_, "integer"), lambda: reference.masked(values, n, from_, "integer"))


@given(of(st.integers(0, 9999).map(str)), st.sampled_from(["left", "right"]))
def test_short_numbers_are_padded(values: list[str], from_: Any) -> None:
    compared(lambda: digits("a", values, 4, from_, "integer"), lambda: reference.masked(values, 4, from_, "integer"))


@given(of(st.integers(-(10**6), 10**6).map(str)) | of(INTEGERS), WIDTHS, STARTS)
def test_ranges_of_whole_numbers(values: list[str], widths: list[Fraction], start: Fraction) -> None:
    compared(lambda: ranges("a", values, widths, start), lambda: reference.intervals(values, widths, start, "integer"))


@given(of(st.decimals(-1000, 1000, places=3).map(str)) | of(DECIMALS), WIDTHS, STARTS)
def test_ranges_of_decimals(values: list[str], widths: list[Fraction], start: Fraction) -> None:
    compared(
        lambda: ranges("a", values, widths, start, "decimal"),
        lambda: reference.intervals(values, widths, start, "decimal"),
    )


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Up to 60 cells, from any place on, of whole numbers or not."""
    width = draw(st.sampled_from([Fraction(1), Fraction(5), Fraction(7, 40), Fraction(1, 3)]))
    start = draw(st.sampled_from([Fraction(0), Fraction(3), Fraction(-7, 2), Fraction(1, 3)]))
    low = start + width * draw(st.integers(-120, 120)) / draw(st.sampled_from([1, 1, 2, 5]))
    high = low + width * draw(st.integers(1, 60)) / draw(st.sampled_from([1, 1, 2, 5]))
    assume(any(low < start + i * width < high for i in range(-200, 201)))
    return Grid(start, width, low, high)


NEAR = st.integers(-300, 300).map(str)


@given(of(NEAR) | of(INTEGERS), grids())
def test_cuts_of_whole_numbers(values: list[str], grid: Grid) -> None:
    of_grid = (grid.start, grid.min_width, grid.low, grid.high)
    compared(lambda: cuts("a", values, grid), lambda: reference.cells(values, *of_grid, "integer"))


@given(of(NEAR | st.decimals(-99, 99, places=3).map(str)) | of(DECIMALS), grids())
def test_cuts_of_decimals(values: list[str], grid: Grid) -> None:
    of_grid = (grid.start, grid.min_width, grid.low, grid.high)
    compared(lambda: cuts("a", values, grid, "decimal"), lambda: reference.cells(values, *of_grid, "decimal"))


@given(of(MOMENTS), UNITS)
def test_dates(values: list[str], units: list[str]) -> None:
    compared(lambda: dates("a", values, units, "text"), lambda: reference.calendar(values, units))


@given(of(MOMENTS | NO_MOMENTS), UNITS)
def test_dates_and_what_is_none(values: list[str], units: list[str]) -> None:
    compared(lambda: dates("a", values, units, "text"), lambda: reference.calendar(values, units))


@pytest.mark.parametrize("width", [Fraction(1, 40), Fraction(1), Fraction(2**62), Fraction(10**30)], ids=str)
@pytest.mark.parametrize("start", [Fraction(0), Fraction(-(10**18)), Fraction(1, 3)], ids=str)
@pytest.mark.parametrize("kind", ["integer", "decimal"])
def test_numbers_as_large_as_64_bits_hold_and_larger(width: Fraction, start: Fraction, kind: Any) -> None:
    for most in ("9" * 17, "9" * 18, str(2**62), str(2**63), "9" * 30):
        values = [most, f"-{most}", "0", "1"]
        compared(
            lambda values=values: ranges("a", values, [width, 2 * width], start, kind),
            lambda values=values: reference.intervals(values, [width, 2 * width], start, kind),
        )


LABELS = st.sampled_from(["*", "", "a", "b", "é", "a,b", 'say "x"', "'", "\\", "c d"])
PLAIN = st.sampled_from(["a", "b", "é", "c d", "'", "*"])


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Rows that may be a hierarchy: parents are drawn by label, and now and then anew."""
    width = draw(st.integers(2, 4))
    label, above = draw(st.sampled_from([LABELS, PLAIN])), {}
    rows = []
    for leaf in draw(st.lists(label | st.integers(0, 99).map(str), max_size=8)):
        row = [leaf]
        for level in range(1, width):
            drawn = draw(label) if draw(st.integers(0, 9)) == 0 else above.setdefault((level, row[-1]), draw(label))
            row.append("*" if row[-1] == "*" and level > 1 else drawn)
        rows.append((*row, "*") if draw(st.integers(0, 30)) else (*row, "x"))
    return rows


@given(tables(), st.booleans())
def test_what_is_wrong(rows: list[Row], observed: bool) -> None:
    assume(rows)
    names = tuple(map(str, range(len(rows[0]))))
    labels = tuple(zip(*rows, strict=True))
    kept = Hierarchy("a", names, labels), Hierarchy("a", names, tuple(Labels.of(level) for level in labels))
    one, other = (hierarchy.check(observed=observed) for hierarchy in kept)
    assert one == other
    assert bool(one) == reference.wrong(rows, observed)


def test_the_star_is_under_the_star_alone() -> None:
    rows = [("1", "*", "x", "*"), ("2", "a", "*", "*")]
    made = Hierarchy("a", ("l", "m", "n", "o"), tuple(Labels.of(level) for level in zip(*rows, strict=True)))
    (problem,) = made.check()
    assert "nothing is above `*`" in problem.message


@given(tables())
def test_a_file_a_table_and_rows(rows: list[Row]) -> None:
    assume(rows)
    names = [f"level{i}" for i in range(len(rows[0]))]
    by_columns = from_columns(names, [texts(level) for level in zip(*rows, strict=True)], "a")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([names, *rows])
        try:
            expected = from_rows(names, rows, "a")
        except InputError as error:
            assert by_columns is None
            with pytest.raises(InputError) as caught:
                from_csv(path, "a")
            said = str(error).replace("on row ", "on line ")
            assert len(str(caught.value).splitlines()) == len(said.splitlines())
            return
        assert not reference.wrong([tuple(row) for row in zip(*expected.labels, strict=True)], False)
        assert by_columns == expected
        assert from_csv(path, "a") == expected
        assert from_csv(path, "a").digest() == expected.digest()


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", ["", "{0}", "{0}{0}"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_lines_however_they_end(tmp_path: Path, ending: str, blank: str, quote: str) -> None:
    lines = ["leaf,group,all", f"a,{quote} x{quote},*", "é ,NULL,*", "NA,nan,*", "1.0,x ,*"]
    text = blank.format(ending) + ending.join(lines) + ending + blank.format(ending)
    path = tmp_path / "a.csv"
    path.write_text(text, "utf-8", newline="")
    rows = [row for row in csv.reader(text.splitlines()) if row]
    assert list(zip(*from_csv(path).labels, strict=True)) == [tuple(row) for row in rows[1:]]


def test_a_line_number_counts_blank_lines_and_lines_within_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b\n\n1,"x\ny"\n\n1,z\n', "utf-8")
    with pytest.raises(InputError, match=r"a\.csv:6: duplicate leaf '1', first on line 4; remove one"):
        from_csv(path)
    path.write_text("a,b\n\n1,x\n\n1,z\n", "utf-8")
    with pytest.raises(InputError, match=r"a\.csv:5: duplicate leaf '1', first on line 3; remove one"):
        from_csv(path)


def test_labels_are_a_sequence() -> None:
    labels = Labels.of(["b", None, "a", "b"])
    assert list(labels) == ["b", None, "a", "b"] == [labels[i] for i in range(4)]
    assert labels == ("b", None, "a", "b") != Labels.of(["b", None, "a"])
    assert labels[1:3] == (None, "a")
    assert (len(labels), labels.index("a"), labels.count("b")) == (4, 2, 2)
    assert None in labels
    assert "a" in labels
    assert "c" not in labels
    assert None not in Labels.of(["a"])
    assert hash(labels) == hash(("b", None, "a", "b"))
    assert labels.first.tolist() == [0, 1, 2]


@given(st.lists(TEXT | st.none(), max_size=20))
def test_texts_are_kept(values: list[str | None]) -> None:
    assert texts(values).to_pylist() == values
    assert list(Labels.of(values)) == values
    assert list(Labels.of(texts(values).slice(1))) == values[1:]


PINNED = {
    "backslash": (
        lambda: suppress_("s", ["a\\b"]),
        "49ec5e3c766c47e3cc2f5e28f94f772aa6523a629de8f97d4a1cb5c7872390a5",
    ),
    "dates": (
        lambda: dates(
            "at", ["2026-01-31 10:00:00", "2027-01-01 00:00:00.5", "0001-01-01 00:00:00"], ["week", "iso_year"]
        ),
        "3bd4af7239ad6e7365bce700b88ee2d22560dcadabc831054451bea8a37b5f3e",
    ),
    "digits": (
        lambda: digits("zip", ["13053", "13068", "14850", 'é"\\01'], 5),
        "a1d3c1bf1fc439a3e12fa55d376df035fa19807154e9a51473c7703f9f278501",
    ),
    "left": (
        lambda: digits("zip", ["7", "13068"], 5, "left", "integer"),
        "7b9a36a24f4bcf53b03b3e2ed5a68c1afb4c6d65daac161124b609503ce836da",
    ),
    "ranges": (
        lambda: ranges("n", ["-10", "0", "99999999999999999999"], [5, 10]),
        "3d729c3040aca2558da149cb74408895243b351f7e9f15d2bb37d145c70a6cd3",
    ),
    "decimals": (
        lambda: ranges("w", ["-1", "2.4999", "5.25"], [Fraction("2.5"), 5], Fraction(1, 3), "decimal"),
        "dde7a0ad470ba29dbab8fb8da205c87f9eb9e3f7b213825567c2edc229afffe0",
    ),
    "suppress": (
        lambda: suppress_("s", ["", "a\tb", "名"]).add_null_leaf(),
        "d89697e75987309939068ea93b13d961f831ecc58f77e4215848d7efd4838ba2",
    ),
}


@pytest.mark.parametrize("form", PINNED)
def test_digests_of_ledgers_before(form: str) -> None:
    """As the version wrote them that built every label from its leaf."""
    build, digest = PINNED[form]
    assert build().digest() == digest
