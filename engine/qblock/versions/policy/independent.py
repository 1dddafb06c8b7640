"""Null policy: versions are not checked against each other."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.errors import Refused
from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.admission import Admission, ShownState
from qblock.versions.crosswalk import has_crosswalk, open_crosswalk
from qblock.versions.gate import Verdict
from qblock.versions.policy.common import Reopen, Restart
from qblock.versions.withdrawals import withdrawn


class Independent:
    """Nobody waits, and everybody in the source is let in; but for a release from which people have withdrawn."""

    def __init__(self, spec: Spec, store: Store) -> None:
        self.spec, self.store = spec, store
        self.dry = self.forced = False
        self.admission: Admission | ShownState | None = None
        self.inherited: RecordedEvent | None = None
        self.detail: dict[str, Any] = {}
        self.verdict: Verdict | None = None
        self.since: Sequence[Mapping[str, int]] = ()

    def begin(self, current: RecordedEvent | None, shown: Collection[int]) -> Spec:
        if has_crosswalk(self.store):
            with open_crosswalk(self.store) as crosswalk:
                gone = len(withdrawn(crosswalk, self.spec.release))
            if gone:
                raise Refused(
                    f"{gone} people have withdrawn from release {self.spec.release}, and without `entity`, or with "
                    "`versions: {joint: none}`, they would be shown again; nothing is published. "
                    "Write `entity` and `versions` as they were"
                )
        return self.spec

    def admit(self, source: SourceTable, reopen: Reopen) -> SourceTable:
        self.detail = {"quarantined": source.quarantined} if source.quarantined else {}
        return source

    def check(self, *candidate: object) -> Restart | None:
        return None

    def after_refusal(self) -> str:
        return ""

    def lag(self) -> dict[str, Any]:
        return {}

    def check_types(self, session: Session, columns: Mapping[str, Column]) -> None:
        pass

    def restart(self, again: Restart) -> None:
        pass

    def stays(self, version: int) -> None:
        pass
