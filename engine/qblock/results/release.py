"""Answers about a release: what a job would do or did, what is published, the ledger, rights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field

from qblock.errors import Refused
from qblock.results.base import Answer, Forecast, Frontier, Guarantee, Guaranteed, Levels, Real, Value
from qblock.results.check import Finding, refuse_unsafe

Node = Mapping[str, int]
Status = Literal["published", "rolled_back", "unchanged", "dry_run", "refused", "failed", "unknown", "lagging"]


class Sharing(Value):
    """How many people share the joint cells of those who leave at once. leaving: people who withdraw and are not out
    yet; companions: others in their joint cells, who leave with them; cells: these joint cells, which leave whole;
    staying: the others whom the newest version shows.

    It depends on nothing but who withdraws, blocks, and which versions show whom: on no sensitive value that is not
    shown, so whether they leave may be decided by it.
    """

    leaving: int
    companions: int
    cells: int
    staying: int

    def __str__(self) -> str:
        cells = "joint cell" if self.cells == 1 else f"{self.cells:,} joint cells"
        if self.companions:
            companions = _people(self.companions, "other person shares", "other people share")
            companions = f"{companions} their {cells}, and would leave with them"
        else:
            companions = f"nobody else is in their {cells}" if self.cells else "they are in no joint cell"
        who = _people(self.leaving, "person withdraws", "people withdraw")
        return f"{who}; {companions}; {_people(self.staying, 'person', 'people')} would stay"


def _people(n: int, singular: str, plural: str) -> str:
    return f"{n:,} {singular if n == 1 else plural}"


class Grant(Value):
    """A right that somebody needs. who: job, reader or officer; held: whether the role has it already; when: now,
    by_job (the job grants it itself), later (once there is a ledger)."""

    who: str = Field(alias="for")
    role: str
    statement: str
    why: str
    held: bool
    when: str


class FileAccess(Value):
    """A file or folder. access: what somebody must be able to do with it (read, write), or must not (none)."""

    who: str = Field(alias="for")
    access: Literal["read", "write", "none"]
    path: str
    why: str


class Grants(Answer):
    """What a release needs of others. job: its login, None on DuckDB; sql: a script for an administrator (empty on
    DuckDB); grants: its statements, and those that are not run by an administrator; files: on DuckDB."""

    columns_shown = ("role", "statement", "why", "held", "when")

    release: str
    engine: str
    where: str
    job: str | None
    view: str
    sql: str
    grants: tuple[Grant, ...]
    files: tuple[FileAccess, ...]
    notes: tuple[str, ...]

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(grant.role, grant.statement, grant.why, grant.held, grant.when) for grant in self.grants]


def _with_description(schema: dict[str, Any]) -> None:
    schema.pop("additionalProperties", None)
    schema["properties"]["description"] = {"type": "string"}
    schema["required"].append("description")


class Step(Value):
    """A step of a job: fields of its own, and a description behind them."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_with_description)

    step: str

    @property
    def description(self) -> str:
        """What it does, in words."""
        return str((self.model_extra or {})["description"])


class NextLevels(Value):
    """Of the current version, and of the one that a run would make (next: None where a search chooses)."""

    version: int
    current: Node
    next: Node | None

    def __str__(self) -> str:
        if self.next is None:
            named = ", ".join(f"{name} {level}" for name, level in self.current.items())
            return f"a search chooses them; version {self.version} has {named}"
        if list(self.next.items()) == list(self.current.items()):
            return ", ".join(f"{name} {level}" for name, level in self.next.items()) + f", as version {self.version}"
        changes = []
        for name, level in self.next.items():
            before = self.current.get(name)
            other = "" if before == level else f" (version {self.version}: {'none' if before is None else before})"
            changes.append(f"{name} {level}{other}")
        return ", ".join(changes)


class Changes(Value):
    """What waits, by sizes alone, where versions lag behind the source (docs/json.md). newcomers wait in `blocks`
    blocks, of whom `closing` in `closing_blocks` are enough for a batch; cohorts: least and most that close one in the
    others, never: blocks in which none ever closes, both of `looked_at` blocks. tried: whether a run would try a
    version, as far as sizes tell; why: in words. weighed_cells: joint cells whose weights would be others."""

    newcomers: int
    blocks: int
    closing: int
    closing_blocks: int
    cohorts: Levels | None
    never: int
    looked_at: int
    leavers: int
    changed: int
    whole_cells: int
    leaver_cells: int
    changed_cells: int
    weighed_cells: int
    tried: bool
    why: str


