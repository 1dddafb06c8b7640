"""What a run of the release job knows so far, and the events that it records."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Literal

import sqlalchemy as sa

from qblock.joint.admission import Admission
from qblock.joint.gate import Verdict
from qblock.joint.withdrawals import Batch
from qblock.ledger.events import PUBLISHING, Choice, Event, Guarantee, RecordedEvent, State, canonical
from qblock.ledger.kept import Kept, forget_kept, kept_digest, write_kept
from qblock.ledger.lock import HeldLock
from qblock.ledger.reader import LedgerReader, ledger_reader
from qblock.ledger.writer import record, set_pointer
from qblock.models import Tightest
from qblock.publish.copy import Copy
from qblock.publish.digest import content_digest
from qblock.publish.recheck import Counted
from qblock.publish.targets import Checked, Record, new_stamp
from qblock.release import move, roles, stamps
from qblock.release.identity import Identity, check_identity, identity_of
from qblock.release.log import Entries, Telling
from qblock.release.plan import Plan
from qblock.release.result import ReleaseResult
from qblock.release.waiting import Waiting
from qblock.search import Progress
from qblock.search.answer import requirements_json
from qblock.search.run import SearchResult
from qblock.search.task import Assessment, Task
from qblock.spec import same_spec, spec_digest

NOT_JOINT = (
    "versions of this release are not protected together: whoever keeps several of them may learn more than each one "
    "guarantees (versions.joint: none)"
)
NOT_PROTECTED = (
    "every guarantee of the table itself holds, but the choice of its node is not protected against an attacker who "
    "knows the search: seeing this node (or what was suppressed), they learn that others failed, which says something "
    "of the sensitive values; pin the node, or search with choose_from: sizes and without suppression"
)

SEARCH_FIGURES = ("nodes_total", "nodes_evaluated", "queries", "strategy", "satisfying", "minimal", "seconds", "why")
"""What a result says of the search."""


class Run:
    """The state of one run; steps fill it in the order of the plan."""

    task: Task
    found: SearchResult
    chosen: Assessment
    labels: list[dict[str, int]]
    copy: Copy
    kept: Kept
    digest: str
    version: int
    lock: HeldLock
    checked: Checked
    published_digests: dict[int, str | None]
    identity: Identity
    admission: Admission | None = None

    def __init__(
        self,
        plan: Plan,
        progress: Progress | None = None,
        log: Callable[[str], None] | None = None,
        entries: Entries | None = None,
    ) -> None:
        self.spec, self.place, self.target = plan.spec, plan.place, plan.target
        self.id = secrets.token_hex(8)
        self.stamp = new_stamp()
        self.say = Telling(self.id, self.spec.release, log, entries)
        self.progress = progress
        self.lock_held = ExitStack()
        self.transaction = ExitStack()
        self.ledger_ready = self.unchanged = self.published = self.begun = self.state_known = False
        self.recheck: Counted | None = None
        self.together: Verdict | None = None
        self.waiting: Waiting | None = None
        self.doubted: Batch | None = None
        self.current: RecordedEvent | None = None
        self.inherited: RecordedEvent | None = None
        self.fell_back = self.force = False
        self.confirmed: str | None = None
        self.detail: dict[str, int] = {}
        self.notes = list(plan.notes)
        self.started = time.monotonic()

    def settle_identity(self) -> None:
        """Find source and view; raises Refused where the ledger has others under this name."""
        self.identity = identity_of(self.spec, self.place, self.target)
        check_identity(self.spec, self.place, self.identity)
        move.finish(self.spec, self.place, self.target)

    def read_ledger(self) -> None:
        """The version that readers see, all that were ever published, and the number of the next one."""
        release = self.spec.release
        with ledger_reader(self.place) as reader:
            current = reader.current(release)
            events = reader.history(release)
            self.version = reader.next_version(release)
            self.pointer_problems = reader.verify_pointer(release)
        self.current = current.event if current else None
        self.published_digests = {
            e.version: e.content_digest for e in events if e.state in PUBLISHING and e.version is not None
        }

    def nothing_changed(self) -> bool:
        """Whether readers already see this data under this spec; `version` is that one then."""
        event = self.current
        digest, kept = self.as_recorded()
        same = (
            event is not None
            and not self.pointer_problems
            and event.version is not None
            and same_spec(self.spec, event.spec_digest)
            and event.hierarchy_digest == self.hierarchy_digest
            and event.content_digest == digest
            and event.reference_digest == kept_digest(kept.text())
            and (event.target == self.identity.target or (event.target is None and event.view == self.target.view))
            and self.target.intact(event.version, self.copy.columns)
        )
        if same and event is not None and event.version is not None:
            self.version = event.version
            self.digest = digest
        return same

    def as_recorded(self) -> tuple[str, Kept]:
        """Digest and quantities of the copy in the text form of the version that readers see, which may be older."""
        event = self.current
        if event is None or event.version is None:
            return self.digest, self.kept
        with ledger_reader(self.place) as reader:
            text = reader.reference(self.spec.release, event.version)
        if text is None or kept_digest(text) != event.reference_digest:
            return self.digest, self.kept
        kept = self.kept.as_in(Kept.of_text(text))
        if kept.columns == self.kept.columns:
            return self.digest, kept
        rows = self.copy.query.subquery("qblock_copy")
        return content_digest(self.task.source.session, rows, kept.columns), kept

    @property
    def hierarchy_digest(self) -> str:
        """sha256 over every hierarchy, and the domain or taxonomy of every sensitive attribute."""
        source = self.task.source
        digests = {h.attribute: h.digest() for h in source.hierarchies}
        digests |= {name: values.hierarchy.digest() for name, values in source.sensitives.items()}
        return hashlib.sha256(canonical(digests).encode()).hexdigest()

    @property
    def protected(self) -> bool:
        """Whether an attacker who knows the search learns nothing from what was chosen and suppressed."""
        if self.task.protected:
            return True
        if self.fell_back or self.chosen.suppressed:
            return False
        return bool(self.inherited.protected) if self.inherited else self.found.choice != "minimal"

    @property
    def choice(self) -> Choice:
        """How the node was chosen: for one that is kept, how the first version's was."""
        return self.inherited.choice or "pinned" if self.inherited else self.found.choice

    @property
    def tightest(self) -> list[Tightest]:
        """The verdicts over the copy; those of the search where the copy does not suffice."""
        again = self.recheck.tightest if self.recheck else (None,) * len(self.chosen.tightest)
        return [one or other for one, other in zip(again, self.chosen.tightest, strict=True)]

    def guarantees(self, stage: Literal["search", "recheck"]) -> list[Guarantee]:
        again = self.recheck.tightest if self.recheck and stage == "recheck" else (None,) * len(self.chosen.tightest)
        found: list[Guarantee] = []
        for requirement, one, other in zip(self.spec.privacy, again, self.chosen.tightest, strict=True):
            found += Guarantee.of(requirement, one or other, "recheck" if one else "search")
        return found

    def begin(self, joint: str | None = None) -> None:
        """Write the version and its stamp down, once, before the crosswalk or the target is touched."""
        if not self.begun:
            stamps.begin(self.place, stamps.Begun(self.spec.release, self.version, self.stamp, self.id, joint))
            self.begun = True

    def record(self, connection: sa.Connection, state: State) -> None:
        """Write the event of a transition of the version, and what goes with it."""
        release = self.spec.release
        if state == "staged":
            write_kept(connection, release, self.version, self.kept.text())
        record(connection, self._event(state), self.guarantees("search" if state == "staged" else "recheck"))
        if state == "published":
            set_pointer(connection, release, self.version)

    def retiring(self, version: int) -> Record:
        """How an old version is recorded as retired."""

        def retire(connection: sa.Connection, state: State) -> None:
            forget_kept(connection, self.spec.release, [version])
            record(connection, Event(release=self.spec.release, state=state, run=self.id, version=version))

        return retire

    def _event(self, state: State) -> Event:
        joint = self.spec.versions.joint
        return Event(
            release=self.spec.release,
            state=state,
            run=self.id,
            version=self.version,
            quasi_identifiers=self.spec.quasi_identifiers,
            node=self.chosen.node,
            choice=self.choice,
            protected=self.protected,
            joint=joint,
            rows_source=self.task.source.rows,
            rows_published=self.copy.rows,
            rows_suppressed=self.chosen.suppressed,
            spec_digest=spec_digest(self.spec),
            hierarchy_digest=self.hierarchy_digest,
            content_digest=self.digest,
            reference_digest=kept_digest(self.kept.text()),
            stamp=self.stamp,
            view=self.target.view,
            stale_after=self.spec.versions.stale_after,
            detail=self.detail,
            reason=NOT_JOINT if joint == "none" and state == "published" else None,
            **self.identity.columns(),
            entity=roles.entity_checked(self.spec),
            columns=roles.published_columns(self.spec),
            audience=self.spec.versions.audience,
            confirmed=self.confirmed,
        )

    def result(self) -> ReleaseResult:
        """What the run came to."""
        outcome = self.found.outcome
        return ReleaseResult(
            status="unchanged" if self.unchanged else "published",
            release=self.spec.release,
            run=self.id,
            version=self.version,
            node=dict(zip(self.spec.quasi_identifiers, self.chosen.node, strict=True)),
            rows=self.copy.rows,
            suppressed=self.chosen.suppressed,
            view=self.target.view,
            digest=self.digest,
            ledger_head=self._head(),
            tightest=self._tightest_json(),
            choice=self.choice,
            protected=self.protected,
            optimality=outcome.optimality if outcome else "pinned",
            joint=self.spec.versions.joint,
            seconds=time.monotonic() - self.started,
            notes=self._notes(),
            search={k: v for k, v in self.found.to_json().items() if k in SEARCH_FIGURES},
        )

    def _head(self) -> str | None:
        with ledger_reader(self.place) as reader:
            return reader.head(self.spec.release)

    def _tightest_json(self) -> list[dict[str, Any]]:
        return requirements_json(self.spec.privacy, self.tightest)

    def _notes(self) -> list[str]:
        notes = [*self.notes, *self.task.warnings]
        if self.spec.versions.joint == "none":
            notes.append(NOT_JOINT)
        if not self.protected:
            notes.append(NOT_PROTECTED)
        if self.recheck is not None:
            more = [q.model.name for q, t in zip(self.spec.privacy, self.recheck.tightest, strict=True) if t is None]
            if more:
                notes.append(f"not computed from the published rows, which do not suffice: {', '.join(more)}")
        return list(dict.fromkeys(notes))


def retirable(run: Run, keep: int) -> list[int]:
    """Published versions beyond the newest `keep`, by when they were last published; never the current one."""
    with ledger_reader(run.place) as reader:
        return old_versions(reader, run.spec.release, keep)


def old_versions(reader: LedgerReader, release: str, keep: int) -> list[int]:
    """The same for a reader."""
    there: dict[int, None] = {}
    for event in reader.history(release):
        if event.version is not None and (event.state in PUBLISHING or event.state == "retired"):
            there.pop(event.version, None)
            if event.state != "retired":
                there[event.version] = None
    current = reader.pointer(release)
    return [version for version in list(there)[: max(0, len(there) - keep)] if version != current]
