"""The part that versions checked together have in one run: who is let in, the verdict, and what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from qblock.blocks import Reference
from qblock.errors import Refused
from qblock.ledger.chain import record as record_event
from qblock.ledger.events import PUBLISHING, Event, RecordedEvent
from qblock.ledger.stamps import written
from qblock.ledger.store import Store
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions import withdrawals
from qblock.versions.admission import Admission, check_known_types, freeze
from qblock.versions.alone import NotJoint
from qblock.versions.audience import check_audience
from qblock.versions.conversion import owed, settle
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, prepare
from qblock.versions.explanation import changed_values, explanation, moved_by_edits, refusal
from qblock.versions.gate import Verdict, check, check_models, members, unchanged
from qblock.versions.people import leavers_way_on
from qblock.versions.recorded import (
    ONLY_UNPROTECTED,
    Candidate,
    candidate,
    discard,
    least_rows,
    published_node,
    record,
    recorded,
)
from qblock.versions.stuck import set_down
from qblock.versions.waiting import NOBODY, STAY_IN, StartOver, Waiting, start_over, waiting_at
from qblock.versions.withdrawals import Batch, failed, left
from qblock.warehouse.protocol import Column, Session


class TogetherRefused(Refused):
    """A version passes alone and fails together with those before it."""


class JointVersions(NotJoint):
    """Versions are checked together. waiting: who waits and who leaves with this one; doubted: the batch of people
    who withdrew that this attempt is without; verdict: of the check that passed; least: the number of the version of
    the attempt before."""

    together = True

    def __init__(self, spec: Spec, place: Store, run: str, notes: list[str]) -> None:
        super().__init__(spec, place, run, notes)
        self.least = 0
        self.waiting: Waiting | None = None
        self.doubted: Batch | None = None
        self.verdict: Verdict | None = None

    def make_ready(self) -> None:
        prepare(self.place)

    def settle_leaving(self) -> None:
        # Also what a change of the key that was killed has not yet recorded in the ledger.
        release = self.spec.release
        with open_crosswalk(self.place) as crosswalk:
            anybody = withdrawals.anybody_leaving(crosswalk, release)
            owing = owed(crosswalk, release)
        if owing:
            settle(self.place, release)
        if not anybody:
            return
        with self.place.read() as reader:
            published = {e.version for e in reader.history(release) if e.state in PUBLISHING and e.version}
        with open_crosswalk(self.place) as crosswalk:
            people = withdrawals.settle_leaving(crosswalk, self.spec, published)
        if people:
            record_erasure(self.place, release, self.run, {"people": people})

    def discard_unseen(self, shown: Collection[int]) -> None:
        with open_crosswalk(self.place) as crosswalk:
            unseen = [version for version in recorded(crosswalk, self.spec.release) if version.key.version not in shown]
        if not unseen:
            return
        # If the ledger recorded it; before the snapshot, and in a transaction of its own:
        # the version that this run records may have the same number.
        known = written(self.place, self.spec.release)
        with open_crosswalk(self.place) as crosswalk:
            for version in unseen:
                if known.wrote(version.key.version, version.stamp):
                    discard(crosswalk, version.key)

    def check_withdrawn(self) -> None:
        pass

    def check_known(self, shown: Collection[int]) -> None:
        with open_crosswalk(self.place) as crosswalk:
            known = recorded(crosswalk)
            check_audience(crosswalk, self.spec, self.place)
            own = {version.key.version for version in known if version.key.release == self.spec.release}
            _check_recorded(self.spec, self.place, shown, own)

    def check_comparable(self) -> None:
        with open_crosswalk(self.place) as crosswalk:
            if members(self.spec, recorded(crosswalk)):
                check_models(self.spec)

    def check_types(self, session: Session, columns: Mapping[str, Column]) -> None:
        assert self.admission is not None
        with open_crosswalk(self.place, session, read_only=True) as crosswalk:
            check_known_types(self.spec, recorded(crosswalk, self.spec.release), columns, self.admission.shown or ())
            self._check_shown(crosswalk, columns)

    def _check_shown(self, crosswalk: Crosswalk, columns: Mapping[str, Column]) -> None:
        """Raise Refused where a column cannot hold what is shown of it by versions that lag."""

    def begin(self, current: RecordedEvent | None, shown: Collection[int]) -> Spec:
        self.waiting = None
        # With the quasi-identifiers of the first publication; moves wait.
        self.admission = Admission(self.spec, self.place, shown=tuple(shown))
        return self.spec

    def let_in(self, source: SourceTable) -> Admission | None:
        assert self.admission is not None
        with open_crosswalk(self.place, source.session) as crosswalk:
            shown = published_node(crosswalk, self.spec)
            node = source.spec.pinned if source.spec.pinned is not None else shown
            if shown is None or node is None:
                return None
            self.waiting = waiting_at(crosswalk, source, node, self.doubted is not None)
        if self.waiting is None:
            return None
        self.admission = Admission(
            self.spec,
            self.place,
            leaving=self.waiting.leaving.members,
            shown=self.admission.shown,
        )
        return self.admission

    def opened(self, source: SourceTable) -> None:
        assert self.admission is not None
        figures = {"quarantined": self.waiting.quarantined if self.waiting else source.quarantined}
        figures |= {"moves_waiting": self.admission.moves(source.session)}
        figures |= self.waiting.counts if self.waiting else {}
        self.detail = {name: n for name, n in figures.items() if n}

    def check(
        self,
        task: Task,
        chosen: Assessment,
        references: Sequence[Sequence[Reference]],
        version: int,
        shown: Collection[int],
        begin: Callable[[int], str],
    ) -> None:
        spec = self.spec
        with open_crosswalk(self.place, task.source.session) as crosswalk:
            known = [earlier.key.version for earlier in recorded(crosswalk, spec.release)]
            # A dry run has not discarded what no reader was shown (discard_unseen).
            version = self.least = max([version, *(number + 1 for number in known if number not in shown)])
            check_audience(crosswalk, spec, self.place)
            _check_recorded(spec, self.place, shown, known)
            proposed = candidate(crosswalk, task, chosen, version)
            self._compared(crosswalk, proposed)
            verdict = check(crosswalk, spec, references, proposed)
            self._note_edits(crosswalk, proposed)
            if not verdict.passed:
                again = self._again(crosswalk, proposed, verdict, version, shown)
                if again is not None:
                    raise again
                # Bounds on bundles are not known.
                lines = [] if spec.bundles else self._why(crosswalk, task, proposed)
                leavers = leavers_way_on(crosswalk, spec, proposed)
                of_map = task.source.recoding is not None
                changed = changed_values(crosswalk, spec, proposed) if verdict.mode == "linked" else None
                raise TogetherRefused(refusal(verdict, lines, changed, leavers, by_rows=spec.by_rows, of_map=of_map))
            if self.dry:
                return
            record(crosswalk, proposed, begin(version))
            # Those who leave are in no version from this one on.
            left(crosswalk, spec, self.waiting.leaving if self.waiting else NOBODY, proposed)
            self._condemn_doubted(crosswalk, version)
            if not spec.bundles:
                freeze(crosswalk, task.source, proposed)
            self._recorded(crosswalk, task.source, proposed)
        self.verdict = verdict

    def _why(self, crosswalk: Crosswalk, task: Task, candidate: Candidate) -> list[str]:
        least = least_rows(self.spec.privacy)
        return list(explanation(crosswalk, self.spec, task.source.hierarchies, least, candidate).lines())

    def _again(
        self, crosswalk: Crosswalk, candidate: Candidate, verdict: Verdict, version: int, shown: Collection[int]
    ) -> StartOver | None:
        """Without whom a version that failed may pass; None where that is nobody."""
        return start_over(crosswalk, self.spec, self.waiting, verdict, candidate, version) if self.waiting else None

    def _compared(self, crosswalk: Crosswalk, candidate: Candidate) -> None:
        """Raise StartOver where a candidate is not what was decided."""

    def _recorded(self, crosswalk: Crosswalk, source: SourceTable, candidate: Candidate) -> None:
        """What else is kept of a version that passed, with its record.

        What was shown is the source now: a state from which versions lagged holds no more, but for its frozen cells.
        """
        set_down(crosswalk, self.spec.release)

    def unchanged(self, version: int) -> None:
        if self.doubted is not None:
            with open_crosswalk(self.place) as crosswalk:
                self._condemn_doubted(crosswalk, version)

    def still_complete(self, session: Session) -> bool:
        if self.verdict is None:
            return True
        with open_crosswalk(self.place, session) as crosswalk:
            return unchanged(crosswalk, self.spec, self.verdict)

    def start_over(self, again: StartOver) -> None:
        self.notes.append(str(again))
        self.waiting = None
        self.doubted = again.doubted or self.doubted
        with open_crosswalk(self.place) as crosswalk:
            again.settle(crosswalk)

    def showing_withdrawn(self) -> list[int]:
        with open_crosswalk(self.place) as crosswalk:
            showing = withdrawals.showing_withdrawn(crosswalk, self.spec.release)
        if not showing:
            return []
        with self.place.read() as reader:
            kept = reader.kept_versions(self.spec.release)
            current = reader.pointer(self.spec.release)
        return [v for v in showing if v in kept and v != current]

    def _note_edits(self, crosswalk: Crosswalk, candidate: Candidate) -> None:
        changed, people = moved_by_edits(crosswalk, self.spec, candidate)
        if changed:
            moved = (
                f"{people} people are shown under another label" if people else "it changes nobody's label at this node"
            )
            note = f"the hierarchy of {', '.join(changed)} is not that of the previous version: {moved}"
            self.notes[:] = [*(n for n in self.notes if n != note), note]

    def _condemn_doubted(self, crosswalk: Crosswalk, version: int) -> None:
        """Without the batch that was doubted the versions pass together: so the batch is what failed."""
        if self.doubted is not None:
            failed(crosswalk, self.spec, self.doubted, version)
            self.notes.append(STAY_IN.format(len(self.doubted.members)))


def record_erasure(place: Store, release: str, run: str, people: Mapping[str, int]) -> None:
    """Write in the ledger that people have left, and that copies cannot be recalled."""
    event = Event(release=release, state="erased", run=run, detail=people, reason=withdrawals.NOT_RECALLED)
    with place.write() as connection:
        record_event(connection, event)


def _check_recorded(spec: Spec, place: Store, shown: Collection[int], inside: Collection[int]) -> None:
    missing = set(shown) - set(inside)
    if not missing:
        return
    first, known = min(missing), written(place, spec.release)
    since = "" if first in known.shown and known.shown[first].stamp else ", or it was lost"
    raise Refused(
        f"version {first} of release {spec.release} was published without a crosswalk (without `entity`, or with "
        f"`versions: {{joint: none}}`){since}, so no later version can be checked together with it; nothing is "
        f"published. {ONLY_UNPROTECTED}"
    )
