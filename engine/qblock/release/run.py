"""What a run of the release job knows so far, and the events that it records."""

from __future__ import annotations

import hashlib
import time
from typing import Any, Literal

import sqlalchemy as sa

from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import PUBLISHING, Event, Guarantee, HowChosen, RecordedEvent, State, canonical
from qblock.ledger.kept import Kept, forget_kept, kept_digest, write_kept, write_spec
from qblock.ledger.reader import LedgerReader
from qblock.ledger.stamps import Begun, begin
from qblock.models import Tightest
from qblock.publish.recheck import Counted
from qblock.publish.targets import Checked, Record, new_stamp
from qblock.release import roles
from qblock.release.chosen import Chosen
from qblock.release.job import Job
from qblock.release.log import Reporter
from qblock.release.maps import NamedMap, ranges_of
from qblock.release.plan import Plan
from qblock.release.result import ReleaseResult, seen, waiting_words
from qblock.search.assessment import requirements_json
from qblock.search.boxes.recoded import shares
from qblock.search.progress import Progress
from qblock.search.result import SearchResult
from qblock.search.task import Task
from qblock.spec import spec_digest
from qblock.spec.digest import canonical as canonical_spec
from qblock.spec.model import RangesShown
from qblock.versions.later import joint_check, later_versions

NOT_JOINT = (
    "versions of this release are not protected together: whoever keeps several of them may learn more than each one "
    "guarantees (versions.joint: none)"
)
NOT_PROTECTED = (
    "All guarantees hold. The level of detail itself can hint at sensitive values to someone who knows how qblock "
    "searches; `search: {choose_from: sizes}` without suppression avoids that, and so does a node that is pinned"
)

SEARCH_FIGURES = (
    "nodes_total",
    "nodes_evaluated",
    "queries",
    "strategy",
    "satisfying",
    "minimal",
    "seconds",
    "why",
    "complete",
)
"""What a result says about the search."""


