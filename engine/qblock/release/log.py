"""What a run reports while it is in progress, as data: without a value of the source or a secret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from qblock.ledger.events import time_text

if TYPE_CHECKING:
    from qblock.release.job import Step

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Entry:
    """One line of a log. run: the run's identifier, as in the ledger; step: as in `plan --json`, or `outcome`, `hook`;
    None for a run, release or step that is not known yet."""

    run: str | None
    release: str | None
    step: str | None
    message: str
    level: Level = "info"
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    def to_json(self) -> dict[str, Any]:
        return {
            "time": time_text(self.time),
            "level": self.level,
            "run": self.run,
            "release": self.release,
            "step": self.step,
            "message": self.message,
        }


Entries = Callable[[Entry], None]


class Reporter:
    """Reports what a run does: each message to `log` as it is, and to `entries` with run, release and step."""

    def __init__(
        self,
        log: Callable[[str], None] | None = None,
        entries: Entries | None = None,
        *,
        run: str | None = None,
        release: str | None = None,
    ) -> None:
        self._log, self._entries = log, entries
        self._run, self._release = run, release
        self._step: str | None = None

    def of_run(self, run: str, release: str) -> Reporter:
        """One that reports to the same for a run."""
        return Reporter(self._log, self._entries, run=run, release=release)

    def begin(self, step: Step) -> None:
        """Report the next step."""
        self._step = step.name
        self.report(step.describe())

    def report(self, message: str) -> None:
        if self._log is not None:
            self._log(message)
        if self._entries is not None:
            self._entries(Entry(self._run, self._release, self._step, message))
