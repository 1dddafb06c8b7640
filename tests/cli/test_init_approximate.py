"""`qblock init` counts values of a large table approximately, where the exact number would decide nothing else."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from qblock.api import propose_spec
from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.profiling import people, profiles
from qblock.profiling.columns import Proposal, propose
from qblock.profiling.people import Candidate

ROWS = 12_000
NAMES = ("visit_id", "patient_id", "note", "zip", "amount", "ward")
SHAPES = (2, 3, 19, 21, 109, 111, 990, 1010, 1190, 1210, 5990, 6010, 11_390, 11_410, 11_999, 12_000)
"""Numbers of values on both sides of what decides something among so many rows."""
KINDS = {"integer": int, "text": lambda i: f"value {i}", "float": lambda i: i / 8}


def table(draw: random.Random) -> dict[str, list[Any]]:
    """A column of each name, of any kind and any number of values."""
    found = {}
    for name in NAMES:
        of, shape = KINDS[draw.choice(list(KINDS))], draw.choice(SHAPES)
        numbers = [i % shape for i in range(ROWS)]
        draw.shuffle(numbers)
        found[name] = [None if draw.random() < 0.01 and name == "zip" else of(number) for number in numbers]
    found["seen"] = [datetime(2024, 1, 1) + timedelta(minutes=draw.randrange(4_000_000)) for _ in range(ROWS)]
    return found


def proposed(url: str) -> tuple[list[Proposal], tuple[Candidate, ...]]:
    opened = open_warehouse(url, Path.cwd())
    try:
        with opened.snapshot() as session:
            table = profiles.Table(session, TableName.parse("visits"))
            rows, found = profiles.profile(table)
            made = propose(found, rows)
            return made, people.find(made, rows, table).candidates
    finally:
        opened.close()


@pytest.mark.parametrize("seed", range(8))
def test_what_is_proposed_is_what_exact_counts_propose(
    warehouse: Any, engine_name: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    url = warehouse("visits", table(random.Random(seed)))
    exact, whose = proposed(url)
    monkeypatch.setattr(profiles, "LARGE", 0)
    made, whose_now = proposed(url)
    assert [(p.role, p.entry) for p in made] == [(p.role, p.entry) for p in exact]
    assert whose_now == whose
    assert not any(p.profile.approximate for p in exact)
    approximate = [p.profile for p in made if p.profile.approximate]
    # A time that differs from row to row is neither the name of a row nor text.
    assert ("seen" in [p.column.name for p in approximate]) == (engine_name == "duckdb")
    for p in made:
        true = next(one.profile.distinct for one in exact if one.profile.column == p.profile.column)
        close = true / profiles.SURE < p.profile.distinct < true * profiles.SURE
        assert close if p.profile.approximate else p.profile.distinct == true


def test_an_approximate_number_is_said_to_be_one(
    qblock: Any, warehouse: Any, engine_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles, "LARGE", 0)
    url = warehouse("visits", table(random.Random(1)))
    monkeypatch.setenv("WAREHOUSE_URL", url)
    options = ("--sensitive", "none", "--entity", "none", "--directory", tmp_path / "made", "--force")
    ran = qblock("init", url, "visits", *options, "--json")
    assert ran.status == 0, ran.err
    said = {column["name"]: column["approximate"] for column in ran.json["columns"]}
    assert said["seen"] is (engine_name == "duckdb")
    proposed = propose_spec(url, "visits", tmp_path / "made", force=True, entity="none", sensitive=["none"])
    values = {column.name: column.values for column in proposed.columns}
    assert ("~" in values["seen"]) is (engine_name == "duckdb")
