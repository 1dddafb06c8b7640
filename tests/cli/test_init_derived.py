"""`qblock init` and columns that are made from others: named, and left out."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.profiling import derived
from qblock.profiling.columns import propose
from qblock.profiling.profiles import Table, profile

pytestmark = pytest.mark.either_engine
ROWS = 400


def left_out(url: str, people: int = ROWS) -> dict[str, str]:
    """Of each column that is left out as made from another one, the reason."""
    opened = open_warehouse(url, Path())
    try:
        with opened.snapshot() as session:
            table = Table(session, TableName(None, "people"))
            rows, profiles = profile(table)
            before = propose(profiles, rows)
            after = derived.without_derived(before, rows, min(rows, people), table)
    finally:
        opened.close()
    return {
        new.profile.column.name: new.reason
        for old, new in zip(before, after, strict=True)
        if new.role == "left out" != old.role
    }


def test_copies_recodes_squares_and_logarithms(warehouse: Any) -> None:
    draw = random.Random(11)
    arms = [draw.randrange(4) for _ in range(ROWS)]
    pay = [draw.randrange(300, 9000) / 10 for _ in range(ROWS)]
    years = [draw.randrange(50) if i % 20 else None for i in range(ROWS)]
    ounces = [draw.randrange(1000, 20_000) / 8 for _ in range(ROWS)]
    columns: dict[str, list[Any]] = {
        "age": [20 + draw.randrange(50) for _ in range(ROWS)],
        "zip": [f"{10_000 + draw.randrange(40)}" for _ in range(ROWS)],
        "arms": arms,
        "treat": [int(arm > 0) for arm in arms],
        "armname": [["none", "one", "two", "both"][arm] for arm in arms],
        "pay": pay,
        "lpay": [math.log(one) for one in pay],
        "log10pay": [round(math.log10(one), 5) for one in pay],
        "years": years,
        "yearssq": [None if one is None else one * one for one in years],
        "reading": ounces,
        "reading_in_pounds": [one / 16 for one in ounces],
        "noise": [draw.random() for _ in range(ROWS)],
        "flag": [draw.random() < 0.5 for _ in range(ROWS)],
    }
    columns["age_sq100"] = [one * one / 100 for one in columns["age"]]
    columns["agegroup10"] = [one // 10 for one in columns["age"]]
    columns["city"] = [f"city {int(code) % 7}" for code in columns["zip"]]
    columns["not_flag"] = [not one for one in columns["flag"]]
    assert left_out(warehouse("people", columns)) == {
        "treat": "made from arms",
        "armname": "a copy of arms",
        "lpay": "the logarithm of pay",
        "log10pay": "the logarithm of pay",
        "yearssq": "the square of years",
        "age_sq100": "the square of age",
        "reading_in_pounds": "a multiple of reading",
        "not_flag": "a copy of flag",
    }


def decides(one: list[Any], other: list[Any]) -> bool:
    values = defaultdict(set)
    for a, b in zip(one, other, strict=True):
        values[a].add(b)
    return all(len(reasons) == 1 for reasons in values.values())


@pytest.mark.parametrize("few", [10_000, 40])
@pytest.mark.parametrize("seed", range(8))
def test_what_decides_what_is_what_a_loop_over_rows_tells(
    warehouse: Any, monkeypatch: pytest.MonkeyPatch, seed: int, few: int
) -> None:
    """NULL is a value; what would be so by chance, or is a copy of what comes first, is not reported. few: rows that
    are looked at before all are, which change nothing."""
    monkeypatch.setattr(derived, "FEW_ROWS", few)
    draw = random.Random(seed)
    columns: dict[str, list[Any]] = {
        f"m{i}": [draw.choice([None, *range(draw.randrange(11, 15))]) for _ in range(ROWS)] for i in range(3)
    }
    for i in range(5):
        source = columns[draw.choice(list(columns))]
        recode = {value: draw.choice([None, 1, 2, 3]) for value in set(source)}
        columns[f"r{i}"] = [recode[value] if draw.random() < 0.999 or i % 2 else 4 for value in source]
    columns["rare"] = [int(i == 7) for i in range(ROWS)]
    reasons = left_out(warehouse("people", columns, dict.fromkeys(columns, "INTEGER")))
    for name, reason in reasons.items():
        source = columns[reason.split()[-1]]
        assert decides(source, columns[name])
        assert reason.startswith("a copy") == decides(columns[name], source)
    for name, values in columns.items():
        others = [other for other in columns if other != name and decides(columns[other], values)]
        constant = len(set(values)) == 1
        by_chance = (1 - max(Counter(values).values()) / ROWS) * (ROWS - 16) < derived.SURE
        copies = all(decides(values, columns[other]) for other in others)
        if others and not (constant or by_chance or copies):
            assert name in reasons
        if not others:
            assert name not in reasons


def test_values_of_few_people_are_no_recode(warehouse: Any) -> None:
    """Each value of the first column is one person's, whose rows are all alike."""
    draw = random.Random(2)
    person = [i // 4 for i in range(ROWS)]
    born, smell = [draw.randrange(10**5) for _ in range(ROWS)], [draw.randrange(5) for _ in range(ROWS)]
    url = warehouse("people", {"first": [born[i] for i in person], "second": [smell[i] for i in person]})
    assert left_out(url, people=len(set(person))) == {}
    assert left_out(url) == {"second": "made from first"}


def test_in_a_small_table_nothing_is_told(warehouse: Any) -> None:
    columns = {"first": [i % 20 for i in range(90)], "second": [i % 10 for i in range(90)]}
    assert left_out(warehouse("people", columns)) == {}


def test_what_is_made_from_others_is_shown_and_may_be_named(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(5)
    age = [20 + draw.randrange(40) for _ in range(ROWS)]
    wage = [draw.randrange(500, 4000) for _ in range(ROWS)]
    url = warehouse("people", {"age": age, "wage": wage, "lwage": [math.log(one) for one in wage]})
    monkeypatch.setenv("WAREHOUSE_URL", url)
    shown = qblock("init", url, "people", "--directory", tmp_path / "a", "--sensitive", "wage")
    assert "left out lwage (the logarithm of wage)" in " ".join(shown.out.split())
    ran = qblock("init", url, "people", "--directory", tmp_path / "b", "--sensitive", "lwage", "--json")
    roles = {column["name"]: column["role"] for column in ran.json["columns"]}
    assert (roles["wage"], roles["lwage"]) == ("left out", "sensitive")
