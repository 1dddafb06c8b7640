"""Newcomers who are shown as cohorts, in boxes of a map of their own, through the job itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qblock.errors import InputError, Refused
from qblock.ledger.stores import store_of
from qblock.release.dry_run import dry_run
from qblock.release.preview import preview
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.results.release import Changes
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.pending.cohorts import cohort_maps
from release.jobs import Job, MakeJob
from release.test_maps import boxes, map_job
from release.test_steady_stopped import stopped
from release.test_together import named
from release.test_waiting import events

pytestmark = pytest.mark.either_engine
TOWNS = ("oslo", "rome", "lima", "bonn")


def cohort_job(make_job: MakeJob, within: Any = 2, box: Any = 6, **settings: Any) -> Job:
    return map_job(make_job, **{"versions": {"newcomers": {"within": within, "box": box}}, **settings})


def come(job: Job, names: range, values: str = "abc", town: str = "") -> None:
    """Newcomers of ages and towns that the first version has, too."""
    rows = [f"('n{i:03}', {21 + i * 7 % 28}, '{town or TOWNS[i % 4]}', '{values[i % len(values)]}')" for i in names]
    job.change(f"INSERT INTO people VALUES {', '.join(rows)}")


def maps_of(job: Job) -> list[dict[str, Any]]:
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        return cohort_maps(crosswalk, job.spec.release)


def changes_of(job: Job) -> Changes:
    changes = preview(job.spec).changes
    assert changes is not None
    return changes


def test_all_who_wait_are_shown_in_boxes_of_their_own_within_the_delay(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=4)
    job.begin()
    come(job, range(8))
    second = job.run()
    assert (second.status, second.waiting) == ("unchanged", {"newcomers": 8})
    come(job, range(8, 20))
    assert job.run().status == "unchanged"
    # The fourth run of the job, which no news has to trigger.
    fourth = job.run()
    assert (fourth.status, fourth.version, fourth.rows) == ("published", 2, 68)
    assert fourth.waiting == {}
    new = Counter(row[:2] for row in job.published())
    assert min(new.values()) >= 3
    assert not verify(job.spec).problems
    assert sum(entry["share"] for entry in fourth.search["attributes"][0]["labels"]) + fourth.search["attributes"][0][
        "suppressed"
    ] == pytest.approx(1)
    assert job.run().status == "unchanged"


def test_readers_are_told_since_which_version_a_label_is_shown(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1, box=5)
    job.begin()
    seen = {1: labels_shown(job)}
    for version, first in ((2, 0), (3, 20)):
        come(job, range(first, first + 20))
        job.run()
        seen[version] = labels_shown(job)
    expected = {label: min(v for v, labels in seen.items() if label in labels) for label in seen[3]}
    assert set(expected.values()) > {1}
    listed = job.query(f"SELECT column_name, label, since FROM published.{job.spec.view}_levels")
    assert {(name, label): since for name, label, since in listed} == expected
    rollback(job.spec, 1)
    listed = job.query(f"SELECT column_name, label, since FROM published.{job.spec.view}_levels")
    assert {(name, label): since for name, label, since in listed} == dict.fromkeys(seen[1], 1)


def labels_shown(job: Job) -> set[tuple[str, str]]:
    names = job.spec.quasi_identifiers
    return {pair for row in job.published() for pair in zip(names, row, strict=False)}


def test_a_map_is_kept_with_the_version_that_shows_it_and_its_labels_are_nobody_elses(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1, box=5)
    job.begin()
    for first in (0, 20, 40):
        come(job, range(first, first + 20))
        assert job.run().status == "published"
    maps = maps_of(job)
    assert [stated["first"] for stated in maps] == [2, 3, 4]
    for stated in maps:
        assert len(stated["boxes"]) > 1
    assert set(boxes(job)) >= {tuple(labels) for stated in maps for _, labels in stated["boxes"]}
    assert job.run().status == "unchanged"


def test_fewer_than_a_box_wait_on(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1, box=10)
    job.begin()
    come(job, range(9))
    assert (job.run().status, job.run().waiting) == ("unchanged", {"newcomers": 9})
    come(job, range(9, 10))
    assert (job.run().status, job.run().rows) == ("published", 58)


def test_a_box_that_fails_is_out_for_good_and_the_others_are_shown(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1, box=6)
    job.begin()
    come(job, range(6), "a", "oslo")
    come(job, range(6, 12), "abc", "lima")
    result = job.run()
    assert (result.status, result.rows) == ("published", 54)
    assert result.waiting == {"out": 6}
    assert events(job, "published")[-1]["detail"]["batches_failed"] == {"newcomers": 1}
    come(job, range(12, 18), "abc", "oslo")
    again = job.run()
    assert (again.rows, again.waiting) == (60, {"out": 6})


def test_plan_says_when_a_cohort_closes(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=2, box=6)
    job.begin()
    come(job, range(5))
    assert "5 newcomers (a cohort needs 6) wait" in changes_of(job).why
    come(job, range(5, 9))
    assert (changes_of(job).tried, changes_of(job).closing) == (True, 9)
    assert "a cohort of 9 newcomers closes" in changes_of(job).why


def test_a_dry_run_keeps_no_map_and_the_run_decides_the_same(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1)
    job.begin()
    come(job, range(20))
    assert dry_run(job.spec).status == "dry_run"
    assert maps_of(job) == []
    assert job.run().rows == 68


def test_after_a_rollback_the_next_version_goes_on_with_all_cohorts(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1)
    job.begin()
    come(job, range(20))
    job.run()
    rollback(job.spec, 1)
    come(job, range(20, 40))
    assert job.run().rows == 88
    assert not verify(job.spec).problems


def test_a_cohort_of_which_nobody_is_shown_leaves_no_map(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1, box=6)
    job.begin()
    for first in (0, 6):
        come(job, range(first, first + 6), "a", "oslo")
        assert job.run().status == "unchanged"
    assert maps_of(job) == []
    come(job, range(12, 18), "abc", "oslo")
    assert job.run().waiting == {"out": 12}
    assert [stated["first"] for stated in maps_of(job)] == [2]


def test_a_box_of_fewer_people_than_a_block_must_have_is_refused(make_job: MakeJob) -> None:
    job = cohort_job(make_job, box=2)
    with pytest.raises(InputError, match=r"a box of fewer than 3 people fails whatever its values are; give 3 or more"):
        job.run()
    assert not job.target.exists()


def test_a_run_that_was_stopped_after_a_cohort_closed_shows_that_very_cohort(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cohort_job(make_job, within=1)
    job.begin()
    come(job, range(20))
    stopped(job, monkeypatch)
    (stated,) = maps_of(job)
    come(job, range(20, 40))
    result = job.run()
    # Whoever came since waits for the next one.
    assert (result.rows, result.waiting) == (68, {"newcomers": 20})
    assert set(boxes(job)) >= {tuple(labels) for _, labels in stated["boxes"]}
    assert job.run().rows == 88


def test_a_release_with_cohorts_has_its_readers_to_itself(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1)
    job.begin()
    come(job, range(20))
    job.run()
    beside = named(job, "beside", "people").set(search={"recoding": "full_domain"})
    with pytest.raises(Refused, match=r"release people, which versions.audience names, shows newcomers in cohorts"):
        beside.run()
