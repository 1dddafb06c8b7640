"""What was deleted from the crosswalk, or altered there, behind the job's back: no run decides by it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from qblock.errors import Refused
from qblock.ledger.stores import store_of
from qblock.release.erase import erase
from qblock.release.move import move
from qblock.release.rekey import rekey
from qblock.release.verify import verify
from qblock.versions import crosswalk as crosswalk_module
from qblock.versions import integrity
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, tables
from qblock.versions.policy import batched
from release.jobs import Job, MakeJob
from release.test_waiting import HOLD_BACK, insert, people_job, shown

pytestmark = pytest.mark.either_engine

VERSION = "crosswalk_version"
OF_VERSIONS = ["crosswalk", "crosswalk_block", VERSION, "crosswalk_frozen"]
STEADY = [*OF_VERSIONS, *(f"crosswalk_{name}" for name in ("apart", "shown", "waiting", "steady", "turnover"))]
EXACT = [*OF_VERSIONS, "crosswalk_episode", "crosswalk_signature", "crosswalk_rolled"]
KEYED = [VERSION, "crosswalk_block", "crosswalk_rolled"]
"""Tables that hold no row twice."""
ALTERED = ("value", "label", "content", "place", "why", "seen", "signature", "versions", "state", "entity")
Row = Mapping[str, Any]


def weeks(make_job: MakeJob) -> Job:
    """A steady job after a batch that failed, one that passed, and while somebody waits."""
    job = people_job(make_job, "p1:q:a p2:q:b r1:r:a r2:r:b", **HOLD_BACK)
    job.begin(_weeks)
    return job


def _weeks(job: Job) -> None:
    insert(job, "t:q:a u:q:a v:r:a w:r:b")
    job.run()
    insert(job, "n:q:a")
    job.run()


def table_of(job: Job, name: str) -> sa.Table:
    known = vars(tables(store_of(job.spec).engine)).values()
    return next(table for table in known if isinstance(table, sa.Table) and table.name == name)


@contextmanager
def crosswalk_of(job: Job) -> Iterator[sa.Connection]:
    with store_of(job.spec).crosswalk.write() as connection:
        yield connection


def rows_of(job: Job, name: str) -> list[Row]:
    with crosswalk_of(job) as connection:
        return [dict(row) for row in connection.execute(sa.select(table_of(job, name))).mappings()]


def write(job: Job, name: str, rows: Sequence[Row]) -> None:
    table = table_of(job, name)
    with crosswalk_of(job) as connection:
        connection.execute(sa.delete(table))
    with crosswalk_of(job) as connection:
        if rows:
            connection.execute(sa.insert(table), [dict(row) for row in rows])


def check_refused(job: Job, match: str) -> None:
    """Both the check and a run say what is wrong, and nothing is published."""
    before, problems = shown(job), verify(job.spec).problems
    assert [problem for problem in problems if re.search(match, problem)], (match, problems)
    with pytest.raises(Refused, match=match) as raised:
        job.run()
    assert (raised.value.exit_status, shown(job)) == (3, before)


def said(job: Job, number: str) -> list[str]:
    """What the check says, with `number` for numbers of versions."""
    return [re.sub(r"(?<=version )\d+", lambda _: number, problem) for problem in verify(job.spec).problems]


def check_noticed(job: Job, names: Sequence[str]) -> None:
    """Of each table: a row that is gone, one that was altered, one that came."""
    assert not verify(job.spec).problems
    for name in names:
        rows = rows_of(job, name)
        own = [row for row in rows if row["release"] == job.spec.release]
        row_of = max(own, key=lambda row: row.get("version") or 0)
        what, column = integrity.WORDS[name].format(r"\d"), next(n for n in ALTERED if row_of.get(n) is not None)
        write(job, name, [row for row in rows if row is not row_of])
        check_refused(
            job, "the crosswalk lacks" if name == VERSION else rf"the crosswalk lacks 1 of \d+ rows of {what}"
        )
        write(job, name, [{**row, column: f"{row[column]} "} if row is row_of else row for row in rows])
        assert f"rows of {what} in the crosswalk were altered" in said(job, r"\d")
        if name not in KEYED:
            write(job, name, [*rows, row_of])
            assert f"the crosswalk has 1 rows too many of {what}" in said(job, r"\d")
        write(job, name, rows)


def test_a_steady_job_notices_what_was_done_to_any_table(make_job: MakeJob) -> None:
    job = weeks(make_job)
    with store_of(job.spec).opened(read_only=True) as connection:
        prefix = "qblock." if job.engine == "postgresql" else ""
        for view in ("release_history", "runs"):
            rows = connection.execute(sa.text(f"SELECT * FROM {prefix}{view}")).mappings().all()
            assert rows
            assert not [row for row in rows if "kept" in (row.get("state"), row.get("outcome"))]
    check_noticed(job, STEADY)
    insert(job, "m:q:b")
    assert job.run().status == "published"
    assert not verify(job.spec).problems


def test_versions_that_are_all_of_the_source_notice_it_too(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b p3:q:a p4:q:b")
    job.begin()
    insert(job, "t:q:a u:q:b")
    job.run()
    check_noticed(job, EXACT)
    assert job.run().status == "unchanged"


def quiet(make_job: MakeJob) -> Job:
    """The same, and a run that found nothing new has marked what it found."""
    job = weeks(make_job)
    assert job.run().status == "unchanged"
    return job


@pytest.fixture
def in_full(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether digests were computed of the tables that have a row for each person, of each time any were."""
    found: list[bool] = []

    def recorded(*given: Any, **named: Any) -> Any:
        found.append(not named.get("without"))
        return integrity.all_parts(*given, **named)

    monkeypatch.setattr(crosswalk_module, "all_parts", recorded)
    return found


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_a_run_that_decides_nothing_compares_marks_and_one_that_decides_digests(
    make_job: MakeJob, in_full: list[bool]
) -> None:
    job = quiet(make_job)
    in_full.clear()
    assert job.run().status == "unchanged"
    assert in_full == [False]
    in_full.clear()
    job.run(force=True)
    assert in_full == [True]
    assert job.run().status == "unchanged"
    in_full.clear()
    insert(job, "m:q:b")
    assert job.run().status == "published"
    assert in_full == [False, True]
    assert not verify(job.spec).problems


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize("name", ["crosswalk", "crosswalk_frozen", "crosswalk_episode", "crosswalk_shown"])
def test_marks_tell_what_was_done_to_a_table(make_job: MakeJob, in_full: list[bool], name: str) -> None:
    job = quiet(make_job)
    in_full.clear()
    check_noticed(job, [name])
    assert True in in_full
    assert job.run().status == "unchanged"


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_where_marks_do_the_rows_of_older_versions_are_counted_too(make_job: MakeJob) -> None:
    job = quiet(make_job)
    rows = rows_of(job, "crosswalk")
    assert {row["version"] for row in rows} == {1, 2}
    write(job, "crosswalk", [row for row in rows if row["version"] == 2])
    check_refused(job, r"the crosswalk lacks 4 of 4 rows of who is shown where in version 1")


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_rows_that_have_the_mark_of_others_are_found_before_anything_is_decided(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = quiet(make_job)
    with open_crosswalk(store_of(job.spec), read_only=True) as crosswalk:
        made = integrity.marks(crosswalk.own, crosswalk.tables, job.spec.release)
    rows = rows_of(job, "crosswalk_shown")
    write(job, "crosswalk_shown", [{**rows[0], "value": "z"}, *rows[1:]])
    monkeypatch.setattr(integrity, "marks", lambda *_: made)
    assert job.run().status == "unchanged"  # by which nothing is shown
    insert(job, "m:q:b")
    check_refused(job, "the shown state in the crosswalk were altered")


def test_a_run_counts_the_rows_of_older_versions_and_verify_reads_them(make_job: MakeJob) -> None:
    job = weeks(make_job)
    rows = rows_of(job, "crosswalk")
    first = next(row for row in rows if row["version"] == 1)
    write(job, "crosswalk", [{**row, "value": "other"} if row is first else row for row in rows])
    assert verify(job.spec).problems == ("rows of who is shown where in version 1 in the crosswalk were altered",)
    assert job.run().status == "unchanged"
    write(job, "crosswalk", [row for row in rows if row is not first])
    check_refused(job, "lacks 1 of 4 rows of who is shown where in version 1")


def test_what_is_altered_while_a_run_goes_on_is_in_no_digest(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what the newest version shows a run adds up what it writes itself: what else became of it is found."""
    job = weeks(make_job)
    insert(job, "m:q:b")
    real = batched.keep

    def altered(crosswalk: Crosswalk, *given: Any) -> None:
        t = crosswalk.tables.shown
        people = sa.select(sa.func.min(t.c.entity)).where(t.c.block == '["r"]').scalar_subquery()
        crosswalk.own.run(sa.update(t).where(t.c.entity == people).values(earlier='["c"]'))
        real(crosswalk, *given)

    with monkeypatch.context() as patched:
        patched.setattr(batched, "keep", altered)
        assert job.run().status == "published"
    # The marks of that run are of the altered rows, if the source's file is old enough to be recognized: then a run
    # that decides nothing shows nobody else. One that decides compares digests.
    before = shown(job)
    with suppress(Refused):
        assert job.run().status == "unchanged"
    assert shown(job) == before
    insert(job, "m2:q:a")
    check_refused(job, "rows of the shown state in the crosswalk were altered")


def test_sums_of_rows_that_are_added_and_taken_away_are_those_of_what_is_left(make_job: MakeJob) -> None:
    job = weeks(make_job)
    with store_of(job.spec) as store, open_crosswalk(store, read_only=True) as crosswalk:
        t = crosswalk.tables.shown
        whole, one = integrity.sums_of(crosswalk.own, t), t.c.block == '["q"]'
        part, rest = integrity.sums_of(crosswalk.own, t, one), integrity.sums_of(crosswalk.own, t, ~one)
    assert min(part.rows, rest.rows) > 0
    assert part.plus(rest) == whole == integrity.Sums.of_text(whole.text)
    assert whole.minus(part) == rest
    assert whole.minus(whole).text is None
    assert integrity.Sums.of_text(None) == integrity.Sums()


def test_another_key_is_recognized_before_anything_is_compared(make_job: MakeJob) -> None:
    job = weeks(make_job)
    key = rows_of(job, "crosswalk_key")
    write(job, "crosswalk_key", [{**key[0], "secret": "0" * 64}])
    check_refused(job, "the crosswalk has another key than the one that its digests of people were made with")
    with pytest.raises(Refused, match="another key"):
        rekey(store_of(job.spec))
    write(job, "crosswalk_key", key)
    rekey(store_of(job.spec))
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"


def test_erasures_and_moves_leave_what_the_ledger_says(make_job: MakeJob) -> None:
    job = weeks(make_job)
    erase(job.spec, ["p1"])
    assert not verify(job.spec).problems
    erase(job.spec, ["r1"], now=True)
    assert not verify(job.spec).problems
    job.set(release="another")
    move(job.spec, "people")
    assert not verify(job.spec).problems
    check_noticed(job, ["crosswalk_apart"])
    assert job.run().status == "unchanged"


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize("is_committed", [False, True])
def test_a_run_killed_around_the_commit_of_the_crosswalk_is_no_alarm(
    make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    """The ledger's file is committed before, and says afterwards that it is settled."""
    job = weeks(make_job)
    insert(job, "m:q:b")
    before = rows_of(job, "crosswalk_turnover")

    @contextmanager
    def stopped(*given: Any) -> Iterator[None]:
        with integrity.digests_kept(*given):
            if is_committed:
                yield
            raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr("qblock.versions.crosswalk.digests_kept", stopped)
        with pytest.raises(ZeroDivisionError):
            job.run()
    assert not verify(job.spec).problems
    assert (before != rows_of(job, "crosswalk_turnover")) == is_committed
    with store_of(job.spec).read() as reader:
        assert reader.kept_parts(job.spec.release).before is not None
    assert job.run().status == "published"
    assert not verify(job.spec).problems
    with store_of(job.spec).read() as reader:
        assert reader.kept_parts(job.spec.release).before is None


def test_a_release_that_the_same_readers_hold_is_compared_too(make_job: MakeJob) -> None:
    job = people_job(make_job, "p1:q:a p2:q:b p3:q:a p4:q:b")
    job.run()
    other = replace(job, settings={**job.settings, "release": "other", "publish": {**job.settings["publish"]}})
    other.settings["publish"]["view"] = "others"
    if job.engine == "duckdb":
        other.settings["publish"]["url"] = f"duckdb:///{job.folder / 'other.duckdb'}"
    other.set(versions={"on_refusal": "refuse", "audience": ["people"]})
    other.run()
    for each in (other, job):
        assert not verify(each.spec).problems
    rows = rows_of(job, "crosswalk")
    for each, name in ((other, "people"), (job, "other")):
        gone = next(row for row in rows if row["release"] == name)
        write(job, "crosswalk", [row for row in rows if row is not gone])
        says = f"of release {name}, the crosswalk lacks 1 of 4 rows of who is shown where in version 1"
        assert says in verify(each.spec).problems
        with pytest.raises(Refused, match=says):
            each.run()
        write(job, "crosswalk", rows)
    assert [each.run().status for each in (other, job)] == ["unchanged", "unchanged"]
