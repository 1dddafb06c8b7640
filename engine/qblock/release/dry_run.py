"""A release that is decided and not made: it tells nobody but the private ledger what it came to.

What a run would come to depends on the values of people whom no version shows yet. Whoever could try it again and
again, with one person more or less, would read them off; so all that is said is that it was done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from qblock.errors import QblockError, Refused
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.release import steps
from qblock.release.apply import PERFORM, check_earlier
from qblock.release.job import run_steps
from qblock.release.plan import plan
from qblock.release.recover import record_failure
from qblock.release.run import Run
from qblock.results.release import DryRun
from qblock.spec import Spec
from qblock.versions.waiting import StartOver
from qblock.warehouse.kept_sessions import kept_sessions

NOT_MADE = (steps.CopyVersion, steps.Recheck, steps.Publish, steps.Retire)


@kept_sessions()
def dry_run(spec: Spec, *, wait: float = 0) -> DryRun:
    """Decide what a release would publish; stores one event of the ledger with the verdict, and says nothing of it.

    wait: seconds to wait for another run of the release. Raises what `release` raises, but for what a version would be
    refused for.
    """
    planned = plan(spec, wait=wait, judge=False)
    decided = tuple(step for step in planned.steps if not isinstance(step, NOT_MADE))
    planned = replace(planned, steps=(*decided, steps.RecordVerdict(spec.release)))
    run = _DryRun(planned)
    run.joint.dry = True
    try:
        run_steps(run, planned.steps, {step: _once(perform) for step, perform in DECIDE.items()}, _failed)
    except QblockError:
        if not run.told:
            raise
    return DryRun(release=spec.release, run=run.id, status="dry_run")


class _DryRun(Run):
    """would: what a run would come to; told: whether the ledger has it."""

    would = ""
    told = False


class _BeginsAgain(QblockError):
    """A run would settle something, and begin again."""


def _once(perform: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    def performed(run: _DryRun, step: steps.Step) -> None:
        try:
            perform(run, step)
        except StartOver as again:
            raise _BeginsAgain(str(again)) from None

    return performed


def _compare(run: _DryRun, step: steps.CheckEarlierVersions) -> None:
    if run.nothing_changed():
        run.would = f"version {run.version} would stay"
        return
    check_earlier(run, step)
    run.would = f"version {run.version} would be published"


def _decided(run: _DryRun, _: steps.RecordVerdict) -> None:
    _record(run, run.would)


def _failed(run: _DryRun, error: BaseException) -> None:
    if isinstance(error, Refused) and run.state_known:
        _record(run, f"a run would be refused: {error}")
    elif isinstance(error, _BeginsAgain):
        _record(run, f"a run would begin again: {error}")
    else:
        record_failure(run, error)


def _record(run: _DryRun, reason: str) -> None:
    event = Event(release=run.spec.release, state="dry_run", run=run.id, detail=run.joint.detail, reason=reason)
    with run.place.write() as connection:
        record(connection, event)
    run.told = True


DECIDE: dict[type[steps.Step], Callable[[Any, Any], None]] = {
    **PERFORM,
    steps.CheckEarlierVersions: _compare,
    steps.RecordVerdict: _decided,
}
