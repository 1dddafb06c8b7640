"""Runs the plan of a release: one snapshot, a private copy, an independent check of the copy, publication."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from qblock.errors import QblockError, Refused
from qblock.joint.crosswalk import own_book
from qblock.ledger.kept import Kept
from qblock.ledger.lock import release_lock
from qblock.ledger.migrate import upgrade_ledger
from qblock.publish.columns_ahead import check_view
from qblock.publish.copy import copy_of, disclosure, label_codes, nearly_unique
from qblock.publish.digest import content_digest
from qblock.publish.kept_counts import plain_parts
from qblock.publish.recheck import count_again, differences, needs_more
from qblock.publish.targets import exposure
from qblock.release import roles, stamps, steps, together, turnover, waiting
from qblock.release.log import Entries
from qblock.release.outcome import outcome, published
from qblock.release.plan import plan
from qblock.release.recover import clear_leftovers, record_failure
from qblock.release.result import ReleaseResult
from qblock.release.retire import check_not_retired
from qblock.release.run import Run, retirable
from qblock.release.waiting import StartOver
from qblock.search import Progress
from qblock.search.run import open_task, refusal, run_search
from qblock.search.task import Assessment
from qblock.source.declared import leaf_marks, stated_attributes
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
    made = plan(spec, force=force, wait=wait, judge=False)
    run = Run(made, progress, log, entries)
    run.force = force
    with run.lock_held:
        try:
            left = list(made.steps)
            while left and not run.unchanged:
                try:
                    _perform(run, left[0])
                except StartOver as again:
                    _start_over(run, again)
                    left = list(made.steps[[type(step) for step in made.steps].index(steps.Snapshot) :])
                else:
                    del left[0]
        except BaseException as error:
            run.transaction.close()
            if run.ledger_ready and not run.published:
                record_failure(run, error)
            raise
        finally:
            run.transaction.close()
    return run.result()


def _perform(run: Run, step: steps.Step) -> None:
    run.say.begin(step)
    PERFORM[type(step)](run, step)


def _start_over(run: Run, again: StartOver) -> None:
    """What a check has told outlasts the run, whatever becomes of it."""
    run.say(str(again))
    run.notes.append(str(again))
    run.transaction.close()
    run.waiting = None
    with own_book(run.place) as book:
        again.settle(book)


def _lock(run: Run, step: steps.Lock) -> None:
    run.lock = run.lock_held.enter_context(release_lock(run.place, step.release, step.wait))


def _upgrade(run: Run, _: steps.UpgradeLedger) -> None:
    upgrade_ledger(run.place)
    run.ledger_ready = True


def _private_state(run: Run, step: steps.CheckPrivateState) -> None:
    # First: what another release left is not ours to settle, and what a move has not finished has its earlier name.
    run.settle_identity()
    for note in stamps.check(run.spec, run.place, run.target, joint=step.joint):
        run.say(note)
        run.notes.append(note)
    run.state_known = True


def _clear(run: Run, _: steps.ClearLeftovers) -> None:
    run.notes += roles.judge(run.spec, run.place, run.identity)
    if not run.force:
        check_not_retired(run.place, run.target, run.spec.release)
    together.make_ready(run)
    for message in clear_leftovers(run):
        run.say(message)
    together.settle_leaving(run)
    run.read_ledger()
    together.discard_unseen(run)


def _readers(run: Run, _: steps.CheckReaders) -> None:
    found = run.target.exposed()
    if found:
        raise Refused(exposure(found))
    check_view(run.spec, run.target)


def _snapshot(run: Run, _: steps.Snapshot) -> None:
    run.admission = together.admission(run)
    spec = run.spec if run.admission is None else waiting.spec_in_force(run)
    together.check_withdrawn(run)
    opened = open_task(spec, name_values=False, relation=run.admission, again=turnover.entering(run))
    run.task = run.transaction.enter_context(opened)
    if run.identity.source is None:  # it was made since
        run.settle_identity()
    run.detail = waiting.counts(run)


def _disclosure(run: Run, _: steps.CheckDisclosure) -> None:
    names = nearly_unique(run.task)
    if names:
        raise disclosure(run.spec, names)


def _search(run: Run, _: steps.Search | steps.CheckNode) -> None:
    found = run_search(run.task, progress=run.progress)
    node = run.task.spec.pinned
    if node is not None and run.waiting is not None:
        again = waiting.start_over_alone(run, run.task.assess(node))
        if again is not None:
            raise again
    if run.inherited is not None:
        found = replace(found, why=waiting.KEPT + ("" if found.chosen is not None else f", and fails: {found.why}"))
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
    more = {
        number: found
        for number, (requirement, parts) in enumerate(zip(run.spec.privacy, chosen.counts.parts, strict=True))
        if needs_more(run.spec, requirement) and (found := plain_parts(parts, chosen.kept)) is not None
    }
    source = run.task.source
    stated = stated_attributes(run.spec)
    marks = {h.attribute: leaf_marks(h) for h in source.hierarchies if h.attribute in stated}
    marks |= {name: leaf_marks(v.hierarchy) for name, v in source.sensitives.items() if name in stated}
    run.kept = Kept(run.copy.columns, references, more, marks)


def _earlier(run: Run, step: steps.CheckEarlierVersions) -> None:
    run.digest = _digest(run)
    if not step.force and run.nothing_changed():
        run.unchanged = True
        for given in run.target.grant():
            run.say(f"granted {given}")
        waiting.unchanged(run)
        run.say(f"nothing to do: version {run.version} holds this data and this spec")
        return
    if together.applies(run.spec):
        _together(run)
        return
    same = {run.digest, run.as_recorded()[0]}
    others = [version for version, digest in run.published_digests.items() if digest not in same]
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
            run.fell_back = True
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
    run.begin()
    run.target.stage(run.task.source.session, run.copy, run.version, run.stamp, run.record)
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
    roles.judge(run.spec, run.place, run.identity, running=True)
    if not together.still_complete(run, run.checked.rows.session):
        raise Refused(
            "another release that the same readers may hold was published meanwhile; nothing is published, the next "
            "run checks them together"
        )
    said, number = f"version {run.version} was published", run.version
    with outcome().doing(said, partial(published, run, number), status="published", version=number):
        run.notes += run.checked.publish(run.record)
        run.published = True
    run.transaction.close()
    together.settle_leaving(run)


def _retire(run: Run, step: steps.Retire) -> None:
    try:
        run.notes += retire(run, step.keep)
    except QblockError as error:
        # The version is published; what could not be dropped is tried again by the next run.
        run.notes.append(f"old versions were not dropped: {error}")


def retire(run: Run, keep: int) -> list[str]:
    """Drop versions beyond the newest `keep`, and those that show people who have left; says which stay for now."""
    versions = {**dict.fromkeys(retirable(run, keep)), **dict.fromkeys(together.showing_withdrawn(run))}
    return run.target.retire({version: run.retiring(version) for version in versions})


PERFORM: dict[type[steps.Step], Callable[[Run, Any], None]] = {
    steps.Lock: _lock,
    steps.UpgradeLedger: _upgrade,
    steps.CheckPrivateState: _private_state,
    steps.ClearLeftovers: _clear,
    steps.CheckReaders: _readers,
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
