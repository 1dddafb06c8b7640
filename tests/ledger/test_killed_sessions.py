"""The server ends sessions in the middle of a run: the run says so, and readers keep their version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from release.jobs import Job

from qblock.cli.app import run
from qblock.release.verify import verify

pytestmark = [pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True), pytest.mark.every_postgresql]
END = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND backend_type = 'client backend' AND application_name {} 'qblock %'"
)
SESSIONS = {"lock": END.format("LIKE"), "others": END.format("NOT LIKE")}
STEPS = ("Build version", "Recount the copy", "Publish it as")


def end(job: Job, which: str) -> None:
    """End sessions of the job, and wait until they have ended."""
    with psycopg.connect(job.url, autocommit=True) as connection:
        for how in {"all": ("lock", "others")}.get(which, (which,)):
            connection.execute(SESSIONS[how])  # type: ignore[arg-type]


@pytest.mark.parametrize("which", ["lock", "others", "all"])
def test_sessions_that_end_between_two_steps_are_no_internal_error(released: Job, which: str) -> None:
    before = released.published()
    for step in STEPS:

        def log(message: str, step: str = step) -> None:
            if message.startswith(step):
                end(released, which)

        if (which, step) == ("others", "Recount the copy"):
            continue  # none is open then
        with pytest.raises(Exception, match=r"ended (the connection|its session)") as raised:
            released.run(force=True, log=log)
        assert getattr(raised.value, "exit_status", None) == 1, step
        assert released.published() == before
    assert released.run(force=True).status == "published"
    assert verify(released.spec).problems == ()


@contextmanager
def ended_before(job: Job, part: str) -> Iterator[list[str]]:
    """The session that is about to execute a statement is ended; the statements that were met."""
    met: list[str] = []

    def execute(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if part not in statement or met:
            return
        met.append(statement)
        process = connection.connection.driver_connection.info.backend_pid
        with psycopg.connect(job.url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [process])

    sa.event.listen(sa.Engine, "before_cursor_execute", execute)
    try:
        yield met
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", execute)


STATEMENTS = [
    "CREATE TABLE qblock",
    "INSERT INTO qblock.v2_",
    'COMMENT ON TABLE qblock."data',
    'INSERT INTO qblock."data',
    "INSERT INTO qblock.event",
    "LOCK TABLE",
    "UPDATE qblock.pointer",
    " AS elsewhere",
    "what names of a schema stand for",
    "SELECT qblock.view.schema",
    "FROM pg_roles",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_session_that_ends_before_a_statement_is_no_internal_error(
    released: Job, statement: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = released.published()
    with ended_before(released, statement) as met:
        assert run(["release", str(released.write()), "--force"]) == 1
    assert met
    _, err = capfd.readouterr()
    assert "ended the connection" in err or "ended its session" in err
    assert "internal error" not in err
    assert released.published() == before


CALLS = [
    (psycopg.Cursor, "execute"),
    (psycopg.Cursor, "copy"),
    (psycopg.Cursor, "fetchall"),
    (psycopg.Connection, "commit"),
    (psycopg.Connection, "rollback"),
    (psycopg.Copy, "read"),
]
APART = 79
"""Of so many calls of the driver one is met by a test."""


class Ending:
    """Ends the session that is used in a call of the driver. number: of the call; calls: how many there were."""

    def __init__(self, url: str, patched: pytest.MonkeyPatch) -> None:
        self.number, self.calls = 0, 0
        self._url, self._connect = url, psycopg.connect
        for owner, name in CALLS:
            patched.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call: Any) -> Any:
        def counted(used: Any, *arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self.number:
                session = used if isinstance(used, psycopg.Connection) else used.connection
                with self._connect(self._url, autocommit=True) as other:
                    other.execute("SELECT pg_terminate_backend(%s, 5000)", [session.info.backend_pid])
            return call(used, *arguments, **named)

        return counted


@pytest.mark.parametrize("first", [3, 30, 57])
def test_a_session_that_ends_at_any_call_is_no_internal_error(
    released: Job, first: int, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["release", str(released.write()), "--force", "--quiet"]
    ending = Ending(released.url, monkeypatch)
    assert run(command) == 0
    calls, ended = ending.calls, 0
    for number in range(first, calls, APART):
        ending.number, ending.calls = number, 0
        status = run(command)
        err = capfd.readouterr().err
        assert status in (0, 1), (number, err)
        assert "internal error" not in err, (number, calls)
        ended += status
    assert ended
    ending.number = 0
    assert run(command) == 0
    assert verify(released.spec).problems == ()


def test_verification_that_loses_the_server_has_not_failed(released: Job, capfd: pytest.CaptureFixture[str]) -> None:
    """It was exit status 3, as for a version that was altered."""
    with ended_before(released, 'FROM "published"."people"') as met:
        assert run(["verify", str(released.write())]) == 1
    assert met
    assert "PostgreSQL ended the connection" in capfd.readouterr().err
