"""A version that was published without a crosswalk, and recorded in one afterwards (`qblock adopt`).

What readers hold of it is known, since the source gives its content once more. Who was in it is not: somebody may have
been exchanged for another one with the same values meanwhile, which no digest shows. So the operator states that nobody
was, and the ledger says so wherever the version counts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

import sqlalchemy as sa

from qblock.joint.crosswalk import Book
from qblock.joint.units import owner
from qblock.joint.versions import UNPROTECTED, Candidate, RecordedVersion, recorded
from qblock.ledger.events import Event, canonical
from qblock.ledger.place import Place
from qblock.ledger.stamps import written
from qblock.ledger.writer import ledger_transaction, record

ADOPT = "`qblock adopt SPEC --same-people`"
STATED = (
    "version {version} was adopted: it was published without a crosswalk, and its operator states that its people are "
    "those whom the source had when it was adopted; that nobody was exchanged meanwhile is not proved, since equal "
    "content does not prove equal people"
)
LEFT = f"what is left is {UNPROTECTED}: whoever holds several of them may learn more than each one guarantees"


def way_on(shown: Collection[int]) -> str:
    """What to do about a release that was published without a crosswalk, as sentences. shown: all its versions."""
    if len(shown) > 1:
        return f"{len(shown)} versions were published, so none of them can be adopted: {LEFT}"
    return (
        f"It is the only version: where the source gives its content (once more, if it was changed since), {ADOPT} "
        f"records who is in it, and later versions are checked together with it. Otherwise {LEFT}"
    )


def marked(book: Book, found: Candidate, run: str, joint: str) -> Candidate:
    """A version that is recorded after it was published, so that the ledger can be told of it by a later run."""
    number = sa.select(sa.func.count(sa.distinct(owner(found.rows.c.entity))))
    people = str(book.own.scalar(number.select_from(found.rows)))
    content = canonical({**json.loads(found.about.content), "adopted": {"run": run, "joint": joint, "people": people}})
    return replace(found, about=replace(found.about, content=content))


def adopted_event(version: RecordedVersion, stamp: str | None) -> Event:
    """What the ledger says of a version that was adopted."""
    assert version.adopted is not None
    return Event(
        release=version.key.release,
        state="adopted",
        run=version.adopted["run"],
        version=version.key.version,
        quasi_identifiers=version.quasi_identifiers,
        node=version.node,
        joint=version.adopted["joint"],
        rows_source=version.rows,
        stamp=stamp,
        entity=None if version.types is None else version.types.entity,
        detail={"people": int(version.adopted["people"])},
        reason=STATED.format(version=version.key.version),
    )


def adopted_versions(book: Book, release: str) -> list[RecordedVersion]:
    """The versions of a release that were recorded after they had been published."""
    return [version for version in recorded(book, release) if version.adopted is not None]


def settle(place: Place, release: str, versions: Sequence[RecordedVersion]) -> list[str]:
    """Write into the ledger what an adoption that was killed between two files left out (DuckDB); what it says.

    versions: of `adopted_versions`. May be called again. Under the release's lock.
    """
    known = written(place, release).adopted if versions else {}
    owed = [adopted_event(v, v.stamp) for v in versions if v.key.version not in known]
    for event in owed:
        with ledger_transaction(place) as connection:
            record(connection, event)
    return [event.reason for event in owed if event.reason is not None]
