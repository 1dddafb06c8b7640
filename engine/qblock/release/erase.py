"""Erasure: people who withdraw wait for a batch that closes by size, or leave at once with their whole joint cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from qblock.effects import current_effects
from qblock.errors import QblockError, Refused
from qblock.ledger.history import retired_by
from qblock.ledger.stamps import record_refusal
from qblock.ledger.store import Store
from qblock.release import steps
from qblock.release.apply import release, retire
from qblock.release.job import OPENING, Job, Perform, run_steps
from qblock.release.leaving import ErasureRequest, count_sharing, missing_people, named_people, said_missing
from qblock.release.log import Reporter
from qblock.release.plan import Plan, plan
from qblock.release.recover import kept_versions
from qblock.release.result import ReleaseResult
from qblock.release.run import Run
from qblock.results.release import Sharing
from qblock.search.progress import Progress
from qblock.spec import Spec
from qblock.versions.crosswalk import FAILED, LEAVING, OUT, open_crosswalk, prepare
from qblock.versions.crosswalk import QUEUED as WAITING
from qblock.versions.later import lags
from qblock.versions.people import entities_apart
from qblock.versions.turn import record_erasure
from qblock.versions.withdrawals import NOT_RECALLED, Removal, take_out, whole_cells, withdraw
from qblock.warehouse.kept_sessions import kept_sessions

QUEUED = (
    "they stay in the versions until a batch of their people can go, so the source must keep their rows as long (not "
    "where versions lag); the next releases see to it"
)
WAIT = "they are shown until a batch of their people can go; the next releases see to it"
NOT_IN_NEXT = (
    "the next version is without them, if those who leave and those who stay of each joint cell pass; else it is "
    "refused, and --now takes out their whole joint cells"
)
NOBODY_MISSING = "nobody is missing: the source has everybody whom a version that is kept shows, but for who has left"
RECORDED = "the withdrawal was recorded"
STUCK = "{} of them were in a batch that failed, which is not topped up: they can only leave at once (--now)"
DECLINED = "it was not agreed to: nobody was taken out, and nothing was changed"
STILL_SHOWN = (
    "they are out of every later version, but none could be published without them now, and version {version}, which "
    "shows them, is still what readers see"
)

Agree = Callable[[Sharing], bool]
"""Decides, from how many share the joint cells of those who leave at once, whether they are to leave."""


@dataclass(frozen=True)
class EraseResult:
    """Only counts. asked: people named, or missing from the source; shown: of them, whom any version has shown;
    companions: others that left with them, as they shared a joint cell; retired: versions dropped; published: the
    version without them, if there is one; sharing: what was counted before they left at once.
    """

    status: str
    release: str
    asked: int
    shown: int
    companions: int = 0
    retired: list[int] = field(default_factory=list)
    published: ReleaseResult | None = None
    notes: list[str] = field(default_factory=list)
    sharing: Sharing | None = None

    def to_json(self) -> dict[str, Any]:
        published = self.published.to_json() if self.published else None
        return {**vars(self), "published": published, "sharing": self.sharing.to_dict() if self.sharing else None}


@kept_sessions()
def erase(
    spec: Spec,
    entities: Sequence[str] = (),
    *,
    missing: bool = False,
    confirm: int | None = None,
    now: bool = False,
    agree: Agree | None = None,
    wait: float = 0,
    progress: Progress | None = None,
    reporter: Reporter | None = None,
) -> EraseResult:
    """People withdraw from a release, named by the text of its entity column.

    Whoever was never shown is out at once. The others are queued: k of a block leaving together could still share a
    value, so a batch closes by size and must pass the joint check on both sides. missing: instead of people who are
    named, those whom the source has no more; confirm: how many these are, where they are too many to go by themselves.
    now: they leave at once, with everybody who shares a joint cell with them; a version without them is published, and
    those that show them are dropped. agree: told how many that are, while nothing is changed yet and the release is
    locked; None: nobody is asked. Raises InputError for a release without entities, and where a name belongs to nobody
    (then nothing is done: a list in another form may name others, who could never be shown again), Refused where it was
    not agreed to or the source may be wrong (`missing_people`), and what `release` raises; what was set apart stays so.
    """
    request = ErasureRequest.of(spec, entities, missing=missing, confirm=confirm, now=now)
    run = _Erasure(request.plan(spec, wait, judge=False), request, agree, wait, progress, reporter)
    run_steps(run, run.steps, PERFORM, _record_failure)
    return run.result()


class _Erasure(Job):
    """One run. digests: of those who are to leave; shown: how many any version has shown; stuck: how many were in a
    batch that failed; sharing: what was counted before, and removal: what was taken out, at once; left: what is said of
    versions that stay for now."""

    digests: Sequence[str]

    def __init__(
        self,
        planned: Plan,
        request: ErasureRequest,
        agree: Agree | None,
        wait: float,
        progress: Progress | None,
        reporter: Reporter | None,
    ) -> None:
        super().__init__(planned.spec, planned.place, planned.target, (), reporter)
        self.steps, self.request, self.agree, self.wait = planned.steps, request, agree, wait
        self.releasing = partial(release, self.spec, wait=wait, progress=progress, reporter=reporter)
        self.shown = self.stuck = 0
        self.sharing: Sharing | None = None
        self.removal: Removal | None = None
        self.release_result: ReleaseResult | None = None
        self.left: list[str] = []

    def result(self) -> EraseResult:
        """What it came to."""
        removal, release, named = self.removal, self.spec.release, len(self.digests)
        if self.unchanged:
            return EraseResult("unchanged", release, 0, 0, notes=self.notes)
        if removal is None:
            notes = [self._waiting()] if self.shown > self.stuck else []
            notes += [STUCK.format(self.stuck)] if self.stuck else []
            notes = [*self.notes, *notes, NOT_RECALLED]
            return EraseResult("queued", release, named, self.shown, notes=notes)
        return EraseResult(
            "erased",
            release,
            named,
            self.shown,
            companions=len(removal.companions),
            retired=sorted(_concerned(removal) - set(kept_versions(self))),
            published=self.release_result,
            notes=[*self.notes, *self.left, NOT_RECALLED],
            sharing=self.sharing,
        )

    def _waiting(self) -> str:
        """What becomes of those who are queued."""
        if not self.request.missing:
            return QUEUED
        return WAIT if lags(self.spec) else NOT_IN_NEXT


def _record_failure(run: _Erasure, error: BaseException) -> None:
    """Only what was found out of the private state: whoever is named stays out of the ledger."""
    if isinstance(error, Refused) and run.identity_known and not run.state_known:
        record_refusal(run.place, run.spec.release, run.id, error)


def _find(run: _Erasure, _: steps.FindPeople) -> None:
    prepare(run.place)
    run.digests = named_people(run.place, run.spec, run.request.names)


def _find_missing(run: _Erasure, _: steps.FindMissing) -> None:
    prepare(run.place)
    absent = missing_people(run.place, run.spec, run.request)
    run.digests = absent.digests
    run.reporter.report(said_missing(absent))
    if not absent.digests:
        run.unchanged = True
        run.notes.append(NOBODY_MISSING)


def _count(run: _Erasure, _: steps.CountSharing) -> None:
    run.sharing = count_sharing(run.place, run.spec, run.digests)
    run.reporter.report(str(run.sharing))
    if run.agree is not None:
        if not run.agree(run.sharing):
            raise Refused(DECLINED)
        run.lock.check()  # whoever was asked may have taken long


def _take_out(run: _Erasure, step: steps.SetApart) -> None:
    place, spec, digests = run.place, run.spec, run.digests
    with current_effects().committing(RECORDED, partial(_recorded, place, spec, digests, step.now)):
        run.shown, run.stuck, run.removal = _exclude(place, spec, digests, step.now)
    if run.removal is not None:
        record_erasure(place, spec.release, run.id, {"people": run.shown, "companions": len(run.removal.companions)})


def _publish(run: _Erasure, _: steps.PublishWithout) -> None:
    run.lock_held.close()  # the release takes it for itself
    assert run.removal is not None
    run.release_result = _publish_without(run, _concerned(run.removal))


def _drop(run: _Erasure, step: steps.DropShowing) -> None:
    done = run.release_result
    if done is None or done.status == "unchanged":
        with run.place.lock(run.spec.release, run.wait):
            run.left = retire(_release_run(run), step.keep)


def _concerned(removal: Removal) -> set[int]:
    return {version.version for version in removal.versions}


def _recorded(place: Store, spec: Spec, digests: Sequence[str], now: bool) -> str | None:
    """RECORDED where everybody of these is out, or waits to be."""
    with open_crosswalk(place) as crosswalk:
        states = [OUT] if now else [OUT, LEAVING, FAILED, WAITING]
        return RECORDED if set(digests) <= set(entities_apart(crosswalk, spec.release, states)) else None


def _exclude(place: Store, spec: Spec, digests: Sequence[str], now: bool) -> tuple[int, int, Removal | None]:
    """How many of those named were ever shown, how many are of batches that failed, and what is taken out."""
    with open_crosswalk(place) as crosswalk:
        # First, so that everybody who leaves with them counts, whom a version has shown or not.
        removal = whole_cells(crosswalk, spec, digests) if now else None
        shown = withdraw(crosswalk, spec, digests)
        stuck = len(set(digests) & set(entities_apart(crosswalk, spec.release, [FAILED])))
        if removal is None:
            return shown, stuck, None
        take_out(crosswalk, spec, removal)
        return shown, stuck, removal


def _release_run(run: _Erasure) -> Run:
    return Run(plan(run.spec, wait=run.wait, judge=False))


def _is_retired(run: _Erasure) -> bool:
    """Whether the release shows nothing, as it was retired: then no version without the people is to be published."""
    with run.place.read() as reader:
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
        with run.place.lock(run.spec.release, run.wait):
            retire(other, run.spec.versions.keep)
        if other.current is not None and other.current.version in concerned:
            raise type(error)(f"{STILL_SHOWN.format(version=other.current.version)}: {error}") from error
        raise


PERFORM: Perform[_Erasure] = {
    **OPENING,
    steps.FindPeople: _find,
    steps.FindMissing: _find_missing,
    steps.CountSharing: _count,
    steps.SetApart: _take_out,
    steps.PublishWithout: _publish,
    steps.DropShowing: _drop,
}
