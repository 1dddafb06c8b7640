"""Stamps: what the ledger has written down of a version before anything else is touched.

Every version has a random stamp. The ledger writes it down (`begin`) before the crosswalk or the target is touched; the
crosswalk's row, the private copy and the published object carry it, and so do the version's events.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from qblock.errors import Refused
from qblock.ledger.chain import record
from qblock.ledger.events import PUBLISHING, Event, RecordedEvent, time_text
from qblock.ledger.parts import KeptParts
from qblock.ledger.reader import LedgerReader
from qblock.ledger.schema import tables
from qblock.ledger.store import Store

TAGGED = "qblock release "
"""How the comment on whatever holds a version begins."""
SHOWN = 3
"""How many versions a message names."""


@dataclass(frozen=True)
class ObjectTag:
    """Which version of which release an object holds. stamp: None where the object does not say; shown: whether readers
    see the version by the object alone, without asking the pointer row."""

    release: str
    version: int
    stamp: str | None
    shown: bool = False

    @property
    def text(self) -> str:
        """The comment on the object."""
        return f"{TAGGED}{self.release} version {self.version} stamp {self.stamp}"

    @classmethod
    def read(cls, comment: str | None, release: str) -> ObjectTag | None:
        """That of an object with such a comment; None for any other than one of the release."""
        match = re.fullmatch(rf"{TAGGED}{re.escape(release)} version (\d+) stamp ([0-9a-f]{{32}})", comment or "")
        return cls(release, int(match[1]), match[2]) if match else None


def new_stamp() -> str:
    """128 random bits as hexadecimal text. Not derived from anything: with a digest of the ledger, readers could try
    out its private counts."""
    return secrets.token_hex(16)


def begin(store: Store, tag: ObjectTag, run: str, joint: str | None = None) -> None:
    """Write a version and its stamp down in the ledger, in a transaction of its own. joint: how it is checked together
    with others, where it is."""
    row = {"release": tag.release, "version": tag.version, "stamp": tag.stamp, "run": run, "joint": joint}
    with store.write() as connection:
        connection.execute(tables(connection).begun.insert(), [row | {"recorded_at": time_text(datetime.now(UTC))}])


@dataclass(frozen=True)
class Written:
    """What the ledger has written down of a release. begun: stamp and way of the joint check of each version begun;
    broken: what is wrong with the chain of events, one sentence each.
    """

    events: tuple[RecordedEvent, ...]
    begun: Mapping[tuple[int, str | None], str | None]
    pointer: int | None
    broken: tuple[str, ...] = ()
    parts: KeptParts = field(default_factory=KeptParts)

    @classmethod
    def of(cls, reader: LedgerReader, release: str) -> Written:
        begun = {(row["version"], row["stamp"]): row["joint"] for row in reader.begun(release)}
        broken = tuple(reader.verify_chain(release))
        parts = reader.kept_parts(release)
        return cls(tuple(reader.history(release)), begun, reader.pointer(release), broken, parts)

    @property
    def problems(self) -> list[str]:
        """Why nothing may be done by this ledger, whatever else is there: events are missing or were altered."""
        sentences = list(self.broken[:SHOWN])
        if self.pointer is not None and self.pointer not in self.shown:
            sentences.append(f"the pointer row names version {self.pointer}, {self.why(self.pointer)}")
        return sentences

    @property
    def shown(self) -> dict[int, RecordedEvent]:
        """The versions that readers were shown, each with the newest event that says so, in the order of these."""
        newest: dict[int, RecordedEvent] = {}
        for event in self.events:
            if event.state in PUBLISHING and event.version is not None:
                newest.pop(event.version, None)
                newest[event.version] = event
        return newest

    @property
    def left(self) -> int:
        """The least number of people who have withdrawn or left with them: those of one event are different people."""
        counts = [e.detail.get("people", 0) + e.detail.get("companions", 0) for e in self.events if e.state == "erased"]
        return max(counts, default=0)

    def missing(self, known: Container[int]) -> list[int]:
        """The versions that the ledger has shown checked together with others, other than those known."""
        return [version for version in self.shown if version not in known and self.together(version)]

    def together(self, version: int) -> bool:
        """Whether a version that was shown had been checked together with others, as its run wrote down."""
        return self.begun.get((version, self.shown[version].stamp)) is not None

    def wrote(self, version: int, stamp: str | None, *, staged: bool = False) -> bool:
        """Whether this ledger has written the version down.

        stamp: None of what carries none; staged: that it was begun is not enough, there must be an event of it.
        """
        if stamp is None:
            return False
        if (version, stamp) in self.begun and not staged:
            return True
        return any((e.version, e.stamp) == (version, stamp) for e in self.events)

    def why(self, version: int) -> str:
        """What the ledger knows instead of a version, as the end of a sentence."""
        numbers = {event.version for event in self.events if event.version is not None}
        if not numbers:
            return "and the ledger knows no version of it"
        if version > max(numbers):
            return f"and the ledger ends at version {max(numbers)}"
        return f"and that is not the version {version} that the ledger knows"


def written(store: Store, release: str) -> Written:
    """What the ledger of a store has written down of a release."""
    with store.read() as reader:
        return Written.of(reader, release)


def record_refusal(store: Store, release: str, run: str, error: Refused) -> None:
    """Record in the ledger why nothing was done."""
    with store.write() as connection:
        record(connection, Event(release=release, state="refused", run=run, reason=str(error)))
