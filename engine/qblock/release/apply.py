"""The release job: one snapshot, a private copy, an independent check of the copy, publication."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from qblock.checks import check_chosen, refuse_findings, refuse_single_rows
from qblock.effects import current_effects
from qblock.engines.from_spec import engine_of_place, is_copied
from qblock.engines.kept_sessions import kept_sessions
from qblock.engines.registry import ENGINES, engine_of, parse_url
from qblock.errors import QblockError, Refused
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.publish.copy import columns_ahead
from qblock.publish.digest import content_digest
from qblock.publish.recheck import count_again, differences
from qblock.publish.targets import exposure
from qblock.release import roles
from qblock.release.chosen import Chosen
from qblock.release.job import ClearLeftovers, Plan, Step, models_named, opening
from qblock.release.log import Reporter
from qblock.release.maps import KEPT_MAP, columns_kept, inherited_map, named_map
from qblock.release.prechecks import (
    check_comparable_versions,
    check_turnover,
    fingerprint,
    is_unchanged,
    other_content,
    precheck_published_node,
    precheck_source,
    remember,
    remember_next,
    spec_refusal,
)
from qblock.release.run import Run
from qblock.results.release import Published
from qblock.search.boxes.recoded import map_of_node
from qblock.search.progress import Progress
from qblock.search.result import refusal
from qblock.search.run import open_snapshot, recoded, run_search, task_over
from qblock.source import open_recoded
from qblock.source.in_words import alike_in_words, published_in_words
from qblock.spec import Spec
from qblock.versions.policy import common
from qblock.versions.policy.batched import KEPT
from qblock.versions.policy.common import Restart, TogetherRefused


@kept_sessions()
def release(
    spec: Spec,
    *,
    force: bool = False,
    wait: float = 0,
    progress: Progress | None = None,
    reporter: Reporter | None = None,
) -> Published:
    """Publish a version of a release, or find that nothing has changed.

    force: publish even then. wait: seconds to wait for another run of the release. progress: is told how far the
    search is; reporter: is told each step. Raises Refused when nothing safe can be published, InputError for a spec or
    data that must be fixed, Busy, and QblockError for faults; refusals and faults are in the ledger then, and what was
    published before stays published.
    """
    with store_of(spec) as store:
        run = Run(plan(spec, force=force, wait=wait, judge=False, store=store), progress, reporter, force=force)
        run.perform()
        return run.result()


@kept_sessions()
def plan(spec: Spec, *, force: bool = False, wait: float = 0, judge: bool = True, store: Store | None = None) -> Plan:
    """The steps of a release of this spec. store: of the spec, where it is open. judge: as of `opening`, and raises
    what that does."""
    planned = opening(spec, store or store_of(spec), wait, judge, rights=True)
    models, engine = models_named(spec), engine_of_place(spec)
    published = tuple(name for name, attribute in spec.attributes.items() if attribute.role != "identifying")
    return planned.then(
        ClearLeftovers(spec.release),
        *((CheckReaders(spec.publish.readers),) if engine.adapter.has_roles else ()),
        Snapshot(
            engine_of(parse_url(spec.source.url.url)).name,
            spec.source.table,
            is_copied(spec),
            spec.source.where,
            tuple((name, said) for name in spec.sensitives if (said := published_in_words(spec, name)) is not None),
            tuple((name, ", ".join(of.unknown)) for name, of in spec.attributes.items() if of.unknown),
            tuple((name, said) for name in spec.attributes if (said := alike_in_words(spec, name)) is not None),
        ),
        CheckDisclosure(spec.insensitives),
        _search_step(planned, models),
        CheckEarlierVersions(planned.current, spec.versions.joint, spec.checked_together, force),
        CopyVersion(planned.next_version, published),
        Recheck(models),
        Publish(planned.target.view, spec.publish.readers),
        Retire(spec.versions.keep),
    )


def _search_step(planned: Plan, models: tuple[str, ...]) -> Step:
    spec, search = planned.spec, planned.spec.search
    if spec.pinned is not None:
        return CheckNode(spec.pinned, models)
    named = named_map(spec, planned.store)
    if named is not None:
        return CheckMap(named.event.version or 0, models)
    strategy: str = search.strategy
    if search.within is not None:
        time = f"at most {search.within.total_seconds():g} s"
        strategy = time if search.recoding == "multidimensional" else f"{strategy}, {time}"
    if not spec.by_boxes or (search.recoding == "full_domain" and planned.current is None):
        return Search(strategy, search.choose_from, search.choose_by, models)
    if planned.current is not None and spec.versions.joint != "none":
        return CheckMap(planned.current, models)
    least = None if search.box is None else search.box.least
    return SearchMap(strategy, search.within is None, search.choose_from, search.choose_by, least, spec.count, models)


@dataclass(frozen=True)
class CheckReaders(Step):
    readers: tuple[str, ...]

    def describe(self) -> str:
        who = ", ".join((*self.readers, "PUBLIC"))
        return f"Refuse if {who}, or a role that one of them can become, could read the source or anything private."

    def perform(self, run: Run) -> None:
        exposures = run.target.find_exposures()
        if exposures:
            raise Refused(exposure(exposures))
        run.target.check_columns(columns_ahead(run.spec, run.ranges, columns_kept(run.ledger.baseline)))


@dataclass(frozen=True)
class Snapshot(Step):
    engine: str
    table: str
    copied: bool
    where: str | None = None
    coarser: tuple[tuple[str, str], ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    alike: tuple[tuple[str, str], ...] = ()

    def describe(self) -> str:
        rows = self.table if self.where is None else f"{self.table} where {self.where}"
        facts = ENGINES[self.engine].adapter
        if self.copied:
            how = f"Copy what is read of {rows} from its server {facts.copied_words}"
        else:
            how = f"Open {rows} in {facts.snapshot_words}"
        read = "".join(f"; read {codes} of {name} as NULL" for name, codes in self.unknown)
        read += "".join(f"; read {name}, {said}" for name, said in self.alike)
        read += "".join(f"; read {name} {said}, as it is published" for name, said in self.coarser)
        return f"{how}{read}; check its columns, and that the hierarchies cover every value; scan it once."

    def perform(self, run: Run) -> Restart | None:
        refused, digests = spec_refusal(run), run.ledger.digests
        spec = run.policy.begin(run.ledger.current, digests)
        check_comparable_versions(run)
        session = run.transaction.enter_context(open_snapshot(spec, name_values=False))
        stated = inherited_map(run.spec, run.store, run.ledger.latest, run.ledger.baseline)
        precheck_source(run, session, refused, labels=stated is not None)
        run.fingerprint = fingerprint(run, session)
        if is_unchanged(run):
            run.stay()
            return None
        run.compare_in_full()
        if stated is not None:
            # The boxes of a published map may have fewer people by now: `search.box` was asked of the first version.
            spec = replace(spec, search=replace(spec.search, box=None))
        source = open_recoded(spec, session, stated, relation=run.policy.admission)
        again = check_turnover(run, source)
        if again is not None:
            return again
        admitted = run.policy.admit(
            source, lambda hook: open_recoded(spec, session, stated, relation=hook, instead_of=source)
        )
        run.named = None if stated is not None else named_map(spec, run.store)
        run.task = run.transaction.enter_context(task_over(admitted))
        if run.identity.source is None:  # it was made since
            run.settle_identity()
        if run.policy.inherited is None:
            # Other releases have the same crosswalk, and a search may take long.
            run.store.close_crosswalk()
        return None


@dataclass(frozen=True)
class CheckDisclosure(Step):
    insensitive: tuple[str, ...]

    def describe(self) -> str:
        if not self.insensitive:
            return "No column is published unchanged, except the sensitive ones."
        return f"Stop if {', '.join(self.insensitive)}, published unchanged, nearly single out rows."

    def perform(self, run: Run) -> None:
        if run.ledger.current is None:  # of a later version once something has changed
            refuse_single_rows(run.task)


class Choose(Step):
    """A step that comes to the node, or the boxes, of the next version."""

    def perform(self, run: Run) -> None:
        before = precheck_published_node(run)
        # Of versions that are checked together a result tells every minimal node.
        best_only = run.spec.search.answer == "best" and not run.spec.checked_together
        stated = None if run.named is None else run.named.stated
        result = run_search(run.task, progress=run.progress, best_only=best_only, stated=stated)
        inherited = KEPT if run.policy.inherited is not None else None
        recoding = run.task.source.recoding
        if recoding is not None:
            inherited = KEPT_MAP if recoding.stated["splits"] else KEPT
        if inherited is not None:
            fails = "" if result.chosen is not None else f", and fails: {result.why}"
            result = replace(result, why=inherited + fails)
        if result.chosen is None:
            raise _with_more(refusal(result), run.policy.after_refusal())
        chosen = result.chosen
        run.findings = partial(check_chosen, run.task, result, datetime.now(UTC).date())
        if run.spec.by_boxes and run.task.source.recoding is None and result.recoded is None:
            result = replace(result, recoded=map_of_node(run.task, chosen.node))
        run.searched = result
        if result.recoded is not None:
            # The source goes on as the map shows it, and tells no leaf any more.
            run.findings = partial(list, run.findings())
            warned = run.task.warnings
            run.task = run.transaction.enter_context(recoded(run.task, result.recoded, run.policy.admission))
            run.task.warnings = list(dict.fromkeys([*warned, *run.task.warnings]))
            run.chosen = Chosen.of(
                run.spec, run.task, run.task.assess(run.task.lattice.bottom), run.ranges, run.version
            )
        elif before is not None and before.assessment.node == chosen.node:
            run.chosen = before
        else:
            run.chosen = Chosen.of(run.spec, run.task, chosen, run.ranges, run.version)


@dataclass(frozen=True)
class Search(Choose):
    strategy: str
    choose_from: str
    choose_by: str
    models: tuple[str, ...]

    def describe(self) -> str:
        what = "by block sizes alone, then check every model" if self.choose_from == "sizes" else "that is minimal"
        return (
            f"Search the lattice ({self.strategy}) for a node that satisfies {', '.join(self.models)}; "
            f"choose one {what}, by {self.choose_by.replace('_', ' ')}."
        )


@dataclass(frozen=True)
class SearchMap(Choose):
    strategy: str
    from_node: bool
    choose_from: str
    choose_by: str
    least: int | None
    count: str
    models: tuple[str, ...]

    def describe(self) -> str:
        what = "by block sizes alone, then check every box with" if self.choose_from == "sizes" else "all of which pass"
        begin = f"Search the lattice ({self.strategy}), and split from its top and from its best node"
        if not self.from_node:
            begin = f"Split from the top of the lattice ({self.strategy})"
        least = f" of at least {self.least} {'people' if self.count == 'entities' else 'rows'}" if self.least else ""
        return (
            f"{begin} into boxes{least} {what} {', '.join(self.models)}; choose splits by "
            f"{self.choose_by.replace('_', ' ')}."
        )


@dataclass(frozen=True)
class CheckMap(Choose):
    version: int
    models: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"Give every row its box of the recoding map of version {self.version}, and check the boxes against "
            f"{', '.join(self.models)}; nothing is searched."
        )


@dataclass(frozen=True)
class CheckNode(Choose):
    node: tuple[int, ...]
    models: tuple[str, ...]

    def describe(self) -> str:
        return f"Check the pinned node {list(self.node)} against {', '.join(self.models)}; nothing is searched."


@dataclass(frozen=True)
class CheckEarlierVersions(Step):
    current: int | None
    joint: str
    entity: bool
    force: bool

    def describe(self) -> str:
        if self.current is None:
            return "No version is published yet: nothing to compare with."
        again = "publish again even if nothing has changed" if self.force else "stop if nothing has changed"
        otherwise = "" if self.force else "else "
        if self.joint != "none" and self.entity:
            changed = f"{otherwise}check all versions ever published together ({self.joint})"
        elif self.joint == "none":
            changed = f"{otherwise}go on, though versions are not protected together (versions.joint: none)"
        else:
            changed = "refuse changed data, since versions would not be protected together"
        return f"Compare with version {self.current}, and {again}; {changed}."

    def perform(self, run: Run) -> Restart | None:
        if self.force or not run.nothing_changed():
            run.taken = run.findings()
            refuse_findings(run.spec, run.taken)
            return self.check(run)
        run.policy.stays(run.version)
        run.stay()
        remember(run)
        return None

    def check(self, run: Run) -> Restart | None:
        """Check what would be published together with what ever was, as the spec says."""
        if run.spec.checked_together:
            return _check_together(run)
        if self.joint != "none":
            differing = [version for version, digest in run.ledger.digests.items() if digest != run.chosen.digest]
            if differing:
                raise other_content(run, max(differing))
        return None


def _check_together(run: Run) -> Restart | None:
    reserve = partial(run.reserve_version, joint=run.spec.versions.joint)
    chosen, shown = run.chosen, run.ledger.digests
    try:
        return run.policy.check(run.task, chosen.assessment, chosen.baseline.references, run.version, shown, reserve)
    except TogetherRefused as error:
        raise _with_more(error, run.policy.after_refusal()) from None


def _with_more(error: Refused, more: str) -> Refused:
    """A refusal with another sentence at its end, if there is one."""
    return type(error)(f"{error}. {more}") if more else error


@dataclass(frozen=True)
class CopyVersion(Step):
    version: int
    columns: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"Build version {self.version} where no reader can see it ({', '.join(self.columns)}), "
            "ordered by what it publishes; record it as staged."
        )

    def perform(self, run: Run) -> None:
        run.reserve_version(run.version)
        if run.policy.inherited is not None:
            # Nothing was searched, so it is still open; to copy rows and to count them again may take long.
            run.store.close_crosswalk()
        source, now = run.task.source, run.ledger.version
        shown = run.chosen.shown(run.spec, source, run.version, now, run.policy.since)
        run.target.stage(run.task.source.session, run.chosen.copy, shown, run.tag, run.record)
        # The snapshot ends here: what follows reads only the copy.
        run.transaction.close()


@dataclass(frozen=True)
class Recheck(Step):
    models: tuple[str, ...]

    def describe(self) -> str:
        return f"Recount the copy independently and compare it with the search: rows, blocks, {', '.join(self.models)}."

    def perform(self, run: Run) -> None:
        run.lock.check()
        chosen = run.chosen
        run.checked = run.transaction.enter_context(run.target.checking(run.version, chosen.copy.columns))
        rows = run.checked.rows
        counted = count_again(run.spec, rows.session, rows.rows, chosen.copy.columns, chosen.baseline.references)
        chosen.copy.check(rows.session, rows.rows)
        problems = differences(run.spec, counted, chosen.assessment, chosen.labels)
        if content_digest(rows.session, rows.rows, chosen.copy.columns) != chosen.digest:
            problems.append("the content of the copy is not what was read from the source's snapshot")
        if problems:
            raise Refused("the copy failed its check, nothing is published: " + "; ".join(problems))
        run.counted = counted


@dataclass(frozen=True)
class Publish(Step):
    view: str
    readers: tuple[str, ...]

    def describe(self) -> str:
        to = f", readable by {', '.join(self.readers)}" if self.readers else ""
        return f"Publish it as {self.view}{to}, together with the ledger row."

    def perform(self, run: Run) -> None:
        run.lock.check()
        roles.judge(run.spec, run.store, run.identity, running=True)
        if not common.still_complete(run.spec, run.store, run.checked.rows.session, run.policy.verdict):
            raise Refused(
                "another release that the same readers may hold was published meanwhile; nothing is published, the "
                "next run checks them together"
            )
        said, number = f"version {run.version} was published", run.version
        with current_effects().committing(
            said, partial(run.said_published, number), status="published", version=number
        ):
            run.notes += run.checked.publish(run.record)
            run.published = True
        run.transaction.close()
        common.settle(run.spec, run.store, run.id)
        with suppress(QblockError):  # the next run decides in full then
            remember_next(run)


@dataclass(frozen=True)
class Retire(Step):
    keep: int

    def describe(self) -> str:
        return f"Drop versions beyond the newest {self.keep}; the ledger keeps their rows."

    def perform(self, run: Run) -> None:
        try:
            run.notes += run.retire_versions(self.keep)
        except QblockError as error:
            # The version is published; what could not be dropped is tried again by the next run.
            run.notes.append(f"old versions were not dropped: {error}")
