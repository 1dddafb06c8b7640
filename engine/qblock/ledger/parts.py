"""What the ledger says of private state: a digest of each part of the crosswalk, kept in the chain of a release.

Whatever is deleted from the crosswalk, or altered there, behind the job's back would have the next run decide by it. So
each transaction that changes the crosswalk records the digests of the parts that it changed. In one database it is the
same transaction. Of files the ledger's is committed first, and settled after the crosswalk's: until then either state
may be there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from qblock.ledger.chain import Head, append, chain_parts
from qblock.ledger.events import Event
from qblock.ledger.schema import schema_of

UNSETTLED = sa.Table("unsettled", sa.MetaData(), sa.Column("release", sa.Text), sa.Column("number", sa.BigInteger))
"""Of a ledger in a file: the event of each release whose transaction of the crosswalk may not have been committed."""
Parts = Mapping[str, str]
"""The digest of each part by its name."""
Changes = Mapping[str, str | None]
"""The same of parts that have changed; None of one that is empty."""


@dataclass(frozen=True)
class KeptParts:
    """The parts as the ledger has them. before: as they were where the crosswalk may not have been committed since."""

    now: Parts = field(default_factory=dict)
    before: Parts | None = None

    def changed(self, parts: Changes) -> Changes:
        """Those that are not as the ledger has them."""
        return {name: digest for name, digest in parts.items() if self.now.get(name) != digest}


def kept_parts(connection: sa.Connection, release: str) -> KeptParts:
    """What the ledger says of the parts of a release."""
    pending = None
    if schema_of(connection) is None:
        pending = connection.scalar(sa.select(UNSETTLED.c.number).where(UNSETTLED.c.release == release))
    now: dict[str, str] = {}
    before = None
    for row in chain_parts(connection, release):
        if row["number"] == pending:
            before = dict(now)
        for name, digest in json.loads(row["private_state"]).items():
            if digest is None:
                now.pop(name, None)
            else:
                now[name] = digest
    return KeptParts(now, before)


def keep_parts(connection: sa.Connection, release: str, changes: Changes, after: Head | None = None) -> Head:
    """Record parts that have changed in the chain of a release, in the caller's transaction."""
    event = Event(release=release, state="kept", run=secrets.token_hex(8), private_state=dict(changes))
    return append(connection, event, after=after)


def set_unsettled(connection: sa.Connection, heads: Mapping[str, Head]) -> None:
    """Say that the crosswalk is about to be committed as these events have it."""
    set_settled(connection, heads)
    rows = [{"release": release, "number": head.number} for release, head in heads.items()]
    connection.execute(UNSETTLED.insert(), rows)


def set_settled(connection: sa.Connection, releases: Iterable[str]) -> None:
    """Say that the crosswalk is as the newest events have it."""
    connection.execute(UNSETTLED.delete().where(UNSETTLED.c.release.in_(list(releases))))
