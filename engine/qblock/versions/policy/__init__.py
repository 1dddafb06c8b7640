"""Which part earlier versions have in the runs of a release: one of three policies, by its spec.

`Independent`: versions are not checked together. `Exact`: each version shows the source as it is, and is refused where
it fails together with those before. `Batched`, the steady job: versions lag behind the source, in batches that pass.
They share functions (`policy.common`) and nothing else. A run asks whichever it is the same things (`VersionPolicy`);
what goes before and after is the same for all whose versions are checked together, and functions of `common`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from qblock.blocks import Reference
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.errors import InputError
from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.search.assessment import Assessment
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.admission import Admission, ShownState
from qblock.versions.gate import Verdict
from qblock.versions.policy.batched import Batched
from qblock.versions.policy.common import Reopen, Restart
from qblock.versions.policy.exact import Exact
from qblock.versions.policy.independent import Independent


class VersionPolicy(Protocol):
    """What a run of a release asks about its earlier versions, in this order.

    admission: who is in the snapshot, None for everybody; inherited: the event of the version whose node is kept; dry:
    whether nothing is to be kept of what is decided; forced: whether what would not be tried again is; detail: counts
    for the private ledger; verdict: of the check that passed; since: of each quasi-identifier the version that first
    showed each label, where versions lag. Notes go to those of the run.
    """

    admission: Admission | ShownState | None
    inherited: RecordedEvent | None
    dry: bool
    forced: bool
    detail: dict[str, Any]
    verdict: Verdict | None
    since: Sequence[Mapping[str, int]]

    def begin(self, current: RecordedEvent | None, shown: Collection[int]) -> Spec:
        """Begin with a snapshot; the spec in force. current: the version that readers see; shown: all they ever saw."""

    def check_types(self, session: Session, columns: Mapping[str, Column]) -> None:
        """Raise Refused for columns whose types are not those of the newest version; after `begin`."""

    def admit(self, source: SourceTable, reopen: Reopen) -> SourceTable:
        """The source as the next version is made of it. source: opened by `admission`; reopen: opens it by another."""

    def check(
        self,
        task: Task,
        chosen: Assessment,
        references: Sequence[Sequence[Reference]],
        version: int,
        shown: Collection[int],
        reserve: Callable[[int], str],
    ) -> Restart | None:
        """Check a node together with all that was ever shown, and record it in the crosswalk when it passes.

        Recorded before anything is staged, so that nothing is ever shown that is not in it. version: the next one's
        number; reserve: writes the version down under its number before the crosswalk is touched, and gives its stamp.
        Returns what to begin again with, where others are to be shown. Raises Refused, saying how many cells fail and
        why, never whose.
        """

    def after_refusal(self) -> str:
        """A version was refused for its values; what follows from that, in words."""

    def restart(self, again: Restart) -> None:
        """Begin again: what a check has told outlasts the run, whatever becomes of it."""

    def stays(self, version: int) -> None:
        """Readers see this version already, which has passed."""

    def lag(self) -> dict[str, Any]:
        """How far the view lags behind the source (`release.result`); empty where it shows the source as it is."""


def policy_of(spec: Spec, store: Store, run: str, notes: list[str]) -> VersionPolicy:
    """The policy of a release in a run. notes: of the run, to which its own are added."""
    if not spec.checked_together:
        return Independent(spec, store)
    if spec.bundles and spec.on_refusal != "hold_back":
        raise InputError(
            f"{spec.at('versions', 'on_refusal')}: where people have several rows (`count: entities`) later "
            "versions lag behind the source (hold_back); leave on_refusal out, or write `versions: {joint: none}`"
        )
    if spec.bundles and spec.versions.audience:
        raise InputError(
            f"{spec.at('versions', 'audience')}: releases of people with several rows (`count: entities`) are "
            "not checked together with other ones; leave them out, or write `versions: {joint: none}`"
        )
    return (Batched if spec.on_refusal == "hold_back" else Exact)(spec, store, run, notes)
