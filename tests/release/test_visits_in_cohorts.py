"""Newcomers with several rows who are shown as cohorts, through the job itself."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qblock.errors import InputError
from qblock.ledger.stores import store_of
from qblock.release.erase import erase
from qblock.release.preview import preview
from qblock.release.rekey import rekey
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.versions.crosswalk import open_crosswalk
from qblock.versions.people import counts
from release.jobs import Job, MakeJob
from release.test_cohorts import cohort_job, maps_of
from release.test_maps import boxes
from release.test_steady_stopped import stopped
from release.test_waiting import events

pytestmark = pytest.mark.either_engine
Visit = tuple[str, int, str, str]
"""Who, at which age, in which town, with which value."""


def visits_job(make_job: MakeJob, within: int = 1, **settings: Any) -> Job:
    return cohort_job(make_job, within, 6, **{"count": "entities", **settings})


def visit(job: Job, *rows: Visit) -> None:
    job.change(f"INSERT INTO people VALUES {', '.join(map(str, rows))}")


def group(prefix: str, n: int, age: int, town: str, values: str = "abc") -> list[Visit]:
    """People of one age and town with a row each, and one of them with another row of the same."""
    rows = [(f"{prefix}{i}", age, town, values[i % len(values)]) for i in range(n)]
    return [*rows, (f"{prefix}0", age, town, values[1 % len(values)])]


def shown(job: Job) -> int:
    return len(job.published())


def out_of(job: Job) -> dict[str, int]:
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        return counts(crosswalk, job.spec.release)


def people_by_label(job: Job) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Persons and values of each label of the newest version, from the crosswalk alone."""
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        t = crosswalk.tables.shown
        rows = crosswalk.own.fetch(t.select().where(t.c.release == job.spec.release)).to_pylist()
    of: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        of.setdefault(row["block"], []).append((row["entity"][:32], row["value"]))
    return of


def check_labels(job: Job) -> None:
    """Nobody is under one label twice, and each has enough people and no value of all."""
    for units in people_by_label(job).values():
        people = [person for person, _ in units]
        assert len(set(people)) == len(people) >= 3
        held = Counter(value for _, bundle in units for value in set(bundle.split(chr(29))))
        assert len(held) >= 2
        assert max(held.values()) < len(people)
    assert not verify(job.spec).problems


def test_newcomers_with_several_rows_are_shown_within_the_delay(make_job: MakeJob) -> None:
    job = visits_job(make_job, within=2)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"), *group("m", 6, 34, "lima"))
    second = job.run()
    assert (second.status, second.rows, second.waiting) == ("published", 48 + 14, {})
    assert len(maps_of(job)) == 1
    check_labels(job)
    assert job.run().status == "unchanged"


def test_of_somebody_at_several_leaves_one_is_in_a_cohort_and_the_others_wait_anew(make_job: MakeJob) -> None:
    job = visits_job(make_job, within=2)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"), *group("m", 6, 34, "lima"), ("n1", 48, "bonn", "c"), ("n1", 33, "rome", "a"))
    changes = preview(job.spec).changes
    assert changes is not None
    assert changes.closing == 12
    second = job.run()
    assert (second.rows, second.waiting) == (48 + 14, {"newcomers": 2})
    # Others alone would not be due before two more runs.
    visit(job, *group("k", 6, 33, "rome"))
    assert job.run().status == "unchanged"
    fourth = job.run()
    assert (fourth.status, fourth.waiting) == ("published", {"newcomers": 1})
    check_labels(job)


def test_who_waited_while_another_unit_was_shown_waits_anew(make_job: MakeJob) -> None:
    job = visits_job(make_job, within=3)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"), *((f"n{i}", 48, "bonn", "abc"[i % 3]) for i in range(6)))
    assert job.run().waiting == {"newcomers": 12}
    assert job.run().waiting == {"newcomers": 6}
    # They came in the second run, and wait since the third.
    assert [job.run().waiting for _ in range(3)] == [{"newcomers": 6}, {"newcomers": 6}, {"out": 6}]


def test_names_of_units_tell_nothing_of_a_leaf(make_job: MakeJob) -> None:
    job = visits_job(make_job)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"))
    job.run()
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        names = crosswalk.column(crosswalk.tables.shown.select().with_only_columns(crosswalk.tables.shown.c.entity))
    places = [name[32:] for name in names]
    at_leaf = [place for place in places if place.startswith("x")]
    assert {len(place) for place in places} == {16}
    assert len(set(at_leaf)) == len(at_leaf) == 6


