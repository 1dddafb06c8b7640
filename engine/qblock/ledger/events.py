"""What the ledger holds: events, the guarantees recorded with them, and the digest that chains them.

The events of a release are numbered 1, 2, 3, ... and chained by digest, each release on its own, so that one chain can
be checked whatever else the ledger holds. A digest is SHA-256 over canonical JSON (sorted keys, no spaces, UTF-8):
    {"event": {every column of the row except digest}, "guarantees": [{every column except release and number}, ...]}
with columns that are NULL left out, so that a column added later does not change the digest of an older row.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, Protocol, get_args

from qblock.canonical import canonical as canonical
from qblock.canonical import number_text as number_text
from qblock.models import Model, parameters_of
from qblock.models.base import Tightest
from qblock.models.ratios import double

State = Literal[
    "staged",
    "checked",
    "published",
    "rolled_back",
    "retired",
    "refused",
    "failed",
    "erased",
    "retyped",
    "retired_view",
    "moved",
    "rekeyed",
    "confirmed",
    "waiting",
    "dry_run",
    "kept",
]
STATES: tuple[State, ...] = get_args(State)
PUBLISHING: tuple[State, ...] = ("published", "rolled_back")
"""The states after which the event's version is the one that readers see."""
UNFINISHED: tuple[State, ...] = ("staged", "checked")
"""The states of a version whose run has not ended yet."""
IDENTIFYING: tuple[State, ...] = (*PUBLISHING, "moved")
"""The states whose newest event says what the release's source and view are."""
LISTS = ("quasi_identifiers", "node", "columns", "readers", "audience")
"""Columns of an event that hold JSON lists."""
HowChosen = Literal["minimal", "sizes", "pinned"]
Stage = Literal["search", "recheck", "verify"]
Counts = Mapping[str, Any]
"""Names to whole numbers, or to mappings or lists of them."""
FORMAT = 1
"""The number that the text of a model's parameters starts with. Another default takes the next number."""


class Requirement(Protocol):
    """What is read of an entry of `privacy`: a model for each sensitive attribute, or the one model without any."""

    @property
    def models(self) -> tuple[Model, ...]: ...

    @property
    def sensitive(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, kw_only=True)
class Event:
    """One transition of a release. No value of the source may be in it: `detail` takes counts only.

    version: None for a refusal before there was one. node: the level of each of `quasi_identifiers`. choice: how the
    node was chosen; protected: whether an attacker who knows the search learns nothing from the choice; joint: how
    versions were checked together; stamp: what the published object carries; stale_after: the age at which the version
    counts as stale; reason: why it was refused or failed, or who waits; confirmed: the source digest by which somebody
    let a turnover of people pass. recorded_at: now, unless given (an aware time). source_files: number, size, time and
    digest of the files that are the source, as JSON.

    source: the table as `schema.table`; source_database: a digest of the DuckDB file that it is in (None on PostgreSQL:
    the ledger's own database); target: the view, with a file of the spec's folder relative to that; entity: the column
    that tells people apart, where versions are checked together; columns: name and role of every published column;
    readers: roles that may read the view; audience: the releases that the spec named. Of what publishes alone.
    private_state: digests of the parts of the crosswalk that a transaction has changed, None of one that is empty now
    (`ledger.parts`); of an event `kept` alone.
    """

    release: str
    state: State
    run: str
    version: int | None = None
    quasi_identifiers: tuple[str, ...] | None = None
    node: tuple[int, ...] | None = None
    choice: HowChosen | None = None
    protected: bool | None = None
    joint: str | None = None
    rows_source: int | None = None
    rows_published: int | None = None
    rows_suppressed: int | None = None
    spec_digest: str | None = None
    hierarchy_digest: str | None = None
    content_digest: str | None = None
    reference_digest: str | None = None
    stamp: str | None = None
    view: str | None = None
    stale_after: timedelta | None = None
    detail: Counts = field(default_factory=dict)
    reason: str | None = None
    confirmed: str | None = None
    source: str | None = None
    source_database: str | None = None
    source_files: str | None = None
    target: str | None = None
    entity: str | None = None
    columns: tuple[tuple[str, str], ...] | None = None
    readers: tuple[str, ...] | None = None
    audience: tuple[str, ...] | None = None
    private_state: Mapping[str, str | None] | None = None
    recorded_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"{self.state!r} is not a state of an event; valid: {', '.join(STATES)}")
        if self.recorded_at.tzinfo is None:
            raise ValueError("recorded_at has no time zone")
        if not isinstance(self.detail, Mapping) or not _only_counts(self.detail):
            raise ValueError("detail holds something that is not a whole number; it is for counts only")


