"""No reader waits long behind a publication, and no publication waits for ever behind a reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from migrated import one_more
from psycopg import sql
from release.jobs import ATTRIBUTES, CopyJob, Job
from release.logins import OwnLogin, own_login

from qblock.cli.app import run
from qblock.engines.postgresql import lock_waits
from qblock.engines.postgresql import session as postgresql_session
from qblock.errors import Busy
from qblock.ledger import schema
from qblock.ledger.history import history
from qblock.ledger.stores import postgresql as stores
from qblock.ledger.stores import store_of, store_of_url
from qblock.publish.targets.postgresql import PostgresqlTarget
from qblock.release.move import move
from qblock.release.retire import retire
from qblock.release.rollback import rollback
from qblock.release.verify import verify
from qblock.versions.crosswalk import prepare

pytestmark = [pytest.mark.every_postgresql(alone=True), pytest.mark.usefixtures("postgresql_version")]

COUNT = "SELECT count(*) FROM published.people"
FEWER = {name: role for name, role in ATTRIBUTES.items() if name != "ward"}
STRONG = re.compile(
    r"\s*(?:(DROP|ALTER|LOCK|GRANT|REVOKE) .*(?:qblock\.|published)|(CREATE) OR REPLACE VIEW|(COMMENT) ON VIEW|"
    r"(UPDATE|INSERT INTO) qblock\.(?:pointer|event)|(SELECT) .* FOR UPDATE)",
    re.DOTALL,
)

KEEPS_OUT = re.compile(
    r"(DROP|ALTER) VIEW|CREATE OR REPLACE VIEW|LOCK TABLE ONLY|DROP TABLE qblock|"
    r"ALTER TABLE qblock.* (RENAME|ADD|DETACH)"
)


@pytest.fixture
def engine_name() -> str:
    """DuckDB's readers read a file of their own."""
    return "postgresql"


@pytest.fixture
def job(copy_job: CopyJob, monkeypatch: pytest.MonkeyPatch) -> Job:
    """One version of four columns."""
    monkeypatch.setattr(lock_waits, "PAUSE_SECONDS", 0)
    made = copy_job("alone", lambda first: first.set(versions={"joint": "none"}).run())
    made.settings["publish"]["lock_timeout"] = 0.1
    end_soon(made.url)
    return made


def end_soon(url: str) -> None:
    """What would wait for ever is cancelled after a minute, and fails the test."""
    with psycopg.connect(url) as connection:
        name = sql.Identifier(sa.make_url(url).database or "")
        connection.execute(sql.SQL("ALTER DATABASE {} SET statement_timeout = '60s'").format(name))


@pytest.fixture
def reader(job: Job) -> Iterator[psycopg.Connection]:
    """A reader who has read, and whose transaction is still open."""
    with psycopg.connect(job.url) as connection:
        connection.execute(COUNT)
        yield connection


def states(job: Job) -> list[tuple[int | None, str]]:
    return [(event["version"], event["state"]) for event in history(job.spec)["events"]]


def fewer(job: Job) -> Callable[[], object]:
    job.set(attributes=FEWER)
    return job.run


def appended(job: Job) -> Callable[[], object]:
    job.set(attributes={**ATTRIBUTES, "floor": "insensitive"})
    return job.run


def back(job: Job) -> Callable[[], object]:
    return lambda: rollback(job.spec, 1)


def moved(job: Job) -> Callable[[], object]:
    job.set(release="persons")
    return lambda: move(job.spec, "people")


@pytest.mark.parametrize("prepare", [fewer, appended, back, moved])
def test_an_idle_reader_ends_the_run_soon_and_the_next_one_succeeds(
    job: Job, prepare: Callable[[Job], Callable[[], object]]
) -> None:
    job.change("ALTER TABLE people ADD COLUMN floor integer DEFAULT 1")
    if prepare is back:
        job.set(attributes=FEWER).run()
        job.set(attributes=ATTRIBUTES)
    before = job.published()
    act = prepare(job)
    with psycopg.connect(job.url) as reader:
        reader.execute(COUNT)
        with pytest.raises(Busy, match="Readers see the same as before") as raised:
            act()
        assert f"server process {reader.info.backend_pid} of user {reader.info.user} (idle in transaction" in str(
            raised.value
        )
        assert re.search(r"its transaction began 20\d\d-\d\d-\d\d ", str(raised.value))
        assert job.published() == before
        reader.execute(COUNT)
    act()
    assert verify(job.spec).problems == ()
    assert states(job)[-1][1] in ("published", "rolled_back", "moved")


