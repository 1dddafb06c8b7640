"""A new key for the crosswalk of a place, where the old one may have been read."""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa

from qblock.effects import current_effects
from qblock.engines.kept_sessions import kept_sessions
from qblock.errors import InputError
from qblock.ledger import schema
from qblock.ledger.chain import record
from qblock.ledger.store import Store
from qblock.release import private_state
from qblock.results.release import Rekeyed
from qblock.versions.conversion import new_key, rekeyed_event, settle_keys
from qblock.versions.crosswalk import open_crosswalk, prepare

BACKUPS = "backups from before still hold the old digests and keys: keep them as private as the crosswalk, or drop them"
NEW = "the crosswalk has a new key"


@kept_sessions()
def rekey(store: Store, *, wait: float = 0) -> Rekeyed:
    """Give the crosswalk of a place a new key: all releases move in one transaction, people who are gone too.

    The ledger of each release records it. PostgreSQL: in the same transaction. DuckDB, whose ledger is another file:
    what is still to be written is kept beside the new key, and written by the next run of the release if this one is
    killed. Raises InputError where there is no crosswalk, Refused where it was lost, Busy while a release runs (naming
    it), QblockError for faults.
    """
    if not _has_crosswalk(store):
        private_state.check_crosswalk(store)
        raise InputError(
            "there is no crosswalk here, and so no key to change: the first release of a spec with `entity` makes it"
        )
    with store.lock_all("ledger rekey", wait) as lock:
        store.upgrade()
        private_state.check_crosswalk(store)
        prepare(store)
        with open_crosswalk(store) as crosswalk:
            known = len(crosswalk.key_numbers())
        with current_effects().committing(NEW, partial(_has_new, store, known)), open_crosswalk(store) as crosswalk:
            number, releases = new_key(crosswalk)
            owed = [{"release": release, "key": number, "people": n} for release, n in releases.items()]
            if store.atomic:
                for row in owed:
                    record(crosswalk.own.connection, rekeyed_event(row))
            elif owed:
                crosswalk.write(sa.insert(crosswalk.tables.rekeyed).values(owed), None)
            lock.check()
        if not store.atomic:
            for release in releases:
                settle_keys(store, release)
    return Rekeyed(status="rekeyed", keys=number, releases=dict(releases), notes=(BACKUPS,))


def _has_new(store: Store, known: int) -> str | None:
    """NEW where the crosswalk has more keys than were known."""
    with open_crosswalk(store) as crosswalk:
        return NEW if len(crosswalk.key_numbers()) > known else None


def _has_crosswalk(store: Store) -> bool:
    if not (store.exists and store.crosswalk.exists):
        return False
    if not store.atomic:
        return True
    with store.opened(read_only=True) as connection:
        return schema.known_revision(connection) is not None
