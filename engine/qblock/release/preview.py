"""What `plan` says besides the steps: what would end a run before its search, the next version's levels and changes.

The source is opened as a run would, in one snapshot, and the crosswalk is only read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from qblock.errors import InputError, QblockError, Refused
from qblock.lattice import Node
from qblock.ledger.events import PUBLISHING, RecordedEvent
from qblock.ledger.store import Store
from qblock.publish.copy import columns_ahead, disclosure, nearly_unique
from qblock.release.forecast import GIVE_CHURN, Forecast, churn_of, forecast_of_search, published
from qblock.release.maps import inherited_map, map_named_by, ranges_now
from qblock.release.plan import Plan, plan
from qblock.release.retype import type_note
from qblock.release.turnover import refusal, source_digest
from qblock.search.run import open_snapshot, open_task, run_search
from qblock.source import SourceTable, open_recoded
from qblock.source.columns import repeated_people, tables_read
from qblock.spec import Spec, spec_digest
from qblock.versions.admission import Admission
from qblock.versions.batching.estimate import Churn
from qblock.versions.crosswalk import has_crosswalk, open_crosswalk
from qblock.versions.lag import memory
from qblock.versions.lag.checks import check_layout, check_node
from qblock.versions.lag.outlook import Outlook, outlook
from qblock.versions.lag.policy import rules_of
from qblock.versions.later import lags, later_versions
from qblock.versions.turnover import turnover
from qblock.warehouse import warehouse_of
from qblock.warehouse.engines import engine_of_source
from qblock.warehouse.kept_sessions import kept_sessions
from qblock.warehouse.protocol import Session

CORE = (
    "versions lag by the core of the rules alone: newcomers come in batches, whole joint cells go, and values stay as "
    "first shown, since {} (docs/steady-job.md)"
)
TOO_FEW = "no node satisfies the spec: its models need blocks of at least {} {}, and the source has {}. Ask for less"
NOT_LOOKED = (
    "neither the source nor what is kept was looked at, since a run would end at the rights that are missing; plan "
    "again when they are granted"
)
NO_STATE = "what waits was not looked at: no state is kept of what the versions show; the next run says what it finds"
ANOTHER_SPEC = "the spec is another one than that of version {}: a new version would be tried; {}"


@kept_sessions()
def preview(spec: Spec, churn: float | None = None) -> Plan:
    """The plan of a release. Raises what `plan` raises, InputError for a table that does not exist, or a view that
    cannot be replaced, and Refused where row level security would hide rows of a table; of a source that is released as
    it is, whatever a run raises before its search. Where a run would end for rights that are missing, those are all it
    says.

    churn: as of `forecast_of_search`; before a first version, a search reads the table for it.
    """
    expected_churn = churn_of(spec, churn)
    planned = plan(spec)
    if planned.stopping:
        return replace(planned, notes=(*planned.notes, NOT_LOOKED))
    if engine_of_source(spec).facts.has_roles:  # only there are policies
        _check_rows(spec)
    planned.target.check_columns(columns_ahead(spec, ranges_now(spec, planned.place)))
    unread = _check_source(spec) if planned.current is None or not spec.checked_together else []
    note = type_note(planned)
    notes = [*unread, *spec.warnings, *([] if note is None else [note])]
    if spec.entity is None:
        notes += _repeats(spec)
    notes += later_versions(spec) if planned.current is None else []
    if lags(spec):
        rules = rules_of(spec, bool(spec.versions.audience))
        notes += [] if rules.cells else [CORE.format(rules.reason)]
    forecast = _forecast(spec, expected_churn) if lags(spec) else None
    if lags(spec) and forecast is None and expected_churn is None:
        notes.append(GIVE_CHURN)
    foreseen = None if forecast is None else forecast.to_json()
    return _with_next_version(replace(planned, notes=(*planned.notes, *notes), forecast=foreseen))


def _forecast(spec: Spec, churn: Churn | None) -> Forecast | None:
    before = published(spec, churn)
    if churn is None or (before is not None and before.forecast is not None):
        return None if before is None else before.forecast
    with open_task(spec) as task:
        return forecast_of_search(run_search(task, stated=map_named_by(spec)), churn)


def _check_source(spec: Spec) -> list[str]:
    """Raise what a run raises before it searches: for columns, values, NULLs and parameters, and for too few rows."""
    try:
        with open_task(spec, name_values=False) as task:
            names = nearly_unique(task)
            if names:
                raise disclosure(spec, names)
            sets = task.source.frequency_sets
            there = sets.people() if sets.entities else task.source.rows
            if there < task.least:
                counted = "people" if sets.entities else "rows"
                raise Refused(TOO_FEW.format(task.least, counted, there))
    except (InputError, Refused):
        raise
    except QblockError as error:
        # A run that cannot read it reports that; the steps are the same.
        return [f"the source could not be checked: {error}"]
    return []


def _repeats(spec: Spec) -> list[str]:
    warehouse = warehouse_of(spec)
    try:
        with warehouse.snapshot() as session:
            return repeated_people(spec, session)
    except QblockError as error:
        # A run that cannot read it reports that; the steps are the same.
        return [f"whether rows repeat people could not be checked: {error}"]
    finally:
        warehouse.close()


def _check_rows(spec: Spec) -> None:
    warehouse = warehouse_of(spec, rows=False)
    try:
        with warehouse.snapshot() as session:
            for table in tables_read(spec):
                session.run(sa.select(sa.literal_column("1")).select_from(session.relation(table)).limit(0))
    finally:
        warehouse.close()


def _with_next_version(planned: Plan) -> Plan:
    """A plan with what is known of the version that a run would make, once there is one. Raises what a run raises
    before its search, where versions lag."""
    spec, place = planned.spec, planned.place
    if planned.current is None:
        return planned
    with place.read() as reader:
        current = reader.current(spec.release)
        events = reader.history(spec.release)
    if current is None:
        return planned
    shown = sorted({e.version for e in events if e.state in PUBLISHING and e.version is not None})
    shown_node: Node | None = None
    changes: dict[str, Any] | None = None
    notes: list[str] = []
    if lags(spec):
        try:
            shown_node, changes, notes = _pending_changes(spec, place, shown, current.event)
        except (InputError, Refused):
            raise  # a run would end so
        except QblockError as error:
            notes = [f"what waits could not be looked at: {error}"]
    node = spec.pinned if spec.pinned is not None else shown_node
    levels = _levels(spec, node, current.event)
    return replace(planned, levels=levels, changes=changes, notes=(*planned.notes, *notes))


def _levels(spec: Spec, node: Node | None, current: RecordedEvent) -> dict[str, Any] | None:
    if current.node is None or current.quasi_identifiers is None:
        return None
    return {
        "version": current.version,
        "current": dict(zip(current.quasi_identifiers, current.node, strict=True)),
        "next": None if node is None else dict(zip(spec.quasi_identifiers, node, strict=True)),
    }


def _pending_changes(
    spec: Spec, place: Store, shown: Collection[int], current: RecordedEvent
) -> tuple[Node | None, dict[str, Any] | None, list[str]]:
    """The node that is kept, the changes that wait, and notes."""
    if not has_crosswalk(place):
        return None, None, [NO_STATE]
    with open_snapshot(spec, name_values=False) as session:
        with open_crosswalk(place, session, read_only=True) as crosswalk:
            steady = memory.load(crosswalk, spec.release)
        if steady is None or steady.first not in shown:
            return None, None, [NO_STATE]
        check_layout(spec, steady)
        admission = Admission(spec, place, shown=tuple(shown), read_only=True)
        source = open_recoded(spec, session, inherited_map(spec, place, current), relation=admission)
        check_node(steady, source)
        refused = _turnover(session, source, admission, shown)
        with open_crosswalk(place, session, read_only=True) as crosswalk:
            changes = outlook(crosswalk, source, steady, max(shown))
    return steady.node, _json(spec, changes, current, refused), []


def _json(spec: Spec, changes: Outlook, current: RecordedEvent, refused: str | None) -> dict[str, Any]:
    answer = changes.to_json()
    if refused is not None:
        return {**answer, "tried": False, "why": f"a run would be refused: {refused}"}
    if not changes.tried and current.spec_digest != spec_digest(spec):
        return {**answer, "tried": True, "why": ANOTHER_SPEC.format(current.version, changes)}
    return answer


def _turnover(session: Session, source: SourceTable, admission: Admission, shown: Collection[int]) -> str | None:
    """Why a run would ask somebody to confirm the source, if it would."""
    spec = source.spec
    with open_crosswalk(admission.place, session, read_only=True) as crosswalk:
        change = turnover(crosswalk, source, admission, shown)
    if not change.too_many:
        return None
    digest = source_digest(source)
    return None if spec.versions.confirm == digest else str(refusal(spec, change, digest))
