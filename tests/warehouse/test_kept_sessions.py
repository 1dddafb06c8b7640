"""A run goes on in the server session that it has left, and in no other one than its own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from qblock.engines import kept_sessions
from qblock.engines.kept_sessions import kept_sessions as keeping
from qblock.errors import Busy
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of_url

pytestmark = pytest.mark.every_postgresql

PROCESS = sa.text("SELECT pg_catalog.pg_backend_pid()")


@pytest.fixture
def place(postgresql_url: str, tmp_path: object) -> Store:
    made = store_of_url(postgresql_url, tmp_path)  # type: ignore[arg-type]
    made.upgrade()
    return made


@pytest.fixture
def other(postgresql_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgresql_url, autocommit=True) as connection:
        yield connection


def process(place: Store) -> int:
    """The server process of a connection to the target."""
    with place.create_engine().connect() as connection:
        return int(connection.scalar(PROCESS) or 0)


def test_each_transaction_has_the_path_and_the_rights_of_its_own(place: Store) -> None:
    found = []
    with keeping():
        for _ in range(2):
            with place.opened(read_only=True) as connection:
                found.append(connection.scalar(PROCESS))
                assert connection.scalar(sa.text("SHOW search_path")) == "pg_catalog, qblock, pg_temp"
                assert connection.scalar(sa.text("SHOW transaction_read_only")) == "on"
                connection.rollback()
                assert connection.scalar(sa.text("SHOW search_path")) == "pg_catalog, qblock, pg_temp"
            with place.write() as connection:
                found.append(connection.scalar(PROCESS))
                assert connection.scalar(sa.text("SHOW search_path")) == "pg_catalog, qblock, pg_temp"
                assert connection.scalar(sa.text("SHOW transaction_read_only")) == "off"
            with place.create_engine().connect() as connection:
                found.append(connection.scalar(PROCESS))
                assert connection.scalar(sa.text("SHOW search_path")) == "pg_catalog, pg_temp"
                connection.execute(sa.text("SET LOCAL lock_timeout = 5; CREATE TABLE public.t (x int)"))
            found.append(process(place))
    assert len(set(found)) == 1


def test_nothing_is_kept_after_the_run(place: Store) -> None:
    assert process(place) != process(place)
    with keeping():
        with keeping():
            first = process(place)
        assert process(place) == first
    assert process(place) != first


def test_a_session_that_the_server_has_ended_is_replaced(place: Store, other: psycopg.Connection) -> None:
    with keeping():
        first = process(place)
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
        assert process(place) not in (first, 0)


def test_an_old_session_is_replaced(place: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_sessions, "OLDEST_SECONDS", 0)
    with keeping():
        assert process(place) != process(place)


def test_a_session_that_an_error_came_through_is_replaced(place: Store) -> None:
    with keeping():
        first = process(place)
        with pytest.raises(Busy), place.opened(read_only=True):
            raise Busy("")
        assert process(place) != first


def test_a_session_with_temporary_tables_is_replaced(place: Store) -> None:
    found = []
    with keeping():
        for dropped in (True, False, True):
            with place.write() as connection:
                session = place.session(connection)
                table = session.store("t", sa.select(sa.literal_column("1").label("x")))
                if dropped:
                    session.drop(table)
                found.append(connection.scalar(PROCESS))
    assert found[0] == found[1] != found[2]


def test_two_at_once_have_two_sessions(place: Store) -> None:
    with keeping():
        with place.opened(read_only=True) as connection:
            first = connection.scalar(PROCESS)
            second = process(place)
        assert first != second
        assert process(place) in (first, second)


def test_an_upgrade_between_two_readers_is_noticed(place: Store, other: psycopg.Connection) -> None:
    with keeping():
        with place.read() as reader:
            assert reader.releases() == []
        other.execute("UPDATE qblock.alembic_version SET version_num = '9999'")
        with pytest.raises(Exception, match="a newer qblock has upgraded it"), place.read():
            pass
