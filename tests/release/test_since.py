"""The version that first showed each row (`publish.since`), and how many are new: ten people by hand, and histories."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.errors import InputError
from qblock.publish.helpers import AS_SOURCE, AS_SOURCE_TOGETHER, LAGS, Version, follows_in_words
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.releases import Release
from qblock.spec.load import spec_of
from release.jobs import Job, MakeJob
from release.state import ask
from release.test_cohorts import cohort_job, come
from release.test_steady_job import SIXTEEN, change, delete
from release.test_waiting import HOLD_BACK, insert, people_job

pytestmark = pytest.mark.either_engine
COUNTED = "SELECT since, count(*) FROM published.{} GROUP BY since"
TEN = " ".join(f"p{i}:q:{'ab'[i % 2]}" for i in range(10))


def dated(make_job: MakeJob, **publish: Any) -> Job:
    job = people_job(make_job, TEN, **HOLD_BACK)
    job.settings["publish"] |= publish
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


def said(job: Job) -> tuple[Any, ...]:
    """What the helper view says of new rows."""
    (row,) = job.query("SELECT rows_new, in_words FROM published.people_version")
    return tuple(row)


def test_the_helper_view_says_how_many_rows_are_new(make_job: MakeJob) -> None:
    job = dated(make_job)
    job.run()
    assert said(job) == (10, f"All 10 rows are new: readers saw no version when this one was made. {LAGS}")
    insert(job, "n1:q:a n2:q:b")
    job.run()
    new = "2 of 12 rows are new in this version or have new values; the others have the values with which an earlier "
    assert said(job) == (2, f"{new}version showed them. {LAGS}")
    # What waits is in neither.
    insert(job, "n3:q:a")
    assert job.run().status == "unchanged"
    assert said(job)[0] == 2
    delete(job, "p0", "p1", "p2", "p3")
    job.run()
    assert said(job) == (0, f"No row is new in this version or has new values. {LAGS}")
    assert not verify(job.spec).problems
    rollback(job.spec, 1)
    assert said(job)[0] == 10
    assert not verify(job.spec).problems


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"publish": {"since": False}}, LAGS),
        ({"versions": {"on_refusal": "refuse"}}, AS_SOURCE_TOGETHER),
        ({"versions": {"joint": "none"}}, AS_SOURCE),
        ({"entity": None, "versions": None}, AS_SOURCE),
    ],
)
def test_where_rows_do_not_say_since_when_the_view_says_how_it_follows_the_source(
    make_job: MakeJob, settings: dict[str, Any], words: str
) -> None:
    job = people_job(make_job, TEN, **HOLD_BACK)
    publish = job.settings["publish"] | settings.get("publish", {})
    given = {**job.settings, **settings, "publish": publish}
    job.settings = {name: value for name, value in given.items() if value is not None}
    job.run()
    assert said(job) == (None, words)


@pytest.mark.parametrize(
    ("new", "rows", "before", "words"),
    [
        (1, 1204, 3, "1 of 1,204 rows is new in this version or has new values; the others have"),
        (1203, 1204, 3, "1,203 of 1,204 rows are new in this version or have new values; the others have"),
        (1204, 1204, 3, "All 1,204 rows may be new in this version, or have new values."),
        (1, 1, None, "The only row is new: readers saw no version when this one was made."),
    ],
)
def test_in_words(make_job: MakeJob, new: int, rows: int, before: int | None, words: str) -> None:
    spec = dated(make_job).spec
    text = follows_in_words(spec, Version(4, "2026-01-01 00:00:00", before, new), rows)
    assert text.startswith(words)
    assert text.endswith(LAGS)


def test_a_row_names_the_version_that_showed_it_whatever_runs_came_to_nothing(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that stops uses up a number, and one that is forced shows no other rows."""
    job = dated(make_job)
    stopped(job, monkeypatch)
    assert (job.run().version, rows_since(job)) == (2, {2: 10})
    insert(job, "n1:q:a n2:q:b")
    stopped(job, monkeypatch)
    assert (job.run().version, rows_since(job)) == (4, {2: 10, 4: 2})
    assert (job.run(force=True).version, rows_since(job)) == (5, {2: 10, 4: 2})
    assert said(job)[0] == 0
    insert(job, "n3:q:a n4:q:b")
    assert (job.run().version, rows_since(job)) == (6, {2: 10, 4: 2, 6: 2})
    # Labels are told by the same numbers.
    assert job.query("SELECT DISTINCT since FROM published.people_levels") == [(2,)]