def test_a_label_shows_a_person_once(make_job: MakeJob) -> None:
    job = visits_job(make_job)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"), ("n1", 48, "bonn", "c"))
    assert job.run().waiting == {"newcomers": 1}
    # The only box of fewer than twelve people is the whole table again.
    visit(job, *group("m", 6, 34, "lima"))
    third = job.run()
    assert (third.rows, third.waiting) == (48 + 14, {"out": 1})
    assert out_of(job) == {"repeated out": 1}
    check_labels(job)


def test_rows_at_a_leaf_belong_to_the_unit_that_is_shown_there(make_job: MakeJob) -> None:
    job = visits_job(make_job)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"), ("p00", 21, "oslo", "b"))
    second = job.run()
    assert (second.rows, second.waiting) == (48 + 7, {"changes": 1})
    # Another row of a newcomer changes its bundle, and one of somebody whom a block of the first map shows that one's.
    visit(job, ("n2", 22, "oslo", "a"), ("p12", 21, "rome", "a"))
    assert job.run().waiting["changes"] >= 2


def test_a_unit_that_changes_while_it_waits_is_never_shown(make_job: MakeJob) -> None:
    job = visits_job(make_job, within=3)
    job.begin()
    visit(job, *group("n", 8, 22, "oslo"))
    job.run()
    visit(job, ("n2", 22, "oslo", "b"))
    third = job.run()
    assert (third.rows, third.waiting) == (48 + 8, {"out": 1})
    assert out_of(job) == {"changed out": 1}


def test_rows_of_a_unit_that_failed_are_not_shown_at_another_leaf(make_job: MakeJob) -> None:
    job = visits_job(make_job)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo", "a"))
    assert job.run().waiting == {"out": 6}
    visit(job, ("z0", 48, "bonn", "b"))
    assert job.run().waiting == {"newcomers": 1, "out": 6}
    job.change("UPDATE people SET age = 34 WHERE id LIKE 'n%'")
    visit(job, *group("m", 6, 34, "lima"))
    third = job.run()
    assert (third.rows, third.waiting) == (48 + 7 + 1, {"out": 6})
    assert out_of(job) == {"cohort out": 6, "moved out": 6}


def test_a_run_that_was_stopped_shows_that_very_cohort(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = visits_job(make_job)
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"), ("n1", 48, "bonn", "c"))
    stopped(job, monkeypatch)
    visit(job, *group("m", 6, 34, "lima"))
    result = job.run()
    assert (result.rows, result.waiting) == (48 + 7, {"newcomers": 7})
    assert job.run().rows == 48 + 14
    check_labels(job)


def test_after_a_rollback_a_new_key_and_an_erasure_units_are_known(make_job: MakeJob) -> None:
    job = visits_job(make_job)
    job.begin()
    visit(job, *group("n", 8, 22, "oslo"), ("n1", 48, "bonn", "c"))
    job.run()
    rollback(job.spec, 1)
    rekey(store_of(job.spec))
    assert job.run(force=True).waiting == {"newcomers": 1}
    visit(job, *group("m", 8, 34, "lima"))
    assert job.run().waiting == {"out": 1}
    before = shown(job)
    erased = erase(job.spec, ["n3"], now=True, agree=lambda sharing: True)
    assert erased.companions == 7
    assert shown(job) == before - 9
    check_labels(job)
    assert events(job, "erased")


def test_at_a_node_they_are_cohorts_where_the_spec_says_so(make_job: MakeJob) -> None:
    job = visits_job(make_job, search={"choose_by": "loss", "node": {"age": 2, "town": 1}})
    job.begin()
    visit(job, *group("n", 6, 22, "oslo"), *group("m", 6, 45, "lima"))
    second = job.run()
    assert (second.rows, second.waiting) == (48 + 14, {})
    assert set(boxes(job)) <= {("20-39", "*"), ("40-59", "*"), ("*", "*")}
    check_labels(job)


def test_with_row_counts_known_newcomers_come_by_block(make_job: MakeJob) -> None:
    job = visits_job(make_job)
    job.settings["versions"]["row_counts"] = "known"
    with pytest.raises(InputError, match=r"cohorts of newcomers need `versions.row_counts: unknown`"):
        job.run()
    assert not job.target.exists()
