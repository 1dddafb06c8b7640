"""The results of a release and of a verification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from qblock.errors import Refused
from qblock.hierarchy import TOP
from qblock.search.boxes.recoded import percent
from qblock.source.in_words import SUPPRESSED

if TYPE_CHECKING:
    from qblock.publish.recheck import Counted

Status = Literal["published", "rolled_back", "unchanged", "refused"]


WORDS = {
    "newcomers": ("newcomer", "newcomers"),
    "leavers": ("leaver", "leavers"),
    "changes": ("change", "changes"),
    "moves": ("move", "moves"),
    "withdrawals": ("withdrawal", "withdrawals"),
    "uncovered": ("row with values that no hierarchy covers", "rows with values that no hierarchy covers"),
}
AGES = (("week", 7 * 86_400), ("day", 86_400), ("hour", 3600), ("minute", 60))


def waiting_words(waiting: Mapping[str, int], lag: Mapping[str, Any] | None = None) -> str:
    """Who waits, as the end of a sentence. lag: as of `ReleaseResult`."""
    lag, out = lag or {}, waiting.get("out", 0)
    named = [f"{n:,} {WORDS[why][n != 1]}" for why, n in waiting.items() if why != "out"]
    if lag.get("blocks") and waiting.get("newcomers"):
        named[0] += f" in {_count(lag['blocks'], 'block')}"
    who = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    said = f"{who} {'waits' if sum(waiting.values()) - out == 1 else 'wait'}" if named else ""
    if out:
        said += f"{', ' if said else ''}{out:,} {'person is' if out == 1 else 'people are'} out for good"
    if "share" not in lag:
        return said
    oldest = f", oldest {_age(lag['oldest_seconds'])}" if lag["oldest_seconds"] is not None else ""
    return f"{said} (lag {100 * lag['share']:.2g} % of the rows{oldest})"


@dataclass(frozen=True)
class Seen:
    """What published blocks show of a quasi-identifier. labels: how many besides `*`; like: the one that most rows
    have, None where there is none; share, suppressed: of the rows with that label, and with `*`."""

    labels: int
    like: str | None
    share: float
    suppressed: float

    def in_words(self) -> str:
        """`7 labels such as 40-59 for 65 %, suppressed to * for 2 %`."""
        if self.like is None:
            return SUPPRESSED
        said = f"{_count(self.labels, 'label')} such as {self.like} for {percent(self.share)}"
        return said + (f", {SUPPRESSED} for {percent(self.suppressed)}" if self.suppressed else "")


def seen(names: Sequence[str], counted: Counted) -> dict[str, Seen]:
    """What published rows that were counted again show of each quasi-identifier."""
    shown = {}
    for i, name in enumerate(names):
        rows: Counter[str] = Counter()
        for labels, n in zip(counted.labels, counted.rows.tolist(), strict=True):
            rows[labels[i]] += n
        total, suppressed = max(1, rows.total()), rows.pop(TOP, 0)
        like = min(rows, key=lambda label: (-rows[label], label), default=None)
        shown[name] = Seen(len(rows), like, rows[like] / total if like is not None else 0.0, suppressed / total)
    return shown


def _age(seconds: float) -> str:
    for word, length in AGES:
        if seconds >= length:
            return _count(int(seconds // length), word)
    return "less than a minute"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"


@dataclass(frozen=True)
class ReleaseResult:
    """How a run ended. node: level by name, empty of a recoding map; boxes: how many of its boxes are published.

    digest: of the published content; ledger_head: of the newest event.

    tightest: as in `search --json`, recomputed from the copy. notes: what the person who runs the job should know.
    search: how large the lattice is, and what its search took. waiting: how many the view does not show as the source
    has them, by why: `newcomers`, `leavers` (people who are still shown), `changes` (of values that are shown as they
    were), `moves` (people in another block), `withdrawals` (people who are still shown), `uncovered` (rows whose values
    no hierarchy covers), `out` (people of the source whom no version will show). lag, of a release that lags behind
    its source: `rows` of the source that the view does not show as they are, and their `share`; the `blocks` in which
    newcomers wait; `oldest_seconds`, how long somebody has waited (None: nobody does); `beyond`, which of max_lag and
    max_wait that is more than. All for whoever runs the job, never for readers. seen: what the published rows show of
    each quasi-identifier, for the words of the command line: no part of the JSON.
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
    lag: dict[str, Any] = field(default_factory=dict)
    boxes: int | None = None
    seen: dict[str, Seen] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        answer = {**vars(self), "seconds": round(self.seconds, 3)}
        del answer["seen"]
        return answer


@dataclass(frozen=True)
class VerifyResult:
    """What is published, recounted. problems: what does not agree with the ledger, one sentence each.

    recomputed_privately: models that need more than the published rows, on counts that were kept with the version;
    not_recomputed: those of which no counts were kept. node, seen: as of `ReleaseResult`, no part of the JSON.
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
    node: dict[str, int] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        answer = {"status": "failed" if self.problems else "verified", **vars(self)}
        del answer["node"], answer["seen"]
        return answer

    def raise_problems(self) -> None:
        """Raise Refused (exit status 3) with every problem, if there is any."""
        if self.problems:
            raise Refused("verification failed: " + "; ".join(self.problems))
