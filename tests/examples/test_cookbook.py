"""Every query of docs/cookbook.md, against the truth in the source, on both engines."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from release.conftest import copy_job, crossing, empty_ledger, first_runs, job, job_templates, make_job  # noqa: F401
from release.jobs import Job, MakeJob

PAGE = Path(__file__).parents[2] / "docs" / "cookbook.md"
QUERIES = dict(re.findall(r"<!-- (\w+) -->\n```sql\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
REGIONS = {"13053": "north", "13068": "north", "14850": "south", "14853": "west", "14888": "west"}
Rows = list[tuple[Any, ...]]


def source() -> dict[str, list[Any]]:
    """120 stays: ages with NULLs, dates of birth, five postcodes."""
    chance = random.Random(14)
    ages = [chance.choice([*range(18, 90), None]) for _ in range(120)]
    return {
        "age": ages,
        "born": [date(1985, 1, 1) + timedelta(days=chance.randrange(4000)) for _ in ages],
        "zip": [chance.choice(list(REGIONS)) for _ in ages],
        "diagnosis": [chance.choice(["flu", "angina", "asthma"]) for _ in ages],
    }


STAYS = source()


@pytest.fixture
def stays(make_job: MakeJob) -> Job:  # noqa: F811
    """A release of them, at labels of ten years, years and four digits, and a table of an analyst's own."""
    made = make_job(
        STAYS,
        {"age": "INTEGER"},
        table="stays",
        release="stays",
        attributes={
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 40]}, "nulls": "top"},
            "born": {"role": "quasi_identifier", "hierarchy": {"dates": ["month", "year"]}},
            "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}},
            "diagnosis": {"role": "sensitive"},
        },
        privacy=[{"k_anonymity": {"k": 1}}, {"distinct_l_diversity": {"l": 1}}],
        search={"node": [1, 2, 1]},
        versions={"joint": "none"},
    )
    made.settings["publish"]["view"] = "stays"
    made.run()
    return made


@pytest.fixture
def later(make_job: MakeJob) -> Job:  # noqa: F811
    """The same without labels, with a weight of each row, and the version after every fourth one left."""
    return without_leavers(make_job, [2, 3, 3])


def without_leavers(make_job: MakeJob, node: list[int]) -> Job:  # noqa: F811
    made = make_job(
        {"id": [f"s{i}" for i in range(120)], **STAYS},
        {"age": "INTEGER"},
        table="stays",
        release="stays",
        attributes={
            "id": "identifying",
            "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [40]}, "nulls": "top"},
            "born": {"role": "quasi_identifier", "hierarchy": {"dates": ["month", "year"]}},
            "zip": {"role": "quasi_identifier", "hierarchy": {"digits": 5}},
            "diagnosis": {"role": "sensitive"},
        },
        entity="id",
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 1}}],
        search={"node": node},
        versions={"on_refusal": "hold_back"},
    )
    made.settings["publish"] |= {"view": "stays", "weights": True}
    made.run()
    made.change(f"DELETE FROM stays WHERE id IN {tuple(f's{i}' for i in range(0, 120, 4))}")
    assert made.run().version == 2
    return made


def ask(stays: Job, name: str) -> Rows:
    """What a query gives; `regions` is the analyst's own table."""
    values = ", ".join(f"('{zip_code}', '{region}')" for zip_code, region in REGIONS.items())
    query = QUERIES[name]
    if name == "regions":
        query = query.replace("WITH matched", f"WITH regions (zip, region) AS (VALUES {values}), matched")
    return stays.query(query.rstrip().rstrip(";"))


def aged(least: int, most: int) -> int:
    return sum(age is not None and least <= age < most for age in STAYS["age"])


def surely(low: Rows, truth: int) -> None:
    assert 0 < low[0][0] <= truth


def possibly(high: Rows, truth: int) -> None:
    assert truth <= high[0][0] < len(STAYS["age"])


