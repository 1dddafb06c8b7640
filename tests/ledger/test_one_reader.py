"""Readers that share a connection: each sees what was committed before it, and nobody who writes waits for them."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.events import Event
from qblock.ledger.place import Place
from qblock.ledger.reader import ledger_reader
from qblock.ledger.writer import end_readers, ledger_transaction, one_reader, opened, record


def write(place: Place, number: int) -> None:
    with ledger_transaction(place, 0) as connection:
        record(connection, Event(release="people", state="staged", run="1", version=number))


def versions(place: Place) -> list[int | None]:
    with ledger_reader(place) as reader:
        return [event.version for event in reader.history("people")]


def driver(connection: sa.Connection) -> object:
    return connection.connection.driver_connection


def test_one_after_another_they_share_a_connection(ledger: Place) -> None:
    with one_reader():
        with opened(ledger, read_only=True) as one, opened(ledger, read_only=True) as within:
            first = driver(within)
            assert driver(one) is not first
        with opened(ledger, read_only=True) as other:
            assert driver(other) is first
        end_readers()
        with opened(ledger, read_only=True) as last:
            assert driver(last) is not first
    with opened(ledger, read_only=True) as outside:
        assert driver(outside) is not first


def test_a_writer_comes_between_and_is_seen(ledger: Place) -> None:
    with one_reader():
        assert versions(ledger) == []
        for number in (1, 2):
            write(ledger, number)
            assert versions(ledger)[-1] == number
    write(ledger, 3)
    assert versions(ledger) == [1, 2, 3]


def test_one_within_another_is_the_same(ledger: Place) -> None:
    with one_reader():
        assert versions(ledger) == []
        with one_reader():
            write(ledger, 1)
            assert versions(ledger) == [1]
        write(ledger, 2)


def test_after_an_error_the_next_reader_has_another_connection(ledger: Place) -> None:
    with one_reader():
        with opened(ledger, read_only=True) as one:
            first = driver(one)
        with pytest.raises(QblockError), opened(ledger, read_only=True) as again:
            again.exec_driver_sql("SELECT nothing FROM nowhere")
        with opened(ledger, read_only=True) as other:
            assert driver(other) is not first
        assert versions(ledger) == []
    write(ledger, 1)
