"""The results of a release and of a verification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from qblock.errors import Refused

Status = Literal["published", "rolled_back", "unchanged", "refused"]


WORDS = {
    "newcomers": ("newcomer waits", "newcomers wait"),
    "moves": ("move waits", "moves wait"),
    "withdrawals": ("withdrawal waits", "withdrawals wait"),
    "uncovered": ("row with values that no hierarchy covers waits", "rows with values that no hierarchy covers wait"),
}


def waiting_words(waiting: Mapping[str, int]) -> str:
    """Who waits, as the end of a sentence."""
    return ", ".join(f"{n:,} {WORDS[why][n != 1]}" for why, n in waiting.items())


@dataclass(frozen=True)
class ReleaseResult:
    """How a run ended. node: level by name; digest: of the published content; ledger_head: of the newest event.

    tightest: as in `search --json`, recomputed from the copy. notes: what the person who runs the job should know.
    search: how large the lattice is, and what its search took. waiting: how many the view does not show as the source
    has them, by why: `newcomers`, `moves` (people in another block), `withdrawals` (people who are still shown),
    `uncovered` (rows whose values no hierarchy covers). For whoever runs the job, never for readers.
    """

    status: Status
    release: str
    run: str
    version: int | None
    node: dict[str, int]
    rows: int
    suppressed: int
    view: str
    digest: str | None
    ledger_head: str | None
    tightest: list[dict[str, Any]]
    choice: str
    protected: bool
    optimality: str
    joint: str
    seconds: float
    notes: list[str] = field(default_factory=list)
    search: dict[str, Any] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class VerifyResult:
    """What is published, recounted. problems: what does not agree with the ledger, one sentence each.

    recomputed_privately: models that need more than the published rows, on counts that were kept with the version;
    not_recomputed: those of which no counts were kept.
    """

    release: str
    version: int | None
    view: str
    rows: int
    digest: str | None
    ledger_head: str | None
    tightest: list[dict[str, Any]]
    not_recomputed: list[str]
    problems: list[str]
    recomputed_privately: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {"status": "failed" if self.problems else "verified", **vars(self)}

    def raise_problems(self) -> None:
        """Raise Refused (exit status 3) with every problem, if there is any."""
        if self.problems:
            raise Refused("verification failed: " + "; ".join(self.problems))
