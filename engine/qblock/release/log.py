"""What a run says while it goes on, as data: no value of the source and no secret is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from qblock.release.records import time_text

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
