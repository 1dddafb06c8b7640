"""A new key for the digests by which the crosswalk knows people."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.ledger.store import Store
from qblock.versions.crosswalk import HEXADECIMAL, Crosswalk, key_of, keyed, open_crosswalk
from qblock.versions.padding import nobody
from qblock.versions.units import owner

WHY = "the crosswalk has a new key, taken over the digests of the one before"


def new_key(crosswalk: Crosswalk) -> tuple[int, dict[str, int]]:
    """Give the crosswalk a further key; returns its number, and how many people of each release were moved to it.

    Each digest becomes the digest of itself under the new key, so that nobody has to be in the source for it; the
    older keys are kept, for the digests of people who come later. In the transaction of the crosswalk, while nothing
    else runs in its place. Rolled signatures and joint cells are made of labels alone, so they stay as they are.
    """
    t, own = crosswalk.tables, crosswalk.own
    number = crosswalk.key_numbers()[-1] + 1
    before = people(crosswalk)
    own.run(sa.insert(t.key).values(id=number, secret=secrets.token_hex(32)))
    for table in t.of_entities:
        # Of a unit the block stays as it is.
        rest = sa.func.substr(table.c.entity, HEXADECIMAL + 1, type_=sa.Text)
        own.run(sa.update(table).values(entity=keyed(own, owner(table.c.entity), [key_of(t.key, number)]).concat(rest)))
    if people(crosswalk) != before:
        raise QblockError("the crosswalk knows other people under its new key: it was altered, and stays as it was")
    return number, before


def people(crosswalk: Crosswalk) -> dict[str, int]:
    """How many people the crosswalk knows of each release that it holds."""
    t = crosswalk.tables
    everybody = sa.union(*(sa.select(table.c.release, table.c.entity) for table in t.of_entities)).subquery("everybody")
    query = sa.select(everybody.c.release, sa.func.count().label("n")).group_by(everybody.c.release)
    query = query.where(everybody.c.release.not_like(f"{nobody('')}%")).order_by(everybody.c.release)
    return {row["release"]: int(row["n"]) for row in crosswalk.own.fetch(query).to_pylist()}


def owed(crosswalk: Crosswalk, release: str) -> list[dict[str, Any]]:
    """Changes of the key that the ledger of a release may not record yet (DuckDB)."""
    t = crosswalk.tables.rekeyed
    return list(crosswalk.own.fetch(sa.select(t).where(t.c.release == release).order_by(t.c.key)).to_pylist())


def settle(place: Store, release: str) -> None:
    """Write into the ledger of a release what a `rekey` that was killed left out. May be called again. Under a lock."""
    with open_crosswalk(place) as crosswalk:
        rows = owed(crosswalk, release)
    if not rows:
        return
    with place.read() as reader:
        said = {event.detail.get("key") for event in reader.history(release) if event.state == "rekeyed"}
    with place.write() as connection:
        for row in rows:
            if row["key"] not in said:
                record(connection, rekeyed_event(row))
    with open_crosswalk(place) as crosswalk:
        t = crosswalk.tables.rekeyed
        crosswalk.own.run(sa.delete(t).where(t.c.release == release))


def rekeyed_event(row: Mapping[str, Any]) -> Event:
    """What the ledger says of a new key. row: release, key (its number) and people."""
    detail = {"key": row["key"], "people": row["people"]}
    return Event(release=row["release"], state="rekeyed", run=secrets.token_hex(8), detail=detail, reason=WHY)
