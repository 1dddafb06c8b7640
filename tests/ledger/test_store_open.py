"""A store that is open: each reader sees what was committed before it, and nobody who writes waits for another one."""

from __future__ import annotations

import subprocess
import sys

import pytest
import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.ledger.store import Store


def write(store: Store, number: int) -> None:
    with store.write(0) as connection:
        record(connection, Event(release="people", state="staged", run="1", version=number))


def versions(store: Store) -> list[int | None]:
    with store.read() as reader:
        return [event.version for event in reader.history("people")]


def driver(connection: sa.Connection) -> object:
    return connection.connection.driver_connection


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_one_after_another_they_share_a_connection(ledger: Store) -> None:
    with ledger:
        with ledger.opened(read_only=True) as outer, ledger.opened(read_only=True) as within:
            first = driver(outer)
            assert driver(within) is not first
        with ledger.opened(read_only=True) as reading:
            kept = driver(reading)
        with ledger.write() as writing, ledger:
            assert driver(writing) is kept
        with ledger.opened(read_only=True) as last:
            assert driver(last) is kept
    with ledger.opened(read_only=True) as outside:
        assert driver(outside) is not kept


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_who_reads_cannot_write(ledger: Store) -> None:
    for _ in range(2):
        with (
            ledger,
            pytest.raises(QblockError, match="check who has permission to read and write"),
            ledger.opened(read_only=True) as connection,
        ):
            record(connection, Event(release="people", state="staged", run="1"))
        write(ledger, 1)


def test_a_writer_comes_between_and_is_seen(ledger: Store) -> None:
    with ledger:
        assert versions(ledger) == []
        for number in (1, 2):
            write(ledger, number)
            assert versions(ledger)[-1] == number
    write(ledger, 3)
    assert versions(ledger) == [1, 2, 3]


def test_after_an_error_the_next_reader_has_another_connection(ledger: Store) -> None:
    with ledger:
        with ledger.opened(read_only=True) as connection:
            first = driver(connection)
        with pytest.raises(QblockError), ledger.opened(read_only=True) as again:
            again.exec_driver_sql("SELECT nothing FROM nowhere")
        with ledger.opened(read_only=True) as other:
            assert driver(other) is not first
        assert versions(ledger) == []
    write(ledger, 1)


WRITE = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('INSERT INTO main.t VALUES (2)')"


def another_process_writes(store: Store) -> bool:
    command = [sys.executable, "-c", WRITE, str(store.crosswalk.file)]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_the_crosswalk_stays_open_until_something_takes_long(ledger: Store) -> None:
    with ledger:
        with ledger.crosswalk.write() as connection:
            connection.exec_driver_sql("CREATE TABLE t (a INTEGER)")
            connection.exec_driver_sql("CREATE TEMPORARY TABLE once (a INTEGER)")
        assert not another_process_writes(ledger)
        with pytest.raises(QblockError), ledger.crosswalk.opened(read_only=True) as connection:
            connection.exec_driver_sql("SELECT a FROM once")
        # After an error nobody knows in what state it is.
        assert another_process_writes(ledger)
        with ledger.crosswalk.opened(read_only=True) as connection:
            assert connection.exec_driver_sql("SELECT a FROM t").all() == [(2,)]
        ledger.close_crosswalk()
        assert another_process_writes(ledger)
        with ledger.running(), ledger.crosswalk.opened(read_only=True) as connection:
            connection.exec_driver_sql("INSERT INTO t VALUES (3)")
            connection.commit()
        assert not another_process_writes(ledger)
    assert another_process_writes(ledger)
    with ledger.crosswalk.opened(read_only=True) as connection:
        assert sorted(connection.exec_driver_sql("SELECT a FROM t").scalars()) == [2, 2, 2, 3]
