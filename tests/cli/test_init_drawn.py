"""`qblock init` looks at rows that are drawn by a digest: which they are does not depend on the order of the table."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.profiling import unique_sets
from qblock.profiling.profiles import Table
from qblock.profiling.unique_sets import Sample

DRAWN = 60
NAMES = ("patient_id", "age", "sex", "ward")
ROWS = [(1000 + i % 150, 20 + i % 50, "mf"[i % 2], None if i % 7 == 0 else i % 3) for i in range(300)]
"""Two rows of each of 150 people."""


@pytest.fixture
def drawn(warehouse: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Sample]:
    monkeypatch.setattr(unique_sets, "MOST_ROWS", DRAWN)

    def run(rows: list[Any], person: str | None, table: str) -> Sample:
        url = warehouse(table, dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True)))
        opened = open_warehouse(url, Path.cwd())
        try:
            with opened.snapshot() as session:
                looked_at = Table(session, TableName.parse(table))
                return unique_sets.sample(looked_at, len(rows), ["age", "sex", "ward"], ["patient_id"], person)
        finally:
            opened.close()

    return run


@pytest.mark.parametrize("person", [None, "patient_id"])
def test_the_order_of_the_table_makes_no_difference(drawn: Callable[..., Sample], person: str | None) -> None:
    shuffled = random.Random(7).sample(ROWS, len(ROWS))
    one, other = (
        unique_sets.unique_shares(drawn(rows, person, table), ["age", "sex", "ward"], "patient_id")
        for rows, table in ((ROWS, "people"), (shuffled, "shuffled"))
    )
    assert one == other
    assert one


def test_people_are_drawn_with_all_their_rows(drawn: Callable[..., Sample]) -> None:
    found = drawn(ROWS, "patient_id", "people")
    codes = found.codes["patient_id"].tolist()
    assert found.rows == DRAWN
    assert {codes.count(code) for code in codes} == {2}


def test_a_table_that_is_small_is_looked_at_as_a_whole(drawn: Callable[..., Sample]) -> None:
    assert drawn(ROWS[:DRAWN], "patient_id", "people").rows == DRAWN


def test_what_is_said_of_a_table_that_is_large(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unique_sets, "MOST_ROWS", DRAWN)
    url = warehouse("people", dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True)))
    ran = qblock("init", url, "people", "--directory", tmp_path / "made", "--sensitive", "none")
    assert ran.status == 0, ran.err
    assert "Unique people, by column (of 60 rows drawn by a digest): " in " ".join(ran.out.split())
