"""The events of a release as a chain, which is appended to in the caller's transaction.

The rows of a release that was moved continue those of its earlier names: one chain under all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from qblock.ledger.events import Event, Guarantee, chain_digest, event_row, guarantee_rows
from qblock.ledger.schema import Tables, tables
from qblock.version import __version__

_RELEASE, _NAMES = "release_of_chain", "names_of_chain"


class Head(NamedTuple):
    """The newest event of a release: its number and its digest."""

    number: int
    digest: str


def chain_names(connection: sa.Connection, release: str) -> list[str]:
    """The names that a release has had, the newest last: a release that was moved continues its chain."""
    move = tables(connection).move
    rows = connection.execute(sa.select(move.c.release, move.c.earlier).where(move.c.release != move.c.earlier)).all()
    earlier = {row.release: row.earlier for row in rows}
    names = [release]
    while names[0] in earlier and earlier[names[0]] not in names:
        names.insert(0, earlier[names[0]])
    return names


def chain_events(connection: sa.Connection, release: str) -> Sequence[sa.RowMapping]:
    """The events of a release under all its names, oldest first."""
    return sorted(_rows(connection, release, *_events(tables(connection))), key=lambda row: row["number"])


def chain_guarantees(connection: sa.Connection, release: str) -> Sequence[sa.RowMapping]:
    """The guarantees of these events, in their order."""
    rows = _rows(connection, release, *_guarantees(tables(connection)))
    return sorted(rows, key=lambda row: (row["number"], row["position"]))


def chain_parts(connection: sa.Connection, release: str) -> Sequence[sa.RowMapping]:
    """Number and text of the private state that events of a release have kept, oldest first."""
    return sorted(_rows(connection, release, *_parts(tables(connection))), key=lambda row: row["number"])


def newest(connection: sa.Connection, release: str) -> Head | None:
    """The newest event of a release under any of its names."""
    rows = _rows(connection, release, *_newest(tables(connection)))
    return Head(rows[0]["number"], rows[0]["digest"]) if rows else None


def append(
    connection: sa.Connection, event: Event, guarantees: Sequence[Guarantee] = (), after: Head | None = None
) -> Head:
    """Append an event with its guarantees in the transaction of the caller; returns the release's new head.

    connection: to the database of the store; a file to the ledger's own (`Store.write`). after: a head that this
    process has recorded in another transaction, which a snapshot does not see. The caller holds the release's lock.
    Raises nothing of its own; a second writer of the release fails at the primary key.
    """
    ledger = tables(connection)
    last = max(filter(None, (newest(connection, event.release), after)), default=None)
    number, previous = (last.number + 1, last.digest) if last else (1, None)
    row = event_row(event) | {"number": number, "program_version": __version__, "previous_digest": previous}
    rows = guarantee_rows(guarantees)
    row["digest"] = chain_digest(row, rows)
    connection.execute(ledger.event.insert(), [row])
    if rows:
        key = {"release": event.release, "number": number}
        connection.execute(ledger.guarantee.insert(), [{**key, **guarantee} for guarantee in rows])
    return Head(number, str(row["digest"]))


def record(
    connection: sa.Connection, event: Event, guarantees: Sequence[Guarantee] = (), after: Head | None = None
) -> str:
    """As `append`; returns the digest of the new head."""
    return append(connection, event, guarantees, after).digest


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


def _rows(
    connection: sa.Connection, release: str, own: sa.Select[Any], of_all: sa.Select[Any]
) -> Sequence[sa.RowMapping]:
    """own: of the release's name alone, where it has no other; of_all: of all its names.

    Nearly every release has one name, and a recursive query costs several times what its rows do. The first statement
    sees rows and moves at one moment; names that a release has had do not change once it has them.
    """
    rows = connection.execute(own, {_RELEASE: release}).mappings().all()
    if rows:
        return rows
    names = chain_names(connection, release)
    return connection.execute(of_all, {_NAMES: names}).mappings().all() if len(names) > 1 else ()


# Built once: building a statement costs more than asking it. Not sorted by DuckDB, which takes as long to sort a few
# rows of many columns as to find them.
@cache
def _events(ledger: Tables) -> tuple[sa.Select[Any], sa.Select[Any]]:
    return _both(ledger, ledger.event, sa.select(ledger.event))


@cache
def _guarantees(ledger: Tables) -> tuple[sa.Select[Any], sa.Select[Any]]:
    return _both(ledger, ledger.guarantee, sa.select(ledger.guarantee))


@cache
def _parts(ledger: Tables) -> tuple[sa.Select[Any], sa.Select[Any]]:
    event = ledger.event
    query = sa.select(event.c.number, event.c.private_state).where(event.c.private_state.is_not(None))
    own, of_all = _both(ledger, event, query)
    # What a release kept that has another name now is kept under that one.
    move, release = ledger.move, sa.bindparam(_RELEASE, type_=sa.Text)
    away = sa.select(move.c.release).where(move.c.earlier == release, move.c.release != move.c.earlier)
    return own.where(~away.exists()), of_all


@cache
def _newest(ledger: Tables) -> tuple[sa.Select[Any], sa.Select[Any]]:
    event = ledger.event
    query = sa.select(event.c.number, event.c.digest).order_by(event.c.number.desc()).limit(1)
    return _both(ledger, event, query)


def _both(ledger: Tables, table: sa.Table, query: sa.Select[Any]) -> tuple[sa.Select[Any], sa.Select[Any]]:
    move, release = ledger.move, sa.bindparam(_RELEASE, type_=sa.Text)
    moved = sa.select(move.c.release).where(move.c.release == release, move.c.earlier != move.c.release)
    own = query.where(table.c.release == release, ~moved.exists())
    return own, query.where(table.c.release.in_(sa.bindparam(_NAMES, expanding=True)))
