"""The weights of rows, by which those who left are not counted: ten people, by hand, through the job itself."""

from __future__ import annotations

from typing import Any

import pytest

from qblock.errors import InputError
from qblock.ledger.stores import store_of
from qblock.release.erase import erase
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.spec import spec_digest
from qblock.spec.load import spec_of
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.pending.state import read_state
from release.jobs import Job, MakeJob
from release.test_cohorts import changes_of, cohort_job, come
from release.test_maps import boxes
from release.test_rollback import alter
from release.test_steady_job import delete
from release.test_steady_stopped import stopped
from release.test_verify import problems, tamper
from release.test_waiting import ATTRIBUTES, HOLD_BACK, events, insert, people_job

TEN = " ".join(f"p{i}:q:{'ab'[i % 2]}" for i in range(10))


def weighted(make_job: MakeJob, text: str = TEN, **publish: Any) -> Job:
    """k is 2: of one of the cells two people must leave until its weight is another one."""
    job = people_job(make_job, text, **HOLD_BACK)
    job.settings["publish"] |= {"weights": True, **publish}
    return job


def now(job: Job) -> tuple[int, float]:
    """All rows, and how many people of them are there now."""
    ((rows, present),) = job.query("SELECT count(*), sum(weight) FROM published.people")
    return rows, round(present, 9)


def of_blocks(job: Job) -> list[tuple[Any, ...]]:
    return job.query("SELECT rows, people_now FROM published.people_blocks ORDER BY block")


def test_the_weights_of_ten_people_who_leave_and_come_back(make_job: MakeJob) -> None:
    job = weighted(make_job)
    assert (job.run().version, now(job), of_blocks(job)) == (1, (10, 10), [(10, 10)])
    delete(job, "p0")
    assert (job.run().status, now(job)) == ("unchanged", (10, 10))
    delete(job, "p1")
    assert changes_of(job).weighed_cells == 1
    assert changes_of(job).why.endswith("a new version would be tried: the weights of 1 joint cell would change")
    second = job.run()
    assert (second.version, now(job), of_blocks(job)) == (2, (10, 8), [(10, 8)])
    said = "the weights of 1 joint cell changed, since people left or came back"
    assert said in second.notes
    assert (events(job, "published")[-1]["reason"] or "").startswith(said)
    assert job.query("SELECT DISTINCT weight FROM published.people") == [(0.8,)]
    assert not verify(job.spec).problems
    insert(job, "p0:q:a")
    assert (job.run().status, now(job)) == ("unchanged", (10, 8))
    # Two newcomers are a cell of their own in the block.
    insert(job, "n1:q:a n2:q:b")
    assert (job.run().version, now(job), of_blocks(job)) == (3, (12, 10), [(12, 10)])
    insert(job, "p1:q:b")
    assert (job.run().version, now(job)) == (4, (12, 12))
    delete(job, "p0", "p1", "p2")
    assert (job.run().version, now(job)) == (5, (12, 9))
    # Four leave as a batch: whoever stays is there, and the number of the cell is stated anew.
    delete(job, "p3")
    assert (job.run().version, now(job)) == (6, (8, 8))
    assert (job.run().status, now(job)) == ("unchanged", (8, 8))


def test_an_older_version_has_its_own_weights_and_the_next_one_those_of_today(make_job: MakeJob) -> None:
    job = weighted(make_job)
    job.run()
    delete(job, "p0", "p1")
    job.run()
    for version, present in ((1, 10), (2, 8), (1, 10)):
        rollback(job.spec, version)
        assert now(job) == (10, present)
        assert not verify(job.spec).problems
    assert (job.run().version, now(job)) == (3, (10, 8))


def test_weights_that_were_altered_are_found(make_job: MakeJob) -> None:
    job = weighted(make_job)
    job.run()
    delete(job, "p0", "p1")
    job.run()
    data = "published.people_v2" if job.engine == "duckdb" else "qblock.data_people"
    tamper(job, f"UPDATE {data} SET weight = 0.9")
    assert "content was altered" in problems(job)
    alter(job, "UPDATE {data} SET weight = 0.9")
    with pytest.raises(Exception, match="its content was altered"):
        rollback(job.spec, 1)