def about_younger(found: Rows) -> None:
    known = [age for age in STAYS["age"] if age is not None]
    expected = sum(1 if age < 30 else 0 for age in (age // 10 * 10 for age in known)) * len(STAYS["age"]) / len(known)
    assert found[0][0] == pytest.approx(expected)


def with_hidden(known: int) -> float:
    """Rows, where those whose age is hidden are as the others."""
    return known * len(STAYS["age"]) / sum(age is not None for age in STAYS["age"])


def age_groups(found: Rows) -> None:
    """The groups end where labels do."""
    expected = [(low, with_hidden(aged(low, high))) for low, high in ((0, 30), (30, 50), (50, 120))]
    assert [row[0] for row in found] == [low for low, _ in expected]
    assert [row[1] for row in found] == pytest.approx([about for _, about in expected])


def two_bounds(found: Rows) -> None:
    ill = [
        age
        for age, day, diagnosis in zip(STAYS["age"], STAYS["born"], STAYS["diagnosis"], strict=True)
        if diagnosis == "flu" and day.year == 1990
    ]
    hidden, younger = ill.count(None), with_hidden(aged(0, 30)) / len(STAYS["age"])
    assert found[0][0] == pytest.approx(sum(age is not None and age < 30 for age in ill) + hidden * younger)


def middles() -> dict[int | None, float]:
    """The middle of each age's label of ten years, and their mean where it is hidden."""
    own: dict[int | None, float] = {age: age // 10 * 10 + 4.5 for age in STAYS["age"] if age is not None}
    known = [own[age] for age in STAYS["age"] if age is not None]
    return own | {None: sum(known) / len(known)}


def mean_age(found: Rows) -> None:
    for diagnosis, shown, about in found:
        ages = [age for age, d in zip(STAYS["age"], STAYS["diagnosis"], strict=True) if d == diagnosis]
        assert shown == len(ages)
        assert about == pytest.approx(sum(middles()[age] for age in ages) / len(ages))
        known = [age for age in ages if age is not None]
        assert about == pytest.approx(sum(known) / len(known), rel=0.05)
    assert [row[0] for row in found] == sorted(set(STAYS["diagnosis"]))


def mean_age_between(found: Rows) -> None:
    for diagnosis, shown, at_least, about, below in found:
        ages = [a for a, d in zip(STAYS["age"], STAYS["diagnosis"], strict=True) if d == diagnosis and a is not None]
        assert shown == len(ages)
        assert at_least <= sum(ages) / len(ages) < below
        assert about == pytest.approx((at_least + below - 1) / 2)
    assert [row[0] for row in found] == sorted(set(STAYS["diagnosis"]))


def mean_born(found: Rows) -> None:
    days = [date(day.year, 1, 1).toordinal() + (364 + (day.year % 4 == 0)) // 2 for day in STAYS["born"]]
    assert abs(found[0][0].toordinal() - sum(days) / len(days)) <= 1


def share_by_block(found: Rows) -> None:
    assert float(found[0][0]) == pytest.approx(STAYS["diagnosis"].count("flu") / len(STAYS["diagnosis"]))


def regions(found: Rows) -> None:
    of_label: dict[str, set[str]] = {}
    for zip_code, region in REGIONS.items():
        of_label.setdefault(zip_code[:4], set()).add(region)
    expected = Counter(next(iter(of_label[z[:4]])) if len(of_label[z[:4]]) == 1 else "several" for z in STAYS["zip"])
    assert dict(found) == expected
    assert "several" in expected
    assert len(expected) > 2


def members(said: Rows) -> None:
    assert sum(row[-1] for row in said) == pytest.approx(1)
    assert {row[0] for row in said} == {f"{code[:4]}*" for code in STAYS["zip"]}
    assert all(complete is not None for _, _, complete, _ in said)


def levels(found: Rows) -> None:
    ages = Counter("*" if age is None else f"{age // 10 * 10}-{age // 10 * 10 + 9}" for age in STAYS["age"])
    assert {label: n for label, _, _, n in found} == ages
    assert [label for label, *_ in found] == sorted(ages, key=lambda label: (label == "*", label))
    assert [float(low) for _, low, _, _ in found[:-1]] == [float(label.split("-")[0]) for label, *_ in found[:-1]]
    assert (float(found[-1][1]), float(found[-1][2])) == (-math.inf, math.inf)


def columns(found: Rows) -> None:
    said = {name: (role, level, share) for name, role, level, share, _ in found}
    assert said["age"][:2] == ("quasi-identifier", "age_10")
    assert said["age"][2] == pytest.approx(STAYS["age"].count(None) / len(STAYS["age"]))
    assert said["born"][:2] == ("quasi-identifier", "born_year")
    assert all(how for *_, how in found)


def born(year: int) -> int:
    return sum(day.year == year for day in STAYS["born"])


TRUTH: dict[str, Callable[[Rows], object]] = {
    "columns": columns,
    "younger_surely": lambda found: surely(found, aged(0, 30)),
    "younger_possibly": lambda found: possibly(found, aged(0, 30)),
    "younger_about": about_younger,
    "age_groups": age_groups,
    "two_bounds": two_bounds,
    "born_surely": lambda found: surely(found, born(1990)),
    "born_possibly": lambda found: possibly(found, born(1990)),
    "mean_age": mean_age,
    "mean_age_between": mean_age_between,
    "mean_born": mean_born,
    "hidden_age": lambda found: _same(found, [(STAYS["age"].count(None),)]),
    "share_by_block": share_by_block,
    "regions": regions,
    "guarantees": lambda found: _same([row[:2] for row in found], [("k_anonymity", None),
                                                                  ("distinct_l_diversity", "diagnosis")]),
    "version": lambda found: _same([(row[0], row[2], row[3]) for row in found], [(1, 120, None)]),
    "levels": levels,
    "members": members,
}  # fmt: skip


def by_diagnosis(found: Rows) -> None:
    truth = Counter(diagnosis for i, diagnosis in enumerate(STAYS["diagnosis"]) if i % 4)
    assert [diagnosis for diagnosis, _ in found] == sorted(truth)
    assert sum(n for _, n in found) == pytest.approx(90)
    assert all(n == pytest.approx(truth[diagnosis], rel=0.2) for diagnosis, n in found)


LATER: dict[str, Callable[[Rows], object]] = {
    "now": lambda found: _same(found, [(120, 90)]),
    "now_by_diagnosis": by_diagnosis,
    "now_by_block": lambda found: _same(found, [(120, 90)]),
}


def _same(found: Rows, expected: Rows) -> None:
    assert found == expected


def test_every_query_of_the_page_is_asked() -> None:
    assert set(QUERIES) == {*TRUTH, *LATER, "mean_age_now"}
    assert PAGE.read_text("utf-8").count("```sql") == len(QUERIES)


def test_every_query_answers_as_the_source_does(stays: Job) -> None:
    for name, check in TRUTH.items():
        check(ask(stays, name))


def test_weights_count_who_is_there(later: Job) -> None:
    for name, check in LATER.items():
        check(ask(later, name))


def mean_age_now(found: Rows) -> None:
    """Each of the 90 has the middle of an age between 18 and 89, in labels of forty years."""
    there = [age for i, age in enumerate(STAYS["age"]) if i % 4 and age is not None]
    assert found[0][0] == pytest.approx(sum(there) / len(there), rel=0.1)


def test_the_mean_of_who_is_there(make_job: MakeJob) -> None:  # noqa: F811
    mean_age_now(ask(without_leavers(make_job, [1, 3, 3]), "mean_age_now"))


def test_comparing_labels_loses_a_year(stays: Job) -> None:
    """What the page warns of."""
    lost = stays.query("SELECT count(*) FROM published.stays WHERE born >= '1990-01-01' AND born < '1991-01-01'")
    assert lost[0][0] != born(1990)


@pytest.mark.parametrize("engine_name", ["duckdb"])
def test_what_an_infinite_date_is_to_python(stays: Job) -> None:
    hidden = "SELECT CAST(CAST('infinity' AS DATE) AS text)"
    with duckdb.connect(str(stays.target), read_only=True) as connection:
        assert connection.execute(hidden).fetchall() == [("infinity",)]