def test_readers_get_through_between_two_turns(
    job: Job, reader: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = []

    def between(number: int) -> None:
        with psycopg.connect(job.url, autocommit=True) as other:
            other.execute("SET lock_timeout = '1s'")
            assert other.execute(COUNT).fetchall() == [(12,)]
            queue = (
                "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
                "WHERE datname = current_database() AND (NOT granted OR mode = 'AccessExclusiveLock')"
            )
            assert other.execute(queue).fetchall() == [(0,)]
        turns.append(number)
        if number == 3:
            reader.rollback()

    monkeypatch.setattr(lock_waits, "pause", between)
    job.set(attributes=FEWER)
    assert job.run().version == 2
    assert turns == [1, 2, 3]
    assert len(job.published()[0]) == 3


def test_no_lock_that_somebody_may_hold_is_waited_for_without_an_end(job: Job) -> None:
    """Every such statement of a publication, a rollback, a move and a retirement, and how long it may wait."""
    waited: list[tuple[str, int]] = []

    def asked(connection: sa.Connection, cursor: Any, statement: str, *_: Any) -> None:
        if STRONG.match(statement) and connection.dialect.name == "postgresql":
            cursor.execute("SELECT CAST(setting AS int) FROM pg_settings WHERE name = 'lock_timeout'")
            waited.append((statement, cursor.fetchone()[0]))

    sa.event.listen(sa.Engine, "before_cursor_execute", asked)
    try:
        job.change("ALTER TABLE people ADD COLUMN floor integer DEFAULT 1")
        fewer(job)()
        appended(job)()
        job.set(attributes=ATTRIBUTES)
        job.settings["versions"]["keep"] = 1
        back(job)()
        job.run(force=True)
        moved(job)()
        retire(job.spec)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", asked)
    kinds = {next(filter(None, STRONG.match(statement).groups())) for statement, _ in waited}  # type: ignore[union-attr]
    assert kinds >= {"DROP", "ALTER", "LOCK", "CREATE", "COMMENT", "UPDATE", "SELECT", "INSERT INTO"}
    # Ten minutes are the limit of statements that nobody waits behind.
    assert [statement for statement, limit in waited if limit in (0, 600_000)] == []
    # Behind these readers would wait.
    assert [one for one in waited if KEEPS_OUT.match(one[0]) and one[1] > 100] == []
    assert sum(bool(KEEPS_OUT.match(statement)) for statement, _ in waited) > 5


def test_the_pointer_row_is_waited_for_while_readers_read(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    with psycopg.connect(job.url) as administrator:
        administrator.execute("SELECT * FROM qblock.pointer FOR UPDATE")
        monkeypatch.setattr(lock_waits, "pause", lambda number: seen.append(job.query(COUNT)))
        job.set(attributes=FEWER)
        with pytest.raises(Busy, match=f"server process {administrator.info.backend_pid} of user"):
            job.run()
    assert seen == [[(12,)]] * (lock_waits.ATTEMPTS - 1)
    assert job.run().version == 3


def test_the_view_is_not_locked_while_something_else_is_waited_for(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    checking = PostgresqlTarget.checking
    with psycopg.connect(job.url) as administrator:

        def meanwhile(self: PostgresqlTarget, *arguments: Any) -> Any:
            administrator.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")
            sa.event.listen(sa.Engine, "before_cursor_execute", asked)
            return checking(self, *arguments)

        def asked(connection: sa.Connection, cursor: Any, statement: str, *_: Any) -> None:
            statements.append(statement)

        monkeypatch.setattr(PostgresqlTarget, "checking", meanwhile)
        job.set(attributes=FEWER)
        try:
            with pytest.raises(Busy, match=f"server process {administrator.info.backend_pid} of user"):
                job.run()
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", asked)
    assert any("FOR UPDATE" in statement for statement in statements)
    assert not any(re.match("(DROP|CREATE|ALTER) VIEW", statement) for statement in statements)
    assert len(job.published()[0]) == 4


def test_a_catalog_row_that_another_session_changes_is_waited_for(
    job: Job, reader: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator's GRANT that is not committed yet, on the view that is replaced."""
    reader.rollback()
    reader.execute("GRANT SELECT ON published.people TO PUBLIC")
    monkeypatch.setattr(lock_waits, "pause", lambda number: reader.commit())
    job.change("ALTER TABLE people ADD COLUMN floor integer DEFAULT 1")
    assert appended(job)().version == 2  # type: ignore[attr-defined]


@pytest.fixture
def plain(postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnLogin]:
    """A job whose login may see nothing of other sessions but that they are there."""
    monkeypatch.setattr(lock_waits, "PAUSE_SECONDS", 0)
    with own_login(postgresql_url, tmp_path) as made:
        made.job.settings["publish"]["lock_timeout"] = 0.1
        made.job.set(versions={"joint": "none"})
        made.job.run()
        end_soon(made.owner)
        yield made


def test_a_login_that_may_not_see_since_when_names_process_and_user(
    plain: OwnLogin, capsys: pytest.CaptureFixture[str]
) -> None:
    job = plain.job.set(attributes=FEWER)
    with psycopg.connect(plain.as_role(plain.reader)) as reader:
        reader.execute(COUNT)
        assert run(["release", str(job.write())]) == 4
        said = capsys.readouterr().err
        assert f"held by server process {reader.info.backend_pid} of user {plain.reader}. " in said
        assert f"pg_terminate_backend({reader.info.backend_pid})" in said
    assert run(["release", str(job.write())]) == 0


def test_a_dump_that_is_being_written_keeps_old_versions_for_now(job: Job) -> None:
    job.settings["versions"]["keep"] = 1
    with psycopg.connect(job.url) as dump:
        dump.execute("LOCK TABLE qblock.data_people, qblock.v1_people, qblock.event IN ACCESS SHARE MODE")
        notes = job.run(force=True).notes
        assert "version 1 stays until its readers have ended" in notes
    job.run(force=True)
    assert (1, "retired") in states(job)


def test_a_table_of_the_ledger_that_is_locked_ends_the_run_and_says_by_whom(job: Job) -> None:
    place = store_of(job.spec)
    with psycopg.connect(job.url) as administrator:
        administrator.execute("LOCK TABLE qblock.begun IN EXCLUSIVE MODE")
        with pytest.raises(Busy, match=f"server process {administrator.info.backend_pid} of user"):  # noqa: SIM117
            with place.write(0.1) as connection:
                connection.execute(sa.text("DELETE FROM qblock.begun"))
    with place.write(0.1) as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM qblock.begun")) == 1


def test_a_crosswalk_that_is_locked_ends_what_prepares_it_and_says_by_whom(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = store_of(job.spec)
    prepare(place)
    monkeypatch.setattr(stores, "limited", lambda connection, _, *names: lock_waits.limited(connection, 0.1, *names))
    with psycopg.connect(job.url) as administrator:
        administrator.execute("LOCK TABLE qblock.crosswalk_key IN EXCLUSIVE MODE")
        with pytest.raises(Busy, match=f"server process {administrator.info.backend_pid} of user"):
            prepare(place)


@pytest.mark.parametrize(
    "words", [["release"], ["rollback", "1"], ["erase", "person 1"], ["verify"], ["ledger", "rekey"]], ids=" ".join
)
def test_nothing_waits_for_private_tables_without_limit(
    copy_job: CopyJob, monkeypatch: pytest.MonkeyPatch, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    job = copy_job("entities", lambda first: first.set(entity="name").run())
    end_soon(job.url)
    monkeypatch.setattr(stores, "LOCK_TIMEOUT", "'100ms'")
    monkeypatch.setattr(stores, "limited", lambda connection, _, *names: lock_waits.limited(connection, 0.1, *names))
    monkeypatch.setattr(stores, "_engine_of_one", stores._engine_of_one.__wrapped__)
    at = 2 if words[0] == "ledger" else 1
    for table in ("event", "crosswalk_key", "crosswalk_apart"):
        with psycopg.connect(job.url) as administrator:
            administrator.execute(f"LOCK TABLE qblock.{table} IN ACCESS EXCLUSIVE MODE")
            command = [*words[:at], str(job.write()), *words[at:]]
            assert run(command) == 4
            assert "try again later" in capsys.readouterr().err


def test_a_source_that_is_locked_is_not_waited_for_without_limit(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(postgresql_session.SETTINGS, "lock_timeout", "100ms")
    with psycopg.connect(job.url) as administrator:
        administrator.execute("LOCK TABLE people")
        assert run(["release", str(job.write())]) == 4
        assert "another session holds a lock that this run needs" in capsys.readouterr().err
    assert job.run().status == "unchanged"


def test_an_upgrade_of_the_ledger_does_not_wait_for_a_dump(
    postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_waits, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.1)
    place = store_of_url(postgresql_url, tmp_path)
    _, before = place.upgrade()
    newest = one_more(monkeypatch, tmp_path / "later")
    end_soon(postgresql_url)
    with psycopg.connect(postgresql_url) as dump:
        dump.execute("LOCK TABLE qblock.event, qblock.pointer IN ACCESS SHARE MODE")
        with pytest.raises(Busy, match=f"server process {dump.info.backend_pid} of user"):
            place.upgrade()
    assert place.upgrade() == (before, newest)
