"""What a release's methods return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from qblock.errors import Refused
from qblock.releases.answer import Answer
from qblock.releases.granted import Grant
from qblock.releases.next_version import Changes, Levels
from qblock.tables.results import COLUMNS, Guarantee, Number, frame, guarantee_rows

if TYPE_CHECKING:
    import pandas as pd

    from qblock.joint.sharing import Sharing


@dataclass(frozen=True)
class Expected:
    """How a job goes on that publishes a node, where versions lag behind the source, over 52 runs. levels: of the node;
    blocks: how many it has; mean_wait, worst_wait: of newcomers, in runs; lag, worst_lag: share of the rows that the
    view does not show as they are; never: share of the newcomers who are in a block that shows none."""

    levels: tuple[int, ...]
    blocks: int
    mean_wait: float
    worst_wait: int
    lag: float
    worst_lag: float
    never: float

    @classmethod
    def all_of(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of an answer that has a forecast, or may have one."""
        forecast = answer.get("forecast")
        if forecast is None:
            return {"forecast": (), "recommended": None}
        nodes = ({"levels": tuple(node["node"]), **node} for node in forecast["nodes"])
        names = [field.name for field in fields(cls)]
        return {
            "forecast": tuple(cls(**{name: node[name] for name in names}) for node in nodes),
            "recommended": tuple(forecast["recommended"]),
        }


@dataclass(frozen=True)
class Searched(Answer):
    """What a search found. levels: of the node chosen, by quasi-identifier (none where nothing satisfies the spec);
    minimal: the minimal nodes; metrics: of the node chosen; refused: why nothing can be published, if so; forecast: of
    some nodes, where a churn is known; recommended: the node among them that a job goes on with; in_words: what readers
    see of each quasi-identifier at each of its levels."""

    columns = COLUMNS

    rows: int
    levels: tuple[tuple[str, int], ...]
    minimal: tuple[tuple[int, ...], ...]
    suppressed: int
    guarantees: tuple[Guarantee, ...]
    metrics: tuple[tuple[str, Number], ...]
    why: str
    refused: str | None = None
    forecast: tuple[Expected, ...] = ()
    recommended: tuple[int, ...] | None = None
    boxes: int | None = None
    in_words: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        chosen = answer["chosen"] or {"node": {}, "suppressed": 0, "tightest": (), "metrics": {}}
        return {
            **super().values(answer),
            "rows": answer["rows"],
            "levels": tuple(chosen["node"].items()),
            "minimal": tuple(map(tuple, answer["minimal"])),
            "suppressed": chosen["suppressed"],
            "guarantees": tuple(map(Guarantee.of, chosen["tightest"])),
            "metrics": tuple(chosen["metrics"].items()),
            "why": answer["why"],
            "boxes": chosen.get("boxes"),
            **Expected.all_of(answer),
        }

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return guarantee_rows(self.guarantees)

    def raise_refused(self) -> None:
        """Raise Refused (exit status 3) where nothing can be published."""
        if self.refused is not None:
            raise Refused(self.refused)


@dataclass(frozen=True)
class Granted:
    """What a definition grants about a sensitive attribute against an adversary of epsilon-privacy.

    epsilon: that every table with it has ("inf" where there is none, None where no table has it); why: in words;
    reached: the largest of the nodes that satisfy the definition, and levels of such a node (None where none does).
    """

    definition: str
    sensitive: str
    adversary: str
    epsilon: Number
    why: str
    reached: Number
    levels: tuple[int, ...] | None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Granted:
        return cls(**{**entry, "levels": None if entry["levels"] is None else tuple(entry["levels"])})


@dataclass(frozen=True)
class Compared(Answer):
    """Many definitions at every node. nodes: how many there are; definitions: their names; more_useful: pairs of which
    the first admits every node of the second, and more; granted: what each definition that asks for something grants as
    epsilon-privacy."""

    nodes: int
    definitions: tuple[str, ...]
    more_useful: tuple[tuple[str, str], ...]
    granted: tuple[Granted, ...] = ()

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().values(answer),
            "nodes": answer["nodes_total"],
            "definitions": tuple(definition["name"] for definition in answer["definitions"]),
            "more_useful": tuple((pair["more"], pair["less"]) for pair in answer["more_useful"]),
            "granted": tuple(map(Granted.of, answer["granted"])),
        }

    def to_frame(self) -> pd.DataFrame:
        """A row for each node: its levels, and the tightest value of each definition."""
        answer = self.to_dict()
        names = answer["quasi_identifiers"]
        rows = [(*node["levels"], *node["tightest"].values()) for node in answer["nodes"]]
        return frame((*names, *(c for definition in answer["definitions"] for c in definition["columns"])), rows)


