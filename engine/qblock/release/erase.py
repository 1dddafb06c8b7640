"""Erasure: people who withdraw wait for a batch that closes by size, or leave at once with their whole joint cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from qblock.effects import current_effects
from qblock.engines.kept_sessions import kept_sessions
from qblock.errors import InputError, QblockError, Refused
from qblock.ledger.stamps import record_refusal
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.release.apply import plan, release
from qblock.release.job import Job, Plan, Step, opening
from qblock.release.log import Reporter
from qblock.release.run import Run
from qblock.results.release import Erased, Planned, Published, Sharing
from qblock.search.progress import Progress
from qblock.search.run import open_snapshot
from qblock.spec import Spec
from qblock.versions import people
from qblock.versions.crosswalk import FAILED, LEAVING, OUT, has_crosswalk, open_crosswalk, prepare
from qblock.versions.crosswalk import QUEUED as WAITING
from qblock.versions.people import Missing, entities_apart, kept_people, looked_up
from qblock.versions.people import missing as missing_of
from qblock.versions.policy.common import record_erasure
from qblock.versions.withdrawals import NOT_RECALLED, Removal, sharing, take_out, whole_cells, withdraw

QUEUED = (
    "they are shown until a batch of their people can go; the next releases see to it. Until then the source must "
    "keep their rows, unless versions lag behind it"
)
WAIT = "they are shown until a batch of their people can go; the next releases see to it"
NOT_IN_NEXT = (
    "the next version is without them if, in each joint cell, those who leave and those who stay pass. Else it is "
    "refused; --now takes out their whole joint cells"
)
NOBODY_MISSING = "nobody is missing: the source has everybody whom a kept version shows, except people who have left"
NEVER_SHOWN = "no version shows them, and none will"
RECORDED = "the withdrawal was recorded"
STUCK = "{} of them were in a batch that failed and is not topped up, so they can only leave at once (--now)"
DECLINED = "you did not agree: nobody was taken out, and nothing was changed"
STILL_SHOWN = (
    "they are out of every later version, but readers still see version {version}, which shows them. No version "
    "without them could be published now"
)

NOBODY = (
    "{} of {} {} nobody, neither in the source nor in any earlier version; nothing is done, not even for those found. "
    "Write names exactly as in column {}: numbers plain (7, not 007), dates as 2026-01-31. Correct the list, and give "
    "all of it again"
)
TOO_MANY = (
    "{}: more than a fifth; nothing is done. They are not gone if the values of column {} were changed, or not all of "
    "the source was loaded. If they have really left, say how many: --confirm {}"
)
ANOTHER_NUMBER = "{}, and --confirm says {}; nothing is done"
NOT_COUNTED = "the ledger has to be upgraded before it is known who would leave and how many share their joint cells"


Agree = Callable[[Sharing], bool]
"""Decides, from how many share the joint cells of those who leave at once, whether they are to leave."""


@dataclass(frozen=True)
class ErasureRequest:
    """Who is to leave, and how. names: texts of the entity column; missing: instead of them those whom the source has
    no more; confirm: how many these are, where they are too many to go by themselves; now: at once."""

    names: tuple[str, ...] = ()
    missing: bool = False
    confirm: int | None = None
    now: bool = False

    @classmethod
    def of(cls, spec: Spec, names: Sequence[str], *, missing: bool, confirm: int | None, now: bool) -> ErasureRequest:
        """Raises InputError where nobody is named, somebody is beside `missing`, or the spec does not say who a row is
        about."""
        if missing and names:
            raise InputError("--missing is about those whom the source has no more: name nobody, and give no file")
        if confirm is not None and not missing:
            raise InputError("--confirm says how many people are missing from the source: give it with --missing")
        if not names and not missing:
            raise InputError(
                "nobody is named. Give values of the entity column, a file with one on each line, or --missing for "
                "those whom the source has no more"
            )
        if not spec.checked_together:
            raise InputError(
                f"{spec.at('versions')}: people can withdraw only where versions are checked together. Write `entity: "
                "COLUMN`, and not `joint: none`"
            )
        return cls(tuple(dict.fromkeys(names)), missing, confirm, now)

    def plan(self, spec: Spec, wait: float, *, judge: bool = True) -> Plan:
        """The steps by which people withdraw; judge: as of `opening`, and raises what that does."""
        # Withdrawing asks nothing of the target: what is wrong with it must not keep a withdrawal from being recorded.
        planned = opening(spec, store_of(spec), wait, judge, checked=judge)
        column = spec.entity or ""
        find = FindMissing(column, self.confirm) if self.missing else FindPeople(len(self.names), column)
        if not self.now:
            return planned.then(find, SetApart(False))
        without, drop = PublishWithout(planned.target.view), DropShowing(spec.versions.keep)
        return planned.then(find, CountSharing(), SetApart(True), without, drop)


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
) -> Erased:
    """People withdraw from a release, named by the text of its entity column.

    Whoever was never shown is out at once (`erased`). The others are queued: k of a block leaving together could
    still share a value, so a batch closes by size and must pass the joint check on both sides. missing: instead of
    people who are named, those whom the source has no more; confirm: how many these are, where they are too many to
    go by themselves. now: they leave at once, with everybody who shares a joint cell with them; a version without
    them is published, and those that show them are dropped. agree: told how many that are, while nothing is changed
    yet and the release is locked; None: nobody is asked. Raises InputError for a release without entities, and
    where a name belongs to nobody (then nothing is done: a list in another form may name others, who could never be
    shown again), Refused where it was not agreed to or the source may be wrong (`missing_people`), and what
    `release` raises; what was set apart stays so.
    """
    request = ErasureRequest.of(spec, entities, missing=missing, confirm=confirm, now=now)
    run = _Erasure(request.plan(spec, wait, judge=False), request, agree, wait, progress, reporter)
    run.perform()
    return run.result()


@kept_sessions()
def plan_erase(
    spec: Spec,
    people: Sequence[str] = (),
    *,
    missing: bool = False,
    confirm: int | None = None,
    now: bool = False,
    wait: float = 0,
) -> Planned:
    """The plan of an erasure. With `now` people are looked up, and who shares their joint cells is counted; those who
    are missing are counted in any case.

    Raises what `erase` raises before it changes anything, and Busy where another run of the release is in progress.
    """
    request = ErasureRequest.of(spec, people, missing=missing, confirm=confirm, now=now)
    planned = request.plan(spec, wait)
    if not (now or missing) or planned.refused:
        return planned.answer()
    store = planned.store
    if not planned.is_upgraded or not has_crosswalk(store):
        return planned.answer([NOT_COUNTED] if planned.revision else [])
    notes: list[str] = []
    number = shared = None
    with store.lock(spec.release, wait):
        if missing:
            absent = missing_people(store, spec, request)
            digests: Sequence[str] = absent.digests
            number, notes = len(digests), [said_missing(absent)]
        else:
            digests = named_people(store, spec, request.names)
        if now and digests:
            shared = count_sharing(store, spec, digests)
            notes.append(str(shared))
    return planned.answer(notes, missing=number, sharing=None if shared is None else shared.to_dict())


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
        super().__init__(planned, reporter)
        self.request, self.agree, self.wait = request, agree, wait
        self.releasing = partial(release, self.spec, wait=wait, progress=progress, reporter=reporter)
        self.shown = self.stuck = 0
        self.sharing: Sharing | None = None
        self.removal: Removal | None = None
        self.release_result: Published | None = None
        self.left: list[str] = []

    def result(self) -> Erased:
        """What it came to."""
        removal = self.removal
        if self.unchanged:
            return self._erased("unchanged", self.notes)
        if removal is None and not self.shown:
            return self._erased("erased", [*self.notes, NEVER_SHOWN])
        if removal is None:
            notes = [self._waiting()] if self.shown > self.stuck else []
            notes += [STUCK.format(self.stuck)] if self.stuck else []
            return self._erased("queued", [*self.notes, *notes, NOT_RECALLED])
        return self._erased(
            "erased",
            [*self.notes, *self.left, NOT_RECALLED],
            companions=len(removal.companions),
            retired=tuple(sorted(_concerned(removal) - set(self.kept_versions()))),
        )

    def _erased(
        self,
        status: Literal["queued", "erased", "unchanged"],
        notes: Sequence[str],
        companions: int = 0,
        retired: tuple[int, ...] = (),
    ) -> Erased:
        return Erased(
            status=status,
            release=self.spec.release,
            asked=len(self.digests),
            shown=self.shown,
            companions=companions,
            retired=retired,
            published=self.release_result,
            notes=tuple(notes),
            sharing=self.sharing,
        )

    def _waiting(self) -> str:
        """What becomes of those who are queued."""
        if not self.request.missing:
            return QUEUED
        return WAIT if self.spec.lags else NOT_IN_NEXT

    def record_failure(self, error: BaseException) -> None:
        """Only what was found out of the private state: whoever is named stays out of the ledger."""
        if isinstance(error, Refused) and self.identity_known and not self.state_known:
            record_refusal(self.store, self.spec.release, self.id, error)


@dataclass(frozen=True)
class FindPeople(Step):
    people: int
    column: str

    def describe(self) -> str:
        who = "person" if self.people == 1 else f"{self.people} people"
        return (
            f"Look the {who} named up by column {self.column}, in earlier versions and in the source; "
            "do nothing if a name is nobody's."
        )

    def perform(self, run: _Erasure) -> None:
        prepare(run.store)
        run.digests = named_people(run.store, run.spec, run.request.names)


@dataclass(frozen=True)
class FindMissing(Step):
    column: str
    confirm: int | None

    def describe(self) -> str:
        unless = (
            "it was not confirmed" if self.confirm is None else f"they are not the {self.confirm} that were confirmed"
        )
        return (
            f"Find by column {self.column} the people whom kept versions show and the source has no more. Do nothing "
            f"if there are none, or if they are more than a fifth and {unless}."
        )

    def perform(self, run: _Erasure) -> None:
        prepare(run.store)
        absent = missing_people(run.store, run.spec, run.request)
        run.digests = absent.digests
        run.reporter.report(said_missing(absent))
        if not absent.digests:
            run.unchanged = True
            run.notes.append(NOBODY_MISSING)


@dataclass(frozen=True)
class CountSharing(Step):
    def describe(self) -> str:
        return (
            "Count how many people share their joint cells, and ask whether all of them are to leave (not with --yes)."
        )

    def perform(self, run: _Erasure) -> None:
        run.sharing = count_sharing(run.store, run.spec, run.digests)
        run.reporter.report(str(run.sharing))
        if run.agree is not None:
            if not run.agree(run.sharing):
                raise Refused(DECLINED)
            run.lock.check()  # whoever was asked may have taken long


@dataclass(frozen=True)
class SetApart(Step):
    now: bool

    def describe(self) -> str:
        if self.now:
            return "Take them out at once, with everybody who shares a joint cell with them."
        return (
            "Take out at once people who were never shown; the others wait until a batch of their block closes by its "
            "size."
        )

    def perform(self, run: _Erasure) -> None:
        store, spec, digests = run.store, run.spec, run.digests
        with current_effects().committing(RECORDED, partial(_recorded, store, spec, digests, self.now)):
            run.shown, run.stuck, run.removal = _exclude(store, spec, digests, self.now)
        if run.removal is not None:
            people = {"people": run.shown, "companions": len(run.removal.companions)}
            record_erasure(store, spec.release, run.id, people)


@dataclass(frozen=True)
class PublishWithout(Step):
    view: str

    def describe(self) -> str:
        return f"If a version shows any of them, publish one without them as {self.view}, by the steps of a release."

    def perform(self, run: _Erasure) -> None:
        """What shows them is dropped even where no version without them can be made."""
        run.lock_held.close()  # the release takes it for itself
        assert run.removal is not None
        concerned = _concerned(run.removal)
        if not concerned:
            return
        with run.store.read() as reader:
            if reader.retired_by(run.spec.release) is not None:
                return  # it shows nothing, and no version of it is to be published
        try:
            run.release_result = run.releasing()
        except QblockError as error:
            other = _release_run(run)
            other.read_ledger()
            with run.store.lock(run.spec.release, run.wait):
                other.retire_versions(run.spec.versions.keep)
            version = other.ledger.version
            if version in concerned:
                raise type(error)(f"{STILL_SHOWN.format(version=version)}: {error}") from error
            raise


@dataclass(frozen=True)
class DropShowing(Step):
    keep: int

    def describe(self) -> str:
        return (
            f"Drop the versions that show them, except the one that readers see, and those beyond the newest "
            f"{self.keep}."
        )

    def perform(self, run: _Erasure) -> None:
        done = run.release_result
        if done is None or done.status == "unchanged":
            with run.store.lock(run.spec.release, run.wait):
                run.left = _release_run(run).retire_versions(self.keep)


def _concerned(removal: Removal) -> set[int]:
    return {version.version for version in removal.versions}


def _recorded(store: Store, spec: Spec, digests: Sequence[str], now: bool) -> str | None:
    """RECORDED where everybody of these is out, or waits to be."""
    with open_crosswalk(store) as crosswalk:
        states = [OUT] if now else [OUT, LEAVING, FAILED, WAITING]
        return RECORDED if set(digests) <= set(entities_apart(crosswalk, spec.release, states)) else None


def _exclude(store: Store, spec: Spec, digests: Sequence[str], now: bool) -> tuple[int, int, Removal | None]:
    """How many of those named were ever shown, how many are of batches that failed, and what is taken out."""
    with open_crosswalk(store) as crosswalk:
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


def named_people(store: Store, spec: Spec, names: Sequence[str]) -> list[str]:
    """The digests of all who are named. Raises InputError where a name is nobody's: how many are, never which."""
    with open_crosswalk(store) as crosswalk:
        digests = kept_people(crosswalk, spec.release, names)
    if digests is None:
        with (
            open_snapshot(spec, name_values=False) as session,
            open_crosswalk(store, session, read_only=True) as crosswalk,
        ):
            digests, unknown = looked_up(crosswalk, spec, session, names)
        if unknown:
            given, verb = "name" if len(names) == 1 else "names", "matches" if unknown == 1 else "match"
            raise InputError(NOBODY.format(unknown, f"{len(names)} {given}", verb, spec.entity))
    return [digest for digest in digests if digest is not None]


