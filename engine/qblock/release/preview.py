"""What `plan` looks at besides the steps: whether the job can read every row of the tables that the spec names, whether
their columns have the types that earlier versions were checked with, whether rows seem to repeat people, and what the
next version has to show (`outlook`). Where rights are missing, nothing but these."""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from qblock.errors import InputError, QblockError, Refused
from qblock.joint.lag.policy import rules_of
from qblock.joint.later import lags, later_versions
from qblock.joint.steady.estimate import Churn
from qblock.publish.copy import columns_ahead, disclosure, nearly_unique
from qblock.release.forecast import GIVE_CHURN, Forecast, churn_of, forecast_of_search, published
from qblock.release.maps import map_named_by
from qblock.release.next_version import next_version
from qblock.release.plan import Plan, plan
from qblock.release.ranges import ranges_now
from qblock.release.retype import type_note
from qblock.search.run import open_task, run_search
from qblock.source.columns import repeated_people, tables_read
from qblock.spec import Spec
from qblock.warehouse import warehouse_of
from qblock.warehouse.connect import engine_of_source
from qblock.warehouse.kept_sessions import kept_sessions

CORE = (
    "versions lag by the core of the rules alone: newcomers come in batches, whole joint cells go, and values stay as "
    "first shown, since {} (docs/steady-job.md)"
)
TOO_FEW = "no node satisfies the spec: its models need blocks of at least {} {}, and the source has {}. Ask for less"
NOT_LOOKED = (
    "neither the source nor what is kept was looked at, since a run would end at the rights that are missing; plan "
    "again when they are granted"
)


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
    following = next_version(planned)
    return replace(
        planned,
        notes=(*planned.notes, *notes, *following.notes),
        forecast=None if forecast is None else forecast.to_json(),
        levels=following.levels,
        changes=following.changes,
    )


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
