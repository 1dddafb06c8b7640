"""A new key for the crosswalk of a place, for whoever's key may have been read."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.joint.crosswalk import FILE, Book, own_book, prepare
from qblock.joint.keys import new_key
from qblock.ledger import migrate
from qblock.ledger.events import Event
from qblock.ledger.lock import place_lock
from qblock.ledger.place import Place, translated
from qblock.ledger.reader import ledger_reader
from qblock.ledger.writer import ledger_transaction, opened, record
from qblock.release import stamps
from qblock.release.outcome import outcome

BACKUPS = "backups from before still hold the old digests and keys: keep them as private as the crosswalk, or drop them"
NEW = "the crosswalk has a new key"
WHY = "the crosswalk has a new key, taken over the digests of the one before"


@dataclass(frozen=True)
class Rekeyed:
    """keys: how many there are now, the new one included; releases: people that were moved, by release."""

    keys: int
    releases: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        return {"status": "rekeyed", "keys": self.keys, "releases": dict(self.releases), "notes": [BACKUPS]}


def rekey(place: Place, *, wait: float = 0) -> Rekeyed:
    """Give the crosswalk of a place a new key: all releases move in one transaction, people who are gone too.

    The ledger of each release says so. PostgreSQL: in the same transaction. DuckDB, whose ledger is another file: what
    is still to be written is kept beside the new key, and written by the next run of the release if this one is killed.
    Raises InputError where there is no crosswalk, Refused where it was lost, Busy while a release runs (naming it),
    QblockError for faults.
    """
    if not _has_crosswalk(place):
        stamps.check_crosswalk(place)
        raise InputError(
            "there is no crosswalk here, and so no key to change: the first release of a spec with `entity` makes it"
        )
    with place_lock(place, "ledger rekey", wait) as lock:
        migrate.upgrade_ledger(place)
        stamps.check_crosswalk(place)
        prepare(place)
        with own_book(place) as book:
            known = len(book.key_numbers())
        with outcome().doing(NEW, partial(_has_new, place, known)), own_book(place) as book:
            number, releases = new_key(book)
            owed = [{"release": release, "key": number, "people": n} for release, n in releases.items()]
            if place.engine == "postgresql":
                for row in owed:
                    record(book.own.connection, _event(row))
            elif owed:
                book.own.connection.execute(sa.insert(book.tables.rekeyed), owed)
            lock.check()
        if place.engine == "duckdb":
            for release in releases:
                settle(place, release)
    return Rekeyed(number, releases)


def _has_new(place: Place, known: int) -> str | None:
    """NEW where the crosswalk has more keys than were known."""
    with own_book(place) as book:
        return NEW if len(book.key_numbers()) > known else None


def owed(book: Book, release: str) -> list[dict[str, Any]]:
    """Changes of the key that the ledger of a release may not say yet (DuckDB)."""
    t = book.tables.rekeyed
    return list(book.own.fetch(sa.select(t).where(t.c.release == release).order_by(t.c.key)).to_pylist())


def settle(place: Place, release: str) -> None:
    """Write into the ledger of a release what a `rekey` that was killed owes it; twice is once. Under a lock."""
    with own_book(place) as book:
        found = owed(book, release)
    if not found:
        return
    with ledger_reader(place) as reader:
        said = {event.detail.get("key") for event in reader.history(release) if event.state == "rekeyed"}
    with ledger_transaction(place) as connection:
        for row in found:
            if row["key"] not in said:
                record(connection, _event(row))
    with own_book(place) as book:
        t = book.tables.rekeyed
        book.own.run(sa.delete(t).where(t.c.release == release))


def _event(row: Mapping[str, Any]) -> Event:
    detail = {"key": row["key"], "people": row["people"]}
    return Event(release=row["release"], state="rekeyed", run=secrets.token_hex(8), detail=detail, reason=WHY)


def _has_crosswalk(place: Place) -> bool:
    if place.file is not None:
        return place.file.exists() and (place.folder / FILE).exists()
    with opened(place, read_only=True) as connection, translated(place):
        return migrate.known_revision(connection) is not None
