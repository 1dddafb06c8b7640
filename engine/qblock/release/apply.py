"""Runs the plan of a release: one snapshot, a private copy, an independent check of the copy, publication."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from qblock.effects import current_effects
from qblock.errors import QblockError, Refused
from qblock.ledger.stores import place_of
from qblock.publish.bounds import check_copied
from qblock.publish.copy import columns_ahead, disclosure, nearly_unique
from qblock.publish.digest import content_digest
from qblock.publish.recheck import count_again, differences
from qblock.publish.targets import exposure
from qblock.release import roles, steps
from qblock.release.chosen import Chosen
from qblock.release.job import OPENING, run_steps, settle_identity, upgrade
from qblock.release.log import Reporter
from qblock.release.maps import KEPT_MAP, inherited_map, named_map
from qblock.release.plan import plan
from qblock.release.prechecks import (
    check_comparable_versions,
    fingerprint,
    is_unchanged,
    other_content,
    precheck_published_node,
    precheck_source,
    remember,
    spec_refusal,
)
from qblock.release.recover import clear_leftovers, published, record_failure
from qblock.release.result import ReleaseResult
from qblock.release.retire import check_not_retired
from qblock.release.run import Run, retirable
from qblock.release.turnover import check_turnover
from qblock.search.progress import Progress
from qblock.search.result import refusal
from qblock.search.run import open_snapshot, recoded, run_search, task_over
from qblock.source import open_recoded
from qblock.spec import Spec
from qblock.versions.lag.turn import KEPT
from qblock.versions.turn import TogetherRefused
from qblock.warehouse.faults import denied
from qblock.warehouse.kept_sessions import kept_sessions
from qblock.warehouse.rights import missing_rights


@kept_sessions()
def release(
    spec: Spec,
    *,
    force: bool = False,
    wait: float = 0,
    progress: Progress | None = None,
    reporter: Reporter | None = None,
) -> ReleaseResult:
    """Publish a version of a release, or find that nothing has changed.

    force: publish even then. wait: seconds to wait for another run of the release. progress: is told how far the
    search is; reporter: is told each step. Raises Refused when nothing safe can be published, InputError for a spec or
    data that must be fixed, Busy, and QblockError for faults; refusals and faults are in the ledger then, and what was
    published before stays published.
    """
    with place_of(spec) as place:
        planned = plan(spec, force=force, wait=wait, judge=False, place=place)
        run = Run(planned, progress, reporter, force=force)
        run.joint.forced = force
        run_steps(run, planned.steps, PERFORM, record_failure)
        return run.result()


def _upgrade(run: Run, step: steps.UpgradeLedger) -> None:
    lacks = run.stopping
    try:
        upgrade(run, step)
    except QblockError as error:
        if not (lacks and denied(error)):
            raise
    if lacks:
        raise QblockError(missing_rights(lacks))


def _clear(run: Run, _: steps.ClearLeftovers) -> None:
    run.notes += roles.judge(run.spec, run.place, run.identity)
    if not run.force:
        check_not_retired(run.place, run.target, run.spec.release)
    run.joint.make_ready()
    for message in clear_leftovers(run):
        run.reporter.report(message)
    run.joint.settle_leaving()
    run.read_ledger()
    run.joint.discard_unseen(run.published_digests)


def _readers(run: Run, _: steps.CheckReaders) -> None:
    exposures = run.target.find_exposures()
    if exposures:
        raise Refused(exposure(exposures))
    run.target.check_columns(columns_ahead(run.spec, run.ranges))


def _snapshot(run: Run, _: steps.Snapshot) -> None:
    refused = spec_refusal(run)
    spec = run.joint.begin(run.current, run.published_digests)
    run.joint.check_withdrawn()
    check_comparable_versions(run)
    session = run.transaction.enter_context(open_snapshot(spec, name_values=False))
    stated = inherited_map(spec, run.place, run.current)
    precheck_source(run, session, refused, labels=stated is not None)
    run.fingerprint = fingerprint(run, session)
    if is_unchanged(run):
        _stays(run)
        return
    source = open_recoded(spec, session, stated, relation=run.joint.admission)
    check_turnover(run, source)
    fewer = run.joint.let_in(source)
    if fewer is not None:
        source = open_recoded(spec, session, stated, relation=fewer, instead_of=source)
    run.named = None if stated is not None else named_map(spec, run.place)
    run.task = run.transaction.enter_context(task_over(run.joint.settled(source)))
    if run.identity.source is None:  # it was made since
        settle_identity(run)
    run.joint.opened(run.task.source)
    if run.joint.inherited is None:
        # Other releases have the same crosswalk, and a search may take long.
        run.place.close_crosswalk()


def _disclosure(run: Run, _: steps.CheckDisclosure) -> None:
    names = nearly_unique(run.task)
    if names:
        raise disclosure(run.spec, names)


def _search(run: Run, _: steps.Search | steps.CheckNode | steps.SearchMap | steps.CheckMap) -> None:
    before = precheck_published_node(run)
    # Of versions that are checked together a result tells every minimal node.
    best_only = run.spec.search.answer == "best" and not run.spec.checked_together
    stated = None if run.named is None else run.named.stated
    result = run_search(run.task, progress=run.progress, best_only=best_only, stated=stated)
    inherited = KEPT_MAP if run.task.source.recoding is not None else KEPT if run.joint.inherited is not None else None
    if inherited is not None:
        result = replace(result, why=inherited + ("" if result.chosen is not None else f", and fails: {result.why}"))
    if result.chosen is None:
        raise _with_more(refusal(result), run.joint.refused())
    run.searched = result
    if result.recoded is not None:
        # The source goes on as the map shows it.
        warned = run.task.warnings
        run.task = run.transaction.enter_context(recoded(run.task, result.recoded, run.joint.admission))
        run.task.warnings = list(dict.fromkeys([*warned, *run.task.warnings]))
        run.chosen = Chosen.of(run.spec, run.task, run.task.assess(run.task.lattice.bottom), run.ranges)
        return
    known = before is not None and before.assessment.node == result.chosen.node
    run.chosen = before if before is not None and known else Chosen.of(run.spec, run.task, result.chosen, run.ranges)


def _earlier(run: Run, step: steps.CheckEarlierVersions) -> None:
    if not step.force and run.nothing_changed():
        run.joint.unchanged(run.version)
        _stays(run)
        remember(run)
    else:
        check_earlier(run, step)


def _stays(run: Run) -> None:
    run.unchanged = True
    for given in run.target.grant():
        run.reporter.report(f"granted {given}")
    waits = run.waits_in_words()
    if waits:
        run.record_waiting()
        run.reporter.report(f"version {run.version} stays: {waits}")
    else:
        run.reporter.report(f"nothing to do: version {run.version} holds this data and this spec")


def check_earlier(run: Run, step: steps.CheckEarlierVersions) -> None:
    """Check what would be published together with what ever was, as the spec says."""
    if run.joint.together:
        _check_together(run)
    elif step.joint != "none":
        differing = [version for version, digest in run.published_digests.items() if digest != run.chosen.digest]
        if differing:
            raise other_content(run, max(differing))


def _check_together(run: Run) -> None:
    reserve = partial(run.reserve_version, joint=run.spec.versions.joint)
    chosen = run.chosen
    try:
        run.joint.check(
            run.task, chosen.assessment, chosen.baseline.references, run.version, run.published_digests, reserve
        )
    except TogetherRefused as error:
        raise _with_more(error, run.joint.refused()) from None


def _with_more(error: Refused, more: str) -> Refused:
    """A refusal with another sentence at its end, if there is one."""
    return type(error)(f"{error}. {more}") if more else error


def _copy(run: Run, _: steps.CopyVersion) -> None:
    run.reserve_version(run.version)
    if run.joint.inherited is not None:
        # Nothing was searched, so it is still open; to copy rows and to count them again may take long.
        run.place.close_crosswalk()
    before = None if run.current is None else run.current.version
    shown = run.chosen.shown(run.spec, run.task.source, run.version, before)
    run.target.stage(run.task.source.session, run.chosen.copy, shown, run.version, run.stamp, run.record)
    # The snapshot ends here: what follows reads only the copy.
    run.transaction.close()


def _recheck(run: Run, _: steps.Recheck) -> None:
    run.lock.check()
    chosen = run.chosen
    run.checked = run.transaction.enter_context(run.target.checking(run.version, chosen.copy.columns))
    rows = run.checked.rows
    counted = count_again(run.spec, rows.session, rows.rows, chosen.copy.columns, chosen.baseline.references)
    check_copied(rows.session, rows.rows, chosen.copy.bounds)
    problems = differences(run.spec, counted, chosen.assessment, chosen.labels)
    if content_digest(rows.session, rows.rows, chosen.copy.columns) != chosen.digest:
        problems.append("the content of the copy is not what was read from the source's snapshot")
    if problems:
        raise Refused("the copy failed its check, nothing is published: " + "; ".join(problems))
    run.recheck = counted


def _publish(run: Run, _: steps.Publish) -> None:
    run.lock.check()
    roles.judge(run.spec, run.place, run.identity, running=True)
    if not run.joint.still_complete(run.checked.rows.session):
        raise Refused(
            "another release that the same readers may hold was published meanwhile; nothing is published, the next "
            "run checks them together"
        )
    said, number = f"version {run.version} was published", run.version
    with current_effects().committing(said, partial(published, run, number), status="published", version=number):
        run.notes += run.checked.publish(run.record)
        run.published = True
    run.transaction.close()
    run.joint.settle_leaving()


def _retire(run: Run, step: steps.Retire) -> None:
    try:
        run.notes += retire(run, step.keep)
    except QblockError as error:
        # The version is published; what could not be dropped is tried again by the next run.
        run.notes.append(f"old versions were not dropped: {error}")


def retire(run: Run, keep: int) -> list[str]:
    """Drop versions beyond the newest `keep`, and those that show people who have left; says which stay for now."""
    versions = {**dict.fromkeys(retirable(run, keep)), **dict.fromkeys(run.joint.showing_withdrawn())}
    return run.target.retire({version: run.retiring(version) for version in versions})


PERFORM: dict[type[steps.Step], Callable[[Run, Any], None]] = {
    **OPENING,
    steps.UpgradeLedger: _upgrade,
    steps.ClearLeftovers: _clear,
    steps.CheckReaders: _readers,
    steps.Snapshot: _snapshot,
    steps.CheckDisclosure: _disclosure,
    steps.Search: _search,
    steps.CheckNode: _search,
    steps.SearchMap: _search,
    steps.CheckMap: _search,
    steps.CheckEarlierVersions: _earlier,
    steps.CopyVersion: _copy,
    steps.Recheck: _recheck,
    steps.Publish: _publish,
    steps.Retire: _retire,
}