@pytest.mark.either_engine
def test_a_run_that_was_stopped_leaves_the_next_one_to_show_its_weights(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = weighted(make_job)
    job.run()
    delete(job, "p0", "p1")
    stopped(job, monkeypatch)
    insert(job, "p0:q:a")
    # By 1 of what was stated then, so that this is what is shown.
    assert (job.run().version, now(job)) == (2, (10, 8))


@pytest.mark.either_engine
def test_who_withdraws_at_once_takes_the_weights_of_the_cell_along(make_job: MakeJob) -> None:
    job = weighted(make_job, TEN + " r0:r:a r1:r:b r2:r:a r3:r:b r4:r:a")
    job.begin()
    delete(job, "p0", "p1", "r0", "r1")
    job.run()
    assert now(job) == (15, 11)
    erase(job.spec, ["r2"], now=True)
    assert now(job) == (10, 8)
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        state = read_state(crosswalk, "people")
    assert state is not None
    assert [tuple(number) for number in (state.stated or {}).values()] == [(10, 8)]


@pytest.mark.either_engine
def test_weights_that_begin_later_are_those_of_then(make_job: MakeJob) -> None:
    job = weighted(make_job, weights=False)
    job.run()
    delete(job, "p0")
    job.run()
    job.settings["publish"]["weights"] = True
    assert (job.run().version, now(job)) == (2, (10, 9))
    rollback(job.spec, 1)
    assert "weight" not in job.query("SELECT column_name FROM published.people_columns")


@pytest.mark.either_engine
def test_a_release_with_cohorts_has_weights_unless_it_says_otherwise(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1)
    job.begin()
    come(job, range(20))
    job.run()
    rows, present = now(job)
    assert rows == present == 68
    # k is 3, and so one of the boxes has other weights, whichever of them these were in.
    delete(job, *(f"n{i:03}" for i in range(10)))
    job.run()
    rows, present = now(job)
    assert present < 68
    assert abs(present - 58) < 3 * len(boxes(job))
    (said,) = job.query("SELECT role, how_to_filter FROM published.people_columns WHERE column_name = 'weight'")
    assert said == (
        "weight",
        "not a filter: sum(weight) counts who is there now, where count(*) also counts who has left",
    )
    digests = {
        weights: spec_digest(spec_of({**job.settings, "publish": {**job.settings["publish"], "weights": weights}}))
        for weights in (True, False)
    }
    assert digests[True] == spec_digest(job.spec) != digests[False]


@pytest.mark.either_engine
def test_of_people_with_several_rows_each_has_the_share_of_people(make_job: MakeJob) -> None:
    """Of the share of rows whoever knows who left could tell how many rows these have."""
    rows = [(f"p{i % 8}", "q", "abcd"[(i + i // 8) % 4]) for i in range(12)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("id", "block", "value"))}
    job = make_job(
        columns,
        attributes=ATTRIBUTES,
        privacy=[{"k_anonymity": {"k": 2}}, {"distinct_l_diversity": {"l": 2}}],
        entity="id",
        count="entities",
        versions={"on_refusal": "hold_back", "leave": 4},
    )
    job.settings["publish"]["weights"] = True
    job.begin()
    assert now(job) == (12, 12)
    delete(job, "p0", "p1")  # who have two rows each
    job.run()
    assert job.query("SELECT DISTINCT weight FROM published.people") == [(0.75,)]
    assert job.query("SELECT rows, rows_now FROM published.people_blocks") == [(12, 9)]
    assert not verify(job.spec).problems


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"versions": {"joint": "none"}}, r"need `versions: \{joint: episodes\}`"),
        ({"versions": {"on_refusal": "refuse"}}, r"need `versions: \{on_refusal: hold_back\}`"),
        ({"entity": None, "versions": None}, "need `entity: COLUMN`, which says who a row is of"),
    ],
)
def test_weights_need_versions_that_lag(make_job: MakeJob, settings: dict[str, Any], said: str) -> None:
    job = weighted(make_job)
    job.settings = {key: value for key, value in {**job.settings, **settings}.items() if value is not None}
    with pytest.raises(InputError, match=f"publish.weights: weights say how many .*{said}; add it, or leave"):
        spec_of(job.settings)


@pytest.mark.either_engine
def test_a_published_column_of_the_same_name_is_told_with_the_remedy(make_job: MakeJob) -> None:
    job = weighted(make_job)
    settings = {**job.settings, "attributes": {**ATTRIBUTES, "Weight": "insensitive"}}
    message = (
        r"column Weight is published, .* as weight\. Give that another name: publish: \{names: \{weight: share_present"
    )
    with pytest.raises(InputError, match=message):
        spec_of(settings)
    settings["publish"] = {**job.settings["publish"], "names": {"weight": "share_present"}}
    assert spec_of(settings).shows_weights
    # One that is not published is in nobody's way.
    settings = {**job.settings, "attributes": {**ATTRIBUTES, "weight": "identifying"}}
    assert spec_of(settings).shows_weights
