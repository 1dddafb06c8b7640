"""What every job is: a plan, whose steps `plan` prints, and a run, which performs exactly these."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from qblock.engines.driver_errors import drivers_translated
from qblock.engines.faults import denied
from qblock.engines.from_spec import engine_of_place
from qblock.engines.rights import Right, missing_rights
from qblock.errors import QblockError, Refused
from qblock.ledger import schema
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import PUBLISHING, UNFINISHED, Event, RecordedEvent
from qblock.ledger.kept import forget_kept
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import HeldLock, Store
from qblock.publish.targets import Identity, Target, target_of
from qblock.release import move, private_state, roles
from qblock.release.log import Reporter
from qblock.results.release import Planned
from qblock.spec import Spec
from qblock.versions.crosswalk import names_of_a_run
from qblock.versions.later import joint_check
from qblock.versions.policy import policy_of
from qblock.versions.policy.common import Restart
from qblock.versions.withdrawals import check_cohorts

UNKNOWN = "unknown"
"""The revision of a ledger that this login may not read."""
SECONDS = 2.0
"""A run that is being stopped does not wait long for the ledger."""


@dataclass(frozen=True)
class Step:
    """One step of a job: what it is, in words, and what it does."""

    def describe(self) -> str:
        """What it does, in one sentence."""
        raise NotImplementedError

    def perform(self, job: Any) -> Restart | None:
        """Do it, in a run of the job that it is of; returns what the run is to begin again with, if it is."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """How JSON and logs call it: check_node."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def to_json(self) -> dict[str, Any]:
        return {"step": self.name, **asdict(self), "description": self.describe()}


@dataclass(frozen=True)
class Lock(Step):
    release: str
    wait: float

    def describe(self) -> str:
        wait = f", waiting {self.wait:g} seconds at most" if self.wait else ""
        return f"Take the lock of release {self.release}{wait}: one run at a time."

    def perform(self, job: Job) -> None:
        job.lock = job.lock_held.enter_context(job.store.lock(self.release, self.wait))


@dataclass(frozen=True)
class UpgradeLedger(Step):
    found: str | None
    needed: str

    def describe(self) -> str:
        if self.found == self.needed:
            return f"The ledger is at revision {self.found}: nothing to upgrade."
        return f"Bring the ledger from revision {self.found or 'none'} to {self.needed}."

    def perform(self, job: Job) -> None:
        lacks = job.plan.stopping
        try:
            job.store.upgrade()
            job.ledger_ready = True
        except QblockError as error:
            if not (lacks and denied(error)):
                raise
        if lacks:
            raise QblockError(missing_rights(lacks))


@dataclass(frozen=True)
class CheckPrivateState(Step):
    release: str
    joint: bool

    def describe(self) -> str:
        places = "published, kept or in the crosswalk" if self.joint else "published or kept"
        return (
            f"Check that the ledger knows every version of {self.release} that is {places}, and that no event of it is "
            "missing or altered; else refuse."
        )

    def perform(self, job: Job) -> None:
        # First: what another release left is not ours to settle, and what a move has not finished has its earlier name.
        job.settle_identity()
        marked = job.may_decide_nothing
        comparison = private_state.check(job.spec, job.store, job.target, joint=self.joint, marked=marked)
        job.marked = comparison.marked
        for note in private_state.notes(self.release, comparison):
            job.reporter.report(note)
            job.notes.append(note)
        job.state_known = True


@dataclass(frozen=True)
class ClearLeftovers(Step):
    release: str

    def describe(self) -> str:
        return f"Clean up after interrupted runs of {self.release}."

    def perform(self, job: Job) -> None:
        job.clear_leftovers()


