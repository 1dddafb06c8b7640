"""A release that is decided and not made: it tells nobody but the private ledger what it came to.

What a run would come to depends on the values of people whom no version shows yet. Whoever could try it again and
again, with one person more or less, would read them off; so all that is said is that it was done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from qblock.engines.kept_sessions import kept_sessions
from qblock.errors import QblockError, Refused
from qblock.ledger.chain import record
from qblock.ledger.events import Event
from qblock.release.apply import CopyVersion, Publish, Recheck, Retire, plan
from qblock.release.job import Step
from qblock.release.run import Run
from qblock.results.release import DryRun
from qblock.spec import Spec
from qblock.versions.policy.common import Restart

NOT_MADE = (CopyVersion, Recheck, Publish, Retire)


@kept_sessions()
def dry_run(spec: Spec, *, wait: float = 0) -> DryRun:
    """Decide what a release would publish; stores one event of the ledger with the verdict, and says nothing of it.

    wait: seconds to wait for another run of the release. Raises what `release` raises, but for what a version would be
    refused for.
    """
    planned = plan(spec, wait=wait, judge=False)
    decided = tuple(step for step in planned.steps if not isinstance(step, NOT_MADE))
    run = _DryRun(replace(planned, steps=(*decided, RecordVerdict(spec.release))))
    run.policy.dry = True
    try:
        run.perform()
    except QblockError:
        if not run.told:
            raise
    return DryRun(release=spec.release, run=run.id, status="dry_run")


@dataclass(frozen=True)
class RecordVerdict(Step):
    release: str

    def describe(self) -> str:
        return f"Write the result of a run of {self.release} in the ledger alone, and say it nowhere else."

    def perform(self, run: _DryRun) -> None:
        run.tell(run.stays or f"version {run.version} would be published")


class _BeginsAgain(QblockError):
    """A run would settle something, and begin again."""


class _DryRun(Run):
    """stays: that the version would stay, in words; told: whether the ledger has what a run would come to."""

    stays = ""
    told = False

    def stay(self) -> None:
        self.stays = f"version {self.version} would stay"

    def restart(self, again: Restart) -> None:
        raise _BeginsAgain(str(again))

    def record_failure(self, error: BaseException) -> None:
        if isinstance(error, Refused) and self.state_known:
            self.tell(f"a run would be refused: {error}")
        elif isinstance(error, _BeginsAgain):
            self.tell(f"a run would begin again: {error}")
        else:
            super().record_failure(error)

    def tell(self, reason: str) -> None:
        event = Event(release=self.spec.release, state="dry_run", run=self.id, detail=self.policy.detail, reason=reason)
        with self.store.write() as connection:
            record(connection, event)
        self.told = True
