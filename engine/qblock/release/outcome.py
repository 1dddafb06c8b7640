"""What a command has done so far: every way out of it asks here, since an error may come after a publication."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from qblock.errors import Busy, InputError, Refused
from qblock.ledger.events import PUBLISHING, RecordedEvent
from qblock.ledger.place import translated
from qblock.ledger.reader import LedgerReader
from qblock.ledger.writer import opened
from qblock.release.job import Job
from qblock.release.recover import SECONDS

Ask = Callable[[], str | None]
"""Finds out whether something was done: what is said of it, or None where it was not."""
UNPUBLISHED = "nothing was published"
HISTORY = "`qblock history` shows it"


@dataclass
class Deed:
    """Something that outlasts the command. said: that it was done, as a sentence; done: None while that is not known.

    status, version: of a publication, as its result has them.
    """

    said: str
    ask: Ask
    status: Literal["published", "rolled_back"] | None = None
    version: int | None = None
    done: bool | None = None

    def settle(self) -> None:
        """Find out what is not known yet; what cannot be asked stays unknown."""
        if self.done is not None:
            return
        try:
            found = self.ask()
        except (Exception, KeyboardInterrupt):
            return
        self.done, self.said = found is not None, found or self.said

    @property
    def sentence(self) -> str | None:
        """What is said of it; None where it was not done."""
        if self.done is None:
            return f"whether {self.said} is not known, {HISTORY}"
        return self.said if self.done else None


class Outcome:
    """What one command has done, oldest first."""

    def __init__(self) -> None:
        self.deeds: list[Deed] = []

    @contextmanager
    def doing(
        self,
        said: str,
        ask: Ask,
        *,
        status: Literal["published", "rolled_back"] | None = None,
        version: int | None = None,
    ) -> Iterator[None]:
        """What is done within, by one commit or rename, is done where this ends, and is asked for where it is left."""
        deed = Deed(said, ask, status, version)
        self.deeds.append(deed)
        try:
            yield
        except (InputError, Refused):
            # Decided before anything is committed.
            deed.done = False
            raise
        except BaseException:
            # At once, while the lock of the release is held; an error may have come after the commit.
            deed.settle()
            raise
        deed.done = True

    @property
    def publication(self) -> Deed | None:
        """The newest publication that was made, or of which that is not known."""
        made = [deed for deed in self._settled() if deed.status is not None and deed.done is not False]
        return made[-1] if made else None

    def said(self, nothing: str | None = None) -> str | None:
        """What was done, as sentences. nothing: what is said where nothing was, or of UNPUBLISHED no publication."""
        found = [deed.sentence for deed in self._settled() if deed.sentence is not None]
        if nothing is not None and not (self.publication if nothing == UNPUBLISHED else found):
            found.append(nothing)
        return "; ".join(found) or None

    def _settled(self) -> list[Deed]:
        for deed in self.deeds:
            deed.settle()
        return self.deeds


_current: ContextVar[Outcome | None] = ContextVar("outcome", default=None)


@contextmanager
def asked() -> Iterator[Outcome]:
    """The outcome of what is called within."""
    token = _current.set(made := Outcome())
    try:
        yield made
    finally:
        _current.reset(token)


def outcome() -> Outcome:
    """That of the command which calls; one that nobody asks where it is not called by one that does."""
    return _current.get() or Outcome()


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
    return said if since[-1] is own[-1] and own[-1].state == "checked" and run.target.landed(version) else None


def _history(run: Job) -> list[RecordedEvent]:
    """The events of the release, also where a signal came before this process could close the ledger's file.

    DuckDB opens a file in one way at a time in a process: then it can be read only as it is open.
    """
    place = run.place
    if place.file is not None and not place.file.exists():
        return []
    for read_only, seconds in ((True, 0.0), (False, 0.0), (True, SECONDS)):
        with suppress(Busy), opened(place, read_only=read_only, seconds=seconds) as connection, translated(place):
            return LedgerReader(connection).history(run.spec.release)
    raise Busy("the ledger stays open elsewhere")
