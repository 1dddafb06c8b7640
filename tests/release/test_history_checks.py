"""Rows that are no longer true, and times at which rows were stored."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from qblock.checks.history import STORED, Superseded, stored_times, superseded
from qblock.releases import Release
from qblock.search.run import open_task
from release.jobs import Job, MakeJob

pytestmark = pytest.mark.each_engine
ROWS = 60
ATTRIBUTES = {"age": {"role": "quasi_identifier", "hierarchy": "suppress"}, "disease": "sensitive"}


def states() -> dict[str, list[Any]]:
    """Every third row is a state that is over."""
    over = [i % 3 == 0 for i in range(ROWS)]
    return {
        "person": [f"p{i // 2}" for i in range(ROWS)],
        "age": [20 + i // 3 % 4 for i in range(ROWS)],
        "disease": ["flu", "cold", "gout"] * (ROWS // 3),
        "valid_from": [date(2020, 1, 1 + i % 20) for i in range(ROWS)],
        "valid_to": [date(2021, 1, 1) if ended else date(9999, 12, 31) for ended in over],
        "is_current": [not ended for ended in over],
        "deleted_flag": ["Y" if i < 4 else "N" for i in range(ROWS)],
    }


def job_of(make_job: MakeJob, columns: dict[str, list[Any]], **settings: Any) -> Job:
    types = {"valid_from": "DATE", "valid_to": "DATE", "is_current": "BOOLEAN", "loaded_at": "TIMESTAMP"}
    known = {"attributes": ATTRIBUTES, "privacy": [{"k_anonymity": {"k": 2}}], "search": {"node": [0]}}
    return make_job(columns, {n: t for n, t in types.items() if n in columns}, **{**known, **settings})


def told(job: Job) -> dict[str, int]:
    with open_task(job.spec) as task:
        return {ended.column: ended.rows for ended in superseded(task)}


@pytest.mark.parametrize("end", [None, date(9999, 12, 31)])
def test_rows_that_are_over_are_counted(make_job: MakeJob, end: date | None) -> None:
    columns = states()
    over = columns["is_current"].count(False)
    columns["valid_to"] = [end if last.year == 9999 else last for last in columns["valid_to"]]
    job = job_of(make_job, columns)
    assert told(job) == {"valid_to": over, "is_current": over, "deleted_flag": 4}
    # What is proposed leaves the others, and nothing to say.
    with open_task(job.spec) as task:
        current = [ended.current for ended in superseded(task)]
    job.settings["source"]["where"] = " AND ".join(current)
    with open_task(job.spec) as task:
        assert task.source.rows == ROWS - over - 2
        assert list(superseded(task)) == []


def test_what_the_condition_looks_at_is_no_finding(make_job: MakeJob) -> None:
    job = job_of(make_job, states())
    job.settings["source"]["where"] = "valid_to >= '2200-01-01' AND is_current"
    with open_task(job.spec) as task:
        current = "(valid_to >= '2200-01-01' AND is_current) AND deleted_flag = 'N'"
        assert list(superseded(task)) == [Superseded("deleted_flag", 2, current)]
    # The remedy can be pasted: what the condition said is in it.
    job.settings["source"]["where"] = current
    with open_task(job.spec) as task:
        assert not list(superseded(task))
    job.settings["source"]["where"] = "is_current"
    # All that are left are true.
    assert set(told(job)) == {"deleted_flag"}
    job.settings["source"]["where"] = "valid_to >= '2000-01-01'"
    # Of every row, by somebody who knows that column.
    assert told(job) == {"is_current": ROWS // 3, "deleted_flag": 4}


@pytest.mark.parametrize("said", ["an end of something else", "all over", "numbers"])
def test_it_is_silent_of_what_is_no_history(make_job: MakeJob, said: str) -> None:
    columns = {name: values for name, values in states().items() if name not in ("is_current", "deleted_flag")}
    if said == "an end of something else":  # a pass that is valid until a day
        del columns["valid_from"]
    elif said == "all over":
        columns["valid_to"] = [date(2021, 1, 1)] * ROWS
    else:
        columns["valid_to"] = list(range(ROWS))
    types = {"valid_from": "DATE"} | ({} if said == "numbers" else {"valid_to": "DATE"})
    known: dict[str, Any] = {"attributes": ATTRIBUTES, "privacy": [{"k_anonymity": {"k": 2}}], "search": {"node": [0]}}
    assert told(make_job(columns, {n: t for n, t in types.items() if n in columns}, **known)) == {}


def test_the_time_of_storing_is_told_by_name_and_kind(make_job: MakeJob) -> None:
    columns = states() | {"loaded_at": [datetime(2026, 1, 1) + timedelta(hours=i % 5) for i in range(ROWS)]}
    loaded = {"role": "quasi_identifier", "hierarchy": "suppress"}
    job = job_of(make_job, columns, attributes={**ATTRIBUTES, "loaded_at": loaded}, search={"node": [0, 1]})
    with open_task(job.spec) as task:
        assert stored_times(task) == ["loaded_at"]
    remedies = {f.columns[0]: f.remedy for f in Release(job.spec).check().checks if f.check == "history"}
    assert remedies["loaded_at"] == "attributes: {loaded_at: identifying}"
    assert remedies["valid_to"] == "source: {where: \"(valid_to IS NULL OR valid_to >= '2200-01-01')\"}"
    # A day of something else; and the same name, of whole numbers.
    job.change("ALTER TABLE people ADD COLUMN created_at INTEGER DEFAULT 1")
    job.set(attributes={**ATTRIBUTES, "valid_from": loaded, "created_at": loaded}, search={"node": [0, 1, 1]})
    with open_task(job.spec) as task:
        assert stored_times(task) == []


@pytest.mark.parametrize(
    "name", ["loaded_at", "created_at", "updated_at", "_etl_ts", "dw_insert_date", "row_updated_on"]
)
def test_names_of_times_of_storing(name: str) -> None:
    assert STORED.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["admitted_at", "birth_date", "visit_date", "created_by", "load", "update_count", "at"]
)
def test_names_of_other_times(name: str) -> None:
    assert not STORED.fullmatch(name)
