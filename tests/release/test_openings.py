"""How often a run opens private files: once, and a second time where it searches and then publishes."""

from __future__ import annotations

import pytest

from benchmarks.openings import openings
from release.jobs import PEOPLE, MakeJob

TIMES_FOUR = {name: values * 4 for name, values in PEOPLE.items()}


@pytest.fixture
def engine_name() -> str:
    return "duckdb"


@pytest.mark.parametrize("on_refusal", ["hold_back", "refuse"])
def test_a_run_opens_each_private_file_once_and_one_that_publishes_at_most_twice(
    make_job: MakeJob, on_refusal: str
) -> None:
    job = make_job(TIMES_FOUR | {"name": [f"p{number}" for number in range(48)]})
    job.set(entity="name", versions={"cohort": 3, "on_refusal": on_refusal})

    def release() -> tuple[str, dict[str, int]]:
        return openings(job.folder / "qblock", "release", str(job.write()))

    status, first = release()
    assert (status, first["ledger.sqlite"], first["crosswalk.duckdb"]) == ("published", 1, 2)
    for _ in range(2):
        status, again = release()
        assert (status, again) == ("unchanged", {"crosswalk.duckdb": 1, "ledger.sqlite": 1})
    if on_refusal == "refuse":
        job.set(versions={"joint": "none"}).change("DELETE FROM people WHERE name = 'p1'")
    else:
        job.change(
            "INSERT INTO people SELECT 'm' || i, '13053', 28, ['flu', 'viral'][1 + i % 2], 'A' FROM range(6) t(i)"
        )
    status, published = release()
    assert status == "published"
    assert published.pop("ledger.sqlite") == 1
    assert all(times <= 2 for times in published.values())
