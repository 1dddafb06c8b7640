"""Newcomers in cohorts beside a node: the node is a map that splits nothing, and theirs have labels of its levels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qblock.errors import Refused
from qblock.release.dry_run import dry_run
from qblock.release.preview import preview
from qblock.release.retire import retire
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import Job, MakeJob
from release.test_cohorts import cohort_job, come, maps_of
from release.test_maps import boxes, map_job

pytestmark = pytest.mark.either_engine


def node_job(make_job: MakeJob, box: int = 6, **settings: Any) -> Job:
    known: dict[str, Any] = {
        "search": {"choose_by": "loss", "node": {"age": 2, "town": 1}},
        "versions": {"newcomers": {"within": 1, "box": box}},
    }
    return map_job(make_job, **{**known, **settings})


def come_aged(job: Job, prefix: str, ages: tuple[int, ...]) -> None:
    rows = [f"('{prefix}{age}', {age}, 'oslo', '{'abc'[age % 3]}')" for age in ages]
    job.change(f"INSERT INTO people VALUES {', '.join(rows)}")


def test_newcomers_have_labels_of_the_levels_of_the_node_or_above(make_job: MakeJob) -> None:
    job = node_job(make_job, search={"choose_by": "loss", "node": {"age": 3, "town": 0}})
    first = job.begin()
    assert (first.status, first.boxes, first.rows) == ("published", 4, 48)
    assert set(boxes(job)) == {("*", town) for town in ("oslo", "rome", "lima", "bonn")}
    # Nine of one town and three each of two others: who cannot have a box of their own reads as all towns do.
    come(job, range(9), town="oslo")
    come(job, range(9, 12), town="rome")
    come(job, range(12, 15), town="lima")
    before = boxes(job)
    second = job.run()
    assert (second.status, second.rows, second.waiting) == ("published", 63, {})
    assert boxes(job) - before == Counter({("*", "oslo"): 9, ("*", "*"): 6})
    assert second.in_words == {"age": "suppressed to *", "town": "as it is (4 values), suppressed to * for 10 %"}
    assert preview(job.spec).levels.next == {"age": 3, "town": 0}
    assert not verify(job.spec).problems
    assert sorted(maps_of(job)[0]["labels"][1]) == [["*", 1, "plain", 4], ["oslo", 0, "plain", 1]]
    # The next cohort is labelled alike, whoever is in it.
    come(job, range(15, 21), town="bonn")
    come(job, range(21, 28), town="lima")
    third = job.run()
    assert boxes(job) - before == Counter({("*", "oslo"): 9, ("*", "*"): 6, ("*", "bonn"): 6, ("*", "lima"): 7})
    assert (third.rows, verify(job.spec).problems) == (76, ())
    assert sum(entry["share"] for entry in third.search["attributes"][1]["labels"]) < 1
    assert job.run().status == "unchanged"


def test_ranges_are_those_of_the_hierarchy(make_job: MakeJob) -> None:
    job = node_job(make_job)
    job.begin()
    assert {age for age, _ in boxes(job)} == {"20-39", "40-59"}
    come(job, range(40))
    job.run()
    assert {age for age, _ in boxes(job)} <= {"20-39", "40-59", "*"}
    come_aged(job, "o", (22, 24, 35, 44, 46, 48, *range(62, 68)))
    job.run()
    assert {age for age, _ in boxes(job)} == {"20-39", "40-59", "60-79", "*"}
    assert {label for label, *_ in maps_of(job)[-1]["labels"][0]} == {"60-79", "*"}
    # Neighbours that no label of the hierarchy holds are no box, whatever it reads.
    come_aged(job, "r", (22, 24, 35, 44, 46, 48, 61, 62, 63, 81, 82, 83))
    job.run()
    assert [labels for _, labels in maps_of(job)[-1]["boxes"]] == [["*", "*"]]


def test_plan_and_dry_run_say_what_the_run_then_does(make_job: MakeJob) -> None:
    job = node_job(make_job)
    job.begin()
    come(job, range(9))
    changes = preview(job.spec).changes
    assert changes is not None
    assert (changes.tried, changes.closing) == (True, 9)
    assert dry_run(job.spec).status == "dry_run"
    assert maps_of(job) == []
    assert job.run().rows == 57
    assert not verify(job.spec).problems


def test_a_version_before_is_shown_again_and_the_next_one_has_all(make_job: MakeJob) -> None:
    job = node_job(make_job)
    job.begin()
    before = boxes(job)
    come(job, range(12))
    job.run()
    assert rollback(job.spec, 1).version == 1
    assert boxes(job) == before
    come(job, range(12, 24))
    assert job.run().rows == 72
    assert not verify(job.spec).problems


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"search": {"node": {"age": 3, "town": 1}}},
            r"all versions must have one node, and version 1 .* has \[2, 1\]",
        ),
        ({"versions": {"cohort": 6}}, r"newcomers in cohorts, and at a node all .* Leave out `versions.cohort`, or"),
        ({"versions": {"on_refusal": "refuse"}}, r"newcomers in cohorts, .* Leave out `versions.on_refusal`, or"),
        ({"suppression_limit": 0.01, "versions": {}}, r"in cohorts, .* Cohorts need `suppression_limit: 0`, or"),
    ],
)
def test_all_versions_have_the_same_node_and_show_newcomers_alike(
    make_job: MakeJob, change: dict[str, Any], said: str
) -> None:
    job = node_job(make_job)
    job.begin()
    before = boxes(job)
    with pytest.raises(Refused, match=said):
        job.set(**change).run()
    assert boxes(job) == before


def test_cohorts_begin_with_a_first_version(make_job: MakeJob) -> None:
    job = node_job(make_job, versions={"cohort": "auto"})
    first = job.begin()
    assert first.node == {"age": 2, "town": 1}
    with pytest.raises(Refused, match=r"newcomers by block, .* Write `versions: \{cohort: auto\}`, or"):
        job.set(versions={}).run()
    with pytest.raises(Refused, match=r"Write `versions: \{cohort: auto\}` instead of `newcomers`, or"):
        job.set(versions={"newcomers": {"within": 1}}).run()


@pytest.mark.parametrize("recoding", ["multidimensional", "full_domain"])
def test_a_release_that_was_retired_goes_on_with_the_boxes_that_it_had(make_job: MakeJob, recoding: str) -> None:
    job = node_job(make_job) if recoding == "full_domain" else cohort_job(make_job, within=1)
    first = job.begin()
    before = boxes(job)
    retire(job.spec)
    with pytest.raises(Refused, match="--force"):
        job.run()
    come(job, range(12))
    again = job.run(force=True)
    assert (again.rows, again.waiting) == (first.rows + 12, {})
    assert not before - boxes(job)
    assert not verify(job.spec).problems
