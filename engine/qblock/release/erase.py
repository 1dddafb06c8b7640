"""Erasure: people who withdraw wait for a batch that closes by size, or leave at once with their whole joint cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from qblock.deeds import outcome
from qblock.errors import InputError, QblockError, Refused
from qblock.joint.crosswalk import open_book, own_book, prepare
from qblock.joint.excluded import FAILED, LEAVING, OUT, entities_apart
from qblock.joint.excluded import QUEUED as WAITING
from qblock.joint.named import kept_people, looked_up
from qblock.joint.turn import record_erasure
from qblock.joint.withdrawals import NOT_RECALLED, Removal, take_out, whole_cells, withdraw
from qblock.ledger.history import retired_by
from qblock.ledger.lock import release_lock
from qblock.ledger.place import Place
from qblock.ledger.reader import ledger_reader
from qblock.ledger.stamps import record_refusal
from qblock.release import runner, steps
from qblock.release.apply import release, retire
from qblock.release.job import Job
from qblock.release.log import Entries
from qblock.release.plan import Plan, plan, plan_erase
from qblock.release.recover import kept_versions
from qblock.release.result import ReleaseResult
from qblock.release.run import Run
from qblock.release.runner import run_steps
from qblock.search import Progress
from qblock.spec import Spec
from qblock.warehouse import warehouse_of
from qblock.warehouse.kept_sessions import kept_sessions

QUEUED = (
    "they stay in the versions until a batch of their people can go, so the source must keep their rows as long (not "
    "where versions lag); the next releases see to it"
)
RECORDED = "the withdrawal was recorded"
STUCK = "{} of them were in a batch that failed, which is not topped up: they can only leave at once (--now)"
NOBODY = (
    "{} of {} {} nobody, neither in the source nor in any earlier version; nothing is done, not even for "
    "those found. People are named exactly by the text of column {}: numbers plain (7, not 007), dates as 2026-01-31; "
    "look the names up there, correct the list and give it again, complete"
)
STILL_SHOWN = (
    "they are out of every later version, but none could be published without them now, and version {version}, which "
    "shows them, is still what readers see"
)


@dataclass(frozen=True)
class EraseResult:
    """Only counts. asked: people named; shown: of them, whom any version has shown; companions: others that left with
    them, as they shared a joint cell; retired: versions dropped; published: the version without them, if there is one.
    """

    status: str
    release: str
    asked: int
    shown: int
    companions: int = 0
    retired: list[int] = field(default_factory=list)
    published: ReleaseResult | None = None
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "published": self.published.to_json() if self.published else None}


@kept_sessions()
def erase(
    spec: Spec,
    entities: Sequence[str],
    *,
    now: bool = False,
    wait: float = 0,
    progress: Progress | None = None,
    log: Callable[[str], None] | None = None,
    entries: Entries | None = None,
) -> EraseResult:
    """People withdraw from a release, named by the text of its entity column.

    Whoever was never shown is out at once. The others are queued: k of a block leaving together could still share a
    value, so a batch closes by size and must pass the joint check on both sides. now: they leave at once, with
    everybody who shares a joint cell with them; a version without them is published, and those that show them are
    dropped. Raises InputError for a release without entities, and where a name belongs to nobody (then nothing is done:
    a list in another form may name others, who could never be shown again), and what `release` raises; what was set
    apart stays so.
    """
    named = list(dict.fromkeys(entities))
    check_erasable(spec, len(named))
    made = plan_erase(spec, len(named), now=now, wait=wait, judge=False)
    run = _Erasure(made, named, now, wait, progress, log, entries)
    run_steps(run, made.steps, PERFORM, _record_failure)
    return run.result()


def check_erasable(spec: Spec, people: int) -> None:
    """Raise InputError where nobody is named, or the spec does not say who a row is about."""
    if not people:
        raise InputError("nobody is named: give the values of the entity column, or a file with one on each line")
    if not spec.checked_together:
        raise InputError(
            f"{spec.at('versions')}: people can withdraw where the spec says who a row is about and versions are "
            "checked together: write `entity: COLUMN`, with `count: rows` and without `joint: none`"
        )


class _Erasure(Job):
    """One run. digests: of those named; shown: how many any version has shown; stuck: how many were in a batch that
    failed; removal: what was taken out at once; left: what is said of versions that stay for now."""

    digests: list[str]

    def __init__(
        self,
        made: Plan,
        named: Sequence[str],
        now: bool,
        wait: float,
        progress: Progress | None,
        log: Callable[[str], None] | None,
        entries: Entries | None,
    ) -> None:
        super().__init__(made.spec, made.place, made.target, (), log, entries)
        self.named, self.now, self.wait = named, now, wait
        self.releasing = partial(release, self.spec, wait=wait, progress=progress, log=log, entries=entries)
        self.shown = self.stuck = 0
        self.removal: Removal | None = None
        self.release_result: ReleaseResult | None = None
        self.left: list[str] = []

    def result(self) -> EraseResult:
        """What it came to."""
        removal, release = self.removal, self.spec.release
        if removal is None:
            notes = [QUEUED] if self.shown > self.stuck else []
            notes += [STUCK.format(self.stuck)] if self.stuck else []
            return EraseResult("queued", release, len(self.named), self.shown, notes=[*notes, NOT_RECALLED])
        return EraseResult(
            "erased",
            release,
            len(self.named),
            self.shown,
            companions=len(removal.companions),
            retired=sorted(_concerned(removal) - set(kept_versions(self))),
            published=self.release_result,
            notes=[*self.left, NOT_RECALLED],
        )


def _record_failure(run: _Erasure, error: BaseException) -> None:
    """Only what was found out of the private state: whoever is named stays out of the ledger."""
    if isinstance(error, Refused) and run.identity_known and not run.state_known:
        record_refusal(run.place, run.spec.release, run.id, error)


def _find(run: _Erasure, _: steps.FindPeople) -> None:
    prepare(run.place)
    run.digests = _people(run.place, run.spec, run.named)


def _take_out(run: _Erasure, step: steps.SetApart) -> None:
    place, spec, digests = run.place, run.spec, run.digests
    with outcome().doing(RECORDED, partial(_recorded, place, spec, digests, step.now)):
        run.shown, run.stuck, run.removal = _set_apart(place, spec, digests, step.now)
    if run.removal is not None:
        record_erasure(place, spec.release, run.id, {"people": run.shown, "companions": len(run.removal.companions)})


def _publish(run: _Erasure, _: steps.PublishWithout) -> None:
    run.lock_held.close()  # the release takes it for itself
    assert run.removal is not None
    run.release_result = _publish_without(run, _concerned(run.removal))


def _drop(run: _Erasure, step: steps.DropShowing) -> None:
    done = run.release_result
    if done is None or done.status == "unchanged":
        with release_lock(run.place, run.spec.release, run.wait):
            run.left = retire(_release_run(run), step.keep)


def _concerned(removal: Removal) -> set[int]:
    return {version.version for version in removal.versions}


def _people(place: Place, spec: Spec, names: Sequence[str]) -> list[str]:
    """The digests of all who are named. Raises InputError where a name is nobody's: how many are, never which."""
    with own_book(place) as book:
        found = kept_people(book, spec.release, names)
    if found is None:
        warehouse = warehouse_of(spec)
        try:
            with warehouse.snapshot() as session, open_book(place, session, read_only=True) as book:
                found, unknown = looked_up(book, spec, session, names)
        finally:
            warehouse.close()
        if unknown:
            raise InputError(NOBODY.format(unknown, *_matching(unknown, len(names)), spec.entity))
    return [digest for digest in found if digest is not None]


