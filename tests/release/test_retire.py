"""A release is taken away from its readers at once, and all that was known of it stays known."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from spark_tables import spark_database_of

from qblock.cli.app import run
from qblock.engines.postgresql import lock_waits
from qblock.errors import InputError, Refused
from qblock.ledger.history import history
from qblock.publish.targets.duckdb import DuckdbTarget
from qblock.release.erase import erase
from qblock.release.retire import retire
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from release.jobs import Job
from release.state import lose
from release.test_verify import tamper_ledger

pytestmark = pytest.mark.either_engine

NEWCOMER = "INSERT INTO people (name, zip, age, disease, ward) VALUES ('late', '13053', 28, 'flu', 'A')"


def shown(job: Job) -> int:
    """How many rows whoever owns the place still gets."""
    if job.engine == "duckdb" and not job.target.exists():
        return 0
    if job.engine == "spark" and "published.people" not in spark_database_of(job.url).made():
        return 0
    return len(job.published())


@pytest.fixture
def reader(engine_name: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A login on PostgreSQL."""
    name = f"qblock_reader_{secrets.token_hex(4)}"
    if engine_name == "duckdb":
        pytest.skip("DuckDB has no roles")
    server, url = (request.getfixturevalue(what) for what in ("server", "postgresql_url"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
    yield name
    for where in (url, server):
        with psycopg.connect(where, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_a_retired_release_shows_nothing_until_somebody_says_so(released: Job) -> None:
    result = retire(released.spec)
    assert (result.status, result.version, shown(released)) == ("retired", 1, 0)
    found = history(released.spec)
    assert (found["current"], found["events"][-1]["state"]) == (None, "retired_view")
    assert found["retired_at"] == found["events"][-1]["recorded_at"]
    for act in (released.run, lambda: rollback(released.spec, 1), lambda: verify(released.spec)):
        with pytest.raises(Refused, match=r"was retired on .* --force` publishes it again"):
            act()
    assert shown(released) == 0
    assert retire(released.spec).status == "unchanged"
    again = released.run(force=True)
    assert (again.status, again.version, shown(released)) == ("published", 2, 12)
    assert not verify(released.spec).problems
    assert rollback(released.spec, 1).status == "rolled_back"
    assert history(released.spec)["retired_at"] is None


def test_the_command_says_what_it_did(released: Job, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(released.write())
    assert run(["retire", path]) == 0
    assert "shows nothing any more (version 1)" in " ".join(capsys.readouterr().out.split())
    assert run(["history", path]) == 0
    assert "Readers see nothing: the release was retired" in capsys.readouterr().out
    assert run(["release", path]) == 3
    assert run(["verify", path]) == 3


def test_versions_of_a_retired_release_count_as_read(job: Job) -> None:
    job.set(entity="name", versions={"on_refusal": "refuse"}).begin()
    retire(job.spec)
    job.change(NEWCOMER)
    with pytest.raises(Refused, match=r"2 versions together .* 1 of [0-9]+ joint cells fail"):
        job.run(force=True)
    assert shown(job) == 0


def test_people_can_withdraw_from_a_retired_release(job: Job) -> None:
    job.set(entity="name", versions={"on_refusal": "refuse"}).begin()
    retire(job.spec)
    assert erase(job.spec, ["person 1"], now=True).status == "erased"
    assert shown(job) == 0


def test_a_release_that_shows_nothing_cannot_be_retired(job: Job) -> None:
    with pytest.raises(Refused, match="shows nothing"):
        retire(job.spec)
    assert history(job.spec)["events"] == []


def test_what_readers_see_is_taken_away_though_the_pointer_row_is_lost(released: Job) -> None:
    tamper_ledger(released, "DELETE FROM qblock.pointer")
    assert retire(released.spec).status == "retired"
    assert shown(released) == 0
    assert retire(released.spec).status == "unchanged"


def test_another_spec_of_the_name_cannot_retire_the_release(released: Job) -> None:
    released.change("CREATE TABLE patients AS SELECT * FROM people")
    released.settings["source"] = {"url": released.url, "table": "patients"}
    with pytest.raises(Refused, match="One release has one source"):
        retire(released.spec)
    assert shown(released) == 12


def test_a_stopped_retirement_is_finished_by_the_next_run(released: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    if released.engine == "postgresql":
        with monkeypatch.context() as patch:
            patch.setattr("qblock.publish.targets.postgresql_views.close", stop)
            with pytest.raises(KeyboardInterrupt):
                retire(released.spec)
        assert shown(released) == 12  # one transaction: nothing has happened
        assert history(released.spec)["current"] == 1
        return
    with monkeypatch.context() as patch:
        patch.setattr(DuckdbTarget, "unpublish", stop)
        with pytest.raises(KeyboardInterrupt):
            retire(released.spec)
    assert list(verify(released.spec).problems) == [
        f"the release was retired, and published.people in {released.target} still shows rows"
    ]
    with pytest.raises(Refused, match="was retired"):
        released.run()
    assert shown(released) == 0


def stop(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.each_engine
def test_a_file_that_took_the_place_of_the_release_is_left_alone(released: Job) -> None:
    if released.engine == "postgresql":
        pytest.skip("a PostgreSQL release is no file")
    released.target.write_text("my notes")
    with pytest.raises(InputError, match="is not a version of release"):
        retire(released.spec)
    assert released.target.read_text() == "my notes"


@pytest.mark.each_engine
def test_readers_neither_wait_nor_are_waited_for(job: Job, reader: str) -> None:
    job.settings["publish"]["readers"] = [reader]
    job.run()
    job.change(f"CREATE SCHEMA own AUTHORIZATION {reader}")
    login = make_conninfo(job.url, user=reader)
    with psycopg.connect(login) as busy:
        busy.execute("CREATE VIEW own.copy AS SELECT * FROM published.people")
        busy.commit()
        # A reader in the middle of a transaction holds a lock on the view, and a view of theirs depends on it.
        assert len(busy.execute("SELECT * FROM published.people").fetchall()) == 12
        assert retire(job.spec).status == "retired"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            busy.execute("SELECT * FROM published.people")
        busy.rollback()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            busy.execute("SELECT * FROM own.copy")
    job.run(force=True)
    assert len(job.query("SELECT * FROM own.copy", login)) == 12


@pytest.mark.each_engine
def test_a_lock_that_is_held_ends_the_retirement_soon(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    if job.engine == "duckdb":
        pytest.skip("DuckDB's ledger is open for a moment only")
    monkeypatch.setattr(lock_waits, "PAUSE_SECONDS", 0)
    job.settings["publish"]["lock_timeout"] = 0.1
    job.run()
    with psycopg.connect(job.url) as other:
        other.execute("LOCK TABLE qblock.pointer IN EXCLUSIVE MODE")
        with pytest.raises(Exception, match="Try again when") as raised:
            retire(job.spec)
        assert getattr(raised.value, "exit_status", None) == 4
    assert shown(job) == 12


def test_what_a_lost_ledger_showed_can_be_taken_away(released: Job) -> None:
    lose(released, ["ledger"])
    if released.engine == "postgresql":
        released.change("UPDATE qblock.pointer SET version = NULL")
        released.change("INSERT INTO qblock.pointer SELECT 'people', 1 WHERE NOT EXISTS (SELECT 1 FROM qblock.pointer)")
    with pytest.raises(Refused, match="private state of release people is missing"):
        released.run()
    assert shown(released) > 0
    assert (retire(released.spec).status, shown(released)) == ("retired", 0)
    with pytest.raises(Refused):
        released.run()
    assert shown(released) == 0