def stopped(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends before it publishes."""
    with monkeypatch.context() as patched:
        patched.setattr("qblock.release.apply.count_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job.run()


def test_rows_from_before_versions_lagged_are_since_the_newest_of_these(make_job: MakeJob) -> None:
    job = people_job(make_job, TEN, on_refusal="refuse")
    job.run()
    insert(job, "s1:q:c s2:q:d")
    job.run()
    job.set(versions=HOLD_BACK)
    insert(job, "n1:q:a n2:q:b")
    assert (job.run().version, rows_since(job)) == (3, {2: 12, 3: 2})
    insert(job, "n3:q:a n4:q:b")
    assert (job.run().version, rows_since(job)) == (4, {2: 12, 3: 2, 4: 2})


def test_verification_counts_new_rows_again(make_job: MakeJob, monkeypatch: pytest.MonkeyPatch) -> None:
    job = dated(make_job)
    with monkeypatch.context() as patched:
        patched.setattr("qblock.release.chosen.new_rows", lambda *_: sa.func.count())
        job.run()
        insert(job, "n1:q:a n2:q:b")
        job.run()
    assert said(job)[0] == 12
    assert verify(job.spec).problems == (
        "the new rows that published.people_version counts are not those that are published",
    )


def test_values_that_changed_are_shown_since_then(make_job: MakeJob) -> None:
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.run()
    change(job, "c", "p00", "p01")
    assert job.run().status == "unchanged"
    change(job, "d", "p02", "p03")
    assert (job.run().version, rows_since(job)) == (2, {1: 12, 2: 4})


def test_whoever_holds_all_versions_could_tell_as_much(make_job: MakeJob) -> None:
    """Rows of a version that are there since an earlier one are among those that the earlier one shows."""
    job = cohort_job(make_job, within=1, box=5)
    job.run()
    held = {1: shown(job)}
    for version, first in ((2, 0), (3, 20)):
        come(job, range(first, first + 20))
        assert job.run().version == version
        held[version] = shown(job)
        assert {since for since, _ in held[version]} == set(range(1, version + 1))
        # Versions part the rows, and the helper view counts the part of the newest.
        parts = Counter(dict(job.query(COUNTED.format(job.spec.view))))
        ((rows, new),) = job.query(f"SELECT rows, rows_new FROM published.{job.spec.view}_version")
        assert (rows, new) == (parts.total(), parts[version])
        # Nobody left: what an earlier version did not show is new.
        assert new == (without_since(held[version]) - without_since(held[version - 1])).total()
        for earlier in range(1, version):
            kept = Counter({row: n for row, n in held[version].items() if row[0] <= earlier})
            assert kept <= held[earlier]
            assert sum(kept.values()) == sum(n for (since, _), n in held[earlier].items() if since <= earlier)


def without_since(rows: Counter[tuple[int, tuple[Any, ...]]]) -> Counter[tuple[Any, ...]]:
    counted: Counter[tuple[Any, ...]] = Counter()
    for (_, row), n in rows.items():
        counted[row] += n
    return counted


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
    job = dated(make_job, since=True)
    job.settings = {name: value for name, value in {**job.settings, **change}.items() if value is not None}
    with pytest.raises(InputError, match=said):
        job.run()


def test_it_is_the_default_where_versions_lag(make_job: MakeJob) -> None:
    job = dated(make_job)
    assert job.spec.shows_since
    for other in ({"versions": {"joint": "none"}}, {"versions": {"on_refusal": "refuse"}}, {"entity": None}):
        given = {**job.settings, **other}
        assert not spec_of({name: value for name, value in given.items() if value is not None}).shows_since
    job.settings["publish"] |= {"since": False}
    assert not job.spec.shows_since


def test_a_published_column_of_its_name_is_told_what_to_write(make_job: MakeJob) -> None:
    job = dated(make_job)
    attributes = job.settings["attributes"]
    said = r"column Since is published, and so would be .*publish: \{since: false\}"
    for given in ({}, {"since": True}):
        publish = {**job.settings["publish"], **given}
        with pytest.raises(InputError, match=said):
            spec_of({**job.settings, "publish": publish, "attributes": {**attributes, "Since": "insensitive"}})
    # One that is not published is in nobody's way.
    assert spec_of({**job.settings, "attributes": {**attributes, "since": "identifying"}}).shows_since


def test_people_of_one_joint_cell_have_one_version(make_job: MakeJob) -> None:
    """So whoever is shown joint cells, as the attackers of versions together are, learns nothing from it."""
    job = people_job(make_job, SIXTEEN, **HOLD_BACK)
    job.run()
    change(job, "c", "p00", "p01")
    job.run()
    change(job, "d", "p02", "p03")
    assert job.run().version == 2
    insert(job, "n1:q:a n2:q:b")
    assert job.run().version == 3
    of_cell: dict[tuple[Any, ...], set[int]] = {}
    counted: Counter[int] = Counter()
    for history in histories(job, 3):
        steps = list(zip(history, (None, *history[:-1]), strict=True))
        since = max(number for number, (now, before) in enumerate(steps, 1) if now != before)
        counted[since] += 1
        of_cell.setdefault(tuple((now[0], now == before) for now, before in steps), set()).add(since)
    assert dict(counted) == rows_since(job) == {1: 12, 2: 4, 3: 2}
    assert len(of_cell) == 3
    assert {len(versions) for versions in of_cell.values()} == {1}


def histories(job: Job, versions: int) -> list[list[tuple[Any, ...]]]:
    """The label and the value that each version shows of everybody whom the newest one shows."""
    shown = (
        "SELECT c.entity, c.version, b.label, c.value FROM {0}crosswalk AS c JOIN {0}crosswalk_block AS b ON "
        "b.release = c.release AND b.version = c.version AND b.block = c.block"
    )
    of: dict[str, dict[int, tuple[Any, ...]]] = {}
    for entity, version, *row in ask(job, "crosswalk", shown):
        of.setdefault(entity, {})[version] = tuple(row)
    every = range(1, versions + 1)
    return [[rows.get(version, (None, None)) for version in every] for rows in of.values() if versions in rows]


def test_another_name(make_job: MakeJob) -> None:
    job = dated(make_job, names={"since": "shown_since"})
    job.run()
    assert job.query("SELECT DISTINCT shown_since FROM published.people") == [(1,)]


def test_a_name_that_bounds_have_is_said_before_anything_is_written(make_job: MakeJob) -> None:
    job = cohort_job(make_job, within=1, box=5)
    job.settings["publish"] |= {"names": {"age_low": "since"}}
    with pytest.raises(InputError, match=r"first versions would be published as since.*names: \{since: since_of_row\}"):
        job.run()