class Run(Job):
    """The state of one run; steps fill it in the order of the plan."""

    task: Task
    searched: SearchResult
    chosen: Chosen
    version: int
    checked: Checked
    ranges: RangesShown
    shown: dict[int, RecordedEvent]
    published_digests: dict[int, str | None]

    def __init__(
        self,
        plan: Plan,
        progress: Progress | None = None,
        reporter: Reporter | None = None,
        *,
        force: bool = False,
    ) -> None:
        super().__init__(plan.spec, plan.place, plan.target, plan.notes, reporter)
        self.stamp = new_stamp()
        self.stopping = plan.stopping
        self.progress = progress
        self.force = force
        self.reserved = False
        self.recheck: Counted | None = None
        self.current: RecordedEvent | None = None
        self.kept: str | None = None
        self.named: NamedMap | None = None
        self.confirmed: str | None = None
        self.fingerprint: str | None = None
        self.remembered: dict[str, Any] | None = None

    def read_ledger(self) -> None:
        """The version that readers see, all that were ever published, and the number of the next one."""
        release = self.spec.release
        with self.place.read() as reader:
            current = reader.current(release)
            events = reader.history(release)
            self.version = reader.next_version(release)
            self.pointer_problems = reader.verify_pointer(release)
            self.kept = reader.reference(release, current.version) if current else None
        self.current = current.event if current else None
        self.shown = {e.version: e for e in events if e.state in PUBLISHING and e.version is not None}
        self.ranges = self.spec.publish.ranges or ranges_of(self.current, self.kept)
        self.published_digests = {version: event.content_digest for version, event in self.shown.items()}

    def nothing_changed(self) -> bool:
        """Whether readers see what this run would show already: `version` is that one then.

        What the rest of the source has otherwise (suppressed rows, values of them) does not count: a version with the
        same rows, made anew, would tell readers that something did.
        """
        event = self.current
        same = (
            event is not None
            and not self.pointer_problems
            and event.version is not None
            and event.spec_digest == spec_digest(self.spec)
            and event.content_digest == self.chosen.digest
            and self._baseline_now(event) == self.chosen.baseline.stated
            and (event.target == self.identity.target or (event.target is None and event.view == self.target.view))
            and self.target.intact(event.version, self.chosen.copy.columns)
        )
        if same and event is not None and event.version is not None:
            self.version = event.version
        return same

    def _baseline_now(self, event: RecordedEvent) -> str | None:
        """What is stated by the quantities kept with the version of an event; None where they are lost or altered."""
        text = self.kept
        return None if text is None or kept_digest(text) != event.reference_digest else Kept.of_text(text).stated

    @property
    def hierarchy_digest(self) -> str:
        """sha256 over every hierarchy, and the domain or taxonomy of every sensitive attribute."""
        source = self.task.source
        digests = {h.attribute: h.digest() for h in source.origins}
        digests |= {name: values.hierarchy.digest() for name, values in source.sensitives.items()}
        return hashlib.sha256(canonical(digests).encode()).hexdigest()

    @property
    def protected(self) -> bool:
        """Whether an attacker who knows the search learns nothing from what was chosen and suppressed."""
        if self.task.protected:
            return True
        if self.chosen.assessment.suppressed:
            return False
        inherited = self._inherited
        return bool(inherited.protected) if inherited else self.searched.choice != "minimal"

    @property
    def boxes(self) -> int | None:
        """How many boxes a recoding map publishes; None for a node."""
        return None if self.task.source.recoding is None else int(self.chosen.assessment.kept.sum())

    @property
    def how_chosen(self) -> HowChosen:
        """How the node was chosen: for one that is kept, how the first version's was."""
        inherited = self._inherited
        return inherited.choice or "pinned" if inherited else self.searched.choice

    @property
    def _inherited(self) -> RecordedEvent | None:
        """The version whose node, or map, this one has."""
        if self.named is not None:
            return self.named.event
        is_inherited = self.task.source.recoding is not None and self.searched.recoded is None
        return self.current if is_inherited else self.joint.inherited

    @property
    def tightest(self) -> list[Tightest]:
        """The verdicts over the copy; those of the search where the copy does not suffice."""
        searched = self.chosen.assessment.tightest
        again = self.recheck.tightest if self.recheck else (None,) * len(searched)
        return [rechecked or from_search for rechecked, from_search in zip(again, searched, strict=True)]

    def guarantees(self, stage: Literal["search", "recheck"]) -> list[Guarantee]:
        searched = self.chosen.assessment.tightest
        again = self.recheck.tightest if self.recheck and stage == "recheck" else (None,) * len(searched)
        guarantees: list[Guarantee] = []
        for requirement, rechecked, from_search in zip(self.spec.privacy, again, searched, strict=True):
            guarantees += Guarantee.of(requirement, rechecked or from_search, "recheck" if rechecked else "search")
        return guarantees

    def reserve_version(self, version: int, joint: str | None = None) -> str:
        """Write the version and its stamp down, once, before the crosswalk or the target is touched; the stamp."""
        if not self.reserved:
            self.version = version
            begin(self.place, Begun(self.spec.release, version, self.stamp, self.id, joint))
            self.reserved = True
        return self.stamp

    def record(self, connection: sa.Connection, state: State) -> None:
        """Write the event of a transition of the version, and what goes with it."""
        release = self.spec.release
        if state == "staged":
            write_kept(connection, release, self.version, self.chosen.baseline.text())
            write_spec(connection, spec_digest(self.spec), canonical_spec(self.spec))
        record(connection, self._event(state), self.guarantees("search" if state == "staged" else "recheck"))
        if state == "published":
            set_pointer(connection, release, self.version)

    def retiring(self, version: int) -> Record:
        """How an old version is recorded as retired."""

        def retire(connection: sa.Connection, state: State) -> None:
            if version != self.spec.map_version:
                forget_kept(connection, self.spec.release, [version])
            record(connection, Event(release=self.spec.release, state=state, run=self.id, version=version))

        return retire

    def _event(self, state: State) -> Event:
        joint, chosen = joint_check(self.spec), self.chosen
        return Event(
            release=self.spec.release,
            state=state,
            run=self.id,
            version=self.version,
            quasi_identifiers=self.spec.quasi_identifiers,
            node=None if self.boxes is not None else chosen.assessment.node,
            choice=self.how_chosen,
            protected=self.protected,
            joint=joint,
            rows_source=self.task.source.rows,
            rows_published=chosen.copy.rows,
            rows_suppressed=chosen.assessment.suppressed,
            spec_digest=spec_digest(self.spec),
            hierarchy_digest=self.hierarchy_digest,
            content_digest=chosen.digest,
            reference_digest=kept_digest(chosen.baseline.text()),
            stamp=self.stamp,
            view=self.target.view,
            stale_after=self.spec.versions.stale_after,
            detail=self.joint.detail if self.boxes is None else {"boxes": self.boxes, **self.joint.detail},
            reason=self._reason(state),
            **self.identity.columns(),
            source_files=None if self.task.source.files is None else self.task.source.files.text(),
            entity=roles.entity_checked(self.spec),
            columns=roles.published_columns(self.spec),
            audience=self.spec.versions.audience,
            confirmed=self.confirmed,
        )

    def _reason(self, state: State) -> str | None:
        if state != "published":
            return None
        return NOT_JOINT if self.spec.versions.joint == "none" else self.waits_in_words() or None

    def waits_in_words(self) -> str:
        """Who waits, for the private ledger and whoever runs the job; empty where nobody does."""
        waits = self.joint.waits()
        return waiting_words(waits, self.joint.lag()) if waits else ""

    def record_waiting(self) -> None:
        """Write in the ledger who waits while the version stays."""
        detail = {"version": self.version, **self.joint.detail}
        event = Event(
            release=self.spec.release, state="waiting", run=self.id, detail=detail, reason=self.waits_in_words()
        )
        with self.place.write() as connection:
            record(connection, event)

    def result(self) -> ReleaseResult:
        """The result of the run."""
        if self.remembered is not None:
            now = {"run": self.id, "ledger_head": self._head(), "seconds": time.monotonic() - self.started}
            return ReleaseResult(**{**self.remembered, **now, "waiting": self.joint.waits(), "lag": self.joint.lag()})
        outcome, chosen = self.searched.outcome, self.chosen
        return ReleaseResult(
            status="unchanged" if self.unchanged else "published",
            release=self.spec.release,
            run=self.id,
            version=self.version,
            node={}
            if self.boxes is not None
            else dict(zip(self.spec.quasi_identifiers, chosen.assessment.node, strict=True)),
            boxes=self.boxes,
            rows=chosen.copy.rows,
            suppressed=chosen.assessment.suppressed,
            view=self.target.view,
            digest=chosen.digest,
            ledger_head=self._head(),
            tightest=requirements_json(self.spec.privacy, self.tightest),
            choice=self.how_chosen,
            protected=self.protected,
            optimality=outcome.optimality if outcome else "pinned",
            joint=joint_check(self.spec),
            seconds=time.monotonic() - self.started,
            notes=self._notes(),
            search=self._searched(),
            waiting=self.joint.waits(),
            lag=self.joint.lag(),
            seen={} if self.recheck is None else seen(self.spec.quasi_identifiers, self.recheck),
        )

    def _searched(self) -> dict[str, Any]:
        figures = {k: v for k, v in self.searched.to_json().items() if k in SEARCH_FIGURES}
        recoding, chosen = self.task.source.recoding, self.chosen.assessment
        if recoding is None:
            return figures
        texts = [hierarchy.shown(0) for hierarchy in self.task.source.hierarchies]
        boxes = []
        kept = zip(chosen.counts.keys[chosen.kept].tolist(), chosen.counts.rows[chosen.kept].tolist(), strict=True)
        for key, rows in kept:
            part = recoding.part(tuple(text[code] for text, code in zip(texts, key, strict=True)))
            if part is not None:
                boxes.append((recoding.tree.labels[part], rows))
        return {**figures, "attributes": shares(recoding.tree.ladders, recoding.read, boxes)}

    def _head(self) -> str | None:
        with self.place.read() as reader:
            return reader.head(self.spec.release)

    def _notes(self) -> list[str]:
        notes = [*self.notes, *self.task.warnings]
        if self.spec.versions.joint == "none":
            notes.append(NOT_JOINT)
        if self.current is None:
            notes += later_versions(self.spec)
        if not self.protected:
            notes.append(NOT_PROTECTED)
        if self.recheck is not None:
            more = [q.model.name for q, t in zip(self.spec.privacy, self.recheck.tightest, strict=True) if t is None]
            if more:
                notes.append(f"not computed from the published rows, which are not enough: {', '.join(more)}")
        said = self._said_before()
        return [note for note in dict.fromkeys(notes) if note not in said]

    def _said_before(self) -> set[str]:
        """Notes that follow from the spec, where the version before was published by the same one: a job that repeats
        them each week hides those that are new."""
        event = self.current
        if event is None or event.spec_digest != spec_digest(self.spec):
            return set()
        return {*self.spec.warnings, NOT_JOINT, *([] if event.protected else [NOT_PROTECTED])}


def retirable(run: Run, keep: int) -> list[int]:
    """Published versions beyond the newest `keep`, by when they were last published; never the current one."""
    with run.place.read() as reader:
        return old_versions(reader, run.spec.release, keep)


def old_versions(reader: LedgerReader, release: str, keep: int) -> list[int]:
    """Published versions of a release beyond the newest `keep`, oldest first; never the current one."""
    there: dict[int, None] = {}
    for event in reader.history(release):
        if event.version is not None and (event.state in PUBLISHING or event.state == "retired"):
            there.pop(event.version, None)
            if event.state != "retired":
                there[event.version] = None
    current = reader.pointer(release)
    return [version for version in list(there)[: max(0, len(there) - keep)] if version != current]
