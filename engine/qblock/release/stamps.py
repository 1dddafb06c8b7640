"""Lost or older private state: what is published, the ledger and the crosswalk must know of each other.

Every version has a random stamp. The ledger writes it down (`begin`) before the crosswalk or the target is touched; the
crosswalk's row, the private copy and the published object carry it, and so do the version's events. A stamp that the
ledger has not written down was made under another ledger: a folder that was lost, a backup that is older, a second job
with the same target. What readers were shown then is not known, and nothing may be built on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from qblock.errors import Refused
from qblock.joint.crosswalk import FILE
from qblock.joint.reading import Contents, contents
from qblock.ledger.events import PUBLISHING, Event, RecordedEvent, time_text
from qblock.ledger.place import SCHEMA, Place
from qblock.ledger.reader import LedgerReader, ledger_reader
from qblock.ledger.tables import tables
from qblock.ledger.writer import OPEN_SECONDS, ledger_transaction, record
from qblock.publish.targets import Mark, Target
from qblock.spec import Spec

SHOWN = 3
"""How many versions a message names."""


@dataclass(frozen=True)
class Begun:
    """A version that a run is about to build. joint: how it is checked together with others, where it is."""

    release: str
    version: int
    stamp: str
    run: str
    joint: str | None
    recorded_at: str = field(default_factory=lambda: time_text(datetime.now(UTC)))


def begin(place: Place, begun: Begun) -> None:
    """Write a version and its stamp down in the ledger, in a transaction of its own."""
    with ledger_transaction(place) as connection:
        connection.execute(tables(connection).begun.insert(), [asdict(begun)])


@dataclass(frozen=True)
class Written:
    """What the ledger has written down of a release. begun: stamp and way of the joint check of each version begun;
    broken: what is wrong with the chain of events, one sentence each.
    """

    events: tuple[RecordedEvent, ...]
    begun: Mapping[tuple[int, str | None], str | None]
    pointer: int | None
    broken: tuple[str, ...] = ()

    @classmethod
    def of(cls, reader: LedgerReader, release: str) -> Written:
        begun = {(row["version"], row["stamp"]): row["joint"] for row in reader.begun(release)}
        broken = tuple(reader.verify_chain(release))
        return cls(tuple(reader.history(release)), begun, reader.pointer(release), broken)

    @property
    def problems(self) -> list[str]:
        """Why this ledger is not to be acted on, whatever else is there: events are missing or were altered."""
        found = list(self.broken[:SHOWN])
        if self.pointer is not None and self.pointer not in self.shown:
            found.append(f"the pointer row names version {self.pointer}, {_why(self, self.pointer)}")
        return found

    @property
    def shown(self) -> dict[int, RecordedEvent]:
        """The versions that readers were shown, each with the newest event that says so, in the order of these."""
        found: dict[int, RecordedEvent] = {}
        for event in self.events:
            if event.state in PUBLISHING and event.version is not None:
                found.pop(event.version, None)
                found[event.version] = event
        return found

    @property
    def left(self) -> int:
        """How many people have withdrawn or left with them at the least: those of one event are different people."""
        counts = [e.detail.get("people", 0) + e.detail.get("companions", 0) for e in self.events if e.state == "erased"]
        return max(counts, default=0)

    def missing(self, crosswalk: Contents) -> list[int]:
        """The versions that the ledger has shown checked together with others and the crosswalk lacks."""
        shown = self.shown
        return [v for v in shown if v not in crosswalk.versions and self.together(v)]

    def together(self, version: int) -> bool:
        """Whether a version that was shown had been checked together with others, as its run wrote down.

        Of one from before stamps it is not known.
        """
        return self.begun.get((version, self.shown[version].stamp)) is not None

    def wrote(self, version: int, stamp: str | None, *, staged: bool = False) -> bool:
        """Whether this ledger has written the version down; one from before stamps is known by its number.

        staged: that it was begun does not suffice, there must be an event of it.
        """
        if stamp is None:
            return any(event.version == version for event in self.events)
        if (version, stamp) in self.begun and not staged:
            return True
        return any((e.version, e.stamp) == (version, stamp) for e in self.events)

    def may_be_kept(self, version: int, stamp: str | None) -> bool:
        """Whether a version of the crosswalk that no event names may be evidence from before stamps.

        An older program wrote into the crosswalk first, and a run of it may have been stopped there. Whether anybody
        saw that version is not known, so it is kept, and counts.
        """
        newest = max((e.version for e in self.events if e.version is not None), default=0)
        return stamp is None and bool(self.shown) and version <= newest + 1


def written(place: Place, release: str) -> Written:
    """What the ledger of a place has written down of a release."""
    with ledger_reader(place) as reader:
        return Written.of(reader, release)


@dataclass(frozen=True)
class Found:
    """What was compared. problems: what is there and not known, or the other way round, one sentence each; seen: the
    version that readers see; newest: the one that the ledger has shown last."""

    problems: list[str]
    seen: int | None
    newest: int | None


def compare(spec: Spec, place: Place, target: Target, *, joint: bool, seconds: float = 0) -> Found:
    """Hold what is published and kept, and the crosswalk, against the ledger. Reads only.

    joint: whether the versions are checked together, so that the crosswalk must hold what the ledger has shown;
    seconds: to wait for another process that has the crosswalk open, under the release's lock; 0 without it, to leave
    the crosswalk out then.
    """
    found = _compared(spec, place, target, joint, seconds)
    # Without the lock a run may have gone on between two reads.
    return _compared(spec, place, target, joint, seconds) if found.problems and not seconds else found


def _compared(spec: Spec, place: Place, target: Target, joint: bool, seconds: float) -> Found:
    # The ledger last: whatever another run shows meanwhile is in it before it is in its place.
    marks = target.marks()
    crosswalk = contents(place, spec.release, seconds) if joint else None
    known = written(place, spec.release)
    found = []
    # A table of PostgreSQL is made in the transaction of its event, a file of DuckDB before it.
    staged = place.engine == "postgresql"
    unknown = {mark for mark in marks if not _knows(known, target, mark, staged)}
    for mark in sorted(unknown, key=lambda mark: (not mark.shown, -mark.version))[:SHOWN]:
        where, verb = (target.view, "shows") if mark.shown else (_store(place), "keeps")
        found.append(f"{where} {verb} version {mark.version} of release {spec.release}, {_why(known, mark.version)}")
    found += known.problems
    if crosswalk is not None:
        found += _crosswalk_problems(known, crosswalk, place)
    if known.left:
        found += _left_problems(known, crosswalk or contents(place, spec.release, seconds))
    # A file says by itself what readers see; of tables the pointer row does.
    seen = next((m.version for m in marks if m.shown), known.pointer if place.engine == "postgresql" else None)
    landing = any(event.state == "checked" and event.version == seen for event in known.events[-1:])
    newest = next(reversed(known.shown), None)
    return Found(found, seen, seen if landing else newest)


def _knows(known: Written, target: Target, mark: Mark, staged: bool) -> bool:
    if not mark.shown and mark.version != known.pointer:
        return known.wrote(mark.version, mark.stamp, staged=staged)
    events = [event for event in known.events if event.version == mark.version]
    shown = [event for event in events if event.state in PUBLISHING]
    if mark.stamp is not None:
        if any(event.stamp == mark.stamp for event in shown):
            return True
    elif shown and target.digest_of(mark) in {event.content_digest for event in shown}:
        return True
    # A run that was killed between the renaming and its record; the next one records it.
    last = events[-1] if events else None
    landed = last is not None and last.state == "checked" and last.stamp == mark.stamp
    return landed and target.landed(mark.version)


def _crosswalk_problems(known: Written, crosswalk: Contents, place: Place) -> list[str]:
    shown, found = known.shown, []
    for version, stamp in sorted(crosswalk.versions.items(), reverse=True):
        if version in shown:
            if stamp != shown[version].stamp:
                found.append(f"the crosswalk holds another version {version} than the ledger has shown")
        elif not known.wrote(version, stamp) and not known.may_be_kept(version, stamp):
            found.append(f"the crosswalk holds version {version}, {_why(known, version)}")
    missing = known.missing(crosswalk)
    if missing:
        found.append(lacking(place, missing, there=crosswalk.there))
    return found[:SHOWN]


def lacking(place: Place, versions: list[int], *, there: bool) -> str:
    """What is said of versions whose part of the crosswalk is missing."""
    named = ", ".join(map(str, versions[:SHOWN])) + (", ..." if len(versions) > SHOWN else "")
    said = f"the ledger has shown version {named} checked together with others, and the crosswalk lacks it"
    return said if there else f"{said}: {crosswalk_place(place)} gone"


def crosswalk_place(place: Place) -> str:
    """Where the crosswalk is, as the beginning of a sentence about it."""
    return f"the file {place.folder / FILE} is" if place.engine == "duckdb" else f"its tables in schema {SCHEMA} are"


def check_crosswalk(place: Place, only: str | None = None) -> None:
    """Raise Refused where the crosswalk of a place lacks what the ledger has shown of any release, or of one.

    A release whose newest version waived the joint check does without it.
    """
    found = []
    with ledger_reader(place) as reader:
        releases = {
            release: Written.of(reader, release) for release in reader.releases() if not reader.successor(release)
        }
    for release, known in releases.items():
        newest = next(reversed(known.shown.values()), None)
        if only not in (None, release) or newest is None or newest.joint == "none":
            continue
        crosswalk = contents(place, release, OPEN_SECONDS)
        missing = known.missing(crosswalk) if crosswalk is not None else []
        if crosswalk is not None and missing:
            found.append(f"release {release}: {lacking(place, missing, there=crosswalk.there)}")
    if found:
        raise Refused(
            f"the crosswalk is missing or older than what was shown: {'; '.join(found[:SHOWN])}. Nothing was changed; "
            f"restore {_store(place)} (ledger, crosswalk and versions, whole and of one time) from the backup that "
            "belongs to what is published"
        )


def _left_problems(known: Written, crosswalk: Contents | None) -> list[str]:
    if crosswalk is None or crosswalk.out >= known.left:
        return []
    return [
        f"{known.left} people have left, as the ledger says, and the crosswalk, which says who, knows {crosswalk.out}: "
        "they would be shown again"
    ]


def _why(known: Written, version: int) -> str:
    numbers = {event.version for event in known.events if event.version is not None}
    if not numbers:
        return "and the ledger knows no version of it"
    if version > max(numbers):
        return f"and the ledger ends at version {max(numbers)}"
    return f"and that is not the version {version} that the ledger knows"


def _store(place: Place) -> str:
    return f"the private folder {place.folder}" if place.engine == "duckdb" else f"schema {SCHEMA}"


def refusal(place: Place, release: str, found: list[str]) -> str:
    """What is said to the person who must act."""
    other = "in another file (publish.url)" if place.engine == "duckdb" else "with another view"
    back = "ledger, crosswalk and versions, whole and of one time"
    return (
        f"private state of release {release} is missing or older than what was shown, was altered, or another job "
        f"publishes there: {'; '.join(found)}. Nothing is published, since what readers hold could not be checked "
        f"against. Restore {_store(place)} ({back}) from the backup that belongs to what is published, or give this "
        "job a release name and a target of its own. If it is lost for good, no later version of this release can be "
        "protected together with the earlier ones: if only the crosswalk is lost, write `versions: {joint: none}`; "
        f"else take the view away (qblock retire) and publish under another release name {other}, with `versions: "
        "{joint: none}`"
    )


def check(spec: Spec, place: Place, target: Target, *, joint: bool) -> list[str]:
    """Notes for the person who runs the job. Raises Refused where the ledger does not know what is there."""
    release = spec.release
    found = compare(spec, place, target, joint=joint, seconds=OPEN_SECONDS)
    if found.problems:
        raise Refused(refusal(place, release, found.problems))
    if found.seen in (None, found.newest):
        return []
    return [
        f"readers see version {found.seen} of release {release} again, and the ledger has shown version {found.newest} "
        "since: what is published comes from an older copy; the ledger knows both, so it is safe to go on from there"
    ]


def record_refusal(place: Place, release: str, run: str, error: Refused) -> None:
    """Write in the ledger why nothing was done."""
    with ledger_transaction(place) as connection:
        record(connection, Event(release=release, state="refused", run=run, reason=str(error)))