def missing_people(store: Store, spec: Spec, request: ErasureRequest) -> Missing:
    """Whom the source has no more. Raises what `versions.people` raises, and Refused for another number than was
    confirmed, or where none was and they are more than one in `people.ONE_IN`: the source may be wrong."""
    with store.read() as reader:
        versions, current = reader.kept_versions(spec.release), reader.pointer(spec.release)
    with open_snapshot(spec, name_values=False) as session, open_crosswalk(store, session, read_only=True) as crosswalk:
        absent = missing_of(crosswalk, spec, session, versions, current, now=request.now)
    number = len(absent.digests)
    if request.confirm not in (None, number):
        raise Refused(ANOTHER_NUMBER.format(said_missing(absent), request.confirm))
    if request.confirm is None and people.ONE_IN * number > absent.people:
        raise Refused(TOO_MANY.format(said_missing(absent), spec.entity, number))
    return absent


def said_missing(absent: Missing) -> str:
    """How many are missing."""
    number = len(absent.digests)
    verb = "is" if number == 1 else "are"
    return f"{number:,} of the {absent.people:,} people of the release {verb} not in the source"


class _Counted(Exception):
    """Leaves a transaction that is not to be kept."""


def count_sharing(store: Store, spec: Spec, digests: Sequence[str]) -> Sharing:
    """How many share the joint cells of people (digests); under the release's lock. Keeps nothing."""
    with store.read() as reader:
        published = reader.kept_versions(spec.release)
    try:
        with open_crosswalk(store) as crosswalk:
            shared = sharing(crosswalk, spec, digests, published)
            raise _Counted
    except _Counted:
        return shared
