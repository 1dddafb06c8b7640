"""A run reads the people of cells in which a batch may be tried: it decides what it would of everybody concerned."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import duckdb
import pytest

from qblock.release.verify import verify
from qblock.versions.pending import differences
from qblock.versions.pending.decision import Decision, decide
from qblock.versions.policy import batched
from release.jobs import Job, MakeJob
from release.test_cohorts import cohort_job, come
from release.test_steady_job import change, delete
from release.test_waiting import HOLD_BACK, insert, people_job

pytestmark = pytest.mark.either_engine


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Decide in each run as well with everybody in the cells that somebody left or changed in, and compare; how many
    people were read, and how many then."""
    found: list[tuple[int, int]] = []

    def both(*given, **more) -> Decision:
        rows: list[int] = []
        real = differences.units_in

        def counted(*args):
            people = real(*args)
            rows.append(len(people))
            return people

        with monkeypatch.context() as patch:
            patch.setattr(differences, "units_in", counted)
            few, less = decide(*given, **more), sum(rows)
            patch.setattr(differences, "may_be_tried", lambda *_: True)
            rows.clear()
            all_of_them = decide(*given, **more)
            found.append((less, sum(rows)))
        assert timeless(few) == timeless(all_of_them)
        return few

    monkeypatch.setattr(batched, "decide", both)
    return found


def timeless(decision: Decision) -> Decision:
    state = decision.state
    behind, following = decision.behind._replace(since=None), decision.following
    if following is not None:
        following = following._replace(behind=following.behind._replace(since=None))
    state = replace(state, moments=dict.fromkeys(state.moments, ""))
    return replace(decision, state=state, behind=behind, following=following)


def in_blocks(make_job: MakeJob) -> Job:
    people = " ".join(f"{block}{i:02}:{block}:{'abc'[i % 3]}" for block in "qrstu" for i in range(12))
    job = people_job(make_job, people, **{**HOLD_BACK, "stale": 0.6}).set(search={"node": [0]})
    job.settings["publish"] |= {"weights": True}
    return job


def there(job: Job) -> list[str]:
    """Who is in the source."""
    query = "SELECT id FROM people ORDER BY id"
    if job.engine != "duckdb":
        return [name for (name,) in job.query(query)]
    with duckdb.connect(str(job.folder / "warehouse.duckdb")) as connection:
        return [name for (name,) in connection.execute(query).fetchall()]


def churn(job: Job, rng: random.Random, week: int) -> None:
    present = there(job)
    gone = [name for name in present if rng.random() < (0.5 if name[0] == "qr"[week % 2] else 0.04)]
    delete(job, *gone, present[-1])
    change(job, "d", *(name for name in present if name not in gone and rng.random() < 0.08))
    insert(job, " ".join(f"n{week}{i}:{rng.choice('qrstu')}:{rng.choice('abc')}" for i in range(4)))


def of_cohorts(make_job: MakeJob) -> Job:
    return cohort_job(make_job, within=1, box=5)


def leave_and_come(job: Job, rng: random.Random, week: int) -> None:
    present = there(job)
    oldest = [name for name in present if rng.random() < 0.15]
    delete(job, *oldest, present[-1])
    come(job, range(20 * week, 20 * week + 12))


@pytest.mark.parametrize(("begin", "churned"), [(in_blocks, churn), (of_cohorts, leave_and_come)])
def test_a_run_decides_the_same_by_fewer_people(
    make_job: MakeJob,
    read: list[tuple[int, int]],
    begin: Callable[[MakeJob], Job],
    churned: Callable[[Job, random.Random, int], None],
) -> None:
    job, rng, closed = begin(make_job), random.Random(5), Counter[str]()
    job.begin()
    for week in range(6):
        churned(job, rng, week)
        closed[job.run().status] += 1
    assert closed["published"] > 2
    assert not verify(job.spec).problems
    assert len(read) >= 6
    assert any(0 < few < many for few, many in read)
