"""A run that finds everything as the run before left it scans the source once, and codes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from qblock.ledger.history import history
from qblock.release.erase import erase
from release.jobs import Job, MakeJob
from release.test_steady_job import SIXTEEN, change, delete
from release.test_waiting import events, insert, people_job, shown

pytestmark = pytest.mark.either_engine


def one_block(make_job: MakeJob, tmp_path: Path) -> Job:
    """The job over sixteen people of one block, in batches of three."""
    job = people_job(make_job, SIXTEEN, on_refusal="hold_back", cohort=3)
    block = {"role": "quasi_identifier", "hierarchy": {"file": "block.csv"}}
    job.set(attributes={"block": block, "value": "sensitive"}, search={"node": [0]})
    (tmp_path / "block.csv").write_text("block,all\nq,*\n")
    return job


def waiting(make_job: MakeJob, tmp_path: Path) -> Job:
    """A release in which somebody waits, left and changed, after a run that found so."""
    job = one_block(make_job, tmp_path)
    job.begin(week)
    return job


def week(job: Job) -> None:
    insert(job, "t:q:a")
    delete(job, "p00")
    change(job, "c", "p01")
    job.run()


def test_what_the_run_before_came_to_is_the_result(make_job: MakeJob, tmp_path: Path, opened: list[str]) -> None:
    job = waiting(make_job, tmp_path)
    opened.clear()
    said: list[str] = []
    first = job.run(log=said.append)
    assert not opened
    assert (first.status, first.version, first.rows) == ("unchanged", 1, 16)
    assert first.waiting == {"newcomers": 1, "leavers": 1, "changes": 1}
    assert "version 1 stays: 1 newcomer in 1 block, 1 leaver and 1 change wait (lag 12 % of the rows" in said[-1]
    full = job.run(force=True)
    assert opened
    same = ("node", "rows", "suppressed", "view", "digest", "tightest", "choice", "protected", "joint", "waiting")
    assert {name: getattr(first, name) for name in same} == {name: getattr(full, name) for name in same}
    assert len(events(job, "waiting")) == 2
    assert [event["version"] for event in history(job.spec)["events"] if event["state"] == "published"] == [1, 2]


def test_the_second_run_after_a_version_codes_nothing(make_job: MakeJob, tmp_path: Path, opened: list[str]) -> None:
    job = waiting(make_job, tmp_path)
    for name in ("u", "v"):  # with whom somebody waits
        insert(job, f"{name}:q:{name}")
    assert (job.run().status, job.run().status) == ("published", "unchanged")
    opened.clear()
    again = job.run()
    assert not opened
    assert (again.status, again.version, again.rows) == ("unchanged", 2, 19)


def remove_view(job: Job) -> None:
    if job.engine == "duckdb":
        job.target.unlink()
    else:
        job.change("DROP VIEW published.people")


CHANGES: dict[str, Callable[[Job], object]] = {
    "a newcomer": lambda job: insert(job, "u:q:b"),
    "a leaver": lambda job: delete(job, "p02"),
    "another value": lambda job: change(job, "d", "p03"),
    "a value that changes back": lambda job: change(job, "b", "p01"),
    "another block": lambda job: job.change("UPDATE people SET block = NULL WHERE id = 't'"),
    "the hierarchy": lambda job: (job.folder / "block.csv").write_text("block,all\nq,*\nr,*\n"),
    "the spec": lambda job: job.set(privacy=[{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2}}]),
    "somebody withdraws": lambda job: erase(job.spec, ["p04"]),
    "the view": remove_view,
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_changes_is_looked_at(make_job: MakeJob, tmp_path: Path, opened: list[str], what: str) -> None:
    job = waiting(make_job, tmp_path)
    before = shown(job)
    CHANGES[what](job)
    opened.clear()
    if what == "another block":
        with pytest.raises(Exception, match="NULL"):
            job.run()
    else:
        job.run()
        assert shown(job) == before
    assert opened
