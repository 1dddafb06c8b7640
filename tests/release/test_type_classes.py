"""Column types that write values alike are one: the job goes on without a word, and compares with what it showed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.release.apply import plan
from qblock.release.retype import retype, type_note
from qblock.release.verify import verify
from release.crossing import CROSSING, HARMLESS, alter, at, events, two
from release.jobs import Job, MakeJob
from release.test_waiting import ATTRIBUTES, HOLD_BACK

pytestmark = [pytest.mark.either_engine, pytest.mark.handed_on]

LETTERS, SHARES = two("x", "y"), two("0.5", "0.1")
MOMENTS = two("2026-01-01 10:00:00", "2026-01-01 11:00:00")
ALIKE = [
    ("s", "INTEGER", "BIGINT", {}),
    ("s", "BIGINT", "SMALLINT", {}),
    ("person", "INTEGER", "BIGINT", {}),
    ("age", "INTEGER", "BIGINT", {}),
    ("s", "DECIMAL(5,2)", "DECIMAL(10,4)", SHARES),
    ("s", "DECIMAL(2,2)", "DECIMAL(10,4)", SHARES),
    ("age", "DECIMAL(10,4)", "DECIMAL(5,2)", {}),
    ("s", "VARCHAR(9)", "TEXT", LETTERS),
    ("person", "VARCHAR(9)", "TEXT", {}),
    ("s", "TIMESTAMP(0)", "TIMESTAMP", MOMENTS),
]
DUCKDB = {"TIMESTAMP(0)": "TIMESTAMP_S"}


@pytest.mark.each_engine
@pytest.mark.parametrize(
    ("column", "before", "now", "columns"), [pytest.param(*c, id=f"{c[0]} {c[1]} to {c[2]}") for c in ALIKE]
)
def test_another_type_of_the_same_class_is_no_other_data(
    crossing: Any, engine_name: str, column: str, before: str, now: str, columns: Any
) -> None:
    before = DUCKDB.get(before, before) if engine_name == "duckdb" else before
    job = crossing(columns, {column: before})
    assert job.begin().version == 1
    alter(job, column, now)
    assert type_note(plan(job.spec)) is None
    assert retype(job.spec).status == "unchanged"
    with pytest.raises(Refused, match="4 of 4 joint cells fail"):
        at(job, CROSSING).run()
    assert at(job, HARMLESS).run().version == 2
    assert events(job, "retyped") == []
    assert verify(job.spec).problems == ()


def test_a_float_of_another_width_writes_other_values(crossing: Any) -> None:
    job = crossing(SHARES, {"s": "REAL"})
    job.begin()
    alter(job, "s", "DOUBLE PRECISION")
    with pytest.raises(Refused, match=r"column s is of type .* now, and was of type .*ledger retype"):
        at(job, HARMLESS).run()
    note = type_note(plan(job.spec))
    assert note is not None
    assert "column s was of type" in note


def test_a_type_that_cannot_hold_what_people_were_first_published_with_is_refused(crossing: Any) -> None:
    job = crossing({"age": [21, 22, 21, 22, 31, 32, 31, 3_000_000_000]}, {"age": "BIGINT"})
    at(job, HARMLESS).run()
    job.change("UPDATE people SET age = 32 WHERE person = 7")
    alter(job, "age", "INTEGER")
    with pytest.raises(Refused, match=r"column age has become .*, and values that were published are not") as raised:
        job.run()
    assert "3000000000" not in str(raised.value)
    alter(job, "age", "BIGINT")
    assert job.run().status in ("unchanged", "published")


def lagging(make_job: MakeJob, large: int) -> Job:
    """Sixteen people in one block, four of whom have a large number, which is published as it is."""
    people = {
        "id": [f"p{i}" for i in range(16)],
        "block": ["q"] * 16,
        "value": ["a", "b"] * 8,
        "paid": [large if i < 4 else 7 for i in range(16)],
    }
    job = make_job(
        people,
        {"paid": "BIGINT"},
        attributes={**ATTRIBUTES, "paid": "insensitive"},
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
        entity="id",
        versions=HOLD_BACK,
        search={"node": [1]},
    )
    assert job.run().version == 1
    return job


def test_a_release_that_lags_goes_on_with_another_type(make_job: MakeJob) -> None:
    job = lagging(make_job, 100)
    before = Counter(job.published())
    job.change("DELETE FROM people WHERE id IN ('p0', 'p1', 'p2')")
    for type_ in ("INTEGER", "SMALLINT", "BIGINT"):
        alter(job, "paid", type_)
        assert job.run().waiting == {"leavers": 3}
        assert Counter(job.published()) == before
    assert not verify(job.spec).problems


def test_a_release_that_lags_keeps_a_type_that_holds_whom_it_still_shows(make_job: MakeJob) -> None:
    job = lagging(make_job, 10**10)
    job.change("DELETE FROM people WHERE id IN ('p0', 'p1', 'p2')")
    job.change("UPDATE people SET paid = 7")
    alter(job, "paid", "INTEGER")
    with pytest.raises(Refused, match=r"column paid has become .*, and values that were published are not") as raised:
        job.run()
    assert "10000000000" not in str(raised.value)
    alter(job, "paid", "BIGINT")
    assert job.run().waiting == {"leavers": 3, "changes": 1}
