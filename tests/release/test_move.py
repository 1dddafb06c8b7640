"""A release that is moved on purpose keeps its versions, its evidence and its chain of events."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from qblock.cli.app import run
from qblock.errors import InputError, Refused
from qblock.ledger.history import history
from qblock.publish.targets.duckdb import DuckdbTarget
from qblock.publish.targets.spark import SparkTarget
from qblock.release import move as moving
from qblock.release.erase import erase
from qblock.release.move import move
from qblock.release.retire import retire
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import Job

pytestmark = pytest.mark.either_engine

EVERY = os.environ.get("QBLOCK_TEST_ENGINES") == "all"
NEWCOMER = "INSERT INTO people (name, zip, age, disease, ward) VALUES ('late', '13053', 28, 'flu', 'A')"


def two_versions(job: Job) -> None:
    job.set(entity="name", privacy=[{"k_anonymity": {"k": 2}}], versions={"on_refusal": "refuse"})
    job.run()
    job.run(force=True)


@pytest.fixture
def told(copy_job: Callable[..., Job]) -> Job:
    """A release with two versions that are checked together."""
    return copy_job("two versions of entities", two_versions)


def renamed(job: Job, release: str = "patients", view: str | None = "patients", file: str = "patients") -> Job:
    """The spec of the release under another name, and as another view."""
    settings = copy.deepcopy(job.settings) | {"release": release}
    if view is not None:
        settings["publish"]["view"] = view
    if job.engine == "duckdb":
        settings["publish"]["url"] = f"duckdb:///{job.folder}/{file}.duckdb"
    return Renamed(job.engine, job.folder, job.url, settings)


class Renamed(Job):
    @property
    def target(self):  # type: ignore[no-untyped-def]
        return self.folder / self.settings["publish"].get("url", "").rsplit("/", 1)[-1]


def check_all(job: Job) -> None:
    """What worked before a move works after it."""
    assert not verify(job.spec).problems
    assert job.run().status == "unchanged"
    assert rollback(job.spec, 1).status == "rolled_back"
    assert not verify(job.spec).problems
    assert job.run(force=True).version == 3
    job.change(NEWCOMER)
    # One who came alone tells apart a version from those of the earlier name.
    with pytest.raises(Refused, match=r"[234] versions together .* 1 of [0-9]+ joint cells fail"):
        job.run()
    job.change("DELETE FROM people WHERE name = 'late'")
    assert erase(job.spec, ["person 1"]).shown == 1
    assert not verify(job.spec).problems


@pytest.mark.parametrize("view", ["patients", None])
def test_a_moved_release_goes_on_with_its_evidence(told: Job, view: str | None) -> None:
    before, head = told.published(), history(told.spec)["ledger_head"]
    other = renamed(told, view=view, file="patients" if view else "release")
    result = move(other.spec, "people")
    assert (result.status, result.version) == ("moved", 2)
    assert other.published() == before
    events = history(other.spec)["events"]
    numbers = [event["number"] for event in events]
    assert numbers == sorted(set(numbers))
    assert [e["state"] for e in events[-3:]] == ["moved", "published", "moved"]
    assert not verify(other.spec, expected_head=head).problems
    check_all(other)
    assert move(other.spec, "patients").status == "unchanged"


def test_the_earlier_name_and_view_are_gone(told: Job) -> None:
    other = renamed(told)
    move(other.spec, "people")
    for act in (told.run, lambda: rollback(told.spec, 1), lambda: retire(told.spec)):
        with pytest.raises(Refused, match="people was moved, and is patients now"):
            act()
    if told.engine == "duckdb":
        assert not told.target.exists()
        assert not (told.folder / "qblock" / "versions" / "people").exists()
    elif told.engine == "spark":
        schemas = [name for (name,) in told.query("SHOW SCHEMAS") if name == "published" or name.startswith("qblock_")]
        left = [name for schema in schemas for (_, name, _) in told.query(f"SHOW TABLES IN {schema}")]
        assert {"patients", "patients_v1", "patients_v2"} < set(left)
        assert [name for name in left if name.startswith("people")] == []
    else:
        with pytest.raises(psycopg.errors.UndefinedTable):
            told.published()
        names = "SELECT count(*) FROM pg_class WHERE relname ~ '_people$' AND relkind IN ('r', 'p')"
        assert told.query(names) == [(0,)]
    with pytest.raises(InputError, match="was moved before, and is patients now"):
        move(renamed(told, "third").spec, "people")


def test_a_cut_in_the_chain_across_a_move_is_found(told: Job) -> None:
    from qblock.ledger.schema import tables
    from qblock.ledger.stores import store_of

    other = renamed(told)
    move(other.spec, "people")
    with store_of(told.spec).write() as connection:
        event = tables(connection).event
        closing = (event.c.release == "people", event.c.state == "moved")
        connection.execute(event.delete().where(*closing))
    assert any("is missing in the ledger" in problem for problem in verify(other.spec).problems)


def test_a_release_is_moved_to_another_view_and_source_under_its_name(told: Job) -> None:
    told.change("CREATE TABLE staff AS SELECT * FROM people")
    other = renamed(told, release="people", view="staff", file="staff")
    other.settings["source"] = {"url": told.url, "table": "staff"}
    with pytest.raises(Refused, match="One release has one source"):
        other.run()
    assert move(other.spec, "people").status == "moved"
    assert len(other.published()) == 12
    assert not verify(other.spec).problems
    assert other.run().version == 3  # the rows of the other table, checked together with those of the first
    assert not verify(other.spec).problems
    with pytest.raises(Refused, match="One release has one source"):
        told.run()


def test_a_release_cannot_take_a_name_that_another_one_had(told: Job) -> None:
    other = renamed(told).set(versions={"joint": "none"})
    other.run()
    with pytest.raises(InputError, match="the ledger already has events of release patients"):
        move(other.spec, "people")
    with pytest.raises(InputError, match="knows no release of that name"):
        move(renamed(told, "third").spec, "nobody")
    assert not verify(told.spec).problems


def test_who_names_a_moved_release_is_told_its_new_name(told: Job) -> None:
    third = renamed(told, "third", "third", "third").set(versions={"on_refusal": "refuse", "audience": ["people"]})
    third.run()
    move(renamed(told).spec, "people")
    with pytest.raises(InputError, match="people was moved, and is patients now; name that one"):
        third.run()
    third.set(versions={"on_refusal": "refuse", "audience": ["patients"]})
    third.change(NEWCOMER)
    with pytest.raises(Refused, match=r"[34] versions together"):
        third.run()


def test_a_move_that_was_done_is_done_again_without_a_change(told: Job) -> None:
    """Whoever does not know how it ended repeats it."""
    for release, earlier in (("patients", "people"), ("third", "patients")):
        other = renamed(told, release, release)
        move(other.spec, earlier)
        other.run(force=True)
        head = history(other.spec)["ledger_head"]
        result = move(other.spec, earlier)
        assert (result.status, result.ledger_head) == ("unchanged", head)


def test_a_retired_release_stays_retired_when_it_is_moved(told: Job) -> None:
    retire(told.spec)
    other = renamed(told)
    assert move(other.spec, "people").version is None
    with pytest.raises(Refused, match="was retired"):
        other.run()
    assert other.run(force=True).version == 3
    assert len(other.published()) == 12


STEPS = [(moving, "_rename_crosswalk"), (DuckdbTarget, "_move_version"), (DuckdbTarget, "_move_file")]


SPARK_STEPS = [(SparkTarget, "_move_version"), (SparkTarget, "_move_view"), (SparkTarget, "_unpublish_old")]


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize("ends", ["release", "move"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("module", "step"), STEPS, ids=[step for _, step in STEPS])
def test_a_move_that_was_stopped_is_finished_by_the_next_run(
    told: Job, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, after: bool, ends: str
) -> None:
    """PostgreSQL moves in one transaction."""
    stop_and_finish(told, renamed(told, file="release"), monkeypatch, module, step, after, ends)


@pytest.mark.spark
@pytest.mark.parametrize("engine_name", ["spark"], indirect=True)
@pytest.mark.parametrize("view", ["patients", None])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("module", "step"), SPARK_STEPS, ids=[step for _, step in SPARK_STEPS])
def test_a_move_that_was_stopped_is_finished_on_spark(
    told: Job, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, after: bool, view: str | None
) -> None:
    stop_and_finish(told, renamed(told, view=view), monkeypatch, module, step, after, "release")


def stop_and_finish(
    told: Job, other: Job, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, after: bool, ends: str
) -> None:
    before, real = told.published(), getattr(module, step)

    def stopped(*arguments: Any) -> None:
        if after:
            real(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, step, stopped)
        with pytest.raises(KeyboardInterrupt):
            move(other.spec, "people")
    if ends == "release":
        assert other.run().status == "unchanged"
    else:
        assert move(other.spec, "people").status == "moved"
    assert other.published() == before
    assert not moving.pending(other.spec, moving.store_of(other.spec))
    assert not verify(other.spec).problems
    if ends == "move" or EVERY:
        assert rollback(other.spec, 1).status == "rolled_back"


@pytest.mark.each_engine
def test_a_move_that_fails_leaves_everything_as_it_was(told: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    if told.engine == "duckdb":
        pytest.skip("DuckDB finishes what was begun")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("qblock.publish.targets.postgresql.PostgresqlTarget.prove", stopped)
        with pytest.raises(KeyboardInterrupt):
            move(renamed(told).spec, "people")
    assert not verify(told.spec).problems
    assert told.run().status == "unchanged"


@pytest.mark.each_engine
def test_analysts_views_go_on_with_a_moved_view(told: Job) -> None:
    if told.engine == "duckdb":
        pytest.skip("DuckDB readers have a file")
    told.change("CREATE VIEW mine AS SELECT * FROM published.people")
    move(renamed(told).spec, "people")
    assert len(told.query("SELECT * FROM mine")) == 12


def test_the_command_says_where_the_release_is_now(told: Job, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(renamed(told).write())
    assert run(["ledger", "move", path, "--from", "people"]) == 0
    assert "Release people is patients now, published as published.patients" in capsys.readouterr().out
