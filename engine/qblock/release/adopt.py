"""`qblock adopt`: the only version of a release, published without a crosswalk, is recorded in one.

Later versions can be checked together with it from then on. That the source gives its content once more shows what
readers hold, and not who was in it: the operator states that (`same_people`), and the ledger keeps the statement.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from qblock.deeds import outcome
from qblock.errors import InputError, Refused
from qblock.joint.admission import Admission
from qblock.joint.adopted import LEFT, STATED, adopted_event, adopted_versions
from qblock.joint.audience import check_audience
from qblock.joint.crosswalk import Book, has_book, open_book, own_book
from qblock.joint.excluded import FAILED, LEAVING, OUT, QUEUED, entities_apart
from qblock.joint.gate import check, check_models
from qblock.joint.turn import JointVersions
from qblock.joint.turnover import keep, turnover
from qblock.joint.versions import candidate, recorded
from qblock.ledger.events import Event, RecordedEvent
from qblock.ledger.place import Place
from qblock.ledger.reader import ledger_reader
from qblock.ledger.writer import record
from qblock.release import private_state, roles, runner, steps
from qblock.release.adoptable import AS_IT_WAS, check_adoptable, refused
from qblock.release.chosen import Chosen
from qblock.release.log import Entries
from qblock.release.maps import map_of
from qblock.release.plan import Plan, plan_adopt
from qblock.release.ranges import ranges_of
from qblock.release.recover import clear_leftovers, record_failure
from qblock.release.reproduced import differences
from qblock.release.retire import check_not_retired
from qblock.release.run import Run
from qblock.release.runner import run_steps
from qblock.search.run import open_snapshot, task_over
from qblock.source import open_recoded
from qblock.spec import Spec
from qblock.warehouse.kept_sessions import kept_sessions

STATEMENT = (
    "with --same-people you state that the people whom the source has now are those of whom the version was made, and "
    "that nobody was exchanged for another one with the same values meanwhile. Equal content does not prove that, and "
    "where it is not so, versions that pass together later may still reveal what somebody has who was exchanged. The "
    "ledger keeps the statement, and `qblock history` and every later result of the release show it. Give "
    f"--same-people where it is true; where it is not, or not known, {LEFT}"
)
SOURCE = (
    "Where source and hierarchies can be once more what they were (from a backup, or as a view of the same name), try "
    "again then. "
    f"Otherwise {LEFT}"
)
ALONE = "{} of {} groups of people whom the version shows alike fail by themselves, where people have several rows"
TOGETHER = (
    "with the versions of releases that the same readers may hold, {} of {} joint cells fail, so that no later version "
    "could pass either"
)


@dataclass(frozen=True)
class AdoptResult:
    """status: adopted, or unchanged where the crosswalk has the version already. people: of whom it was made."""

    status: str
    release: str
    run: str
    version: int
    people: int | None
    view: str
    ledger_head: str | None
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@kept_sessions()
def adopt(
    spec: Spec,
    *,
    same_people: bool = False,
    wait: float = 0,
    log: Callable[[str], None] | None = None,
    entries: Entries | None = None,
) -> AdoptResult:
    """Record the only version of a release in the crosswalk, as if a run with an entity had published it.

    same_people: that nobody was exchanged since it was published, as the caller states. wait: seconds to wait for
    another run of the release. log: one line for each step; entries: the same with run, step and time. Raises
    InputError without that statement, and for a spec whose versions are not checked together; Refused where the
    version is not the only one, or the spec or the source does not give it once more (the refusal is in the ledger);
    Busy and QblockError as a release does. What is published stays as it is.
    """
    check_spec(spec)
    if not same_people:
        raise InputError(f"nothing is adopted: {STATEMENT}")
    made = plan_adopt(spec, wait=wait, judge=False)
    if _without_ledger(made):
        private_state.check(spec, made.place, made.target, joint=True)
        with ledger_reader(made.place) as reader:
            check_adoptable(spec, reader)
    run = _Adoption(made, None, log, entries)
    run_steps(run, made.steps, PERFORM, _failed)
    return run.adoption()


def foreseen_adoption(spec: Spec, *, wait: float = 0) -> Plan:
    """The steps of `adopt`, with a note where ledger and spec tell that it would be refused. Reads no row."""
    check_spec(spec)
    made = plan_adopt(spec, wait=wait)
    upgrade = next(step for step in made.steps if isinstance(step, steps.UpgradeLedger))
    if upgrade.found not in (None, upgrade.needed) or _adopted(made.place, spec.release):
        return made
    with ledger_reader(made.place) as reader:
        try:
            check_adoptable(spec, reader)
            check_models(spec)
        except Refused as error:
            return replace(made, notes=(*made.notes, f"a run would be refused: {error}"))
    return made


def check_spec(spec: Spec) -> None:
    """Raise InputError for a spec whose versions are not checked together, since nothing is gained for it then."""
    if spec.versions.joint == "none":
        raise InputError(
            f"{spec.at('versions', 'joint')}: a version is adopted so that later ones are checked together with it, "
            "and `joint: none` gives that up: leave it out, or go on without `adopt`"
        )
    if spec.entity is None:
        raise InputError(
            f"{spec.at('release')}: a version is adopted so that later ones are checked together with it, which needs "
            "to know who a row is about: write `entity: COLUMN`"
        )


def _without_ledger(made: Plan) -> bool:
    return next(step for step in made.steps if isinstance(step, steps.UpgradeLedger)).found is None


def _adopted(place: Place, release: str) -> str | None:
    """The sentence about the version that is in the crosswalk because it was adopted, if one is."""
    if not has_book(place):
        return None
    with own_book(place) as book:
        found = adopted_versions(book, release)
    return f"version {found[0].key.version} was adopted" if found else None


class _Adoption(Run):
    """event: that published the version; admission: which lets everybody in; people: how many it was made of."""

    joint: JointVersions
    event: RecordedEvent
    admission: Admission
    people: int | None = None

    def adoption(self) -> AdoptResult:
        """What it came to."""
        return AdoptResult(
            "unchanged" if self.unchanged else "adopted",
            self.spec.release,
            self.id,
            self.version,
            self.people,
            self.target.view,
            self._head(),
            list(dict.fromkeys(self.notes)),
        )

    def refused(self, why: str, left: str = SOURCE) -> Refused:
        return refused(self.spec.release, self.version, why, left)


def _clear(run: _Adoption, _: steps.ClearLeftovers) -> None:
    run.notes += roles.judge(run.spec, run.place, run.identity)
    check_not_retired(run.place, run.target, run.spec.release)
    run.joint.make_ready()
    for message in clear_leftovers(run):
        run.say(message)
    run.joint.settle_leaving()
    run.read_ledger()
    run.joint.discard_unseen(run.published_digests)


def _adoptable(run: _Adoption, _: steps.CheckAdoptable) -> None:
    release, shown = run.spec.release, run.published_digests
    with own_book(run.place) as book:
        inside = {version.key.version for version in recorded(book, release)}
        apart = entities_apart(book, release, [FAILED, LEAVING, OUT, QUEUED])
    if shown and set(shown) <= inside and run.current is not None:
        run.unchanged, run.version = True, run.current.version or max(shown)
        run.say(f"nothing to do: the crosswalk has version {run.version}")
        return
    with ledger_reader(run.place) as reader:
        run.event = check_adoptable(run.spec, reader)
    run.version = run.event.version or 0
    if inside or apart:
        raise run.refused("the crosswalk knows people of this release already", f"{LEFT[0].upper()}{LEFT[1:]}")
    check_models(run.spec)


def _reproduce(run: _Adoption, _: steps.Reproduce) -> None:
    # At its node, which need not be the one that a search of today would choose.
    stated = map_of(run.spec, run.place, run.event)
    node = run.event.node if stated is None else (0,) * len(run.spec.quasi_identifiers)
    assert node is not None
    spec = replace(run.spec, search=replace(run.spec.search, node=node))
    run.admission = Admission(run.spec, run.place, shown=())
    session = run.transaction.enter_context(open_snapshot(spec, name_values=False))
    source = open_recoded(spec, session, stated, relation=run.admission)
    run.task = run.transaction.enter_context(task_over(source))
    rows = run.task.source.rows
    if rows != run.event.rows_source:
        raise run.refused(f"the source has {rows} rows now, and it was made of {run.event.rows_source}")
    if node not in run.task.lattice:
        raise run.refused(f"node {list(node)} is not in the lattice: hierarchies have changed", AS_IT_WAS)
    run.chosen = Chosen.of(run.spec, run.task, run.task.assess(node), ranges_of(run.place, run.event))
    for why in differences(run, run.event):
        raise run.refused(why)


def _adopt(run: _Adoption, _: steps.Adopt) -> None:
    run.lock.check()
    session, version = run.task.source.session, run.version
    said = f"version {version} was adopted"
    with outcome().doing(said, partial(_adopted, run.place, run.spec.release)):
        with open_book(run.place, session) as book:
            event = _record(run, book)
            if run.place.atomic:
                record(book.own.connection, event)
            run.lock.check()
        if run.place.atomic:
            session.connection.commit()
    run.transaction.close()
    # On DuckDB the crosswalk is another file than the ledger, and says what is still to be written there.
    run.joint.settle_leaving()
    run.notes.append(STATED.format(version=version))
    run.say(said)


def _record(run: _Adoption, book: Book) -> Event:
    """Write the version into the crosswalk; the event that the ledger is to have of it."""
    spec, source = run.spec, run.task.source
    check_audience(book, spec, run.place)
    found = candidate(book, run.task, run.chosen.assessment, run.version)
    verdict = check(book, spec, run.chosen.kept.references, found)
    if not verdict.passed and verdict.versions == 1:
        raise run.refused(ALONE.format(verdict.failing, verdict.cells), f"{LEFT[0].upper()}{LEFT[1:]}")
    if not verdict.passed:
        why = TOGETHER.format(verdict.failing, verdict.cells)
        raise run.refused(why, f"Leave them out of `versions.audience` if no reader can hold both. Otherwise {LEFT}")
    keep(book, spec.release, turnover(book, source, run.admission, ()))
    run.joint.adopt(book, source, found, run.event.stamp)
    (version,) = adopted_versions(book, spec.release)
    event = adopted_event(version, run.event.stamp)
    run.people = int((event.detail or {})["people"])
    return event


def _failed(run: _Adoption, error: BaseException) -> None:
    """Record why nothing was adopted; where the error came after the commit, the version is."""
    with suppress(Exception):
        if _adopted(run.place, run.spec.release):
            return
    record_failure(run, error)


PERFORM: runner.Perform[_Adoption] = {
    **runner.BEGIN,
    steps.ClearLeftovers: _clear,
    steps.CheckAdoptable: _adoptable,
    steps.Reproduce: _reproduce,
    steps.Adopt: _adopt,
}