class Planned(Answer):
    """The steps of a job, in their order; missing_rights: what an administrator must grant first (of a release);
    levels, changes: of a release that has a version; sharing: of an erasure at once, how many share the joint cells of
    those who would leave; missing: how many the source has no more; checks: what the spec takes for granted and the
    data do not bear out, where the source was checked."""

    columns_shown = ("step", "what it does")

    release: str
    view: str
    current_version: int | None
    notes: tuple[str, ...]
    steps: tuple[Step, ...]
    missing_rights: tuple[Grant, ...] = ()
    levels: NextLevels | None = None
    changes: Changes | None = None
    forecast: Forecast | None = None
    frontier: Frontier | None = None
    missing: int | None = None
    sharing: Sharing | None = None
    checks: tuple[Finding, ...] = ()

    def raise_refused(self) -> None:
        """Raise Refused (exit status 3) where a release would stop at a finding."""
        refuse_unsafe(self.checks)

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(step.step, step.description) for step in self.steps]


class Lag(Value):
    """How far the view is behind the source, where versions lag. rows: of the source that it does not show as they are,
    and their share; blocks: in which newcomers wait; beyond: which of max_lag and max_wait it is more than."""

    rows: int = 0
    share: Real = 0
    blocks: int = 0
    oldest_seconds: Real | None = None
    beyond: tuple[str, ...] = ()


class Published(Guaranteed):
    """How a release or a rollback ended. node: empty of a recoding map, of which boxes is how many are published;
    tightest: counted again in what was published; ledger_head: of the newest event, to be kept elsewhere; waiting: how
    many the view does not show as the source has them, by why. waiting and lag are for nobody who reads the view.
    in_words: what readers see of each quasi-identifier."""

    status: Status
    release: str
    run: str
    version: int | None
    node: Node
    rows: int
    suppressed: int
    view: str
    digest: str | None
    ledger_head: str | None
    tightest: tuple[Guarantee, ...]
    choice: str
    protected: bool
    optimality: str
    joint: str
    seconds: Real
    notes: tuple[str, ...]
    search: Mapping[str, Any]
    waiting: Mapping[str, int]
    lag: Lag
    boxes: int | None
    exit_status: int = 0
    reason: str | None = None
    confirm: str | None = None
    run_status: Status | None = None
    in_words: Mapping[str, str] = Field(default={}, exclude=True)

    @property
    def title(self) -> str:
        return f"Release {self.release}, version {self.version}: {self.status}, {self.rows:,} rows as {self.view}"


class DryRun(Answer):
    """That a release was decided and not made: the same whatever it came to."""

    release: str
    run: str
    status: Literal["dry_run"]
    exit_status: int = 0
    reason: str | None = None


class Failed(Answer):
    """A run that did not come to a result. version: where one was published all the same; confirm: what lets the run
    pass, where it asks for that."""

    status: Status
    release: str | None
    run: str | None
    version: int | None = None
    reason: str
    exit_status: int
    confirm: str | None = None


class Verified(Guaranteed):
    """What is published, counted again. not_recomputed: models that were not; recomputed_privately: on counts that were
    kept; problems: what does not agree with the ledger, one sentence each; in_words: what readers see of each
    quasi-identifier."""

    status: Literal["verified", "failed"]
    release: str
    version: int | None
    view: str
    rows: int
    digest: str | None
    ledger_head: str | None
    tightest: tuple[Guarantee, ...]
    not_recomputed: tuple[str, ...]
    problems: tuple[str, ...]
    recomputed_privately: tuple[str, ...]
    in_words: Mapping[str, str] = Field(default={}, exclude=True)

    @property
    def title(self) -> str:
        return f"Release {self.release}, version {self.version}: {self.status}"

    def raise_problems(self) -> None:
        """Raise Refused (exit status 3) with every problem, if there is any."""
        if self.problems:
            raise Refused("verification failed: " + "; ".join(self.problems))


