"""An adoption that is killed anywhere is none, or whole: the next run finishes it or begins it anew."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest
from release.jobs import Job, MakeJob
from release.test_adopt import SAID, adopted, insert, kept, plain_job

from faults.nursery import Nursery
from qblock.ledger.history import history
from qblock.release.verify import verify

POINTS: list[dict[str, Any]] = [
    {"step": "Adopt", "when": "before"},
    {"crosswalk": "after"},
    {"record": "adopted", "when": "before"},
    {"record": "adopted", "when": "after"},
    {"record": "adopted", "when": "committed"},
    {"step": "Adopt", "when": "after"},
]
LINES = 2
"""Random lines of the job at which it is killed, on each engine."""


def begun(make_job: MakeJob) -> Job:
    """A job that has published one version without a crosswalk."""
    job = plain_job(make_job)
    job.begin()
    return job.set(entity="id", versions={"cohort": 2})


def stopped(job: Job, point: dict[str, Any]) -> int:
    with Nursery() as nursery:
        output = job.folder.parent / f"{job.folder.name}.txt"
        pid = nursery.start(["adopt", str(job.write()), "--same-people", "--wait", "60"], output, point)
        return nursery.wait(pid)


def check_none_or_whole(job: Job) -> None:
    """What the kill has left, and that the release goes on from there with one statement in the ledger."""

    def stated() -> int:
        return [event["state"] for event in history(job.spec)["events"]].count("adopted")

    whole = bool(kept(job))
    assert stated() <= whole
    if job.engine == "postgresql":
        assert stated() == whole
    if not whole:
        assert adopted(job, wait=60).status == "adopted"
    insert(job, "n1:q:a n2:q:b")
    result = job.run(wait=60)
    assert (result.status, result.version, result.rows) == ("published", 2, 14)
    assert [SAID in note for note in result.notes].count(True) == 1
    assert (stated(), verify(job.spec).problems) == (1, [])


@pytest.mark.parametrize("point", POINTS, ids=lambda point: "-".join(map(str, point.values())))
def test_a_boundary(make_job: MakeJob, point: dict[str, Any]) -> None:
    job = begun(make_job)
    assert stopped(job, point) == -signal.SIGKILL
    check_none_or_whole(job)


@pytest.mark.parametrize("seed", range(LINES))
def test_any_line(make_job: MakeJob, tmp_path: Path, seed: int) -> None:
    job = begun(make_job)
    counted = tmp_path.parent / f"{tmp_path.name}-lines.txt"
    # The number of lines up to a refusal, in which nothing is recorded: those of a whole adoption are more.
    job.change("UPDATE people SET value = 'b' WHERE id = 'q0'")
    assert stopped(job, {"lines": str(counted)}) == 3
    job.change("UPDATE people SET value = 'a' WHERE id = 'q0'")
    line = random.Random(seed).randint(1, int(int(counted.read_text()) * 1.3))
    assert stopped(job, {"line": line}) in (-signal.SIGKILL, 0)
    check_none_or_whole(job)
