"""Errors of the databases are told by class and SQLSTATE: no value of the source is in the message."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql
from release.jobs import Job

from qblock.cli.app import run
from qblock.engines.duckdb.faults import explain_duckdb
from qblock.engines.postgresql.faults import explain_postgresql
from qblock.engines.registry import open_warehouse
from qblock.engines.tables import TableName
from qblock.errors import Busy, InputError, QblockError
from qblock.ledger.history import history
from qblock.releases import Release

pytestmark = pytest.mark.every_postgresql

SECRET = "gonorrhoea-of-erika"
VIEWS = {
    "a cast to a number": "CAST(ill AS INTEGER)",
    "a cast to a date": "CAST(ill AS DATE)",
    "a number out of range": "CAST(99999 AS SMALLINT) + length(ill)",
    "a text as boolean": "CAST(ill AS BOOLEAN)",
}


def broken(engine_name: str, url: str, expression: str) -> None:
    """A view over the table whose column ill fails when it is read."""
    view = f"CREATE VIEW clinic_view AS SELECT name, {expression} AS ill FROM people"
    if engine_name == "duckdb":
        with duckdb.connect(url.removeprefix("duckdb:///")) as connection:
            connection.execute(view)
        return
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL(view))  # type: ignore[arg-type]


@pytest.mark.parametrize("what", VIEWS)
def test_a_view_that_casts_does_not_tell_the_value(warehouse: Callable[..., str], engine_name: str, what: str) -> None:
    url = warehouse("people", {"name": ["Erika"], "ill": [SECRET]})
    broken(engine_name, url, VIEWS[what])
    opened = open_warehouse(url, Path())
    with opened.snapshot() as session:
        relation = session.relation(TableName(None, "clinic_view"))
        query = sa.select(sa.cast(relation.c.ill, sa.Text), relation.c.name)
        with pytest.raises(QblockError) as caught:
            session.fetch(query)
    opened.close()
    said = str(caught.value)
    assert "while reading table clinic_view" in said
    assert "correct the view" in said
    assert ("SQLSTATE 22" in said) == (engine_name == "postgresql")
    assert SECRET not in said
    assert "Erika" not in said


def failing(job: Job) -> Job:
    job.change(
        "CREATE VIEW casting AS SELECT name, zip, age, CASE WHEN name = 'person 3' THEN CAST(disease AS INTEGER) "
        "ELSE 1 END AS disease, ward FROM people"
    )
    return job.set(source=job.settings["source"] | {"table": "casting"})


def test_nothing_of_the_drivers_text_is_in_log_result_or_ledger(
    job: Job, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QBLOCK_DEBUG", "1")
    path = failing(job).write()
    file = tmp_path / "result.json"
    assert run(["--debug", "release", str(path), "--result", str(file), "--log-format", "json", "--json"]) == 1
    out, err = capfd.readouterr()
    stored = file.read_text("utf-8")
    reason = history(job.spec)["events"][-1]["reason"]
    for text in (out, err, stored, reason):
        assert "could not convert a value" in text
        assert "viral" not in text
        assert "Traceback" not in text
    assert "while reading table casting" in reason


def test_debug_shows_the_drivers_text_on_a_terminal_alone(
    job: Job, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = failing(job).write()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(["release", str(path), "--quiet"]) == 1
    assert "viral" not in capfd.readouterr().err
    assert run(["--debug", "release", str(path), "--quiet"]) == 1
    assert "viral" in capfd.readouterr().err


ENDED: dict[str, Any] = {
    "duckdb": (duckdb.OutOfMemoryException, "DuckDB has no memory left (OutOfMemoryException)"),
    "postgresql": (psycopg.OperationalError, "database not reachable: the connection was lost"),
}


def test_an_error_of_a_driver_that_no_statement_has_is_told_as_the_others(
    job: Job, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a commit, or the end of a session."""
    error, said = ENDED[job.engine]

    def ends(*_: Any) -> None:
        raise sa.exc.OperationalError(SECRET, {}, error(SECRET))

    monkeypatch.setattr("qblock.release.job.Job.settle_unfinished", ends)
    assert run(["release", str(job.write()), "--quiet"]) == 1
    assert said in capfd.readouterr().err
    assert history(job.spec)["events"][-1]["reason"].startswith(said)
    with pytest.raises(QblockError, match=re.escape(said)) as raised:
        Release(job.spec).publish()
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_an_error_at_the_end_of_a_snapshot_hides_none_before_it(
    warehouse: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB refuses the rollback, too, where there is no memory left."""
    url = warehouse("people", {"name": ["Erika"]})

    def full(*_: Any) -> None:
        raise duckdb.OutOfMemoryException(SECRET)

    for raised in (InputError("the first one"), None):
        opened = open_warehouse(url, Path())
        with pytest.raises(QblockError) as caught, opened.snapshot() as session:  # noqa: PT012
            monkeypatch.setattr(session.connection.dialect, "do_rollback", full)
            if raised is not None:
                raise raised
        monkeypatch.undo()
        opened.close()
        assert str(caught.value).startswith("the first one" if raised else "DuckDB has no memory left")


def test_a_column_named_interrupted_is_no_ctrl_c(job: Job, capfd: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C was known by the word in the driver's text."""
    job.change(
        "CREATE VIEW treatments AS SELECT name, zip, age, CAST(disease || ' treatment_interrupted' AS INTEGER) "
        "AS disease, ward FROM people"
    )
    job.set(source=job.settings["source"] | {"table": "treatments"})
    assert run(["release", str(job.write()), "--quiet"]) == 1
    err = capfd.readouterr().err
    assert "could not convert a value" in err
    assert "interrupted" not in err


def test_a_statement_that_the_server_cancels_is_no_ctrl_c(postgresql_url: str) -> None:
    opened = open_warehouse(postgresql_url, Path())
    with opened.snapshot() as session:
        session.run("SET LOCAL statement_timeout = 1")
        with pytest.raises(QblockError, match=r"cancelled the statement.*57014"):
            session.run("SELECT pg_sleep(60)")


def test_a_statement_that_is_interrupted_is_ctrl_c(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute("CREATE TABLE one AS SELECT 1 AS a")
    opened = open_warehouse(f"duckdb:///{tmp_path}/w.duckdb", Path())
    with opened.snapshot() as session:

        def stopped(*_: Any, **__: Any) -> Any:
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

        session.connection.execute = stopped  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            session.run("SELECT 1")
    opened.close()


@pytest.mark.parametrize(
    ("class_", "status", "said"),
    [
        (psycopg.errors.LockNotAvailable, 4, "try again later"),
        (psycopg.errors.AdminShutdown, 1, "database not reachable"),
        (psycopg.errors.InsufficientPrivilege, 1, "`qblock grants SPEC` prints"),
        (psycopg.errors.UniqueViolation, 1, "constraint"),
        (psycopg.errors.DivisionByZero, 1, "divided by zero"),
        (psycopg.errors.UntranslatableCharacter, 1, "encoding"),
        (psycopg.errors.RaiseException, 1, "raised an error"),
        (psycopg.errors.DiskFull, 1, "disk"),
        (psycopg.errors.DataError, 1, "could not be read"),
        (psycopg.OperationalError, 1, "the connection was lost"),
    ],
)
def test_errors_of_postgresql_stay_apart(class_: type[psycopg.Error], status: int, said: str) -> None:
    found = explain_postgresql(class_(f"row ({SECRET})"), reading=["people"])
    assert (found.exit_status, said in str(found)) == (status, True), found
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    "class_", [c for c in vars(duckdb).values() if isinstance(c, type) and issubclass(c, duckdb.Error)]
)
def test_no_class_of_duckdb_is_told_by_its_text(class_: type[duckdb.Error]) -> None:
    found = explain_duckdb(class_(f"Some Error: Could not convert string '{SECRET}' to INT32"))
    assert found.exit_status == 1
    assert class_.__name__ in str(found)
    assert SECRET not in str(found)


def test_of_a_locked_file_nothing_but_its_name_is_told() -> None:
    text = 'IO Error: Could not set lock on file "/w.duckdb": Conflicting lock is held in /bin/x (PID 7). See y'
    found = explain_duckdb(duckdb.IOException(text))
    assert isinstance(found, Busy)
    assert str(found) == "another process holds the DuckDB file: /w.duckdb (PID 7); wait until it has closed the file"


BETWEEN = "but we can only read versions between"


@pytest.mark.parametrize(
    ("text", "class_", "said"),
    [
        (
            f"IO Error: Trying to read a database file with version number 99, {BETWEEN} 64 and 68.\nThe database",
            QblockError,
            "/c.duckdb was written by a newer DuckDB (storage 99) than the installed {}, which reads storage up to 68. "
            "Upgrade it: pip install --upgrade duckdb",
        ),
        (
            f"IO Error: Trying to read a database file with version number 38, {BETWEEN} 64 and 68.\nThe database",
            QblockError,
            "/c.duckdb was written by an older DuckDB (storage 38) than the installed {} can read. Export it",
        ),
        ('IO Error: Could not read enough bytes from file "/d.duckdb": 7', QblockError, "/d.duckdb is damaged; put it"),
        ("Corrupt database file: Erika", QblockError, "/c.duckdb is damaged; put it back from its backup"),
        ('Binder Error: Unique file handle conflict: Cannot attach "x"', Busy, "another process or thread holds"),
        ('Resource In Use Error: Unique file handle conflict: Cannot attach "x"', Busy, "another process or thread"),
        ("IO Error: Erika: Permission denied", QblockError, "(Error: Permission denied)"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_apart(text: str, class_: type[QblockError], said: str) -> None:
    error = duckdb.IOException if "Permission" in text else duckdb.Error
    found = explain_duckdb(error(text), file=Path("/c.duckdb"))
    assert type(found) is class_
    assert said.format(duckdb.__version__).replace("(Error:", "(IOException:") in str(found)
    assert "Erika" not in str(found)


@pytest.mark.parametrize("damage", ["a checksum", "its end"])
def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE one AS SELECT 1 AS a")
    content = bytearray(file.read_bytes())
    content[5000:5010] = b"0123456789"
    file.write_bytes(content if damage == "a checksum" else content[:3000])
    opened = open_warehouse(f"duckdb:///{file}", Path())
    with pytest.raises(QblockError, match=r"w\.duckdb is damaged.*; put it back from its backup"), opened.snapshot():
        pass
    opened.close()


def test_a_file_that_this_process_has_open_otherwise_is_busy(tmp_path: Path) -> None:
    file = tmp_path / "w.duckdb"
    opened = open_warehouse(f"duckdb:///{file}", Path())
    with duckdb.connect(str(file)), pytest.raises(Busy, match="wait until it has closed the file"), opened.snapshot():
        pass
    opened.close()
