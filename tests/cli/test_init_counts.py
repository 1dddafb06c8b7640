"""`qblock init` and how many children somebody has: 0, 1-4, 5-9, >=10, as far as each stands for enough people."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.profiling.profiles import Table
from qblock.profiling.ranges import Interval, kept_edges, people_where
from qblock.spec import Suppress, load_spec
from qblock.spec.sources import Edges, HierarchySource, Ranges

EVENLY = [i % 12 for i in range(600)]
"""0 to 11, fifty rows of each."""


def proposed(
    qblock: Any, warehouse: Any, folder: Path, children: list[Any], *more: str, **columns: list[Any]
) -> HierarchySource | None:
    sex = ["fm"[i % 2] for i in range(len(children))]
    url = warehouse("people", {"children": children, "sex": sex, **columns})
    ran = qblock("init", url, "people", "--directory", folder / "made", "--sensitive", "none", *more)
    assert ran.status == 0, ran.err
    spec = load_spec(folder / "made" / "release.yaml", {"WAREHOUSE_URL": url})
    return spec.attributes["children"].hierarchy


@pytest.mark.parametrize(
    ("children", "edges"),
    [
        (EVENLY, (0, 1, 5, 10)),
        ([i % 4 for i in range(600)], (0, 1)),
        ([*[i % 7 for i in range(600)], 29], (0, 1, 5)),  # a single one is from 10 on
        ([*[1 + i % 11 for i in range(600)], 0], (0, 5, 10)),  # a single one is below 1
        ([*EVENLY, None, None], (0, 1, 5, 10)),
    ],
)
def test_ranges_of_few_people_are_joined(
    qblock: Any, warehouse: Any, tmp_path: Path, children: list[Any], edges: tuple[int, ...]
) -> None:
    form = proposed(qblock, warehouse, tmp_path, children)
    assert isinstance(form, Edges)
    assert form.edges == edges


def test_people_are_counted_not_rows(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    """Twenty rows from 10 on are of one person."""
    whose = [*range(1000, 1600), *[1] * 20]
    form = proposed(
        qblock,
        warehouse,
        tmp_path,
        [*[i % 10 for i in range(600)], *[12] * 20],
        "--entity",
        "patient_id",
        patient_id=whose,
    )
    assert isinstance(form, Edges)
    assert form.edges == (0, 1, 5)


def test_other_numbers_have_ranges_of_one_width(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    assert isinstance(proposed(qblock, warehouse, tmp_path / "a", [1 + i % 12 for i in range(600)]), Ranges)


def test_where_one_range_is_left_the_column_is_hidden(qblock: Any, warehouse: Any, tmp_path: Path) -> None:
    few = [*[0] * 597, 1, 2, 3]
    assert isinstance(proposed(qblock, warehouse, tmp_path, few), Suppress)


@given(
    children=st.lists(st.integers(0, 29), min_size=1, max_size=60),
    edges=st.sets(st.integers(1, 20), max_size=5),
    least=st.integers(1, 12),
)
def test_each_range_that_is_kept_is_large_enough(children: list[int], edges: set[int], least: int) -> None:
    given_edges = [0, *sorted(edges)]

    def people(low: int, high: int | None) -> int:
        return sum(low <= one and (high is None or one < high) for one in children)

    ends: list[int | None] = [*given_edges, None]
    counted: dict[Interval, int] = {(low, high): people(low, high) for low in given_edges for high in ends}
    kept = kept_edges(given_edges, counted, least)
    assert kept[0] == 0
    assert set(kept) <= set(given_edges)
    sizes = [people(low, high) for low, high in zip(kept, [*kept[1:], None], strict=True)]
    assert len(kept) == 1 or min(sizes) >= least
    # What is left out would have begun too small a range, or left too small a one below it.
    for edge in set(given_edges) - set(kept):
        low = max(one for one in kept if one < edge)
        high = min((one for one in kept if one > edge), default=None)
        assert min(people(low, edge), people(edge, high)) < least or any(
            people(one, high) < least for one in given_edges if one > edge and (high is None or one < high)
        )


@pytest.mark.parametrize("people", [(), ("who",), ("who", "card")])
def test_people_are_counted_as_a_loop_over_rows_counts_them(warehouse: Any, people: tuple[str, ...]) -> None:
    draw = random.Random(31)
    columns: dict[str, list[Any]] = {
        "age": [draw.choice([None, *range(90)]) for _ in range(300)],
        "who": [draw.choice([None, *range(40)]) for _ in range(300)],
        "card": [draw.choice(["", None, *"abcdefghijklm"]) for _ in range(300)],
    }
    ages = columns["age"]
    opened = open_warehouse(warehouse("people", columns), Path.cwd())
    with closing(opened), opened.snapshot() as session:
        table = Table(session, TableName.parse("people"))
        age = table.value(table.columns["age"])
        counted = people_where(table, {"old": age >= 80, "young": age < 3, "nobody": age > 99}, people)
    for name, low, high in (("old", 80, 99), ("young", 0, 2), ("nobody", 100, 999)):
        rows = [i for i, value in enumerate(ages) if value is not None and low <= value <= high]
        persons = [{columns[column][i] for i in rows} - {None} for column in people]
        assert counted[name] == min(map(len, persons), default=len(rows))
