"""The ledger's writer: appends events within the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import sqlalchemy as sa

from qblock.ledger.chain import newest
from qblock.ledger.events import Event, Guarantee, chain_digest, event_row, guarantee_rows
from qblock.ledger.place import Database
from qblock.ledger.tables import tables
from qblock.version import __version__
from qblock.warehouse.kept_sessions import are_kept

_kept: ContextVar[dict[Any, sa.Connection] | None] = ContextVar("kept", default=None)
_moment: ContextVar[object] = ContextVar("moment", default=None)
OPEN_SECONDS = 10.0
"""How long to wait for another process that has locked a private file, or a lock; each holds it only for a moment."""


def record(connection: sa.Connection, event: Event, guarantees: Sequence[Guarantee] = ()) -> str:
    """Append an event with its guarantees in the transaction of the caller; returns its digest, the release's new head.

    connection: to the database of the place; a file to the ledger's own (`ledger_transaction`). The caller
    holds the release's lock. Raises nothing of its own; a second writer of the release fails at the primary key.
    """
    ledger = tables(connection)
    last = newest(connection, event.release)
    number, previous = (last[0] + 1, last[1]) if last else (1, None)
    row = event_row(event) | {"number": number, "program_version": __version__, "previous_digest": previous}
    rows = guarantee_rows(guarantees)
    row["digest"] = chain_digest(row, rows)
    connection.execute(ledger.event.insert(), [row])
    if rows:
        key = {"release": event.release, "number": number}
        connection.execute(ledger.guarantee.insert(), [{**key, **guarantee} for guarantee in rows])
    return str(row["digest"])


def set_pointer(connection: sa.Connection, release: str, version: int | None) -> None:
    """Name the version that readers see (None: none), in the transaction of the caller.

    On PostgreSQL the release's view reads this row; in a file it mirrors the published file.
    """
    pointer = tables(connection).pointer
    known = connection.execute(sa.select(pointer.c.release).where(pointer.c.release == release)).one_or_none()
    if known:
        connection.execute(pointer.update().where(pointer.c.release == release).values(version=version))
    else:
        connection.execute(pointer.insert().values(release=release, version=version))


def lock_pointer(connection: sa.Connection, release: str) -> None:
    """Keep other sessions from changing what readers of a release see until the caller's transaction ends."""
    pointer = tables(connection).pointer
    connection.execute(sa.select(pointer.c.release).where(pointer.c.release == release).with_for_update())


@contextmanager
def ledger_transaction(place: Database, seconds: float | None = OPEN_SECONDS) -> Iterator[sa.Connection]:
    """One transaction on the ledger's database, committed at the end; a file is open only as long as it lasts.

    Raises Busy when another process keeps the file locked, or a lock of PostgreSQL, for longer than `seconds` (None: of
    PostgreSQL waits for locks as long as it takes), QblockError for other faults.
    """
    wait = OPEN_SECONDS if seconds is None else seconds
    with (
        opened(place, read_only=False, seconds=wait) as connection,
        place.transaction(connection, seconds),
    ):
        yield connection


@contextmanager
def one_reader() -> Iterator[None]:
    """Let those who read one after another in this context do so on one connection, until somebody writes, and those
    who ask the target (`shared`) on another one.

    For moments only: a DuckDB file stays open for reading until the end.
    """
    if _kept.get() is not None:
        yield
        return
    token, moment = _kept.set({}), _moment.set(object())
    try:
        yield
    finally:
        end_readers()
        _kept.reset(token)
        _moment.reset(moment)


def moment() -> object | None:
    """What stands for this `one_reader`, and for no other one; None outside of them."""
    return _moment.get()


def end_readers() -> None:
    """Close what `one_reader` keeps: before something takes long, or writes."""
    kept = _kept.get() or {}
    while kept:
        kept.popitem()[1].close()


@contextmanager
def opened(place: Database, *, read_only: bool, seconds: float = OPEN_SECONDS) -> Iterator[sa.Connection]:
    """A connection to the ledger's database; waits for a file that another process has locked."""
    if read_only:
        connect = partial(place.connect, read_only=True, seconds=seconds)
        with shared(place, place, connect) as connection, place.translated():
            yield connection
        return
    end_readers()
    place.make()
    connection = place.connect(read_only=False, seconds=seconds)
    try:
        place.settle(connection)
        with place.translated():
            yield connection
    except BaseException:
        place.give_up(connection)
        raise
    finally:
        connection.close()


@contextmanager
def shared(key: Any, place: Database, connect: Callable[[], sa.Connection]) -> Iterator[sa.Connection]:
    """A connection of that kind: within `one_reader` the one that was used last, in a transaction of its own."""
    # What needs no file is kept by the run.
    kept = None if place.file is None and are_kept() else _kept.get()
    # Whoever reads within another one's reading has a connection of their own.
    connection = kept.pop(key, None) if kept else None
    if connection is None:
        connection = connect()
    try:
        yield connection
        if kept is not None and key not in kept:
            # Each reader sees what has been committed before it.
            connection.rollback()
            kept[key] = connection
    except BaseException:
        place.give_up(connection)
        raise
    finally:
        if kept is None or kept.get(key) is not connection:
            connection.close()
