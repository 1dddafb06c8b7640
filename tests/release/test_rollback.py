"""Going back to an older version: the checks of a release, what they refuse, and what a fault on the way leaves."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from qblock.cli.app import run
from qblock.errors import Busy, Refused
from qblock.ledger.history import history
from qblock.ledger.stores import store_of
from qblock.release import rollback as module
from qblock.release.log import Reporter
from qblock.release.rollback import CHANGED, rollback
from qblock.release.verify import verify
from release.jobs import ATTRIBUTES, CopyJob, Job, MakeJob

pytestmark = pytest.mark.either_engine

ANOTHER = "INSERT INTO people VALUES ('new', '13053', 33, 'flu', 'A')"
NEWER = "INSERT INTO people VALUES ('newer', '13053', 34, 'heart', 'B')"

PRIOR = {"epsilon": 9, "adversary": "I", "stubbornness": 3, "prior": {"values": {"flu": 1, "heart": 2}}}


class Boom(Exception):
    """A fault that nobody foresaw."""


def publish_twice(job: Job) -> None:
    job.set(versions={"joint": "none"})
    job.begin()
    job.change(ANOTHER)
    job.run()


@pytest.fixture
def twice(copy_job: CopyJob) -> Job:
    """Version 1 of 12 rows, and version 2 of 13, which readers see."""
    return copy_job("twice", publish_twice)


@pytest.fixture
def twice_here(job: Job) -> Job:
    """The same, where it was published: to a job that was moved, the file of the release is another one."""
    publish_twice(job)
    return job


def events(job: Job) -> list[tuple[int | None, str]]:
    return [(event["version"], event["state"]) for event in history(job.spec)["events"]]


def alter(job: Job, statement: str) -> None:
    """Change the kept copy of version 1, `{data}`, as someone who may."""
    if job.engine == "duckdb":
        with duckdb.connect(str(stored(job))) as connection:
            connection.execute(statement.format(data="published.people_v1"))
        return
    with psycopg.connect(job.url) as connection:
        connection.execute(statement.format(data="qblock.v1_people"))  # type: ignore[arg-type]


def alter_ledger(job: Job, statement: str) -> None:
    if job.engine == "duckdb":
        with closing(sqlite3.connect(str(store_of(job.spec).file), isolation_level=None)) as connection:
            connection.execute(statement.replace("qblock.", ""))
        return
    job.change(statement)


def stored(job: Job) -> Path:
    return job.folder / "qblock" / "versions" / "people" / "v1.duckdb"


def test_readers_see_the_older_version_again(twice: Job) -> None:
    first = history(twice.spec)["events"][2]
    result = rollback(twice.spec, 1)
    assert (result.status, result.version, result.rows) == ("rolled_back", 1, 12)
    assert len(twice.published()) == 12
    assert events(twice)[-2:] == [(1, "checked"), (1, "rolled_back")]
    last = history(twice.spec)["events"][-1]
    same = ("node", "choice", "content_digest", "reference_digest", "spec_digest", "rows_source", "rows_published")
    assert {name: last[name] for name in same} == {name: first[name] for name in same}
    assert (result.digest, result.ledger_head) == (first["content_digest"], last["digest"])
    assert history(twice.spec)["current"] == 1
    with store_of(twice.spec).read() as reader:
        assert reader.guarantees("people", last["number"]) == reader.guarantees("people", first["number"])
        assert reader.verify_chain("people") + reader.verify_pointer("people") == []
    verified = verify(twice.spec, result.ledger_head)
    assert (verified.version, verified.problems, verified.not_recomputed) == (1, (), ())
    assert verified.tightest == result.tightest


def test_forward_again_and_the_next_run_publishes_what_the_source_holds(twice: Job) -> None:
    rollback(twice.spec, 1)
    assert rollback(twice.spec, 2).status == "rolled_back"
    assert len(twice.published()) == 13
    assert twice.run().status == "unchanged"
    rollback(twice.spec, 1)
    assert (twice.run().version, len(twice.published())) == (3, 13)
    assert verify(twice.spec).problems == ()


def test_the_version_that_readers_see_is_left_alone_unless_it_was_altered(twice: Job) -> None:
    before = events(twice)
    assert rollback(twice.spec, 2).status == "unchanged"
    assert events(twice) == before
    if twice.engine == "duckdb":
        with duckdb.connect(str(twice.target)) as connection:
            connection.execute("DELETE FROM published.people_v2")
    else:
        twice.change("DROP VIEW published.people")
    assert rollback(twice.spec, 2).status == "rolled_back"
    assert len(twice.published()) == 13
    assert verify(twice.spec).problems == ()


def refusal(job: Job, version: int) -> str:
    """The message of a refusal that is in the ledger and leaves what readers see as it was."""
    before, seen = job.published(), history(job.spec)["current"]
    with pytest.raises(Refused) as raised:
        rollback(job.spec, version)
    assert raised.value.exit_status == 3
    last = history(job.spec)["events"][-1]
    assert (last["version"], last["state"], last["detail"]) == (None, "refused", {"rollback_to": version})
    assert last["reason"] == str(raised.value)
    assert (job.published(), history(job.spec)["current"]) == (before, seen)
    return str(raised.value)


def test_what_was_never_published(job: Job) -> None:
    with pytest.raises(Refused, match="people has no ledger: it was never published"):
        rollback(job.spec, 1)
    job.set(privacy=[{"k_anonymity": {"k": 13}}])
    with pytest.raises(Refused):
        job.run()
    with pytest.raises(Refused, match=r"version 1 .* was never published; no other version is kept"):
        rollback(job.spec, 1)
    job.set(privacy=[{"k_anonymity": {"k": 3}}], versions={"joint": "none"})
    job.run()
    assert "never published; kept, and available to roll back to: 1" in refusal(job, 7)
    # A refusal takes no number from the versions to come.
    job.change(ANOTHER)
    assert job.run().version == 2


def test_a_version_that_was_retired(twice: Job) -> None:
    twice.set(versions={"joint": "none", "keep": 2})
    twice.change(NEWER)
    twice.run()
    assert "it is no longer kept; kept, and available to roll back to: 2, 3" in refusal(twice, 1)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("INSERT INTO {data} SELECT * FROM {data} LIMIT 1", "its copy has 13 rows, and the ledger says 12"),
        ("UPDATE {data} SET ward = 'C' WHERE disease = 'flu'", "its content was altered"),
        ("DROP TABLE {data}", "it is no longer kept"),
    ],
)
def test_a_copy_that_was_altered(twice: Job, statement: str, found: str) -> None:
    alter(
        twice, statement if twice.engine == "postgresql" else statement.replace("TABLE {data}", "VIEW published.people")
    )
    message = refusal(twice, 1)
    assert found in message
    assert message.endswith("kept, and available to roll back to: 2")


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_a_private_file_with_something_else_in_it(twice: Job) -> None:
    """A partition holds nothing else."""
    alter(twice, "CREATE TABLE more AS SELECT 1 AS x")
    assert "no longer kept" in refusal(twice, 1)
    stored(twice).write_bytes(b"not a database")
    assert "no longer kept" in refusal(twice, 1)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            "UPDATE qblock.reference SET content = content || ' ' WHERE version = 1",
            "the quantities kept with it are",
        ),
        ("DELETE FROM qblock.reference WHERE version = 1", "the quantities kept with it are"),
        (
            "UPDATE qblock.guarantee SET satisfied = '9' WHERE number = 3",
            "event 3 .* or its guarantees were",
        ),
        ("UPDATE qblock.pointer SET version = 1", "the pointer row of release people names version 1"),
    ],
)
def test_evidence_that_was_altered(twice: Job, statement: str, found: str) -> None:
    alter_ledger(twice, statement)
    with pytest.raises(Refused, match=found):
        rollback(twice.spec, 1)


def test_what_the_spec_asks_now(twice: Job) -> None:
    twice.set(privacy=[{"k_anonymity": {"k": 4}}, {"entropy_l_diversity": {"l": 2}}])
    result = rollback(twice.spec, 1)
    assert [entry.model for entry in result.tightest] == ["k_anonymity", "entropy_l_diversity"]
    assert CHANGED in result.notes
    checks = [g for g in history(twice.spec)["guarantees"] if g["state"] == "rolled_back"]
    assert {(g["model"], g["asked"], g["satisfied"]) for g in checks} >= {("k_anonymity", "4", "4")}
    verified = verify(twice.spec)
    assert verified.problems == ()
    assert verified.not_recomputed == ("every model: the spec has changed since the version was published",)
    twice.set(privacy=[{"k_anonymity": {"k": 5}}, {"distinct_l_diversity": {"l": 2}}])
    assert "it does not satisfy k_anonymity as the spec asks now" in refusal(twice, 2)
    # The reference quantities are those of the version itself, whatever it was last checked for.
    twice.set(privacy=[{"k_anonymity": {"k": 3}}, {"t_closeness": {"t": 1}}])
    assert rollback(twice.spec, 2).tightest[1].holds


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"attributes": ATTRIBUTES | {"ward": "identifying"}}, "publishes other columns, or in other roles"),
        ({"attributes": ATTRIBUTES | {"ward": "sensitive"}}, "publishes other columns, or in other roles"),
        (
            {"privacy": [{"epsilon_privacy": PRIOR}]},
            "takes its prior from elsewhere, and the spec has changed",
        ),
        ({"privacy": [{"k_map": {"k": 2, "population": {"table": "people"}}}]}, "k_map needs more than the published"),
        ({"privacy": [{"t_closeness": {"t": 1, "distance": "ordered"}}]}, "was not kept with the version"),
    ],
)
def test_a_spec_under_which_it_cannot_be_checked(twice: Job, settings: dict[str, Any], found: str) -> None:
    if "ward" in str(settings):
        privacy = [{"k_anonymity": {"k": 3}}, {"distinct_l_diversity": {"l": 2, "sensitive": "disease"}}]
        settings = settings | {"privacy": privacy}
    twice.set(**settings)
    assert found in refusal(twice, 1)


def test_a_model_that_needs_more_than_the_published_rows_is_taken_from_the_ledger(make_job: MakeJob) -> None:
    job = make_job(
        privacy=[{"k_map": {"k": 3, "population": {"table": "people"}}}, {"distinct_l_diversity": {"l": 2}}],
        versions={"joint": "none"},
    )
    job.run()
    job.change(ANOTHER)
    job.run()
    result = rollback(job.spec, 1)
    assert [entry.model for entry in result.tightest] == ["distinct_l_diversity"]
    assert "not recomputed, since the published rows are not enough: k_map" in result.notes
    assert {g["model"] for g in history(job.spec)["guarantees"] if g["state"] == "rolled_back"} == {
        "k_map",
        "distinct_l_diversity",
    }


def test_versions_that_were_checked_together(make_job: MakeJob) -> None:
    """Going back shows nothing that the joint check has not seen, and the next version is checked with both."""
    attributes = {name: role for name, role in ATTRIBUTES.items() if name != "ward"}
    job = make_job(entity="name", attributes=attributes, search={"node": [1, 2]}, versions={"on_refusal": "refuse"})
    job.run()
    for number in range(4):
        values = f"('new {number}', '14853', 49, '{('cancer', 'flu')[number % 2]}', 'A')"
        job.change(f"INSERT INTO people VALUES {values}")
    assert job.run().version == 2
    back = rollback(job.spec, 1)
    assert (back.status, back.joint, len(job.published())) == ("rolled_back", "episodes", 12)
    assert verify(job.spec).problems == ()
    assert job.run().status == "published"
    assert len(job.published()) == 16
    assert verify(job.spec).problems == ()


def test_an_erasure_since_then(twice: Job) -> None:
    from qblock.ledger.chain import record
    from qblock.ledger.events import Event

    with store_of(twice.spec).write() as connection:
        record(connection, Event(release="people", state="erased", run="x"))
    assert "people have withdrawn since it was published" in refusal(twice, 1)


def test_versions_together_count_as_unprotected_once_one_was(twice: Job) -> None:
    twice.set(versions={"joint": "episodes"})
    result = rollback(twice.spec, 1)
    assert result.joint == "none"
    assert history(twice.spec)["events"][-1]["joint"] == "none"


def test_versions_without_an_entity_are_not_called_checked_together_by_a_rollback(released: Job) -> None:
    assert released.run(force=True).version == 2
    assert rollback(released.spec, 1).joint == "none (no entity)"
    assert {event["joint"] for event in history(released.spec)["events"] if event["joint"]} == {"none (no entity)"}


def test_one_run_at_a_time(twice: Job) -> None:
    before = events(twice)
    with store_of(twice.spec).lock("people"), pytest.raises(Busy):
        rollback(twice.spec, 1)
    assert events(twice) == before


def test_a_fault_between_any_two_steps(twice_here: Job) -> None:
    for line in range(2, 6):
        said: list[str] = []

        def log(message: str, said: list[str] = said, line: int = line) -> None:
            said.append(message)
            if len(said) == line:
                raise Boom

        with pytest.raises(Boom):
            rollback(twice_here.spec, 1, reporter=Reporter(log))
        assert len(twice_here.published()) == 13
        if line > 2:
            assert (history(twice_here.spec)["events"][-1]["state"], events(twice_here)[-1][0]) == ("failed", None)
        assert verify(twice_here.spec).problems == ()
    assert twice_here.run().status == "unchanged"
    assert rollback(twice_here.spec, 1).status == "rolled_back"


@pytest.mark.parametrize("quiet", [False, True])
def test_a_crash_before_the_ledger_row(twice: Job, monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    record = module._Rollback.record

    def broken(self: Any, connection: Any, state: Any) -> None:
        if state == "published":
            raise Boom
        record(self, connection, state)

    with monkeypatch.context() as patched:
        patched.setattr(module._Rollback, "record", broken)
        if quiet:
            patched.setattr(module._Rollback, "record_failure", lambda self, error: None)
        with pytest.raises(Boom):
            rollback(twice.spec, 1)
    if twice.engine == "duckdb":
        # The file is in its place already: the next run records it before it does anything else.
        assert len(twice.published()) == 12
        assert (twice.run().version, events(twice)[-4]) == (3, (1, "rolled_back"))
    else:
        assert len(twice.published()) == 13
        assert twice.run().status == "unchanged"
    assert verify(twice.spec).problems == ()


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize("quiet", [False, True])
def test_a_crash_before_the_file_is_renamed_keeps_the_version(
    twice_here: Job, monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    """PostgreSQL renames nothing."""
    replace = Path.replace

    def broken(self: Path, target: Any) -> Any:
        if Path(target) == twice_here.target:
            raise Boom
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", broken)
        if quiet:
            patched.setattr(module._Rollback, "record_failure", lambda self, error: None)
        with pytest.raises(Boom):
            rollback(twice_here.spec, 1)
    assert len(twice_here.published()) == 13
    assert twice_here.run().status == "unchanged"
    assert stored(twice_here).exists()
    assert rollback(twice_here.spec, 1).status == "rolled_back"
    assert verify(twice_here.spec).problems == ()


def test_a_lock_that_was_lost_stops_it(twice: Job) -> None:
    from qblock.errors import QblockError

    def lose(message: str) -> None:
        if not message.startswith("Publish version 1 again"):
            return
        if twice.engine == "duckdb":
            (twice.folder / "qblock" / "people.lock").unlink()
        else:
            twice.change("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1")

    with pytest.raises(QblockError, match="lock of release people was lost"):
        rollback(twice.spec, 1, reporter=Reporter(lose))
    assert len(twice.published()) == 13
    assert verify(twice.spec).problems == ()


def test_the_command(twice: Job, capsys: pytest.CaptureFixture[str]) -> None:
    spec = str(twice.spec.path)
    assert run(["rollback", spec, "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    wanted = {"status", "version", "node", "rows", "suppressed", "view", "digest", "ledger_head", "tightest"}
    assert wanted <= set(found)
    assert (found["status"], found["version"], found["rows"]) == ("rolled_back", 1, 12)
    assert run(["rollback", spec, "1"]) == 0
    assert "Nothing to do" in capsys.readouterr().out
    assert run(["rollback", spec, "2"]) == 0
    assert "Rolled back to version 2 as published.people" in capsys.readouterr().out
    assert run(["rollback", spec, "9", "--json"]) == 3
    answer, message = capsys.readouterr()
    assert json.loads(answer)["status"] == "refused"
    assert "was never published; kept, and available to roll back to: 1, 2" in message
    assert run(["rollback", spec, "one"]) == 2