@dataclass(frozen=True)
class Planned(Answer):
    """The steps of a job, in their order; missing_rights: what an administrator must grant first (of a release);
    forecast, recommended: as of `Searched`; sharing: of an erasure at once, how many share the joint cells of those who
    would leave; missing: how many the source has no more; levels, changes: of a release that has a version."""

    columns = ("step", "what it does")

    view: str
    current_version: int | None
    steps: tuple[tuple[str, str], ...]
    missing_rights: tuple[Grant, ...] = ()
    forecast: tuple[Expected, ...] = ()
    recommended: tuple[int, ...] | None = None
    sharing: Sharing | None = None
    missing: int | None = None
    levels: Levels | None = None
    changes: Changes | None = None

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().values(answer),
            "levels": Levels.of(answer["levels"]) if "levels" in answer else None,
            "changes": Changes.of(answer["changes"]) if "changes" in answer else None,
            "missing": answer.get("missing"),
            "sharing": _sharing(answer.get("sharing")),
            "view": answer["view"],
            "current_version": answer["current_version"],
            "steps": tuple((step["step"], step["description"]) for step in answer["steps"]),
            "missing_rights": tuple(map(Grant.of, answer.get("missing_rights", ()))),
            **Expected.all_of(answer),
        }

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return self.steps


@dataclass(frozen=True)
class Published(Answer):
    """How a release or a rollback ended. status: published, rolled_back or unchanged; levels: of the node, by
    quasi-identifier (none of a recoding map, of which boxes is how many are published); guarantees: counted again in
    what was published; ledger_head: of the newest event, to be kept elsewhere; waiting: how many the view does not show
    as the source has them, by why; lag: how many rows of the source, their share, and how long the oldest has waited.
    Both for nobody who reads it. in_words: what readers see of each quasi-identifier."""

    columns = COLUMNS

    status: str
    run: str
    version: int | None
    view: str
    rows: int
    suppressed: int
    levels: tuple[tuple[str, int], ...]
    guarantees: tuple[Guarantee, ...]
    protected: bool
    digest: str | None
    ledger_head: str | None
    waiting: tuple[tuple[str, int], ...]
    lag: tuple[tuple[str, Any], ...]
    boxes: int | None = None
    in_words: tuple[tuple[str, str], ...] = ()

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        same = ("status", "run", "version", "view", "rows", "suppressed", "protected", "digest", "ledger_head")
        return {
            **super().values(answer),
            **{name: answer[name] for name in same},
            "levels": tuple(answer["node"].items()),
            "guarantees": tuple(map(Guarantee.of, answer["tightest"])),
            "waiting": tuple(answer["waiting"].items()),
            "lag": tuple((name, tuple(n) if isinstance(n, list) else n) for name, n in answer["lag"].items()),
            "boxes": answer.get("boxes"),
        }

    @property
    def title(self) -> str:
        return f"Release {self.release}, version {self.version}: {self.status}, {self.rows:,} rows as {self.view}"

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return guarantee_rows(self.guarantees)


@dataclass(frozen=True)
class DryRun(Answer):
    """That a release was decided and not made: the same whatever it came to."""

    run: str
    status: str

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().values(answer), "run": answer["run"], "status": answer["status"]}


