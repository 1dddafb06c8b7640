"""`qblock init` and a few very low or very high numbers: they share open labels, and no end is a person's value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from qblock.spec import load_spec
from qblock.spec.sources import Ranges

AGES = [20 + i % 60 for i in range(600)]
"""20 to 79, ten rows of each."""
Proposed = Callable[..., tuple[Any, Ranges]]


@pytest.fixture
def proposed(qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proposed:
    def run(ages: list[Any], *more: str, **columns: list[Any]) -> tuple[Any, Ranges]:
        url = warehouse("people", {"age": ages, "sex": [["f", "m"][i % 2] for i in range(len(ages))], **columns})
        monkeypatch.setenv("WAREHOUSE_URL", url)
        ran = qblock("init", url, "people", "--directory", tmp_path / "made", "--sensitive", "none", "--json", *more)
        assert ran.status == 0, ran.err
        spec = load_spec(tmp_path / "made" / "release.yaml")
        form = spec.attributes["age"].hierarchy
        assert isinstance(form, Ranges)
        assert qblock("search", spec.path, "--quiet").status == 0
        return ran, form

    return run


def reason(ran: Any) -> str:
    return str(next(column["reason"] for column in ran.json["columns"] if column["name"] == "age"))


def test_outliers_are_joined_and_the_widths_are_those_of_the_others(proposed: Proposed) -> None:
    ran, form = proposed([*AGES, -3, -2, -1, 0, 1, 2, 98, 104, 997, 998, 999, 99_999])
    assert (form.ranges, form.from_, form.to) == ((5, 10, 20), 20, 80)
    assert "; under 20 and 80 and over are grouped" in reason(ran)


def test_where_nothing_lies_beyond_there_is_no_end(proposed: Proposed) -> None:
    ran, form = proposed(AGES)
    assert (form.ranges, form.from_, form.to) == ((5, 10, 20), None, None)
    assert "grouped" not in reason(ran)


def test_an_end_that_few_people_are_beyond_moves_inside(proposed: Proposed) -> None:
    """Five rows are of the two people above 79; k is 5."""
    _, form = proposed(
        [*AGES, 97, 98, 97, 98, 99],
        "--entity",
        "patient_id",
        patient_id=[*range(1000, 1600), 1, 1, 1, 2, 2],
    )
    assert (form.from_, form.to) == (None, 75)


def test_no_end_is_proposed_of_a_handful_of_rows(proposed: Proposed) -> None:
    _, form = proposed([30, 31, 99])
    assert (form.from_, form.to) == (None, None)


@pytest.mark.parametrize("kind", ["DOUBLE PRECISION", "NUMERIC(12, 2)"])
def test_decimals_have_whole_ends(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    values = [*(18.25 + i % 40 for i in range(800)), *[None] * 4, *(9000.5 + i for i in range(7))]
    url = warehouse("people", {"age": values, "sex": ["f", "m", "f"] * 270 + ["m"]}, {"age": kind})
    monkeypatch.setenv("WAREHOUSE_URL", url)
    assert qblock("init", url, "people", "--directory", tmp_path / "made", "--sensitive", "none").status == 0
    form = load_spec(tmp_path / "made" / "release.yaml").attributes["age"].hierarchy
    assert isinstance(form, Ranges)
    assert (form.ranges, form.from_, form.to) == ((5, 10, 20), None, 60)


@pytest.mark.parametrize("kind", ["DOUBLE PRECISION", "NUMERIC(12, 2)"])
def test_decimals_that_lie_close_together_have_narrow_ranges(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    values = [*(36 + (i % 40) / 10 for i in range(800)), *(99.5 + i for i in range(7))]
    url = warehouse("people", {"age": values, "sex": ["f", "m", "f"] * 269}, {"age": kind})
    monkeypatch.setenv("WAREHOUSE_URL", url)
    made = tmp_path / "made" / "release.yaml"
    assert qblock("init", url, "people", "--directory", made.parent, "--sensitive", "none").status == 0
    assert "hierarchy: {ranges: [0.5, 1, 2], to: 40}" in made.read_text("utf-8")
    form = load_spec(made).attributes["age"].hierarchy
    assert isinstance(form, Ranges)
    assert (form.ranges, form.from_, form.to) == ((Fraction(1, 2), 1, 2), None, 40)
    answer = qblock("search", made, "--json")
    assert answer.status == 0, answer.err


def test_ranges_of_whole_numbers_are_written_like_others(proposed: Proposed) -> None:
    weights, children = [40 + i % 50 + 0.5 for i in range(600)], [i % 4 for i in range(600)]
    ran, form = proposed(AGES, weight=weights, children=children, ward=["abc"[i * i // 7 % 3] for i in range(600)])
    assert form.labels == "half_open"
    spec = load_spec(Path(ran.json["files"][-1]))
    labels = {name: getattr(of.hierarchy, "labels", None) for name, of in spec.attributes.items() if of.hierarchy}
    assert labels == {"age": "half_open", "weight": "plain", "children": "half_open", "ward": None, "sex": None}
    assert "# `labels: half_open` writes" in spec.path.read_text("utf-8")


def test_values_of_single_rows_are_read_as_cells(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of decimals, times and large whole numbers; not of ages, of days, or of decimals that many people share."""
    rows = 400
    columns: dict[str, list[Any]] = {
        "age": [20 + i % 60 for i in range(rows)],
        "height_cm": [150 + (i * 7919 % 50_021) / 1000 for i in range(rows)],
        "weight_kg": [50.5 + i % 30 for i in range(rows)],
        "income": [18_000 + i * 7919 % 90_001 for i in range(rows)],
        "admission": [datetime(2024, 1, 1) + timedelta(minutes=i * 1117) for i in range(rows)],
        "birth_date": [date(1950, 1, 1) + timedelta(days=i * 37) for i in range(rows)],
    }
    url = warehouse("people", columns, {"height_cm": "NUMERIC(9, 4)", "weight_kg": "DOUBLE PRECISION"})
    monkeypatch.setenv("WAREHOUSE_URL", url)
    ran = qblock("init", url, "people", "--directory", tmp_path / "made", "--sensitive", "none")
    assert ran.status == 0, ran.err
    attributes = load_spec(tmp_path / "made" / "release.yaml").attributes
    finest = {
        name: getattr(of.hierarchy, "finest", None) for name, of in attributes.items() if of.hierarchy is not None
    }
    expected = {"age": None, "height_cm": 1, "weight_kg": None, "income": 1000, "admission": "day", "birth_date": None}
    assert finest.items() <= expected.items()
    assert {"height_cm", "admission"} <= finest.keys()