@dataclass(frozen=True, kw_only=True)
class RecordedEvent(Event):
    """An event as the ledger holds it."""

    number: int
    program_version: str
    previous_digest: str | None
    digest: str

    def again(self, **changes: Any) -> Event:
        """The same once more, as of now, but for these columns."""
        same = {f.name: getattr(self, f.name) for f in fields(Event) if f.name != "recorded_at"}
        return Event(**same | changes)


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What one parameter of a model was asked to be, and what the table satisfied.

    sensitive: the attribute, or a JSON list of several. parameters: all asked, as canonical JSON (parameters_text).
    asked, satisfied: exact text (14/5; 60 digits where logarithms are involved; inf); satisfied is None for a table
    without blocks. margin: the distance from asked to satisfied as a share of asked, positive where the table is better
    than asked; None where there is no such share.
    """

    stage: Stage
    model: str
    sensitive: str | None
    parameters: str
    parameter: str
    asked: str
    satisfied: str | None
    satisfied_number: float | None
    attained: bool
    holds: bool
    margin: float | None

    @classmethod
    def of(
        cls, requirement: Requirement, tightest: Tightest, stage: Stage, sensitive: str | None = None
    ) -> tuple[Guarantee, ...]:
        """One guarantee for each parameter that can be tightened. sensitive: which of several attributes `tightest` is
        about."""
        if sensitive is None:
            models, names = requirement.models, requirement.sensitive
        else:
            models, names = (requirement.models[requirement.sensitive.index(sensitive)],), (sensitive,)
        model = models[0]
        bounds = {bound.parameter: bound for bound in model.about.bounds}
        parameters = parameters_text(models)
        about = named(names)
        guarantees = []
        for value in tightest.values:
            requested = getattr(model, value.parameter)
            guarantees.append(
                cls(
                    stage=stage,
                    model=model.name,
                    sensitive=about,
                    parameters=parameters,
                    parameter=value.parameter,
                    asked=number_text(requested),
                    satisfied=None if value.value is None else number_text(value.value),
                    satisfied_number=_double(value.value),
                    attained=value.attained,
                    holds=tightest.holds,
                    margin=margin(requested, value.value, larger=bounds[value.parameter].stricter == "larger"),
                )
            )
        return tuple(guarantees)


@dataclass(frozen=True)
class PublishedVersion:
    """The version that readers see: the event that published it, and what was guaranteed then."""

    version: int
    event: RecordedEvent
    guarantees: tuple[Guarantee, ...]


def named(sensitive: Sequence[str]) -> str | None:
    """The sensitive attributes of a requirement as a guarantee has them; None where it has none."""
    return canonical(list(sensitive)) if len(sensitive) > 1 else next(iter(sensitive), None)


def margin(
    requested: int | Fraction, satisfied: int | Fraction | Decimal | float | None, *, larger: bool
) -> float | None:
    """The distance from requested to satisfied as a share of requested, positive where satisfied is stricter; None
    where undefined."""
    if satisfied is None or requested == 0 or (isinstance(satisfied, float) and math.isinf(satisfied)):
        return None
    share = double((Fraction(satisfied) - requested) / requested)
    # Sixty digits leave a rest where the values are equal.
    share = 0.0 if abs(share) < 1e-40 else share
    return share if larger else 0.0 - share


def chain_digest(event: Mapping[str, Any], guarantees: Iterable[Mapping[str, Any]]) -> str:
    """The digest of an event from the columns of its row and of its guarantees' rows, in order of position."""
    content = {
        "event": _present(event, {"digest"}),
        "guarantees": [_present(row, {"release", "number"}) for row in guarantees],
    }
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def time_text(time: datetime) -> str:
    """UTC, always with six digits, so that the text sorts as the time does."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event_row(event: Event) -> dict[str, Any]:
    """The columns of an event's row, without number, program version and digests."""
    row = dict(vars(event))
    row["recorded_at"] = time_text(event.recorded_at)
    row["detail"] = canonical(dict(event.detail)) if event.detail else None
    row["stale_after"] = None if event.stale_after is None else int(event.stale_after.total_seconds())
    for name in LISTS:
        row[name] = None if row[name] is None else canonical(list(row[name]))
    row["private_state"] = None if event.private_state is None else canonical(dict(event.private_state))
    return row


def event_of(row: Mapping[str, Any]) -> RecordedEvent:
    """The event of a row."""
    fields = dict(row)
    fields["recorded_at"] = datetime.fromisoformat(fields["recorded_at"])
    fields["detail"] = json.loads(fields["detail"]) if fields["detail"] else {}
    fields["stale_after"] = None if fields["stale_after"] is None else timedelta(seconds=fields["stale_after"])
    for name in LISTS:
        fields[name] = None if fields[name] is None else tuple(json.loads(fields[name]))
    fields["private_state"] = None if fields["private_state"] is None else json.loads(fields["private_state"])
    if fields["columns"] is not None:
        fields["columns"] = tuple((name, role) for name, role in fields["columns"])
    return RecordedEvent(**fields)


def guarantee_rows(guarantees: Sequence[Guarantee]) -> list[dict[str, Any]]:
    """The columns of guarantees' rows, without the event's key."""
    return [{"position": position, **vars(guarantee)} for position, guarantee in enumerate(guarantees)]


def _only_counts(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _only_counts(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(map(_only_counts, value))
    return value is None or isinstance(value, int)


def _present(row: Mapping[str, Any], without: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None and name not in without}


def _double(value: int | Fraction | Decimal | float | None) -> float | None:
    if isinstance(value, int | Fraction) and abs(Fraction(value)) > sys.float_info.max:
        return None  # its text is kept as well
    number = None if value is None else float(value)
    return number if number is not None and math.isfinite(number) else None


def parameters_text(models: Sequence[Model]) -> str:
    """All that was asked of a model, but what equals a default, as canonical text that starts with FORMAT; a list where
    the sensitive attributes of a requirement are asked differently."""
    by_model = [_without_defaults(model) for model in models]
    return canonical(by_model[0] if all(parameters == by_model[0] for parameters in by_model) else by_model)


def parameter_json(value: Any) -> Any:
    """A parameter as it is recorded; of a collection, which may name values of the source, number and digest only."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Fraction | Decimal):
        return number_text(value)
    items = [repr(item) for item in (value.items() if isinstance(value, Mapping) else value)]
    if isinstance(value, Mapping | Set):
        items.sort()
    return {"items": len(items), "digest": hashlib.sha256(canonical(items).encode()).hexdigest()}


def _without_defaults(model: Model) -> dict[str, Any]:
    defaults = {field.name: field.default for field in fields(model)}
    given = {name: value for name, value in parameters_of(model).items() if value != defaults[name]}
    return {"format": FORMAT, **{name: parameter_json(value) for name, value in given.items()}}