@dataclass(frozen=True)
class Verified(Answer):
    """What is published, counted again. problems: what does not agree with the ledger, one sentence each; in_words:
    what readers see of each quasi-identifier."""

    columns = COLUMNS

    status: str
    version: int | None
    view: str
    rows: int
    guarantees: tuple[Guarantee, ...]
    problems: tuple[str, ...]
    ledger_head: str | None
    in_words: tuple[tuple[str, str], ...] = ()

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().values(answer),
            **{name: answer[name] for name in ("status", "version", "view", "rows", "ledger_head")},
            "guarantees": tuple(map(Guarantee.of, answer["tightest"])),
            "problems": tuple(answer["problems"]),
        }

    @property
    def title(self) -> str:
        return f"Release {self.release}, version {self.version}: {self.status}"

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return guarantee_rows(self.guarantees)

    def raise_problems(self) -> None:
        """Raise Refused (exit status 3) with every problem, if there is any."""
        if self.problems:
            raise Refused("verification failed: " + "; ".join(self.problems))


@dataclass(frozen=True)
class Event:
    """One event of the ledger. time: in UTC, as ISO 8601; reason: why, where it was refused or failed."""

    number: int
    time: str
    state: str
    version: int | None
    rows: int | None
    reason: str | None


@dataclass(frozen=True)
class History(Answer):
    """The ledger of a release, oldest event first. current: the version that readers see; stale: whether it is older
    than the spec allowed (None: it allowed any)."""

    columns = ("number", "time", "state", "version", "rows", "reason")

    current: int | None
    age_seconds: float | None
    stale: bool | None
    ledger_head: str | None
    events: tuple[Event, ...]

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        names = ("number", "recorded_at", "state", "version", "rows_published", "reason")
        return {
            **super().values(answer),
            **{name: answer[name] for name in ("current", "age_seconds", "stale", "ledger_head")},
            "events": tuple(Event(*(event[name] for name in names)) for event in answer["events"]),
        }

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(e.number, e.time, e.state, e.version, e.rows, e.reason) for e in self.events]


@dataclass(frozen=True)
class Erased(Answer):
    """What became of people who withdrew: counts alone. asked: named, or missing; shown: of them, whom any version has
    shown; companions: others that left with them; retired: versions dropped; published: the version without them;
    sharing: what was counted before they left at once."""

    status: str
    asked: int
    shown: int
    companions: int
    retired: tuple[int, ...]
    published: Published | None
    sharing: Sharing | None = None

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **super().values(answer),
            **{name: answer[name] for name in ("status", "asked", "shown", "companions")},
            "retired": tuple(answer["retired"]),
            "published": None if answer["published"] is None else Published.of(answer["published"]),
            "sharing": _sharing(answer["sharing"]),
        }


@dataclass(frozen=True)
class Ended(Answer):
    """What became of a release that was retired or moved. status: retired, moved or unchanged; version: the one that
    readers saw last, or see now."""

    status: str
    version: int | None
    view: str
    ledger_head: str | None

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        same = ("status", "version", "view", "ledger_head")
        return {**super().values(answer), **{name: answer[name] for name in same}}


@dataclass(frozen=True)
class Retyped(Answer):
    """What is kept of a release, moved to other column types. changes: column, type before, type now, and how many
    kept values are written differently now."""

    columns = ("column", "before", "now", "values")

    status: str
    changes: tuple[tuple[str, str, str, int], ...]

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        changes = [tuple(change[name] for name in cls.columns) for change in answer["columns"]]
        return {**super().values(answer), "status": answer["status"], "changes": tuple(changes)}

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return self.changes


@dataclass(frozen=True)
class Checked(Answer):
    """Hierarchies that are nested and cover every value of the source. hierarchies: name, height, and the number of
    labels at each level, leaf first."""

    columns = ("attribute", "height", "labels")

    rows: int
    hierarchies: tuple[tuple[str, int, tuple[int, ...]], ...]

    @classmethod
    def values(cls, answer: Mapping[str, Any]) -> dict[str, Any]:
        of = [
            (hierarchy["attribute"], hierarchy["height"], tuple(hierarchy["labels"]))
            for hierarchy in answer["hierarchies"]
        ]
        return {"release": answer.get("release", ""), "notes": (), "rows": answer["rows"], "hierarchies": tuple(of)}

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(name, height, " > ".join(map(str, labels))) for name, height, labels in self.hierarchies]


def _sharing(sharing: Mapping[str, Any] | None) -> Sharing | None:
    from qblock.joint.sharing import Sharing

    return None if sharing is None else Sharing(**sharing)