class Event(Value):
    """One event of the ledger. recorded_at: in UTC; reason: why, where it was refused or failed."""

    release: str
    state: str
    run: str | None
    version: int | None
    quasi_identifiers: tuple[str, ...] | None
    node: Levels | None
    choice: str | None
    protected: bool | None
    joint: str | None
    rows_source: int | None
    rows_published: int | None
    rows_suppressed: int | None
    spec_digest: str | None
    hierarchy_digest: str | None
    content_digest: str | None
    reference_digest: str | None
    stamp: str | None
    view: str | None
    stale_after: int | None
    detail: Mapping[str, Any]
    reason: str | None
    confirmed: str | None
    source: str | None
    source_database: str | None
    source_files: str | None
    target: str | None
    entity: str | None
    columns: tuple[tuple[str, str], ...] | None
    readers: tuple[str, ...] | None
    audience: tuple[str, ...] | None
    recorded_at: str
    number: int
    program_version: str
    previous_digest: str | None
    digest: str


@dataclass(frozen=True)
class Run:
    """The events of one run of the job."""

    events: tuple[Event, ...]

    @property
    def outcome(self) -> Event:
        """Its last event; that it dropped an older version is no outcome of the run itself."""
        return next((event for event in reversed(self.events) if event.state != "retired"), self.events[-1])

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it was refused or failed, and what else it recorded."""
        return tuple(dict.fromkeys(event.reason for event in self.events if event.reason))

    @property
    def dropped(self) -> list[int | None]:
        """The older versions that it dropped."""
        return [event.version for event in self.events if event.state == "retired" and event is not self.outcome]


class RecordedGuarantee(Value):
    """A guarantee of a version, as it was checked at a stage. asked, satisfied: exact texts; margin: between them, as a
    share of what was asked."""

    version: int
    state: str
    stage: str
    model: str
    sensitive: str | None
    parameters: str
    parameter: str
    asked: str
    satisfied: str | None
    satisfied_number: Real | None
    attained: bool
    holds: bool | None
    margin: Real | None


class MarginTrend(Value):
    """A guarantee as it was checked last in a version, and how its margin has changed since the version before."""

    model: str
    sensitive: str | None
    parameters: str
    parameter: str
    version: int
    recorded_at: str
    asked: str
    satisfied: str | None
    margin: Real | None
    margin_change: Real | None


class History(Answer):
    """The ledger of a release, oldest event first. current: the version that readers see; stale: whether it is older
    than the spec allowed (None: it allowed any)."""

    columns_shown = ("number", "time", "state", "version", "rows", "reason")

    release: str
    current: int | None
    age_seconds: Real | None
    stale: bool | None
    retired_at: str | None
    ledger_head: str | None
    events: tuple[Event, ...]
    guarantees: tuple[RecordedGuarantee, ...]
    margin_trend: tuple[MarginTrend, ...]

    @property
    def runs(self) -> list[Run]:
        """In the order in which they began."""
        runs: dict[str | int, list[Event]] = {}
        for event in self.events:
            runs.setdefault(event.run or event.number, []).append(event)
        return [Run(tuple(events)) for events in runs.values()]

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(e.number, e.recorded_at, e.state, e.version, e.rows_published, e.reason) for e in self.events]


class Erased(Answer):
    """What became of people who withdrew: counts alone. asked: named, or missing; shown: of them, whom any version has
    shown; companions: others that left with them; retired: versions dropped; published: the version without them;
    sharing: what was counted before they left at once."""

    status: Literal["queued", "erased", "unchanged"]
    release: str
    asked: int
    shown: int
    companions: int
    retired: Levels
    published: Published | None
    notes: tuple[str, ...]
    sharing: Sharing | None


class Ended(Answer):
    """What became of a release that was retired, or moved from the name `earlier`. version: the one that readers saw
    last, or see now."""

    status: Literal["retired", "moved", "unchanged"]
    release: str
    earlier: str | None = None
    version: int | None
    view: str
    ledger_head: str | None
    notes: tuple[str, ...]


class TypeChange(Value):
    """A column whose type has changed. values: how many kept ones are written differently now."""

    column: str
    before: str
    now: str
    values: int


class Retyped(Answer):
    """What is kept of a release, moved to other column types. versions: how many were converted."""

    columns_shown = ("column", "before", "now", "values")

    status: Literal["retyped", "unchanged"]
    release: str
    columns: tuple[TypeChange, ...]
    versions: int

    def rows_shown(self) -> Sequence[Sequence[Any]]:
        return [(change.column, change.before, change.now, change.values) for change in self.columns]


class Upgraded(Answer):
    """Revisions of the ledger's schema. before: None where there was no ledger."""

    before: str | None
    after: str


class Rekeyed(Answer):
    """keys: how many the crosswalk has now, the new one included; releases: people that were moved, by release."""

    status: Literal["rekeyed"]
    keys: int
    releases: Mapping[str, int]
    notes: tuple[str, ...]
