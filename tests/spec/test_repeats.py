"""Which columns are taken for people's, on data with and without identifiers: what is found, and what is missed."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from qblock.demo.people import generate
from qblock.spec.repeats import may_stand_for_people, repeats_people

NUMBERS = ("age", "hours", "hours_per_week", "person_id")


def taken(name: str, values: Iterable[object], role: str = "identifying", kind: str = "", type_: str = "") -> bool:
    counted = Counter(values)
    kind = kind or ("integer" if name in NUMBERS else "text")
    if not may_stand_for_people(name, role, kind, type_):  # type: ignore[arg-type]
        return False
    return repeats_people(name, role, type_, counted.total(), len(counted))  # type: ignore[arg-type]


def visits(people: int, mean: float, seed: int = 1) -> list[int]:
    """Whose each row is: everybody has one, and more by chance."""
    chance = random.Random(seed)
    more = [chance.randrange(people) for _ in range(int(people * (mean - 1)))]
    return [*range(people), *more]


def test_no_column_of_the_adult_data_is_taken_for_people(shared: Path) -> None:
    with (shared / "data" / "adult" / "adult.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [name for name in rows[0] if taken(name, (row[name] for row in rows))] == []
    # Each of them three times: the number alone, by its name.
    assert [name for name in rows[0] if taken(name, [row[name] for row in rows] * 3)] == ["person_id"]


@pytest.mark.parametrize("size", [2000, 20_000])
def test_no_column_of_the_demo_is_taken_for_people(size: int) -> None:
    columns = generate(size, 1)
    names = columns.column_names
    assert len(names) > 8
    assert [name for name in names if taken(name, columns[name].to_pylist())] == []


@pytest.mark.parametrize("mean", [1.001, 1.5, 3, 10, 50])
@pytest.mark.parametrize("name", ["patient_id", "patientId", "Patient", "customer", "ID", "member_uuid", "ssn"])
def test_an_identifier_is_found_by_its_name_however_many_rows_a_person_has(name: str, mean: float) -> None:
    assert taken(name, visits(2000, mean))
    assert not taken(name, range(2000))


@pytest.mark.parametrize(("mean", "found"), [(1.001, True), (3, True), (9, True), (20, False)])
@pytest.mark.parametrize("name", ["number", "full_name", "kenn_nr"])
def test_another_name_needs_few_rows_a_person(name: str, mean: float, found: bool) -> None:
    """Missed: many rows a person under a name that says nothing. The price of taking no category for people."""
    assert taken(name, visits(2000, mean)) is found


@pytest.mark.parametrize(
    ("name", "role", "kind"),
    [
        ("born", "identifying", "date"),
        ("amount", "identifying", "decimal"),
        ("patient_id", "sensitive", "integer"),
        ("number", "insensitive", "integer"),
        ("zip", "quasi_identifier", "text"),
        ("residence", "insensitive", "text"),
    ],
)
def test_what_is_no_identifier_is_not_even_counted(name: str, role: str, kind: str) -> None:
    assert not taken(name, visits(2000, 2), role, kind)


@pytest.mark.parametrize("role", ["insensitive", "quasi_identifier"])
def test_a_published_identifier_is_told_from_a_published_category(role: str) -> None:
    assert taken("patient_id", visits(2000, 3), role)
    assert not taken("hospital_id", visits(40, 50), role)


def test_few_values_are_a_category_in_a_small_table_too() -> None:
    assert not taken("hospital_id", visits(5, 100))
    assert not taken("gender", ["m", "f"] * 6)
    assert taken("id", [1, 1, 2, 2, 3, 3])
    assert not taken("id", [])
    assert taken("key", visits(100, 2), type_="UUID")
