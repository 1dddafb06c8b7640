"""A run that ends anywhere leaves the earlier version published, and the next run clears what it left."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from faults.nursery import Nursery

from qblock.errors import QblockError, Refused
from qblock.ledger.events import UNFINISHED
from qblock.ledger.history import history
from qblock.publish.recheck import Counted
from qblock.publish.targets import duckdb as duckdb_target
from qblock.release import apply, job
from qblock.release.verify import verify
from release.jobs import CopyJob, Job

pytestmark = [pytest.mark.every_postgresql, pytest.mark.handed_on]

STEPS = {"duckdb": 12, "postgresql": 13}
"""Log lines, one before each step; the last but one comes before `publish`."""


class Boom(Exception):
    """A fault that nobody foresaw."""


def stop_at(line: int, error: type[BaseException]) -> Callable[[str], None]:
    said: list[str] = []

    def log(message: str) -> None:
        said.append(message)
        if len(said) == line:
            raise error("boom")

    return log


def publish_and_change(job: Job) -> None:
    job.set(versions={"joint": "none"})
    job.run()
    job.change("INSERT INTO people VALUES ('new', '13053', 33, 'flu', 'A')")


@pytest.fixture
def published(copy_job: CopyJob) -> Job:
    """A job that has published version 1 of 12 rows, and whose source has 13 now."""
    return copy_job("published_and_changed", publish_and_change)


def leftovers(job: Job, *kept: int) -> list[Any]:
    """Tables or files of versions that are not to be there, and anything beside the target."""
    if job.engine == "duckdb":
        folder = job.folder / "qblock" / "versions" / "people"
        names = {f"v{version}.duckdb" for version in kept} | {".gitignore"}
        found = [path.name for path in folder.iterdir() if path.name not in names]
        return found + [path.name for path in job.folder.glob(".release*")]
    names = {f"v{version}_people" for version in kept}
    tables = job.query("SELECT relname FROM pg_class WHERE relname ~ '^v[0-9]+_people$'")
    return [name for (name,) in tables if name not in names]


def check_recovered(job: Job, before: int = 12) -> None:
    """After a fault: readers see the version before, and the next run publishes."""
    assert len(job.published()) == before
    assert verify(job.spec).problems == ()
    assert job.run().status == "published"
    assert len(job.published()) == 13
    assert verify(job.spec).problems == ()
    last = {e["version"]: e["state"] for e in history(job.spec)["events"] if e["version"]}
    assert set(last.values()) <= {"published", "failed", "refused"}
    assert leftovers(job, *(v for v, state in last.items() if state == "published")) == []


def test_a_fault_between_any_two_steps(published: Job) -> None:
    for line in range(2, STEPS[published.engine]):
        with pytest.raises(Boom):
            published.run(log=stop_at(line, Boom))
        events = history(published.spec)["events"]
        assert leftovers(published, 1) == []
        assert len(published.published()) == 12
        if line > 2:
            assert (events[-1]["state"], events[-1]["reason"]) == ("failed", "internal error (Boom)")
    check_recovered(published)


@pytest.mark.either_engine
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_recorded_and_cleared_by_the_next_run(published: Job, error: type[BaseException]) -> None:
    with pytest.raises(error):
        published.run(log=stop_at(10, error))
    assert history(published.spec)["events"][-1]["reason"] == "the run was stopped"
    check_recovered(published)


def test_a_process_that_is_killed(published: Job) -> None:
    code = (
        "import os, signal, sys\nfrom qblock.release.apply import release\n"
        "from qblock.release.log import Reporter\nfrom qblock.spec import load_spec\n"
        "said = []\ndef log(message):\n    said.append(message)\n"
        "    if len(said) == int(sys.argv[2]):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "release(load_spec(sys.argv[1]), reporter=Reporter(log))\n"
    )

    def kill(line: int) -> None:
        with Nursery() as nursery:
            output = published.folder / "output.txt"
            pid = nursery.start([str(published.spec.path), str(line)], output, code=code)
            assert nursery.wait(pid) == -signal.SIGKILL, output.read_text()

    steps_of = STEPS[published.engine]
    for line in (steps_of - 2, steps_of - 1):
        kill(line)
        assert len(published.published()) == 12
    check_recovered(published)
    published.change("DELETE FROM people WHERE name = 'new'")
    kill(steps_of)
    assert len(published.published()) == 12
    assert verify(published.spec).problems == ()
    assert published.run().status == "unchanged"


def test_a_ledger_that_fails_within_the_second_transaction(published: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: apply.Run, connection: sa.Connection, state: str) -> None:
        record(self, connection, state)  # type: ignore[arg-type]
        if state == "published":
            raise Boom

    record = apply.Run.record
    with monkeypatch.context() as patched:
        patched.setattr(apply.Run, "record", broken)
        with pytest.raises(Boom):
            published.run()
    if published.engine == "postgresql":
        check_recovered(published)
        return
    # The file is in its place already: the next run finds it there and records it.
    assert len(published.published()) == 13
    assert published.run().status == "unchanged"
    assert verify(published.spec).problems == ()
    assert history(published.spec)["current"] == 2


def test_a_crash_between_checking_and_renaming(published: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    if published.engine == "postgresql":
        pytest.skip("PostgreSQL renames nothing")
    replace = Path.replace

    def broken(self: Path, target: Any) -> Any:
        if Path(target) == published.target:
            raise Boom
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", broken)
        with pytest.raises(Boom):
            published.run()
    check_recovered(published)


def test_a_crash_after_renaming_without_any_cleaning_up(published: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    if published.engine == "postgresql":
        pytest.skip("PostgreSQL renames nothing")

    def broken(path: Path) -> None:
        if path.is_dir():
            raise Boom

    with monkeypatch.context() as patched:
        patched.setattr(duckdb_target, "sync", broken)
        patched.setattr(apply.Run, "record_failure", lambda run, error: None)
        with pytest.raises(Boom):
            published.run()
    said: list[str] = []
    assert published.run(log=said.append).status == "unchanged"
    assert "version 2 had been published when its run was stopped: recorded" in said
    assert verify(published.spec).problems == ()


@pytest.mark.either_engine
def test_a_copy_that_differs_by_one_row_is_not_published(published: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(*arguments: Any) -> Counted:
        counted = count_again(*arguments)
        counted.rows[0] += 1
        return counted

    count_again = apply.count_again
    with monkeypatch.context() as patched:
        patched.setattr(apply, "count_again", one_more)
        with pytest.raises(Refused, match="the copy has 14 rows, the search counted 13"):
            published.run()
    event = history(published.spec)["events"][-1]
    assert (event["version"], event["state"]) == (2, "refused")
    assert leftovers(published, 1) == []
    check_recovered(published)


def test_a_copy_that_was_changed_after_it_was_staged_is_not_published(published: Job) -> None:
    def change(message: str) -> None:
        if not message.startswith("Recount the copy"):
            return
        if published.engine == "postgresql":
            published.change("UPDATE qblock.v2_people SET ward = 'C' WHERE disease = 'cancer'")
        else:
            import duckdb

            path = published.folder / "qblock" / "versions" / "people" / "v2.duckdb"
            with duckdb.connect(str(path)) as connection:
                connection.execute("UPDATE published.people_v2 SET ward = 'C' WHERE disease = 'cancer'")

    with pytest.raises(Refused, match="the content of the copy is not what was read"):
        published.run(log=change)
    check_recovered(published)


def test_a_source_that_changes_meanwhile_is_read_from_one_snapshot(published: Job) -> None:
    if published.engine == "duckdb":
        pytest.skip("an attached DuckDB file keeps writers out")

    before = []

    def insert(message: str) -> None:
        if not any(message.startswith("Stop if ") for message in before):
            before.append(message)
        published.change("INSERT INTO people VALUES ('another', '14853', 48, 'flu', 'A')")

    # A row comes in before each step; the snapshot is taken in the one before the check of what is published as it is.
    assert published.run(log=insert).rows == 13 + len(before) - 1
    assert verify(published.spec).problems == ()


def test_a_lock_that_was_lost_stops_the_publication(published: Job) -> None:
    def lose(message: str) -> None:
        if message.startswith("Publish it as"):
            if published.engine == "duckdb":
                (published.folder / "qblock" / "people.lock").unlink()
            else:
                published.change(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
                )

    with pytest.raises(QblockError, match="lock of release people was lost"):
        published.run(log=lose)
    check_recovered(published)


@pytest.mark.either_engine
def test_versions_that_cannot_be_dropped_do_not_undo_the_publication(
    published: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise QblockError("the disk is full")

    published.set(versions={"joint": "none", "keep": 1})
    with monkeypatch.context() as patched:
        patched.setattr(apply.Run, "versions_beyond", broken)
        result = published.run()
    assert any("old versions were not dropped: the disk is full" in note for note in result.notes)
    assert len(published.published()) == 13
    published.run(force=True)
    assert [e["version"] for e in history(published.spec)["events"] if e["state"] == "retired"] == [1, 2]


def test_what_is_recovered_is_every_state_that_is_no_end() -> None:
    assert set(UNFINISHED) == {"staged", "checked"}
    # A plan has one of search, check_node, search_map and check_map.
    classes = {value for module in (apply, job) for value in vars(module).values() if isinstance(value, type)}
    steps = {step for step in classes if issubclass(step, job.Step)} - {job.Step, apply.Choose}
    assert len(steps) == max(STEPS.values()) + 3
