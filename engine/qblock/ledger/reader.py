"""The ledger's reader: never writes, works while a run is in progress; a ledger that does not exist yet has no
history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.ledger import schema
from qblock.ledger.chain import chain_events, chain_guarantees, chain_names
from qblock.ledger.events import (
    PUBLISHING,
    Guarantee,
    PublishedVersion,
    RecordedEvent,
    State,
    chain_digest,
    event_of,
)
from qblock.ledger.kept import read_kept, read_spec_text
from qblock.ledger.parts import KeptParts, kept_parts
from qblock.ledger.schema import schema_of, tables


class LedgerReader:
    """What the ledger says about a release, as far as the connection's transaction sees it.

    connection: to the store's database (in files to the ledger's), or None for a ledger that does not exist.
    The rows of a release are read once; what contradicts the pointer row, which a run may have changed since, is read
    again.
    """

    def __init__(self, connection: sa.Connection | None) -> None:
        self._connection = connection if connection is not None and schema.ready(connection) else None
        self._kept: dict[str, _Rows] = {}

    def history(self, release: str) -> list[RecordedEvent]:
        """All events, oldest first, but those that keep digests of private state. Raises Refused for a row that no
        qblock has written."""
        return list(self._rows(release).history)

    def last_event(self, release: str, *states: State) -> RecordedEvent | None:
        """The newest event, or the newest with one of these states."""
        return next((e for e in reversed(self.history(release)) if not states or e.state in states), None)

    def last_events(self, release: str) -> dict[int, RecordedEvent]:
        """The newest event of each version."""
        return {event.version: event for event in self.history(release) if event.version is not None}

    def kept_versions(self, release: str) -> list[int]:
        """The versions that were published and not dropped since; a rollback to one that failed does not undo that."""
        kept: dict[int, None] = {}
        for event in self.history(release):
            if event.version is not None and event.state in PUBLISHING:
                kept[event.version] = None
            elif event.version is not None and event.state == "retired":
                kept.pop(event.version, None)
        return list(kept)

    def retired_by(self, release: str) -> RecordedEvent | None:
        """The event by which a release was retired, if nothing was published since."""
        last = self.last_event(release, *PUBLISHING, "retired_view")
        return last if last is not None and last.state == "retired_view" else None

    def current(self, release: str) -> PublishedVersion | None:
        """The version that the pointer row names, with the newest event that published it."""
        version = self.pointer(release)
        if version is None:
            return None
        for _ in self._readings(release):
            for event in reversed(self.history(release)):
                if event.version == version and event.state in PUBLISHING:
                    return PublishedVersion(version, event, tuple(self.guarantees(release, event.number)))
        return None

    def pointer(self, release: str) -> int | None:
        """The version that the pointer row names."""
        if self._connection is None:
            return None
        pointer = tables(self._connection).pointer
        return self._connection.scalar(sa.select(pointer.c.version).where(pointer.c.release == release))

    def next_version(self, release: str) -> int:
        """One more than any version that was ever tried."""
        return max((e.version for e in self.history(release) if e.version is not None), default=0) + 1

    def head(self, release: str) -> str | None:
        """The digest of the newest event."""
        events = self._events(release)
        return str(events[-1]["digest"]) if events else None

    def kept_parts(self, release: str) -> KeptParts:
        """What it says of private state."""
        return KeptParts() if self._connection is None else kept_parts(self._connection, release)

    def releases(self) -> list[str]:
        """The names of all releases in this ledger."""
        if self._connection is None:
            return []
        event = tables(self._connection).event
        return list(self._connection.scalars(sa.select(event.c.release).distinct().order_by(event.c.release)))

    def names(self, release: str) -> list[str]:
        """The names that a release has had, the newest last."""
        return list(self._rows(release).names)

    def successor(self, release: str) -> str | None:
        """The name that a release has now, if it was moved."""
        if self._connection is None:
            return None
        move = tables(self._connection).move
        query = sa.select(move.c.release).where(move.c.earlier == release, move.c.release != release)
        following = self._connection.scalar(query)
        return None if following is None else self.successor(following) or following

    def guarantees(self, release: str, number: int) -> list[Guarantee]:
        """The guarantees recorded with an event, in order."""
        rows = self._rows(release).guarantees.get(number, [])
        return [Guarantee(**{k: v for k, v in row.items() if k not in _KEY}) for row in rows]

    def reference(self, release: str, version: int) -> str | None:
        """The text of the reference quantities that are kept with a version."""
        return None if self._connection is None else read_kept(self._connection, release, version)

    def spec_text(self, digest: str) -> str | None:
        """The canonical text of the spec that a version was published by; None where it is lost or altered."""
        return None if self._connection is None else read_spec_text(self._connection, digest)

    def begun(self, release: str) -> list[Mapping[str, Any]]:
        """The versions that runs have begun (version, stamp, run, recorded_at, joint), shown later or not."""
        if self._connection is None:
            return []
        begun = tables(self._connection).begun
        query = sa.select(begun).where(begun.c.release == release).order_by(begun.c.recorded_at)
        return [dict(row) for row in self._connection.execute(query).mappings()]

    def freshness(self, release: str) -> dict[str, Any] | None:
        """age_seconds and stale (None where the spec names no age) of the version that readers see."""
        rows = self._view("SELECT age_seconds, stale FROM {}current_version WHERE release = :release", release)
        if not rows:
            return None
        stale = rows[0]["stale"]
        # SQLite has no booleans.
        return rows[0] | {"stale": None if stale is None else bool(stale)}

    def margin_trend(self, release: str) -> list[dict[str, Any]]:
        """The distance between asked and satisfied, and its change since the version before."""
        rows = self._view("SELECT * FROM {}margin_trend WHERE release = :release", release)
        names = ("model", "sensitive", "parameters", "parameter")
        return sorted(rows, key=lambda row: (*(row[name] or "" for name in names), row["version"]))

    def _view(self, query: str, release: str) -> list[dict[str, Any]]:
        if self._connection is None:
            return []
        schema = schema_of(self._connection)
        prefix = "" if schema is None else f"{schema}."
        rows = self._connection.execute(sa.text(query.format(prefix)), {"release": release}).mappings()
        return [dict(row) for row in rows]

    def verify_chain(self, release: str, expected_head: str | None = None) -> list[str]:
        """What is wrong with a release's evidence, one sentence each; empty when nothing is.

        Finds altered and missing rows; a cut tail when given the head digest that an earlier run printed.
        """
        problems: list[str] = []
        guarantees = dict(self._rows(release).guarantees)
        previous, expected, digests = None, 1, set()
        for row in self._events(release):
            number = row["number"]
            what = f"event {number} of release {release}"
            if number != expected:
                missing = str(expected) if number == expected + 1 else f"{expected} to {number - 1}"
                problems.append(f"event {missing} of release {release} is missing in the ledger")
            elif row["previous_digest"] != previous:
                problems.append(f"{what} does not follow the event before it: one of the two was replaced")
            if chain_digest(row, guarantees.pop(number, [])) != row["digest"]:
                problems.append(
                    f"{what} or its guarantees were altered: the recorded digest is not that of the content"
                )
            previous, expected = row["digest"], number + 1
            digests.add(row["digest"])
        problems += [f"event {n} of release {release} is missing, but its guarantees are there" for n in guarantees]
        if expected_head is not None and expected_head not in digests:
            problems.append(f"the head digest {expected_head} is not in the ledger: its tail was cut, or rewritten")
        return problems

    def verify_pointer(self, release: str) -> list[str]:
        """What is wrong with the pointer row: it names the newest version that was published and not retired since."""
        problems: list[str] = []
        for _ in self._readings(release):
            problems = self._pointer_problems(release)
            if not problems:
                break
        return problems

    def _pointer_problems(self, release: str) -> list[str]:
        published = None
        for event in self._events(release):
            if event["state"] in PUBLISHING:
                published = event["version"]
            elif event["state"] == "retired_view" or (event["state"] == "retired" and event["version"] == published):
                published = None
        pointer = self.pointer(release)
        if pointer == published:
            return []
        named = [f"version {version}" if version else "no version" for version in (pointer, published)]
        return [f"the pointer row of release {release} names {named[0]}, and the ledger's last publication {named[1]}"]

    def _events(self, release: str) -> list[Mapping[str, Any]]:
        return self._rows(release).events

    def _readings(self, release: str) -> Iterator[None]:
        """Once with the rows that are kept, where they are, and once with those that are there now."""
        if release in self._kept:
            yield
            del self._kept[release]
        yield

    def _rows(self, release: str) -> _Rows:
        return self._kept.setdefault(release, _Rows(self._connection, release))


class _Rows:
    """The rows of a release, each kind read when it is asked for first."""

    def __init__(self, connection: sa.Connection | None, release: str) -> None:
        self._connection, self._release = connection, release

    @cached_property
    def names(self) -> list[str]:
        return [self._release] if self._connection is None else chain_names(self._connection, self._release)

    @cached_property
    def events(self) -> list[Mapping[str, Any]]:
        if self._connection is None:
            return []
        return [dict(row) for row in chain_events(self._connection, self._release)]

    @cached_property
    def history(self) -> list[RecordedEvent]:
        return [_read(row) for row in self.events if row["state"] != "kept"]

    @cached_property
    def guarantees(self) -> dict[int, list[Mapping[str, Any]]]:
        by_event: dict[int, list[Mapping[str, Any]]] = {}
        if self._connection is not None:
            for row in chain_guarantees(self._connection, self._release):
                by_event.setdefault(row["number"], []).append(dict(row))
        return by_event


def _read(row: Mapping[str, Any]) -> RecordedEvent:
    try:
        return event_of(row)
    except (ValueError, TypeError):
        raise Refused(
            f"event {row['number']} of release {row['release']} cannot be read: the ledger was altered; nothing was "
            "done. Restore the ledger from a backup; `qblock verify SPEC` lists its problems"
        ) from None


_KEY = {"release", "number", "position"}
