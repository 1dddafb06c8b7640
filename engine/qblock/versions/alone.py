"""What a run does about earlier versions where they are not checked together: the same words, and next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from qblock.blocks import Reference
from qblock.errors import Refused
from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions import withdrawals
from qblock.versions.admission import Admission
from qblock.versions.crosswalk import has_crosswalk, open_crosswalk
from qblock.versions.waiting import StartOver
from qblock.warehouse.protocol import Column, Session

WAITS = {
    "newcomers_waiting": "newcomers",
    "leavers_waiting": "leavers",
    "changes_waiting": "changes",
    "moves_waiting": "moves",
    "leaving_waiting": "withdrawals",
    "quarantined": "uncovered",
    "present_out": "out",
}
"""What a result calls those who wait, by their names in the ledger."""


class NotJoint:
    """Versions are not checked together: nobody waits, and everybody in the source is let in.

    admission: who is in the snapshot, None for everybody; inherited: the event of the version whose node is kept; dry:
    whether nothing is to be kept of what is decided; forced: whether what would not be tried again is; detail: counts
    for the private ledger; notes: those of the run, to which this adds.
    """

    together = False
    dry = forced = False
    admission: Admission | None = None
    inherited: RecordedEvent | None = None

    def __init__(self, spec: Spec, place: Store, run: str, notes: list[str]) -> None:
        self.spec, self.place, self.run, self.notes = spec, place, run, notes
        self.detail: dict[str, int] = {}

    def make_ready(self) -> None:
        """Make the crosswalk where it is missing, before the snapshot, which would not see it otherwise."""

    def settle_leaving(self) -> None:
        """Record who has left with a version that is published, in the crosswalk and as an event of the ledger."""

    def discard_unseen(self, shown: Collection[int]) -> None:
        """Take out of the crosswalk what an earlier run recorded and never showed. shown: versions readers saw."""

    def check_withdrawn(self) -> None:
        """Raise Refused where people have withdrawn, and the spec would have them shown again."""
        if not has_crosswalk(self.place):
            return
        with open_crosswalk(self.place) as crosswalk:
            gone = len(withdrawals.withdrawn(crosswalk, self.spec.release))
        if gone:
            raise Refused(
                f"{gone} people have withdrawn from release {self.spec.release}, and without `entity`, or with "
                "`versions: {joint: none}`, they would be shown again; nothing is published. "
                "Write `entity` and `versions` as they were"
            )

    def check_known(self, shown: Collection[int]) -> None:
        """Raise what `check` would for versions that no crosswalk knows, before anything of the source is read."""

    def check_comparable(self) -> None:
        """Raise what `check` would for a spec that cannot be compared with what the crosswalk has; after `begin`."""

    def check_types(self, session: Session, columns: Mapping[str, Column]) -> None:
        """Raise Refused for columns whose types are not those of the newest version; after `begin`."""

    def begin(self, current: RecordedEvent | None, shown: Collection[int]) -> Spec:
        """Begin with a snapshot; the spec in force. current: the version that readers see; shown: all they ever saw."""
        return self.spec

    def let_in(self, source: SourceTable) -> Admission | None:
        """Whom of the source to open again, where some wait or leave; None where it is to be used as it is."""
        return None

    def settled(self, source: SourceTable) -> SourceTable:
        """The source with the quantities of the whole table that its models are to use."""
        return source

    def opened(self, source: SourceTable) -> None:
        """Count who waits, once the source is opened for good."""
        self.detail = {"quarantined": source.quarantined} if source.quarantined else {}

    def waits(self) -> dict[str, int]:
        """How many the version that readers see does not show as the source has them, by why (WAITS)."""
        return {word: self.detail[name] for name, word in WAITS.items() if name in self.detail}

    def lag(self) -> dict[str, Any]:
        """How far the view lags behind the source (`release.result`); empty where it shows the source as it is."""
        return {}

    def check(
        self,
        task: Task,
        chosen: Assessment,
        references: Sequence[Sequence[Reference]],
        version: int,
        shown: Collection[int],
        begin: Callable[[int], str],
    ) -> None:
        """Check a node together with all that was ever shown, and record it in the crosswalk when it passes.

        Recorded before anything is staged, so that nothing is ever shown that is not in it. version: the next one's
        number; begin: writes the version down under its number before the crosswalk is touched, and gives its stamp.
        Raises Refused, saying how many cells fail and why, never whose, and StartOver.
        """

    def refused(self) -> str:
        """A version was refused for its values; what follows from that, in words."""
        return ""

    def unchanged(self, version: int) -> None:
        """Readers see this version already, which has passed."""

    def still_complete(self, session: Session) -> bool:
        """Whether no other release of the audience recorded a version since the check, asked when publishing."""
        return True

    def start_over(self, again: StartOver) -> None:
        """Begin again: what a check has told outlasts the run, whatever becomes of it."""

    def showing_withdrawn(self) -> list[int]:
        """The versions still kept that show people who have left since, except the one that readers see."""
        return []
