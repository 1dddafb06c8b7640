"""The first run after a version: the run that published says what it comes to, where it finds what that one found."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qblock.ledger.stores import store_of
from qblock.release import apply
from qblock.release.verify import verify
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.pending.state import State, read_state
from release.jobs import Job, MakeJob
from release.test_concerned import churn, in_blocks, leave_and_come, of_cohorts
from release.test_steady_job import SIXTEEN, change, delete
from release.test_unchanged import CHANGES, one_block, week
from release.test_waiting import HOLD_BACK, events, insert, people_job, shown

pytestmark = pytest.mark.either_engine
TIMED = ("run", "seconds", "ledger_head", "lag", "search")


def published(make_job: MakeJob, tmp_path: Path) -> Job:
    """A release in which somebody waits, left and changed, after a run that published and left nothing to be tried."""
    job = one_block(make_job, tmp_path)
    job.begin()
    week(job)
    insert(job, "v:q:a w:q:b")
    assert job.run().status == "published"
    insert(job, "t2:q:a")
    job.run()
    insert(job, "v2:q:a w2:q:b")
    assert job.run().status == "published"
    return job


def said(job: Job, result: Any) -> tuple[dict[str, Any], State, Any]:
    """What a run comes to and leaves behind, without times."""
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        state = read_state(crosswalk, job.spec.release)
    assert state is not None
    outcome = {name: value for name, value in result.to_dict().items() if name not in TIMED}
    waited = [event["detail"] for event in events(job, "waiting")[-1:]]
    lag = {name: n for name, n in result.to_dict()["lag"].items() if name != "oldest_seconds"}
    return outcome | {"lag": lag}, replace(state, moments=dict.fromkeys(state.moments, "")), waited


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize(("begin", "churned"), [(in_blocks, churn), (of_cohorts, leave_and_come)])
def test_it_is_told_what_it_would_come_to_in_full(
    make_job: MakeJob,
    tmp_path_factory: pytest.TempPathFactory,
    opened: list[str],
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[MakeJob], Job],
    churned: Callable[[Job, random.Random, int], None],
) -> None:
    """Result, notes, who waits, the private ledger, and the state from which later runs go on."""
    job, rng, told = begin(make_job), random.Random(5), Counter[bool]()
    job.begin()
    for number in range(5):
        churned(job, rng, number)
        if job.run().status != "published":
            continue
        kept = tmp_path_factory.mktemp("kept") / "job"
        shutil.copytree(job.folder, kept)
        with monkeypatch.context() as patch:
            patch.setattr(apply, "is_unchanged", lambda run: False)
            in_full = said(job, job.run())
        shutil.rmtree(job.folder)
        shutil.copytree(kept, job.folder)
        opened.clear()
        first = job.run()
        told[not opened] += 1
        assert said(job, first) == in_full
        if first.status == "unchanged":
            opened.clear()
            assert job.run().status == "unchanged"
            assert not opened
    assert told[True] > 1
    assert not verify(job.spec).problems


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_changed_since_the_version_is_looked_at(
    make_job: MakeJob,
    tmp_path: Path,
    opened: list[str],
    what: str,
) -> None:
    job = published(make_job, tmp_path)
    before = shown(job)
    CHANGES[what](job)
    opened.clear()
    job.run()
    assert shown(job) == before
    assert opened


def test_without_a_change_nothing_is_coded(make_job: MakeJob, tmp_path: Path, opened: list[str]) -> None:
    job = published(make_job, tmp_path)
    opened.clear()
    assert (job.run().status, opened) == ("unchanged", [])


def test_what_is_left_to_be_tried_is_tried(make_job: MakeJob) -> None:
    """Leavers and changed values of one cell take turns: the run after the version publishes the others."""
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.begin()
    delete(job, "p00", "p01", "p02", "p03")
    change(job, "c", "p04", "p05")
    change(job, "d", "p06", "p07")
    assert [job.run().status for _ in range(3)] == ["published", "published", "unchanged"]
    assert Counter(shown(job).split()) == {"q:a": 4, "q:b": 4, "q:c": 2, "q:d": 2}


def test_whoever_waits_for_a_cohort_is_shown_though_nothing_changes(make_job: MakeJob) -> None:
    """Newcomers are shown because time goes by, which no fingerprint of the source tells."""
    job = of_cohorts(make_job)
    job.settings["versions"] = {"newcomers": {"within": 2, "box": 5}}
    job.begin()
    leave_and_come(job, random.Random(5), 0)
    statuses = [job.run().status for _ in range(3)]
    assert "published" in statuses
    leave_and_come(job, random.Random(6), 1)
    statuses = [job.run().status for _ in range(3)]
    assert "published" in statuses
