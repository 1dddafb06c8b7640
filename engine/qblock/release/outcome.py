"""Whether a run has published its version, asked of the ledger and the target; effects.py has what is said of it."""

from __future__ import annotations

from qblock.ledger.events import PUBLISHING, RecordedEvent
from qblock.ledger.reader import LedgerReader
from qblock.release.job import Job
from qblock.release.recover import SECONDS


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
