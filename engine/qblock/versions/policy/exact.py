"""Exact policy: each version shows the source as it is, or is refused (`on_refusal: refuse`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from qblock.blocks import Reference
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.admission import Admission, ShownState, check_known_types
from qblock.versions.crosswalk import Crosswalk, open_crosswalk
from qblock.versions.explanation import refusal
from qblock.versions.gate import Verdict, check, members_of
from qblock.versions.pending.state import set_down
from qblock.versions.policy import common
from qblock.versions.policy.common import Reopen, Restart, TogetherRefused
from qblock.versions.recorded import Candidate, identified, recorded
from qblock.versions.withdrawals import NOBODY, Batch, failed

STAY_IN = (
    "the batch of {} people who withdrew fails, so they stay in: it would reveal the values of its leavers or of "
    "those who stay. They can leave with their whole joint cells: `qblock erase SPEC ENTITY... --now`"
)
DOUBTED = "with the {} people who withdraw the versions fail together: tried again without them"


class Exact:
    """leaving: who leaves with this version; doubted: the batch of people who withdrew that this attempt is without;
    verdict: of the check that passed."""

    def __init__(self, spec: Spec, store: Store, run: str, notes: list[str]) -> None:
        self.spec, self.store, self.run, self.notes = spec, store, run, notes
        self.dry = self.forced = False
        self.admission: Admission | ShownState | None = None
        self.inherited: RecordedEvent | None = None
        self.detail: dict[str, Any] = {}
        self.leaving = NOBODY
        self.doubted: Batch | None = None
        self.verdict: Verdict | None = None
        self.since: Sequence[Mapping[str, int]] = ()

    def begin(self, current: RecordedEvent | None, shown: Collection[int]) -> Spec:
        # With the quasi-identifiers of the first publication; moves wait.
        self.admission = Admission(self.spec, self.store, shown=tuple(shown))
        return self.spec

    def check_types(self, session: Session, columns: Mapping[str, Column]) -> None:
        assert isinstance(self.admission, Admission)
        with open_crosswalk(self.store, session, read_only=True) as crosswalk:
            own = recorded(crosswalk, self.spec.release)
            check_known_types(self.spec, own, columns, self.admission.shown or ())

    def admit(self, source: SourceTable, reopen: Reopen) -> SourceTable:
        assert isinstance(self.admission, Admission)
        admitted = common.admit(self.store, source, self.admission, reopen, doubted=self.doubted is not None)
        self.admission, self.leaving, self.detail = admitted.admission, admitted.leaving, {**admitted.detail}
        return admitted.source

    def check(
        self,
        task: Task,
        chosen: Assessment,
        references: Sequence[Sequence[Reference]],
        version: int,
        shown: Collection[int],
        reserve: Callable[[int], str],
    ) -> Restart | None:
        session = task.source.session
        with open_crosswalk(self.store, session, read_only=self.dry) as crosswalk, identified(crosswalk, task) as task:
            proposed = common.propose(crosswalk, self.store, task, chosen, version, shown)
            verdict = check(crosswalk, self.spec, references, proposed)
            common.note_edits(crosswalk, self.spec, proposed, self.notes)
            if not verdict.passed:
                again = self._without_leavers(crosswalk, proposed, verdict)
                if again is None:
                    raise TogetherRefused(refusal(crosswalk, task, proposed, verdict))
                return again
            if self.dry:
                return None
            common.record_passed(crosswalk, task.source, proposed, self.leaving, reserve)
            self._condemn_doubted(crosswalk, proposed.about.key.version)
            # What was shown is the source now: a state from which versions lagged holds no more, but for frozen cells.
            set_down(crosswalk, self.spec.release)
        self.verdict = verdict
        return None

    def _without_leavers(self, crosswalk: Crosswalk, candidate: Candidate, verdict: Verdict) -> Restart | None:
        """A version that failed may pass without those who leave; None where it is refused."""
        spec, leaving = self.spec, self.leaving
        if not leaving.members:
            return None
        query = members_of(crosswalk, spec, verdict, candidate)
        failing = set(crosswalk.column(query))
        if not failing:
            return None
        # Whoever has left is in no row of the candidate: that their cell fails is told by the episode that ended.
        if failing & set(leaving.members):
            version = candidate.about.key.version
            return Restart(STAY_IN.format(len(leaving.members)), lambda own: failed(own, spec, leaving, version))
        # Those who stay fail, for the batch or for another reason: without the batch it will show.
        return Restart(DOUBTED.format(len(leaving.members)), lambda own: None, leaving)

    def after_refusal(self) -> str:
        return ""

    def restart(self, again: Restart) -> None:
        self.notes.append(str(again))
        self.doubted = again.doubted or self.doubted
        with open_crosswalk(self.store) as crosswalk:
            again.settle(crosswalk)

    def stays(self, version: int) -> None:
        if self.doubted is not None:
            with open_crosswalk(self.store) as crosswalk:
                self._condemn_doubted(crosswalk, version)

    def _condemn_doubted(self, crosswalk: Crosswalk, version: int) -> None:
        """Without the batch that was doubted the versions pass together: so the batch is what failed."""
        if self.doubted is not None:
            failed(crosswalk, self.spec, self.doubted, version)
            self.notes.append(STAY_IN.format(len(self.doubted.members)))

    def lag(self) -> dict[str, Any]:
        return {}
