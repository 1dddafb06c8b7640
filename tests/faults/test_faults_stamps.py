"""A run that is killed between ledger, crosswalk and target: the next one knows what is whose, and goes on."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from release.jobs import ATTRIBUTES, Job, MakeJob, make_job  # noqa: F401
from release.state import crosswalk

from faults.nursery import Nursery
from qblock.ledger.history import history
from qblock.release.verify import verify

pytestmark = pytest.mark.either_engine

POINTS: list[dict[str, Any]] = [
    {"begun": "before"},
    {"begun": "after"},
    {"crosswalk": "before"},
    {"crosswalk": "after"},
    {"step": "CheckEarlierVersions", "when": "after"},
    {"record": "staged", "when": "before"},
    {"record": "staged", "when": "committed"},
    {"record": "checked", "when": "committed"},
]


def check_known(job: Job) -> None:
    """What readers see is verified, and the crosswalk holds what was shown and nothing else."""
    assert verify(job.spec).problems == ()
    shown = {event["version"]: event["stamp"] for event in history(job.spec)["events"] if event["state"] == "published"}
    assert crosswalk(job) == sorted(shown.items())


def test_a_kill_between_stamp_and_crosswalk_and_target_does_not_stick(make_job: MakeJob) -> None:  # noqa: F811
    job = make_job(attributes=ATTRIBUTES, entity="name", versions={"keep": 2})
    job.run()
    points = POINTS + ([{"rename": "before"}, {"rename": "after"}] if job.engine == "duckdb" else [])
    with Nursery() as nursery:

        def kill(point: dict[str, Any]) -> None:
            command = ["release", str(job.write()), "--force", "--json"]
            output = job.folder / "output.txt"
            status = nursery.wait(nursery.start(command, output, point))
            assert status == -signal.SIGKILL, (point, output.read_text())

        for point in points:
            kill(point)
            if point != {"rename": "after"}:  # which the next run records
                assert verify(job.spec).problems == (), point
            assert job.run(force=True).status == "published", point
            check_known(job)
        # One killed run after the other, each with a stamp of its own for the same version.
        for point in points[1:5]:
            kill(point)
        assert job.run(force=True).status == "published"
        check_known(job)
