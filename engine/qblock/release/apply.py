"""Runs the plan of a release: one snapshot, a private copy, an independent check of the copy, publication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qblock.errors import QblockError, Refused
from qblock.release import steps, together
from qblock.release.content import content_digest
from qblock.release.copy import copy_of, disclosure, label_codes, nearly_unique
from qblock.release.lock import release_lock
from qblock.release.log import Entries
from qblock.release.migrate import upgrade_ledger
from qblock.release.plan import plan
from qblock.release.recheck import count_again, differences
from qblock.release.recover import clear_leftovers, record_failure
from qblock.release.reference import Kept
from qblock.release.result import ReleaseResult
from qblock.release.run import Run, retirable
from qblock.search import Progress
from qblock.search.run import open_task, refusal, run_search
from qblock.search.task import Assessment
from qblock.spec import Spec


def release(
    spec: Spec,
    *,
    force: bool = False,
    wait: float = 0,
    progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
    entries: Entries | None = None,
) -> ReleaseResult:
    """Publish a version of a release, or find that nothing has changed.

    force: publish even then. wait: seconds to wait for another run of the release. progress: nodes decided and left;
    log: one line for each step; entries: the same with run, step and time. Raises Refused when nothing safe can be
    published, InputError for a spec or data that must be mended, Busy, and QblockError for faults; refusals and faults
    are in the ledger then, and what was published before stays published.
    """
    made = plan(spec, force=force, wait=wait)
    run = Run(made, progress, log)
    run.entries = entries
    with run.lock_held:
        try:
            for step in made.steps:
                run.step = step.name
                run.say(step.describe())
                PERFORM[type(step)](run, step)
                if run.unchanged:
                    break
        except BaseException as error:
            run.transaction.close()
            if run.ledger_ready:
                record_failure(run, error)
            raise
        finally:
            run.transaction.close()
    return run.result()


def _lock(run: Run, step: steps.Lock) -> None:
    run.lock = run.lock_held.enter_context(release_lock(run.place, step.release, step.wait))


def _upgrade(run: Run, _: steps.UpgradeLedger) -> None:
    upgrade_ledger(run.place)
    run.ledger_ready = True
    together.make_ready(run)


def _clear(run: Run, _: steps.ClearLeftovers) -> None:
    for message in clear_leftovers(run):
        run.say(message)


def _snapshot(run: Run, _: steps.Snapshot) -> None:
    run.admission = together.admission(run)
    run.task = run.transaction.enter_context(open_task(run.spec, name_values=False, relation=run.admission))


def _disclosure(run: Run, _: steps.CheckDisclosure) -> None:
    names = nearly_unique(run.task)
    if names:
        raise disclosure(run.spec, names)


def _search(run: Run, _: steps.Search | steps.CheckNode) -> None:
    found = run_search(run.task, progress=run.progress)
    if found.chosen is None:
        raise refusal(found)
    run.found = found
    _settle(run, found.chosen)


def _settle(run: Run, chosen: Assessment) -> None:
    """What follows from the choice of a node."""
    run.chosen = chosen
    run.labels = label_codes(run.task, chosen.node)
    run.copy = copy_of(run.task, chosen)
    references = tuple(tuple(part.reference for part in parts) for parts in chosen.counts.parts)
    run.kept = Kept(run.copy.columns, references)


def _earlier(run: Run, step: steps.CheckEarlierVersions) -> None:
    run.digest = _digest(run)
    run.read_ledger()
    if not step.force and run.nothing_changed():
        run.unchanged = True
        for given in run.target.grant():
            run.say(f"granted {given}")
        run.say(f"nothing to do: version {run.version} holds this data and this spec")
        return
    if together.applies(run.spec):
        _together(run)
        return
    others = [version for version, digest in run.published_digests.items() if digest != run.digest]
    if others and step.joint != "none":
        raise Refused(
            f"version {max(others)} of release {run.spec.release} was published with other content, and versions can "
            "be checked together only where the spec says who a row is about: someone who holds both may learn more "
            "than each one guarantees; nothing is published. Write `entity: COLUMN` before the first version, or "
            "`versions: {joint: none}` to publish without that protection"
        )


def _digest(run: Run) -> str:
    return content_digest(run.task.source.session, run.copy.query.subquery("qblock_copy"), run.copy.columns)


def _together(run: Run) -> None:
    """Check the node together with earlier versions; try others where the spec says so."""
    refused: together.TogetherRefused | None = None
    for chosen in together.attempts(run):
        if chosen is not run.chosen:
            _settle(run, chosen)
            run.digest = _digest(run)
        try:
            run.together = together.check_together(run, chosen)
        except together.TogetherRefused as error:
            refused = refused or error
        else:
            return
    if refused is not None:
        raise refused


def _copy(run: Run, _: steps.CopyVersion) -> None:
    run.target.stage(run.task.source.session, run.copy, run.version, run.record)
    # The snapshot ends here: what follows reads the copy alone.
    run.transaction.close()


def _recheck(run: Run, _: steps.Recheck) -> None:
    run.lock.check()
    run.checked = run.transaction.enter_context(run.target.checking(run.version, run.copy.columns))
    rows = run.checked.rows
    counted = count_again(run.spec, rows.session, rows.rows, run.copy.columns, run.kept.references)
    problems = differences(run.spec, counted, run.chosen, run.labels)
    if content_digest(rows.session, rows.rows, run.copy.columns) != run.digest:
        problems.append("the content of the copy is not what was read from the source's snapshot")
    if problems:
        raise Refused("the copy failed its check, nothing is published: " + "; ".join(problems))
    run.recheck = counted


def _publish(run: Run, _: steps.Publish) -> None:
    run.lock.check()
    if not together.still_complete(run, run.checked.rows.session):
        raise Refused(
            "another release that the same readers may hold was published meanwhile; nothing is published, the next "
            "run checks them together"
        )
    run.checked.publish(run.record)
    run.transaction.close()
    run.published = True


def _retire(run: Run, step: steps.Retire) -> None:
    try:
        run.notes += run.target.retire({v: run.retiring(v) for v in retirable(run, step.keep)})
    except QblockError as error:
        # The version is published; what could not be dropped is tried again by the next run.
        run.notes.append(f"old versions were not dropped: {error}")


PERFORM: dict[type[steps.Step], Callable[[Run, Any], None]] = {
    steps.Lock: _lock,
    steps.UpgradeLedger: _upgrade,
    steps.ClearLeftovers: _clear,
    steps.Snapshot: _snapshot,
    steps.CheckDisclosure: _disclosure,
    steps.Search: _search,
    steps.CheckNode: _search,
    steps.CheckEarlierVersions: _earlier,
    steps.CopyVersion: _copy,
    steps.Recheck: _recheck,
    steps.Publish: _publish,
    steps.Retire: _retire,
}
