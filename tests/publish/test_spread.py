"""How rows lie within their labels: shares of cells, and the numbers to compute with that come of them."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from release.jobs import Job, MakeJob

from qblock.estimate.conditions import Interval
from qblock.publish.spread import EPOCH, MOST_CELLS, ROUNDS, Cell, spread
from qblock.publish.spread import spread_rows as spread_rows_of
from qblock.release.verify import verify

NONE = {"joint": "none"}
Ends = tuple[float | None, float | None]
Label = tuple[Ends, int]


@st.composite
def published(draw: st.DrawFn) -> list[Label]:
    """Labels that may overlap, some of them open, with their rows."""
    edge = st.integers(-8, 8)
    ends = st.tuples(st.none() | edge, st.none() | edge).filter(lambda e: None in e or e[0] < e[1])
    labels = draw(st.lists(ends, min_size=1, max_size=7, unique=True))
    rows = [draw(st.integers(1, 40)) for _ in labels]
    return [((_float(low), _float(high)), n) for (low, high), n in zip(labels, rows, strict=True)]


def _float(end: int | None) -> float | None:
    return None if end is None else float(end)


def slow(labels: Sequence[Label]) -> list[dict[Ends, Fraction]]:
    """The same by the definition: exact, cell by cell, one label after another."""
    points = sorted({Fraction(end) for ends, _ in labels for end in ends if end is not None})
    closed = list(itertools.pairwise(points))
    cells: list[tuple[Fraction | None, Fraction | None]] = list(closed)
    for open_cell in [(None, points[0]), (points[-1], None)] if points else [(None, None)]:
        if any(covers(ends, open_cell) and not any(covers(ends, c) for c in closed) for ends, _ in labels):
            cells.append(open_cell)
    whole = points[-1] - points[0] if len(points) > 1 else Fraction(1)
    width = {c: c[1] - c[0] if c[0] is not None and c[1] is not None else whole for c in cells}
    mass: dict[Any, Fraction] = dict(width)
    for _ in range(ROUNDS + 1):
        new: dict[Any, Fraction] = defaultdict(Fraction)
        for ends, n in labels:
            own = [cell for cell in cells if covers(ends, cell)]
            total = sum(mass[cell] for cell in own)
            for cell in own:
                new[cell] += n * mass[cell] / total
        mass = new
    shares = []
    for ends, _ in labels:
        own = [cell for cell in cells if covers(ends, cell)]
        total = sum(mass[cell] for cell in own)
        shares.append({(_end(a), _end(b)): mass[a, b] / total for a, b in own})
    return shares


def covers(ends: Ends, cell: tuple[Fraction | None, Fraction | None]) -> bool:
    (low, high), (least, most) = ends, cell
    return (low is None or (least is not None and low <= least)) and (
        high is None or (most is not None and most <= high)
    )


def _end(end: Fraction | None) -> float | None:
    return None if end is None else float(end)


@st.composite
def decimals(draw: st.DrawFn) -> list[Label]:
    """The same beside values that are shown as they are, whose cells are as narrow as a double."""
    labels = draw(published())
    for value in draw(st.lists(st.integers(-80, 80), max_size=3, unique=True)):
        labels.append(((value / 10, math.nextafter(value / 10, math.inf)), draw(st.integers(1, 40))))
    return labels


@given(published() | decimals())
@example([((None, 1.0), 1), ((0.0, 5e-324), 1)])
def test_shares_are_those_of_the_definition(labels: list[Label]) -> None:
    cells = spread([ends for ends, _ in labels], [n for _, n in labels])
    for own, expected in zip(cells, slow(labels), strict=True):
        assert {(cell.low, cell.high): cell.share for cell in own} == pytest.approx(
            {ends: float(share) for ends, share in expected.items()}
        )
        assert sum(cell.share for cell in own) == pytest.approx(1)
        assert all(left.high == right.low for left, right in itertools.pairwise(own))


def test_a_wide_label_has_its_rows_where_the_narrow_ones_are() -> None:
    """Of 20 rows 10 are below 10, and 10 below 20: evenly 15 are below 10; each round halves what is above."""
    narrow, wide = spread([(0, 10), (0, 20)], [10, 10])
    assert narrow == (Cell(0, 10, 1),)
    assert [cell.share for cell in wide] == [pytest.approx(1 - 0.25 / 2**ROUNDS), pytest.approx(0.25 / 2**ROUNDS)]


def test_an_open_cell_is_there_where_a_label_has_no_other() -> None:
    (under, decade, hidden) = spread([(None, 20), (20, 30), (None, None)], [5, 5, 2])
    assert under == (Cell(None, 20, 1),)
    assert [(cell.low, cell.high) for cell in hidden] == [(None, 20), (20, 30)]
    assert decade == (Cell(20, 30, 1),)
    above, hidden = spread([(20, 30), (None, None)], [5, 2])
    assert above == hidden == (Cell(20, 30, 1),)
    assert spread([(None, None)], [3]) == [(Cell(None, None, 1),)]


def test_values_far_from_zero_that_are_published_exactly_keep_their_rows() -> None:
    """A double and the next one are a cell that is lost in a sum of widths."""
    exact = (1e9, 1e9 + 2**-23)
    cells = spread([(0.0, 2e9), exact], [10, 90])
    assert cells[1] == (Cell(*exact, 1),)
    assert max(cell.share for cell in cells[0]) > 0.9


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(st.tuples(DOUBLES, DOUBLES).filter(lambda ends: ends[0] < ends[1]), min_size=1, max_size=6, unique=True)
)
def test_doubles_of_any_size_have_shares(ends: list[tuple[float, float]]) -> None:
    """A warning of an overflow is an error here."""
    for cells in spread([*ends, (None, None)], [7] * (len(ends) + 1)):
        assert sum(cell.share for cell in cells) == pytest.approx(1)
        for cell in cells:
            middle = cell.middle(0.0)
            assert middle is None or (
                cell.low is not None and cell.high is not None and cell.low <= middle <= cell.high
            )


@given(DOUBLES, DOUBLES, DOUBLES)
def test_parts_of_intervals_of_any_size_are_shares(low: float, cut: float, high: float) -> None:
    low, cut, high = sorted((low, cut, high))
    if low < high:
        parts = [Interval(low, high).part_in(other) for other in (Interval(below=cut), Interval(least=cut))]
        assert sum(parts) == pytest.approx(1)


def test_a_label_has_a_bounded_number_of_cells() -> None:
    labels: list[Ends] = [(float(i), float(i + 1)) for i in range(500)]
    cells = spread([*labels, (None, None)], [*([3] * 500), 7])
    (hidden,) = cells[-1:]
    assert len(hidden) <= MOST_CELLS
    assert (hidden[0].low, hidden[-1].high) == (0, 500)
    assert sum(cell.share for cell in hidden) == pytest.approx(1)


def test_counts_are_nearer_than_with_rows_spread_evenly() -> None:
    """Incomes, of which most are low: labels of 10, of 100, and of 1000 that cover them all."""
    chance = random.Random(5)
    incomes = [min(int(chance.lognormvariate(4, 1)), 999) for _ in range(6000)]
    rows: dict[Ends, int] = defaultdict(int)
    for income in incomes:
        width = chance.choice([10, 100, 1000])
        rows[income // width * width, (income // width + 1) * width] += 1
    cells = spread(list(rows), list(rows.values()))
    for most in (30, 70, 150, 350):
        truth = sum(income < most for income in incomes)
        even = sum(n * _below(low, high, most) for (low, high), n in rows.items())
        ours = sum(
            n * cell.share * _below(cell.low, cell.high, most)
            for own, n in zip(cells, rows.values(), strict=True)
            for cell in own
        )
        assert abs(ours - truth) < abs(even - truth) / 3


def _below(low: Any, high: Any, most: float) -> float:
    return min(max((most - low) / (high - low), 0), 1)


@pytest.fixture
def visits(make_job: MakeJob) -> Job:
    """Ages of which some are unknown, days, and a column that has the name of a middle."""
    days = [date(1969, 12, 1) + timedelta(days=5 * i) for i in range(40)]
    return make_job(
        {"age": [*range(20, 59), None], "day": days, "age_mid": ["x", "y"] * 20},
        {"age": "INTEGER"},
        attributes={
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10]}, "nulls": "top"},
            "day": {"role": "quasi_identifier", "hierarchy": {"dates": ["month"]}},
            "age_mid": "sensitive",
        },
        privacy=[{"k_anonymity": {"k": 1}}],
        search={"node": [1, 1]},
        versions=NONE,
    )


def test_the_middle_of_a_label_is_the_mean_of_its_values(visits: Job) -> None:
    visits.run()
    shown = visits.query("SELECT DISTINCT age, age_mid_ FROM published.people_midpoints WHERE age <> '*' ORDER BY age")
    assert shown == [("20-29", 24.5), ("30-39", 34.5), ("40-49", 44.5), ("50-59", 54.5)]
    ((hidden,),) = visits.query("SELECT age_mid_ FROM published.people_midpoints WHERE age = '*'")
    assert hidden == pytest.approx((10 * 24.5 + 10 * 34.5 + 10 * 44.5 + 9 * 54.5) / 39)
    days = visits.query("SELECT DISTINCT day, day_mid FROM published.people_midpoints ORDER BY day")
    assert days[:3] == [("1969-12", date(1969, 12, 16)), ("1970-01", date(1970, 1, 16)), ("1970-02", date(1970, 2, 14))]
    assert visits.query("SELECT count(*), min(age_mid), max(age_mid) FROM published.people_midpoints") == [
        (40, "x", "y")
    ]


def test_cells_are_listed_with_dates_as_days_and_as_dates(visits: Job) -> None:
    visits.run()
    cells = visits.query(
        "SELECT low, high, middle, share, from_date, until_date FROM published.people_spread WHERE label = '1970-01'"
    )
    assert cells == [(0.0, 31.0, 15.0, 1.0, EPOCH, date(1970, 2, 1))]
    cells = visits.query(
        "SELECT low, high, middle, from_date FROM published.people_spread WHERE label = '*' ORDER BY low"
    )
    assert cells == [(low, low + 10, low + 4.5, None) for low in (20.0, 30.0, 40.0, 50.0)]
    assert verify(visits.spec).problems == ()


def test_shares_come_of_the_published_rows_alone(make_job: MakeJob) -> None:
    """Whoever has the view computes them again; four rows of other labels are suppressed."""
    job = make_job(
        {"age": [20, 21, 25, 26] * 3 + [40, 41, 60, 61], "disease": ["flu", "heart"] * 8},
        {"age": "INTEGER"},
        attributes={"age": {"role": "quasi_identifier", "hierarchy": {"ranges": [5]}}, "disease": "sensitive"},
        privacy=[{"k_anonymity": {"k": 3}}],
        suppression_limit=0.5,
        search={"node": [1]},
        versions=NONE,
    )
    job.run()
    rows = job.query("SELECT age, age_low, age_high, count(*) FROM published.people GROUP BY 1, 2, 3 ORDER BY 1")
    expected = {
        (label, *ends, share)
        for (label, *_), own in zip(rows, slow([((low, high), n) for _, low, high, n in rows]), strict=True)
        for ends, share in own.items()
    }
    assert set(job.query("SELECT label, low, high, share FROM published.people_spread")) == expected
    assert {label for label, *_ in rows} == {"20-24", "25-29"}


def test_an_open_label_has_no_number(make_job: MakeJob) -> None:
    job = make_job(
        {"age": [10, 15, 25, 35] * 3, "disease": ["flu", "heart"] * 6},
        {"age": "INTEGER"},
        attributes={
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10], "from": 20, "to": 40}},
            "disease": "sensitive",
        },
        privacy=[{"k_anonymity": {"k": 1}}],
        search={"node": [1]},
        versions=NONE,
    )
    job.run()
    shown = job.query("SELECT age, age_mid, count(*) FROM published.people_midpoints GROUP BY 1, 2 ORDER BY 1")
    assert shown == [("20-29", 24.5, 3), ("30-39", 34.5, 3), ("<20", None, 6)]
    cells = job.query("SELECT low, high, middle, share FROM published.people_spread WHERE label = '<20'")
    assert cells == [(None, 20.0, None, 1.0)]


def test_without_bounds_there_are_no_numbers(visits: Job) -> None:
    visits.settings["publish"]["ranges"] = "text"
    visits.run()
    assert visits.query("SELECT count(*) FROM published.people_spread") == [(0,)]
    assert visits.query("SELECT * FROM published.people_midpoints ORDER BY day, age, age_mid") == visits.query(
        "SELECT * FROM published.people ORDER BY day, age, age_mid"
    )


@pytest.mark.parametrize("publish", [{}, {"open_ends": None}, {"exact": True}, {"ranges": "text"}])
def test_verification_computes_the_cells_again(visits: Job, publish: dict[str, Any]) -> None:
    visits.settings["publish"] |= publish
    visits.run()
    assert verify(visits.spec).problems == ()


@pytest.mark.parametrize(
    "altered",
    [
        lambda cells: [(*cell[:5], cell[5] * 0.999, *cell[6:]) for cell in cells],
        lambda cells: [(*cell[:4], cell[4] + 1, *cell[5:]) for cell in cells],
        lambda cells: [(*cell[:4], None, *cell[5:]) for cell in cells],
        lambda cells: cells[1:],
        lambda cells: [],
    ],
    ids=["shares", "middles", "no middles", "one cell less", "none"],
)
def test_cells_that_are_not_those_of_the_labels_are_a_problem(
    visits: Job, monkeypatch: pytest.MonkeyPatch, altered: Any
) -> None:
    def spread_rows(bound: Any, rows: Any) -> list[tuple[Any, ...]]:
        cells = spread_rows_of(bound, rows)
        return altered(cells) if bound.attribute == "day" else cells

    with monkeypatch.context() as patched:
        patched.setattr("qblock.publish.helpers.spread_rows", spread_rows)
        visits.run()
    said = "the rows of day do not lie within its labels as published.people_spread says"
    assert verify(visits.spec).problems == (said,)


@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_native_ranges_have_numbers_beside_them(visits: Job) -> None:
    visits.settings["publish"]["ranges"] = "native"
    visits.run()
    shown = visits.query("SELECT age_mid_, day_mid FROM published.people_midpoints WHERE age = '20-29' ORDER BY day")
    assert shown[0] == (24.5, date(1969, 12, 16))


def test_a_middle_and_both_views_have_other_names_where_the_spec_gives_them(visits: Job) -> None:
    visits.settings["publish"]["names"] = {"age_mid": "age about", "midpoints": "numbers", "spread": "cells of labels"}
    visits.run()
    assert visits.query('SELECT min("age about") FROM published.numbers') == [(24.5,)]
    assert visits.query('SELECT count(*) > 0 FROM published."cells of labels"') == [(True,)]
    assert (visits.run().status, verify(visits.spec).problems) == ("unchanged", ())