@dataclass(frozen=True, eq=False)
class Plan:
    """What a job would do. current: the version that readers see now; next_version: the number of the next one; rights:
    those that an administrator must grant, where they were looked for."""

    spec: Spec
    store: Store
    target: Target
    steps: tuple[Step, ...]
    current: int | None
    notes: tuple[str, ...]
    next_version: int = 1
    rights: tuple[Right, ...] | None = None

    @property
    def stopping(self) -> tuple[Right, ...]:
        """Rights without which a run ends."""
        return tuple(right for right in self.rights or () if right.stops)

    @property
    def revision(self) -> str | None:
        """Of the ledger, before a run upgrades it; None where there is none."""
        return next(step.found for step in self.steps if isinstance(step, UpgradeLedger))

    @property
    def is_upgraded(self) -> bool:
        """Whether the ledger is at the revision of this program."""
        return self.revision == schema.revisions()[-1]

    def then(self, *more: Step) -> Plan:
        """The same with more steps at its end."""
        return replace(self, steps=(*self.steps, *more))

    @property
    def refused(self) -> list[str]:
        """Why a run would be refused now: private state that was lost or is older. Reads the ledger."""
        if not (self.revision is None or self.is_upgraded) or self.stopping:
            return []
        spec, store = self.spec, self.store
        comparison = private_state.compare(spec, store, self.target, joint=spec.checked_together)
        lost = private_state.refusal(store, spec.release, comparison.problems)
        return [f"a run would be refused: {lost}"] if comparison.problems else []

    def answer(self, notes: Sequence[str] = (), **more: Any) -> Planned:
        """The plan as an answer. notes, more: what else is known of a run of it."""
        rights = {} if self.rights is None else {"missing_rights": [right.to_json() for right in self.rights]}
        fields = {
            "release": self.spec.release,
            "view": self.target.view,
            "current_version": self.current,
            "notes": [*self.notes, *notes, *self.refused],
            "steps": [step.to_json() for step in self.steps],
            **rights,
            **{name: value for name, value in more.items() if value is not None},
        }
        return Planned.model_validate(fields)


def opening(spec: Spec, store: Store, wait: float, judge: bool, *, checked: bool = True, rights: bool = False) -> Plan:
    """The steps that every job begins with. judge: whether to compare the spec with the ledger, as a run does under the
    release's lock; checked: whether target and cohorts are; rights: whether those that are missing are looked for.

    Raises InputError for a target that cannot be used (inside the source, unknown reader), Refused for another source
    or view than the ledger has of the release, QblockError where the ledger's database cannot be reached.
    """
    with store:
        target = target_of(spec, store)
        # What a move has not finished yet has its earlier name.
        notes = [] if not checked or move.pending(spec, store) else target.check()
        if checked:
            check_cohorts(spec)
        has_roles = engine_of_place(spec).adapter.has_roles
        missing = (target.needs().missing if has_roles else ()) if rights else None
        stopping = any(right.stops for right in missing or ())
        try:
            revision, current, version = _ledger(spec, store)
        except QblockError as error:
            if not (stopping and denied(error)):
                raise
            revision, current, version = UNKNOWN, None, 1
        if judge and not stopping and revision in (None, schema.revisions()[-1]):
            identity = target.identity()
            private_state.check_identity(spec, store, identity)
            notes += roles.judge(spec, store, identity)
        steps = (
            Lock(spec.release, wait),
            UpgradeLedger(revision, schema.revisions()[-1]),
            CheckPrivateState(spec.release, spec.checked_together),
        )
        return Plan(spec, store, target, steps, current, tuple(notes), version, missing)


def _ledger(spec: Spec, store: Store) -> tuple[str | None, int | None, int]:
    """Revision, current and next version. An older ledger is read after its upgrade, by the release itself."""
    if not store.exists:
        return None, None, 1
    with store.opened(read_only=True) as connection:
        revision = schema.known_revision(connection)
        if revision != schema.revisions()[-1]:
            return revision, None, 1
        reader = LedgerReader(connection)
        return revision, reader.pointer(spec.release), reader.next_version(spec.release)


def models_named(spec: Spec) -> tuple[str, ...]:
    """The names of the models that a spec asks for."""
    return tuple(dict.fromkeys(requirement.model.name for requirement in spec.privacy))


