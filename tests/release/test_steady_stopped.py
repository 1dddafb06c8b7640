"""State of the steady job that no version shows yet: runs that were stopped or refused, and a release that is moved."""

from __future__ import annotations

from collections import Counter

import pytest

from qblock.release.erase import erase
from qblock.release.move import move
from qblock.versions.policy.batched import Batched
from release.jobs import Job, MakeJob
from release.test_steady_job import SIXTEEN, change, counts, delete
from release.test_waiting import HOLD_BACK, insert, people_job, shown

pytestmark = pytest.mark.either_engine


def stopped(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends as soon as its batches were decided."""
    with monkeypatch.context() as patched:
        patched.setattr(Batched, "_with_baseline", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.run()


def test_batches_that_no_version_has_shown_go_before_any_other(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell has at most one batch in a version, though two runs were needed for it."""
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.run()
    delete(job, "p00", "p01", "p02", "p03")
    change(job, "c", "p04", "p05")
    change(job, "d", "p06", "p07")
    insert(job, "t:q:a")
    stopped(job, monkeypatch)
    insert(job, "u:q:b")
    found = job.run()
    assert (found.status, found.waiting, counts(job)) == (
        "published",
        {"newcomers": 2, "leavers": 4},
        {"q:a": 6, "q:b": 6, "q:c": 2, "q:d": 2},
    )
    assert job.run().status == "published"
    assert counts(job) == {"q:a": 5, "q:b": 5, "q:c": 2, "q:d": 2}


@pytest.mark.parametrize("since", [False, True])
def test_a_batch_that_makes_no_other_rows_holds_nothing_up(make_job: MakeJob, since: bool) -> None:
    """Four people exchange values: the rows are the same ones, but for the version that first showed them."""
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.settings["publish"] |= {"since": since}
    job.run()
    change(job, "b", "p00", "p02")
    change(job, "a", "p01", "p03")
    assert (job.run().status, job.run().waiting) == ("published" if since else "unchanged", {})
    if since:
        assert Counter(job.query("SELECT since FROM published.people")) == {(1,): 12, (2,): 4}
    insert(job, "t:q:a u:q:b")
    assert (job.run().status, counts(job)) == ("published", {"q:a": 9, "q:b": 9})


@pytest.mark.parametrize("now", [False, True])
def test_who_withdraws_from_a_batch_that_no_version_has_shown_takes_it_along(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, now: bool
) -> None:
    """Whoever else is in it would be shown alone, which no version can be."""
    job = people_job(make_job, "p1:q:a p2:q:b", **HOLD_BACK)
    job.run()
    insert(job, "t:q:a u:q:b")
    stopped(job, monkeypatch)
    erase(job.spec, ["t"], now=now)
    assert (job.run().status, job.run().status, shown(job)) == ("unchanged", "unchanged", "q:a q:b")
    insert(job, "v:q:c w:q:d")
    assert (job.run().status, shown(job)) == ("published", "q:a q:b q:c q:d")


def test_newcomers_who_fail_together_with_another_release_stay_out_and_the_job_goes_on(make_job: MakeJob) -> None:
    first = "p1:q:x:a p2:q:x:b p3:r:y:a p4:r:y:b"
    rows = [item.split(":") for item in first.split()]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "block", "other", "value"))}
    role = {"role": "quasi_identifier", "hierarchy": "suppress"}
    privacy = [{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}]
    job = make_job(columns, attributes={"block": role, "value": "sensitive"}, privacy=privacy, entity="id")
    job.set(versions=HOLD_BACK, search={"node": [0]}).run()
    mine = dict(job.settings)
    publish = {"schema": "published", "view": "again"}
    if job.engine == "duckdb":
        publish["url"] = f"duckdb:///{job.folder}/again.duckdb"
    other = {
        "release": "again",
        "attributes": {"other": role, "value": "sensitive"},
        "versions": {**HOLD_BACK, "audience": ["people"]},
        "publish": publish,
    }
    job.set(**other).run()
    job.change(
        "INSERT INTO people (id, block, other, value) VALUES "
        "('t', 'q', 'x', 'a'), ('u', 'q', 'y', 'b'), ('v', 'r', 'x', 'b'), ('w', 'r', 'y', 'a')"
    )
    job.set(**{name: mine[name] for name in other}).run()
    assert len(job.published()) == 8
    job.set(**other)
    found = job.run()
    assert (found.status, found.rows, found.waiting) == ("unchanged", 4, {"out": 4})
    assert any("fail together with another release" in note for note in found.notes)
    assert (job.run().status, job.run().rows) == ("unchanged", 4)


def test_a_move_to_another_name_takes_the_state_along(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.run()
    delete(job, "p00", "p01", "p02")
    change(job, "c", "p08")
    job.run()
    job.set(release="patients")
    move(job.spec, "people")
    assert (job.run().status, job.run().waiting) == ("unchanged", {"leavers": 3, "changes": 1})
    delete(job, "p03")
    found = job.run()
    assert (found.status, found.waiting, counts(job)) == ("published", {"changes": 1}, {"q:a": 6, "q:b": 6})
