"""The ledger's schema: made and upgraded on both engines, at once from several jobs, and never by an older program."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from migrated import one_more

from qblock.engines.postgresql import lock_waits
from qblock.errors import Busy, QblockError
from qblock.ledger import schema
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.ledger.schema import tables
from qblock.ledger.store import Store
from qblock.resources import migrations_directory

pytestmark = pytest.mark.every_postgresql

NEWEST = schema.revisions()[-1]


def test_upgrade_twice_is_upgrade_once(place: Store) -> None:
    assert place.upgrade() == (None, NEWEST)
    assert place.upgrade() == (NEWEST, NEWEST)
    with place.write() as connection:
        record(connection, Event(release="r", state="staged", run="u"))
    assert place.upgrade() == (NEWEST, NEWEST)
    with place.read() as reader:
        assert len(reader.history("r")) == 1


def test_an_engine_will_do_as_well(place: Store) -> None:
    with place.write():
        pass
    engine = place.create_engine()
    assert schema.upgrade(engine) == (None, NEWEST)
    assert schema.upgrade(engine) == (NEWEST, NEWEST)
    engine.dispose()


def test_revisions_are_linear_and_numbered() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(migrations_directory()))
    scripts = list(ScriptDirectory.from_config(config).walk_revisions())[::-1]
    assert tuple(script.revision for script in scripts) == schema.revisions()
    assert [script.down_revision for script in scripts] == [None, *schema.revisions()[:-1]]
    assert list(schema.revisions()) == [f"{i + 1:04}" for i in range(len(scripts))]


def test_statements_name_the_columns_that_migrations_make(ledger: Store) -> None:
    with ledger.write() as connection:
        for table in vars(tables(connection)).values():
            query = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = :t"
            if ledger.file is not None:
                query = "SELECT name, type FROM pragma_table_info(:t)"
            found = connection.execute(sa.text(query), {"t": table.name})
            names = {"double precision": "double"}
            types = {name: names.get(type_, type_).lower() for name, type_ in found}
            declared = {sa.Text: "text", sa.BigInteger: "bigint", sa.Boolean: "boolean", sa.Double: "double"}
            assert types == {column.name: declared[type(column.type)] for column in table.columns}


def test_an_upgrade_belongs_to_the_callers_transaction(place: Store) -> None:
    with pytest.raises(RuntimeError), place.write() as connection:  # noqa: PT012
        before = None
        if place.engine == "postgresql":
            before = connection.scalar(sa.text("SHOW search_path"))
        schema.upgrade(connection)
        assert schema.revision(connection) == NEWEST
        if place.engine == "postgresql":
            assert connection.scalar(sa.text("SHOW search_path")) == before
        raise RuntimeError
    with place.write() as connection:
        assert schema.revision(connection) is None


def test_an_upgrade_that_was_killed_is_done_by_the_next_run(place: Store, start) -> None:
    killed = start(
        "from qblock.ledger.schema import upgrade\n"
        "with place.write() as connection:\n"
        "    upgrade(connection); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert killed.wait() == -9
    with place.read() as reader:
        assert reader.releases() == []
    assert place.upgrade() == (None, NEWEST)


def test_an_event_that_was_committed_survives_a_kill(ledger: Store, start) -> None:
    killed = start(
        "from qblock.ledger.chain import record\nfrom qblock.ledger.events import Event\n"
        "with place.opened(read_only=False) as connection:\n"
        "    with connection.begin(): record(connection, Event(release='r', state='staged', run='u'))\n"
        "    transaction = connection.begin()\n"
        "    record(connection, Event(release='r', state='checked', run='u'))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert killed.wait() == -9
    with ledger.read() as reader:
        assert [event.state for event in reader.history("r")] == ["staged"]
        assert reader.verify_chain("r") == []
    with ledger.write() as connection:
        record(connection, Event(release="r", state="failed", run="v"))
    with ledger.read() as reader:
        assert [event.state for event in reader.history("r")] == ["staged", "failed"]


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_a_ledger_file_that_was_only_begun_is_no_ledger(place: Store) -> None:
    place.folder.mkdir(mode=0o700)
    assert place.file is not None
    place.file.write_bytes(b"")
    with place.read() as reader:
        assert reader.releases() == []
    assert place.upgrade() == (None, NEWEST)
    assert sorted(file.name for file in place.folder.iterdir()) == ["ledger.sqlite"]


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_jobs_that_upgrade_at_once_do_not_break_each_other(place: Store) -> None:
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(Store.upgrade, [place] * 6))
    assert sorted(results, key=str) == [(NEWEST, NEWEST)] * 5 + [(None, NEWEST)]


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_no_advisory_lock_holds_up_an_upgrade(place: Store) -> None:
    """Any login may take one, for ever."""
    url = place.url.set(drivername="postgresql").render_as_string(False)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [int.from_bytes(b"qblock")])
        other.execute(f"ALTER DATABASE {place.url.database} SET statement_timeout = '2s'")
        assert place.upgrade() == (None, NEWEST)


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
@pytest.mark.parametrize("before", ["nothing", "an empty schema"])
def test_an_upgrade_waits_for_another_one_but_not_for_ever(
    place: Store, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.05)
    monkeypatch.setattr(lock_waits, "PAUSE_SECONDS", 0.01)
    engine = place.create_engine()
    with engine.connect() as other:
        if before == "an empty schema":
            other.exec_driver_sql("CREATE SCHEMA qblock")
            other.commit()
        schema.upgrade(other)
        with pytest.raises(Busy, match=r"the ledger .* is being made by another session"):
            place.upgrade()
        other.commit()
    engine.dispose()
    assert place.upgrade() == (NEWEST, NEWEST)


@pytest.mark.parametrize("engine_name", ["postgresql"], indirect=True)
def test_an_upgrade_of_a_ledger_waits_for_another_one(
    ledger: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(schema, "LOCK_SECONDS", 0.05)
    monkeypatch.setattr(lock_waits, "PAUSE_SECONDS", 0.01)
    newest = one_more(monkeypatch, tmp_path)
    engine = ledger.create_engine()
    with engine.connect() as other:
        assert schema.upgrade(other) == (NEWEST, newest)
        with pytest.raises(Busy, match=r"the ledger .* is held by server process \d+ of user"):
            ledger.upgrade()
        other.commit()
    engine.dispose()
    assert ledger.upgrade() == (newest, newest)


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_processes_that_upgrade_at_once_do_not_break_each_other(place: Store, start) -> None:
    jobs = [start("print(place.upgrade())") for _ in range(3)]
    answers = sorted(job.communicate()[0].strip() for job in jobs)
    assert answers == sorted([f"({NEWEST!r}, {NEWEST!r})"] * 2 + [f"(None, {NEWEST!r})"])


def test_an_older_program_refuses_a_newer_ledger(ledger: Store) -> None:
    with ledger.write() as connection:
        schema = "qblock." if ledger.engine == "postgresql" else ""
        connection.execute(sa.text(f"UPDATE {schema}alembic_version SET version_num = '9999'"))
    message = "revision 9999, which qblock .* does not know .* a newer qblock has upgraded it"
    with pytest.raises(QblockError, match=message) as raised:
        ledger.upgrade()
    assert raised.value.exit_status == 1
    with pytest.raises(QblockError, match=message), ledger.read():
        pass


def test_a_newer_program_asks_for_the_upgrade_before_it_reads(ledger: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = schema.revisions()
    monkeypatch.setattr(schema, "revisions", lambda: (*known, "9999"))
    with pytest.raises(QblockError, match="upgrade it: qblock ledger upgrade SPEC"), ledger.read():
        pass


def test_a_later_addition_that_may_be_null_breaks_nothing(ledger: Store) -> None:
    with ledger.write() as connection:
        record(connection, Event(release="r", state="published", run="u", version=1))
    prefix = "qblock." if ledger.engine == "postgresql" else ""
    with ledger.write() as connection:
        for table in ("event", "guarantee", "pointer"):
            connection.execute(sa.text(f"ALTER TABLE {prefix}{table} ADD COLUMN added text"))
    with ledger.write() as connection:
        record(connection, Event(release="r", state="retired", run="u", version=1))
        views = {"release_history": 2, "version_guarantees": 0, "margin_trend": 0, "current_version": 0}
        for view, rows in views.items():
            assert len(connection.execute(sa.text(f"SELECT * FROM {prefix}{view}")).all()) == rows
    with ledger.read() as reader:
        assert reader.verify_chain("r") == []


def test_the_folder_of_the_migrations_may_have_any_name(
    place: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "100% mine, %(here)s" / "migrations"
    shutil.copytree(migrations_directory(), copy)
    monkeypatch.setattr(schema, "migrations_directory", lambda: copy)
    assert place.upgrade() == (None, NEWEST)