class Job:
    """One run of a job on a release. id: as the ledger has it; lock_held: what is let go at its end; transaction: what
    is open in between; ledger_ready: failures can be recorded; identity_known: source and view are those of the
    release; state_known: ledger and versions know of each other; unchanged: nothing was to be done; published: readers
    see something else now. builds: whether it makes versions, which go with a run that fails; may_decide_nothing:
    whether it may end before it looks at people; marked: whether of these marks alone were compared
    (`compare_in_full`)."""

    identity: Identity
    lock: HeldLock
    builds = True
    may_decide_nothing = marked = False

    def __init__(self, plan: Plan, reporter: Reporter | None = None) -> None:
        self.plan = plan
        self.spec, self.store, self.target = plan.spec, plan.store, plan.target
        self.id = secrets.token_hex(8)
        self.reporter = (reporter or Reporter()).of_run(self.id, self.spec.release)
        self.notes = list(plan.notes)
        self.policy = policy_of(self.spec, self.store, self.id, self.notes)
        self.lock_held = ExitStack()
        self.transaction = ExitStack()
        self.ledger_ready = self.identity_known = self.state_known = self.unchanged = self.published = False
        self.started = time.monotonic()

    def perform(self) -> None:
        """Perform the steps of the plan in their order, until one finds that nothing is to be done.

        One that returns a Restart has the run begin again with the snapshot. Whatever is raised is recorded, once
        the ledger can be written and while nothing is published.
        """
        with drivers_translated(), self.store.running(), self.lock_held, names_of_a_run():
            try:
                left = list(self.plan.steps)
                while left and not self.unchanged:
                    self.reporter.begin(left[0])
                    with drivers_translated():
                        again = left[0].perform(self)
                    if again is None:
                        del left[0]
                    else:
                        self.restart(again)
                        names = [step.name for step in self.plan.steps]
                        left = list(self.plan.steps[names.index("snapshot") :])
            except BaseException as error:
                try:
                    # What is open is told why it is left: a database still at a statement is interrupted, not waited
                    # for.
                    self.transaction.__exit__(type(error), error, error.__traceback__)
                finally:
                    if self.ledger_ready and not self.published:
                        self.record_failure(error)
                raise
            finally:
                self.transaction.close()

    def restart(self, again: Restart) -> None:
        """Make ready for another snapshot."""
        self.reporter.report(str(again))
        self.transaction.close()
        self.policy.restart(again)

    def settle_identity(self) -> None:
        """Find source and view; raises Refused where the ledger has others under this name."""
        self.identity = self.target.identity()
        private_state.check_identity(self.spec, self.store, self.identity)
        move.finish(self.spec, self.store, self.target)
        self.identity_known = True

    def compare_in_full(self) -> None:
        """Before anything is decided: compare digests of private state where marks were compared. Raises Refused."""
        if self.marked:
            private_state.check(self.spec, self.store, self.target, joint=self.spec.checked_together)
            self.marked = False

    def clear_leftovers(self) -> None:
        """Refuse what readers may not hold beside each other, and settle what stopped runs have left."""
        self.notes += roles.judge(self.spec, self.store, self.identity)
        self.check_not_retired()
        self.settle_unfinished()

    def check_not_retired(self) -> None:
        """Raise Refused for a release that was retired; what a stopped run left of its view is taken away first."""
        with self.store.read() as reader:
            event = reader.retired_by(self.spec.release)
        if event is not None:
            self.target.unpublish()
            raise Refused(retired(self.spec.release, event))

    def settle_unfinished(self) -> None:
        """Under the release's lock: settle every version that no run has finished, and report what was done."""
        release, settled = self.spec.release, False
        with self.store.read() as reader:
            last = reader.last_events(release)
            guarantees = {v: reader.guarantees(release, e.number) for v, e in last.items()}
            published = reader.kept_versions(release)
        for version, event in last.items():
            if event.state not in UNFINISHED:
                continue
            settled, failed = True, {"state": "failed", "run": self.id}
            is_live = event.state == "checked" and self.target.is_live(version)
            with self.store.write() as connection:
                if is_live:
                    state = "rolled_back" if version in published else "published"
                    now = event.again(state=state, run=self.id, reason=None)
                    record(connection, now, guarantees[version])
                    set_pointer(connection, release, version)
                    said = "had been published when its run was stopped: recorded"
                elif version in published:
                    record(connection, event.again(**failed, reason="the run that rolled back to it was stopped"))
                    said = "had not been published again when its run was stopped: it stays"
                else:
                    record(connection, event.again(**failed, reason="the run that built it was stopped"))
                    forget_kept(connection, release, [version])
                    said = "had not been published when its run was stopped: cleared"
            self.reporter.report(f"version {version} {said}")
        for what in self.target.clear(self.kept_versions() if settled else published):
            self.reporter.report(f"removed {what}")

    def kept_versions(self) -> list[int]:
        """The versions that were published and not dropped since."""
        with self.store.read() as reader:
            return reader.kept_versions(self.spec.release)

    def record_failure(self, error: BaseException) -> None:
        """Record why a run ended without a publication, as far as that can be; the error itself is what is raised."""
        release, stopped = self.spec.release, not isinstance(error, Exception)
        with suppress(Exception):
            with self.store.read() as reader:
                last = reader.last_event(release)
            own = last if last is not None and last.run == self.id else None
            if own is not None and self._has_landed(own):
                return  # the next run records what has not been
            unfinished = own if own is not None and own.state in UNFINISHED else None
            event = Event(
                release=release,
                state="refused" if isinstance(error, Refused) else "failed",
                run=self.id,
                version=None if unfinished is None else unfinished.version,
                reason=_reason_of(error),
                **self.failure_columns(unfinished),
            )
            with self.store.write(SECONDS) as connection:
                record(connection, event)
                if event.version is not None and self.builds:
                    forget_kept(connection, release, [event.version])
            # What the ledger does not know is not a leftover.
            if self.builds and not stopped and self.state_known:
                self.target.clear(self.kept_versions())

    def failure_columns(self, unfinished: RecordedEvent | None) -> dict[str, Any]:
        """What else the event of a failure says. unfinished: the last event of the version that was begun."""
        columns: dict[str, Any] = {"joint": joint_check(self.spec)}
        if unfinished is not None:
            columns |= {"spec_digest": unfinished.spec_digest, "rows_source": unfinished.rows_source}
        return columns

    def _has_landed(self, event: RecordedEvent) -> bool:
        """Whether readers see the version of an event: on DuckDB a file may be in place before the ledger says so."""
        checked = event.state == "checked" and event.version is not None
        return event.state in PUBLISHING or (checked and self.target.is_live(event.version or 0))

    def said_published(self, version: int, *, again: bool = False) -> str | None:
        """What is said of a version that this run has published, however it ended; None where it has not.

        On DuckDB a file that was renamed into place is read, though the ledger says so only after the next run.
        """
        if not self.store.exists:
            return None
        # Also where a signal came in the middle of a transaction of this process.
        with self.store.opened(read_only=True, seconds=SECONDS) as connection:
            events = [e for e in LedgerReader(connection).history(self.spec.release) if e.version == version]
        own = [event for event in events if event.run == self.id]
        if not own:
            return None
        # What another run has made of it since comes after the last of our own.
        since = [*own, *(event for event in events if event.number > own[-1].number)]
        is_last = since[-1] is own[-1]
        if any(event.state in PUBLISHING for event in since) or (is_last and self._has_landed(own[-1])):
            return f"version {version} was published{' again' if again else ''}"
        return None


def retired(release: str, event: RecordedEvent) -> str:
    """The refusal for a release that was retired. event: which said so."""
    return (
        f"release {release} was retired on {event.recorded_at:%Y-%m-%d %H:%M} UTC and is not published; `qblock "
        "release SPEC --force` publishes it again"
    )


def _reason_of(error: BaseException) -> str:
    """What the ledger records about an error."""
    if isinstance(error, QblockError):
        return str(error)
    return "the run was stopped" if not isinstance(error, Exception) else f"internal error ({type(error).__name__})"
