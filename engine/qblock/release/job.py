"""What every run of a job knows, whichever job it is, and how the steps of its plan are performed."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from qblock.ledger.store import HeldLock, Store
from qblock.publish.targets import Identity, Target
from qblock.release import move, private_state, steps
from qblock.release.identity import check_identity
from qblock.release.log import Reporter
from qblock.spec import Spec
from qblock.versions.crosswalk import names_of_a_run
from qblock.versions.policies import joint_versions
from qblock.versions.waiting import StartOver


class Job:
    """One run of a job on a release. id: as the ledger has it; lock_held: what is let go at its end; transaction: what
    is open in between; ledger_ready: failures can be recorded; identity_known: source and view are those of the
    release; state_known: ledger and versions know of each other; unchanged: nothing was to be done; published: readers
    see something else now."""

    identity: Identity
    lock: HeldLock

    def __init__(
        self,
        spec: Spec,
        place: Store,
        target: Target,
        notes: Sequence[str] = (),
        reporter: Reporter | None = None,
    ) -> None:
        self.spec, self.place, self.target = spec, place, target
        self.id = secrets.token_hex(8)
        self.reporter = (reporter or Reporter()).of_run(self.id, spec.release)
        self.notes = list(notes)
        self.joint = joint_versions(spec, place, self.id, self.notes)
        self.lock_held = ExitStack()
        self.transaction = ExitStack()
        self.ledger_ready = self.identity_known = self.state_known = self.unchanged = self.published = False
        self.started = time.monotonic()


AnyJob = TypeVar("AnyJob", bound=Job)
Perform = Mapping[type[steps.Step], Callable[[AnyJob, Any], None]]
"""What is done for a step."""


def run_steps(
    job: AnyJob,
    todo: Sequence[steps.Step],
    perform: Perform[AnyJob],
    record_failure: Callable[[AnyJob, BaseException], None],
) -> None:
    """Perform steps in their order, until one finds that nothing is to be done.

    One that raises StartOver has the run begin again with the snapshot. record_failure: told of whatever else is
    raised, once the ledger can be written and while nothing is published.
    """
    with job.place.running(), job.lock_held, names_of_a_run():
        try:
            left = list(todo)
            while left and not job.unchanged:
                job.reporter.begin(left[0])
                try:
                    perform[type(left[0])](job, left[0])
                except StartOver as again:
                    job.reporter.report(str(again))
                    job.transaction.close()
                    job.joint.start_over(again)
                    left = list(todo[[type(step) for step in todo].index(steps.Snapshot) :])
                else:
                    del left[0]
        except BaseException as error:
            try:
                # What is open is told why it is left: a database still at a statement is interrupted, not waited for.
                job.transaction.__exit__(type(error), error, error.__traceback__)
            finally:
                if job.ledger_ready and not job.published:
                    record_failure(job, error)
            raise
        finally:
            job.transaction.close()


def take_lock(job: Job, step: steps.Lock) -> None:
    job.lock = job.lock_held.enter_context(job.place.lock(step.release, step.wait))


def upgrade(job: Job, _: steps.UpgradeLedger) -> None:
    job.place.upgrade()
    job.ledger_ready = True


def check_private_state(job: Job, step: steps.CheckPrivateState) -> None:
    # First: what another release left is not ours to settle, and what a move has not finished has its earlier name.
    settle_identity(job)
    for note in private_state.check(job.spec, job.place, job.target, joint=step.joint):
        job.reporter.report(note)
        job.notes.append(note)
    job.state_known = True


def settle_identity(job: Job) -> None:
    """Find source and view; raises Refused where the ledger has others under this name."""
    job.identity = job.target.identity()
    check_identity(job.spec, job.place, job.identity)
    move.finish(job.spec, job.place, job.target)
    job.identity_known = True


OPENING: dict[type[steps.Step], Callable[[Any, Any], None]] = {
    steps.Lock: take_lock,
    steps.UpgradeLedger: upgrade,
    steps.CheckPrivateState: check_private_state,
}
"""What every job begins with."""
