"""A first version that was refused for its values is not tried again while the spec asks the same."""

from __future__ import annotations

import pytest

from qblock.errors import Refused
from qblock.release.dry_run import dry_run
from release.jobs import Job, MakeJob
from release.test_steady_job import delete
from release.test_waiting import HOLD_BACK, insert, people_job, shown

pytestmark = pytest.mark.either_engine

ONE_VALUE = "p1:q:a p3:q:a p4:q:a"
NOT_TRIED = "the first version of release people was refused, and the spec asks the same"
K_ALONE = [{"k_anonymity": {"k": 2}}]


@pytest.fixture
def refused(make_job: MakeJob) -> Job:
    """Counterexample 7 of the rules: three with one value are refused, one of them goes, and one with another comes."""
    job = people_job(make_job, ONE_VALUE, **HOLD_BACK)
    with pytest.raises(Refused, match=r"no node satisfies the spec.* The next run does not try again while the spec"):
        job.run()
    delete(job, "p1")
    insert(job, "p2:q:b")
    return job


def test_it_is_not_tried_again_whoever_comes(refused: Job) -> None:
    for _ in range(2):
        with pytest.raises(Refused, match=NOT_TRIED):
            refused.run()
        # Nor without its people, which would tell that they were refused.
        delete(refused, "p3", "p4")
        insert(refused, "p5:q:a")


@pytest.mark.parametrize("how", ["force", "spec"])
def test_it_is_tried_again_where_somebody_says_so(refused: Job, how: str) -> None:
    if how == "spec":
        refused.set(search={"choose_from": "sizes"})
    found = refused.run(force=how == "force")
    assert (found.status, shown(refused)) == ("published", "q:a q:a q:b")
    assert any("are tried again" in note for note in found.notes)
    delete(refused, "p3")
    found = refused.run()
    assert (found.waiting, any("are tried again" in note for note in found.notes)) == ({"leavers": 1}, False)


def test_what_is_tried_again_and_refused_again_is_remembered_again(refused: Job) -> None:
    delete(refused, "p2")
    refused.set(search={"choose_from": "sizes"})
    with pytest.raises(Refused, match=r"no node satisfies|does not try again"):
        refused.run()
    insert(refused, "p2:q:b")
    with pytest.raises(Refused, match=NOT_TRIED):
        refused.run()


def test_a_dry_run_keeps_none_of_it(make_job: MakeJob) -> None:
    job = people_job(make_job, ONE_VALUE, **HOLD_BACK)
    dry_run(job.spec)
    insert(job, "p2:q:b")
    assert (job.run().status, shown(job)) == ("published", "q:a q:a q:a q:b")


def test_what_sizes_alone_refused_tells_no_value(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a", **HOLD_BACK).set(privacy=K_ALONE)
    for _ in range(2):
        with pytest.raises(Refused, match="no node satisfies the spec"):
            job.run()
    insert(job, "p2:q:b")
    assert job.run().status == "published"


def test_versions_that_do_not_lag_are_tried_again(make_job: MakeJob) -> None:
    job = people_job(make_job, ONE_VALUE, on_refusal="refuse")
    with pytest.raises(Refused) as raised:
        job.run()
    assert "does not try again" not in str(raised.value)
    insert(job, "p2:q:b")
    assert job.run().status == "published"
