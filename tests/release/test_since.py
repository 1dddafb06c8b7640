"""The version that first showed each row (`publish.since`): ten people by hand, and what holds in any history."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from qblock.errors import InputError
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.releases import Release
from release.jobs import Job, MakeJob
from release.test_cohorts import cohort_job, come
from release.test_steady_job import SIXTEEN, change, delete
from release.test_waiting import HOLD_BACK, insert, people_job

pytestmark = pytest.mark.either_engine
TEN = " ".join(f"p{i}:q:{'ab'[i % 2]}" for i in range(10))


def dated(make_job: MakeJob, **publish: Any) -> Job:
    job = people_job(make_job, TEN, **HOLD_BACK)
    job.settings["publish"] |= {"since": True, **publish}
    return job


def rows_since(job: Job) -> dict[int, int]:
    return dict(job.query("SELECT since, count(*) FROM published.people GROUP BY since"))


def test_ten_people_two_who_come_and_four_who_leave(make_job: MakeJob) -> None:
    job = dated(make_job)
    assert (job.run().version, rows_since(job)) == (1, {1: 10})
    insert(job, "n1:q:a n2:q:b")
    assert (job.run().version, rows_since(job)) == (2, {1: 10, 2: 2})
    assert job.run().status == "unchanged"
    delete(job, "p0", "p1", "p2", "p3")
    assert (job.run().version, rows_since(job)) == (3, {1: 6, 2: 2})
    ((role, how),) = job.query("SELECT role, how_to_filter FROM published.people_columns WHERE column_name = 'since'")
    assert role == "version"
    assert job.query(
        f"SELECT count(*) FROM published.people WHERE {how.partition(': ')[2].partition(' finds')[0]}"
    ) == [(2,)]
    assert not verify(job.spec).problems
    published = Release(job.spec).report().published
    assert published is not None
    assert {c.name: c.after for c in published.columns}["since"] == "the version that first showed the row as it is"
    rollback(job.spec, 1)
    assert rows_since(job) == {1: 10}


def test_values_that_changed_are_shown_since_then(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.settings["publish"] |= {"since": True}
    job.run()
    change(job, "c", "p00", "p01")
    assert job.run().status == "unchanged"
    change(job, "d", "p02", "p03")
    assert (job.run().version, rows_since(job)) == (2, {1: 12, 2: 4})


def test_whoever_holds_all_versions_could_tell_as_much(make_job: MakeJob) -> None:
    """Rows of a version that are there since an earlier one are among those that the earlier one shows."""
    job = cohort_job(make_job, within=1, box=5)
    job.settings["publish"] |= {"since": True}
    job.run()
    held = {1: shown(job)}
    for version, first in ((2, 0), (3, 20)):
        come(job, range(first, first + 20))
        assert job.run().version == version
        held[version] = shown(job)
        assert {since for since, _ in held[version]} == set(range(1, version + 1))
        for earlier in range(1, version):
            kept = Counter({row: n for row, n in held[version].items() if row[0] <= earlier})
            assert kept <= held[earlier]
            assert sum(kept.values()) == sum(n for (since, _), n in held[earlier].items() if since <= earlier)


def shown(job: Job) -> Counter[tuple[int, tuple[Any, ...]]]:
    """The rows, each with its version."""
    names = ", ".join([*job.spec.quasi_identifiers, *job.spec.sensitives])
    return Counter((row[0], row[1:]) for row in job.query(f"SELECT since, {names} FROM published.{job.spec.view}"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"versions": {"joint": "none"}}, r"publish\.since: it says which version first showed a row"),
        ({"entity": None}, r"publish\.since: it says which version"),
    ],
)
def test_where_it_cannot_be_said(make_job: MakeJob, change: dict[str, Any], said: str) -> None:
    job = dated(make_job)
    job.settings = {name: value for name, value in {**job.settings, **change}.items() if value is not None}
    with pytest.raises(InputError, match=said):
        job.run()


def test_another_name(make_job: MakeJob) -> None:
    job = dated(make_job, names={"since": "shown_since"})
    job.run()
    assert job.query("SELECT DISTINCT shown_since FROM published.people") == [(1,)]


def test_a_name_that_bounds_have_is_said_before_anything_is_written(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1, box=5)
    job.settings["publish"] |= {"since": True, "names": {"age_low": "since"}}
    with pytest.raises(InputError, match=r"first versions would be published as since.*names: \{since: since_of_row\}"):
        job.run()
