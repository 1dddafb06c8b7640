"""What `plan` says besides the steps.

The source is opened as a run would, in one snapshot, and the crosswalk is only read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from qblock.checks import check, check_kept
from qblock.engines.from_spec import engine_of_place, is_elsewhere, tables_read, warehouse_of
from qblock.engines.kept_sessions import kept_sessions
from qblock.engines.session import Session
from qblock.errors import InputError, QblockError, Refused
from qblock.lattice import Node
from qblock.ledger.events import PUBLISHING, RecordedEvent
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.publish.copy import columns_ahead
from qblock.release.apply import plan
from qblock.release.forecast import churn_of, forecasts, published
from qblock.release.frontier import expected_of_task
from qblock.release.job import Plan
from qblock.release.maps import inherited_map, node_of, shown_now
from qblock.release.prechecks import source_digest, turnover_refusal
from qblock.release.retype import type_note
from qblock.results.check import Finding
from qblock.results.release import Planned
from qblock.search.nodes import pinned_node
from qblock.search.progress import Progress
from qblock.search.run import open_snapshot, open_task
from qblock.source import SourceTable, open_recoded
from qblock.source.columns import repeated_people
from qblock.spec import Spec, spec_digest
from qblock.versions.admission import Admission
from qblock.versions.batching.cohort import Churn
from qblock.versions.crosswalk import has_crosswalk, open_crosswalk
from qblock.versions.later import later_versions, room_to_leave
from qblock.versions.pending.decision import rules_of
from qblock.versions.pending.differences import check_layout, check_node
from qblock.versions.pending.outlook import Outlook, outlook
from qblock.versions.pending.state import read_state
from qblock.versions.people import turnover

CORE = (
    "versions lag by the core of the rules alone, since {}. Newcomers come in batches, whole joint cells go, and "
    "values stay as first shown (docs/steady-job.md)"
)
TOO_FEW = "no node satisfies the spec: it needs blocks of at least {} {}, and the source has {}. Ask for less"
NOT_LOOKED = (
    "a run would end at the missing rights, so plan looked neither at the source nor at what is kept. Plan again when "
    "the rights are granted"
)
NO_STATE = "plan cannot say what waits: no state is kept of what the versions show. The next run says what it finds"
ANOTHER_SPEC = "a new version would be tried, since the spec is not that of version {}; {}"
GIVE_CHURN = (
    "add --churn 0.01 to see how long newcomers would wait at each node, and how far the view would lag, if 1 % of the "
    "people came and left in each run"
)
GIVE_CHURN_OF_COHORTS = (
    "add --churn 0.01 to see a year with other boxes and delays, if 1 % of the people came and left in each run"
)


@kept_sessions()
def preview(spec: Spec, churn: float | None = None, progress: Progress | None = None) -> Planned:
    """The plan of a release. Raises what `plan` raises, InputError for a table that does not exist, or a view that
    cannot be replaced, and Refused where row level security would hide rows of a table; of a source that is released as
    it is, whatever a run raises before its search. Where a run would end for rights that are missing, those are all it
    says.

    churn: as of `forecast_of_search`; before a first version, a search reads the table for it. progress: is told how
    far that is.
    """
    expected_churn = churn_of(spec, churn)
    with store_of(spec) as store:
        return _preview(spec, plan(spec, store=store), expected_churn, progress)


def _preview(spec: Spec, planned: Plan, churn: Churn | None, progress: Progress | None) -> Planned:
    store = planned.store
    if planned.stopping:
        return planned.answer([NOT_LOOKED])
    if engine_of_place(spec).adapter.has_roles and not is_elsewhere(spec):  # only there are policies
        _check_rows(spec)
    planned.target.check_columns(columns_ahead(spec, *shown_now(spec, store)))
    checked = planned.current is None or not spec.checked_together
    checks, unread = _check_source(spec) if checked else ([], [])
    note = type_note(planned)
    notes = [*unread, *spec.warnings, *([] if note is None else [note])]
    if spec.entity is None:
        notes += _repeats(spec)
    notes += later_versions(spec) if planned.current is None else []
    if spec.lags:
        rules = rules_of(spec, bool(spec.versions.audience))
        notes += [] if rules.cells else [CORE.format(rules.reason)]
        notes += room_to_leave(spec, rules.k) if rules.cells and planned.current is None else []
    expected = _expected(spec, store, churn, progress) if spec.lags else {}
    if spec.lags and not expected and churn is None:
        notes.append(GIVE_CHURN if spec.newcomers is None else GIVE_CHURN_OF_COHORTS)
    levels, changes, more = _next_version(planned)
    if not checked and changes is not None and changes["tried"]:
        checks = _check_later(spec, None if levels is None else levels["next"])
    return planned.answer([*notes, *more], levels=levels, changes=changes, checks=checks or None, **expected)


def _expected(spec: Spec, store: Store, churn: Churn | None, progress: Progress | None) -> dict[str, Any]:
    """What is expected of the next runs, as far as it is known: a forecast of nodes, or what a year comes to."""
    before = published(spec, store, churn) if forecasts(spec) else None
    forecast = {} if before is None or before.forecast is None else {"forecast": before.forecast.to_json()}
    if churn is None or (forecast and spec.newcomers is None):
        return forecast
    # A search may take long.
    store.close_crosswalk()
    with open_task(spec, name_values=False) as task:
        return forecast | expected_of_task(task, churn, progress, store)


def _check_source(spec: Spec) -> tuple[list[Finding], list[str]]:
    """Raise what a run raises before it searches: for columns, values, NULLs and parameters, and for too few rows.
    Answers what it may stop at later, of the pinned node, else of any, and notes."""
    try:
        with open_task(spec, name_values=False) as task:
            sets = task.source.frequency_sets
            there = sets.people() if sets.entities else task.source.rows
            if there < task.least:
                counted = "people" if sets.entities else "rows"
                raise Refused(TOO_FEW.format(task.least, counted, there))
            node = None if spec.pinned is None else pinned_node(task, spec.pinned)
            return check(task, node, datetime.now(UTC).date()), []
    except (InputError, Refused):
        raise
    except QblockError as error:
        # A run that cannot read it reports that; the steps are the same.
        return [], [f"the source could not be checked: {error}"]


def _check_later(spec: Spec, node: Mapping[str, int] | None) -> list[Finding]:
    """What a run may stop at of a version that is checked together with others, which has their node or their map."""
    today = datetime.now(UTC).date()
    with open_task(spec, name_values=False) as task:
        if spec.by_boxes:
            return check_kept(task, today)
        return check(task, None if node is None else tuple(node.values()), today)


def _repeats(spec: Spec) -> list[str]:
    try:
        with open_snapshot(spec, name_values=False) as session:
            return repeated_people(spec, session)
    except QblockError as error:
        # A run that cannot read it reports that; the steps are the same.
        return [f"whether rows repeat people could not be checked: {error}"]


def _check_rows(spec: Spec) -> None:
    with open_snapshot(spec, name_values=False, warehouse=warehouse_of(spec, rows=False)) as session:
        for table in tables_read(spec):
            session.run(sa.select(sa.literal_column("1")).select_from(session.relation(table)).limit(0))


def _next_version(planned: Plan) -> tuple[dict[str, Any] | None, dict[str, Any] | None, list[str]]:
    """Levels of the version that a run would make, once there is one, the changes that wait, and notes. Raises what a
    run raises before its search, where versions lag."""
    spec, store = planned.spec, planned.store
    if planned.current is None:
        return None, None, []
    with store.read() as reader:
        current = reader.current(spec.release)
        events = reader.history(spec.release)
    if current is None:
        return None, None, []
    shown = sorted({e.version for e in events if e.state in PUBLISHING and e.version is not None})
    node: Node | None = None
    changes: dict[str, Any] | None = None
    notes: list[str] = []
    if spec.lags:
        try:
            node, changes, notes = _pending_changes(spec, store, shown, current.event)
        except (InputError, Refused):
            raise  # a run would end so
        except QblockError as error:
            notes = [f"what waits could not be looked at: {error}"]
    at = node_of(spec, store, current.event)
    if current.event.node is None:
        node = at  # the state is of the labels of a map
    return _levels(spec, spec.pinned if spec.pinned is not None else node, current.event, at), changes, notes


def _levels(spec: Spec, node: Node | None, current: RecordedEvent, at: Node | None) -> dict[str, Any] | None:
    """at: the node that the newest version has."""
    if at is None or current.quasi_identifiers is None:
        return None
    return {
        "version": current.version,
        "current": dict(zip(current.quasi_identifiers, at, strict=True)),
        "next": None if node is None else dict(zip(spec.quasi_identifiers, node, strict=True)),
    }


def _pending_changes(
    spec: Spec, store: Store, shown: Collection[int], current: RecordedEvent
) -> tuple[Node | None, dict[str, Any] | None, list[str]]:
    """The node that is kept, the changes that wait, and notes."""
    if not has_crosswalk(store):
        return None, None, [NO_STATE]
    with open_snapshot(spec, name_values=False) as session:
        with open_crosswalk(store, session, read_only=True) as crosswalk:
            steady = read_state(crosswalk, spec.release)
        if steady is None or steady.first not in shown:
            return None, None, [NO_STATE]
        check_layout(spec, steady)
        admission = Admission(spec, store, shown=tuple(shown), read_only=True)
        source = open_recoded(spec, session, inherited_map(spec, store, current), relation=admission)
        check_node(steady, source)
        refused = _turnover(session, source, admission, shown)
        with open_crosswalk(store, session, read_only=True) as crosswalk:
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
    with open_crosswalk(admission.store, session, read_only=True) as crosswalk:
        change = turnover(crosswalk, source, admission, shown)
    if not change.too_many:
        return None
    digest = None if change.replaced else source_digest(source)
    is_confirmed = digest is not None and spec.versions.confirm == digest
    return None if is_confirmed else str(turnover_refusal(spec, change, digest))
