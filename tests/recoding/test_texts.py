"""How neighbours read that are published as one label."""

from __future__ import annotations

import itertools

import pytest

from qblock.hierarchy import Hierarchy, ranges
from qblock.recoding import Ladder
from qblock.recoding.ladder import joined, neighbours


@pytest.mark.parametrize(
    ("first", "last", "read"),
    [
        ("15-19", "25-29", "15-29"),
        ("0-4", "5-9", "0-9"),
        ("15", "19", "15-19"),
        ("-3", "5", "-3 to 5"),
        ("-3 to -1", "2 to 5", "-3 to 5"),
        ("[0, 5)", "[10, 15)", "[0, 15)"),
        ("[1.5, 2)", "[3, 4)", "[1.5, 4)"),
        ("1.5", "2.5", "1.5 to 2.5"),
        ("1-5", "7", "1-5 to 7"),
        ("2023", "2024", "2023-2024"),
        ("2024-01", "2024-03", "2024-01 to 2024-03"),
        ("2023-11", "2024-02", "2023-11 to 2024-02"),
        ("2024-W01", "2024-W03", "2024-W01 to 2024-W03"),
        ("2024-01-05", "2024-01-25", "2024-01-05 to 2024-01-25"),
        ("<15", "20-24", "<25"),
        ("<-5", "-5 to -1", "<0"),
        ("<1.5", "[1.5, 2)", "<2"),
        ("<15", "15", "<16"),
        ("80-84", ">=90", ">=80"),
        ("[1.5, 2)", ">=2", ">=1.5"),
        ("<15", ">=90", "<15 to >=90"),
        ("<2024-01", "2024-01", "<2024-01 to 2024-01"),
    ],
)
def test_neighbours(first: str, last: str, read: str) -> None:
    assert joined(first, last) == read


@pytest.mark.parametrize(
    ("kind", "first", "last", "read"),
    [
        ("integer", "30", "31", "[30, 32)"),
        ("integer", "-3", "5", "[-3, 6)"),
        ("decimal", "30", "31", "[30, 31]"),
        ("float", "1.5", "2.5", "[1.5, 2.5]"),
        ("integer", "[0, 5)", "[10, 15)", "[0, 15)"),
        ("integer", "[90, 95)", "[95, 100]", "[90, 100]"),
        ("integer", "<15", "[15, 20)", "<20"),
        ("integer", "[80, 85)", ">=90", ">=80"),
    ],
)
def test_neighbours_where_ranges_are_half_open(kind: str, first: str, last: str, read: str) -> None:
    assert neighbours(first, last, kind) == read


@pytest.mark.parametrize(
    ("half_open", "read"), [(True, {"[1, 3)", "[6, 8)", "[5, 10)"}), (False, {"1-2", "6-7", "5-9"})]
)
def test_a_map_writes_values_as_its_hierarchy_writes_ranges(half_open: bool, read: set[str]) -> None:
    ages = ["1", "2", "3", "6", "7", "8"]
    hierarchy = ranges("age", ages, [5], labels="half_open" if half_open else "plain")
    ladder = Ladder(hierarchy, "integer", half_open=half_open)
    low, high = (ladder.plain(1, int(hierarchy.codes[1][place])) for place in (0, 3))
    groups = [ladder.group(0, ladder.members(label, 0)[:2], label) for label in (low, high)]
    assert {ladder.text(one) for one in [*groups, high]} == read


def test_neighbouring_months_never_read_like_a_month() -> None:
    days = [f"{year}-{month:02}-05" for year in (2023, 2024) for month in (1, 2, 3, 11)]
    months = [day[:7] for day in days]
    ladder = Ladder(Hierarchy("day", ("day", "month", "all"), (tuple(days), tuple(months), ("*",) * 8)), "date")
    top = ladder.plain(2, 0)
    read = {}
    for i, j in itertools.combinations(range(len(days) + 1), 2):
        group = ladder.group(1, ladder.members(top, 1)[i:j], top)
        read[i, j] = ladder.text(group)
    assert len(set(read.values())) == len(read)
