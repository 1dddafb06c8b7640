"""Settles runs that did not end, and finds out whether one has published; effects.py has what is said of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields

from qblock.errors import QblockError, Refused
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import PUBLISHING, Event, RecordedEvent
from qblock.ledger.history import UNFINISHED, last_events, published_versions
from qblock.ledger.kept import forget_kept
from qblock.ledger.reader import LedgerReader
from qblock.release.job import Job
from qblock.versions.later import joint_check

SECONDS = 2.0
"""A run that is being stopped does not wait long for the ledger."""


def clear_leftovers(run: Job) -> list[str]:
    """Under the release's lock: settle every version that no run has finished; says what was done."""
    said = []
    release = run.spec.release
    with run.place.read() as reader:
        last = last_events(reader, release)
        guarantees = {v: reader.guarantees(release, e.number) for v, e in last.items()}
        published = published_versions(reader.history(release))
    for version, event in last.items():
        if event.state not in UNFINISHED:
            continue
        is_live = event.state == "checked" and run.target.is_live(version)
        with run.place.write() as connection:
            if is_live:
                state = "rolled_back" if version in published else "published"
                record(connection, _again(event, run.id, state), guarantees[version])
                set_pointer(connection, release, version)
                said.append(f"version {version} had been published when its run was stopped: recorded")
            elif version in published:
                record(connection, _again(event, run.id, "failed", "the run that rolled back to it was stopped"))
                said.append(f"version {version} had not been published again when its run was stopped: it stays")
            else:
                record(connection, _again(event, run.id, "failed", "the run that built it was stopped"))
                forget_kept(connection, release, [version])
                said.append(f"version {version} had not been published when its run was stopped: cleared")
    now = kept_versions(run) if said else published
    said += [f"removed {what}" for what in run.target.clear(now)]
    return said


def kept_versions(run: Job) -> list[int]:
    """The versions that were published and not dropped since."""
    with run.place.read() as reader:
        return published_versions(reader.history(run.spec.release))


def record_failure(run: Job, error: BaseException) -> None:
    """Record why a run ended without a publication, as far as that can be; the error itself is what is raised."""
    stopped = not isinstance(error, Exception)
    with suppress(Exception):
        with run.place.read() as reader:
            last = reader.last_event(run.spec.release)
            version = last.version if last and last.run == run.id and last.state in UNFINISHED else None
        if last is not None and last.run == run.id and last.state in PUBLISHING:
            return
        if version is not None and last is not None and last.state == "checked" and run.target.is_live(version):
            return  # the next run records it
        event = Event(
            release=run.spec.release,
            state="refused" if isinstance(error, Refused) else "failed",
            run=run.id,
            version=version,
            spec_digest=last.spec_digest if version is not None and last is not None else None,
            rows_source=last.rows_source if version is not None and last is not None else None,
            joint=joint_check(run.spec),
            reason=reason_of(error, stopped),
        )
        with run.place.write(SECONDS) as connection:
            record(connection, event)
            if version is not None:
                forget_kept(connection, run.spec.release, [version])
        # What the ledger does not know is not a leftover.
        if not stopped and run.state_known:
            run.target.clear(kept_versions(run))


def reason_of(error: BaseException, stopped: bool) -> str:
    """What the ledger records about an error."""
    if isinstance(error, QblockError):
        return str(error)
    return "the run was stopped" if stopped else f"internal error ({type(error).__name__})"


def _again(event: RecordedEvent, run: str, state: str, reason: str | None = None) -> Event:
    """The event of a version once more, in another state."""
    unchanged = {f.name: getattr(event, f.name) for f in fields(Event) if f.name not in ("recorded_at", "state", "run")}
    return Event(**{**unchanged, "state": state, "run": run, "reason": reason})  # type: ignore[arg-type]


def published(run: Job, version: int, *, again: bool = False) -> str | None:
    """What is said of a version that a run has published, however it ended; None where it has not.

    On DuckDB a file that was renamed into place is read, though the ledger says so only after the next run.
    """
    said = f"version {version} was published{' again' if again else ''}"
    events = [event for event in _history(run) if event.version == version]
    own = [event for event in events if event.run == run.id]
    if not own:
        return None
    # What another run has made of it since comes after the last of our own.
    since = [*own, *(event for event in events if event.number > own[-1].number)]
    if any(event.state in PUBLISHING for event in since):
        return said
    return said if since[-1] is own[-1] and own[-1].state == "checked" and run.target.is_live(version) else None


def _history(run: Job) -> list[RecordedEvent]:
    """The events of the release, also where a signal came in the middle of a transaction of this process."""
    if not run.place.exists:
        return []
    with run.place.opened(read_only=True, seconds=SECONDS) as connection:
        return LedgerReader(connection).history(run.spec.release)