def _matching(unknown: int, given: int) -> tuple[str, str]:
    return f"{given} {'name' if given == 1 else 'names'}", "matches" if unknown == 1 else "match"


def _recorded(place: Place, spec: Spec, digests: Sequence[str], now: bool) -> str | None:
    """RECORDED where everybody of these is out, or waits to be."""
    with own_book(place) as book:
        states = [OUT] if now else [OUT, LEAVING, FAILED, WAITING]
        return RECORDED if set(digests) <= set(entities_apart(book, spec.release, states)) else None


def _set_apart(place: Place, spec: Spec, digests: Sequence[str], now: bool) -> tuple[int, int, Removal | None]:
    """How many of those named were ever shown, how many are of batches that failed, and what is taken out."""
    with own_book(place) as book:
        shown = withdraw(book, spec, digests)
        stuck = len(set(digests) & set(entities_apart(book, spec.release, [FAILED])))
        if not now:
            return shown, stuck, None
        removal = whole_cells(book, spec, digests)
        take_out(book, spec, removal)
        return shown, stuck, removal


def _release_run(run: _Erasure) -> Run:
    return Run(plan(run.spec, wait=run.wait, judge=False))


def _is_retired(run: _Erasure) -> bool:
    """Whether the release shows nothing, as it was retired: then no version without the people is to be published."""
    with ledger_reader(run.place) as reader:
        return retired_by(reader, run.spec.release) is not None


def _publish_without(run: _Erasure, concerned: set[int]) -> ReleaseResult | None:
    """A version without the people, where one shows them. What shows them is dropped even where none can be made."""
    if not concerned or _is_retired(run):
        return None
    try:
        return run.releasing()
    except QblockError as error:
        other = _release_run(run)
        other.read_ledger()
        with release_lock(run.place, run.spec.release, run.wait):
            retire(other, run.spec.versions.keep)
        if other.current is not None and other.current.version in concerned:
            raise type(error)(f"{STILL_SHOWN.format(version=other.current.version)}: {error}") from error
        raise


PERFORM: runner.Perform[_Erasure] = {
    **runner.BEGIN,
    steps.FindPeople: _find,
    steps.SetApart: _take_out,
    steps.PublishWithout: _publish,
    steps.DropShowing: _drop,
}
