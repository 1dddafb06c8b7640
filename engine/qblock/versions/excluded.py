"""People who are set apart from a release's versions, and the digests by which they are known."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pyarrow as pa
import sqlalchemy as sa

from qblock.versions.crosswalk import HEXADECIMAL, Crosswalk, fresh_name

COHORT, WITHDRAWN, CELL, LEFT, ASIDE = "cohort", "withdrawn", "cell", "left", "aside"
CHANGED, MOVED = "changed", "moved"
"""Why: a cohort that failed, people who withdrew, who shares a joint cell with one who left at once, who left in a
batch that passed, and whom the coin set aside; of people with several rows, units that changed while they waited, and
those that came as another one of the same person left or changed."""
OUT, LEAVING, QUEUED, FAILED = "out", "leaving", "queued", "failed"
"""States: in no later version; in none from the version on that is being made; in all until a batch closes; in all,
since the batch that they closed failed its check."""


def set_apart(
    crosswalk: Crosswalk, release: str, entities: Sequence[str], why: str, state: str, version: int | None
) -> None:
    """Set people's state, in place of the one they had. entities: digests. version: the one that it begins with.

    What a check has found must outlast a run that is refused: a cohort that failed, and is tried again with more
    people, would be topped up until it is diverse. Use a transaction of its own.
    """
    t = crosswalk.tables.apart
    known = crosswalk.own.load(fresh_name(), pa.table({"entity": pa.array(entities, pa.string())}))
    members = sa.select(known.c.entity).distinct()
    crosswalk.own.run(sa.delete(t).where(t.c.release == release, t.c.entity.in_(members)))
    people = members.subquery()
    columns = [sa.cast(sa.literal(text), sa.Text) for text in (release, why, state)]
    number = sa.cast(sa.literal(version), sa.BigInteger)
    query = sa.select(people.c.entity, *columns, number)
    crosswalk.own.run(sa.insert(t).from_select(["entity", "release", "why", "state", "version"], query))
    crosswalk.own.drop(known)


def entities_apart(crosswalk: Crosswalk, release: str, states: Sequence[str]) -> list[str]:
    """The digests of people in some states."""
    t = crosswalk.tables.apart
    query = sa.select(t.c.entity).where(t.c.release == release, t.c.state.in_(states)).order_by(t.c.entity)
    return list(crosswalk.own.fetch(query)["entity"].to_pylist())


def counts(crosswalk: Crosswalk, release: str) -> dict[str, int]:
    """How many people are in each state, by `why state`: for the private ledger, never for readers."""
    t = crosswalk.tables.apart
    query = sa.select(t.c.why, t.c.state, sa.func.count().label("n")).where(t.c.release == release)
    rows = crosswalk.own.fetch(query.group_by(t.c.why, t.c.state)).to_pylist()
    return {f"{row['why']} {row['state']}": row["n"] for row in sorted(rows, key=lambda r: (r["why"], r["state"]))}


def digests_of(crosswalk: Crosswalk, texts: Sequence[str], *, hashed: bool = False) -> list[str]:
    """The digests of entities given as text, as `Crosswalk.entity` makes them. hashed: of the SHA-256 of the text."""
    key, digests = crosswalk.tables.key, [_digest(text) if hashed else text for text in texts]
    for number in crosswalk.key_numbers():
        secret = crosswalk.own.scalar(sa.select(key.c.secret).where(key.c.id == number))
        digests = [_digest(secret + _digest(secret + text)) for text in digests]
    return digests


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:HEXADECIMAL]
