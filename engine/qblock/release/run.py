"""What a run of the release job knows so far, and the events that it records."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import PUBLISHING, Event, Guarantee, HowChosen, RecordedEvent, State, canonical
from qblock.ledger.kept import Kept, forget_kept, kept_digest, write_kept, write_spec
from qblock.ledger.stamps import ObjectTag, begin, new_stamp
from qblock.ledger.store import Store
from qblock.models import Tightest
from qblock.publish.recheck import Counted
from qblock.publish.targets import Checked, Record
from qblock.recoding import Label
from qblock.release import roles
from qblock.release.chosen import Chosen
from qblock.release.job import Job, Plan
from qblock.release.log import Reporter
from qblock.release.maps import NamedMap, ranges_of
from qblock.release.result import seen_in_words, waiting_words, weighed_words
from qblock.release.taken import detail_of, named_since
from qblock.results.check import Finding
from qblock.results.release import Published
from qblock.search.assessment import requirements_json
from qblock.search.boxes.recoded import shares
from qblock.search.progress import Progress
from qblock.search.result import SearchResult
from qblock.search.task import Task
from qblock.spec import spec_digest
from qblock.spec.digest import canonical as canonical_spec
from qblock.spec.sections import RangesShown
from qblock.versions.later import joint_check, later_versions
from qblock.versions.policy import common

NOT_JOINT = (
    "versions of this release are not protected together (versions.joint: none): people who keep several may learn "
    "more than each one guarantees"
)
NOT_PROTECTED = (
    "All guarantees hold. The level of detail itself can hint at sensitive values to someone who knows how qblock "
    "searches. `search: {choose_from: sizes}` without suppression avoids that, and so does a pinned node"
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


@dataclass(frozen=True)
class LedgerState:
    """What the ledger says of a release when a run begins. current: the event of the version that readers see;
    baseline: the text of what is kept with it; shown: the newest event of each version that was ever published;
    next_version: the number of the next one; pointer_problems: what is wrong with the row that names the current one.
    """

    current: RecordedEvent | None
    baseline: str | None
    shown: dict[int, RecordedEvent]
    next_version: int
    pointer_problems: list[str]

    @classmethod
    def read(cls, store: Store, release: str) -> LedgerState:
        with store.read() as reader:
            current = reader.current(release)
            events = reader.history(release)
            next_version = reader.next_version(release)
            problems = reader.verify_pointer(release)
            baseline = reader.reference(release, current.version) if current else None
        shown = {e.version: e for e in events if e.state in PUBLISHING and e.version is not None}
        return cls(current.event if current else None, baseline, shown, next_version, problems)

    @property
    def version(self) -> int | None:
        """The number of the version that readers see."""
        return None if self.current is None else self.current.version

    @property
    def latest(self) -> RecordedEvent | None:
        """The event of the version that readers see; of a release that was retired, of the last one that they saw."""
        return self.current or max(self.shown.values(), key=lambda event: event.number, default=None)

    @property
    def digests(self) -> dict[int, str | None]:
        """Of the content of each version."""
        return {version: event.content_digest for version, event in self.shown.items()}

    @property
    def stated(self) -> str | None:
        """What is stated by the quantities kept with the current version; None where they are lost or altered."""
        text = self.baseline
        if self.current is None or text is None or kept_digest(text) != self.current.reference_digest:
            return None
        return Kept.of_text(text).stated


class Run(Job):
    """One run of the release job. Its steps set: `ledger` and `ranges` (how bounds are published) when leftovers are
    cleared; `task` with the snapshot; `searched` and `chosen` by the search; `checked` and `counted` from the copy;
    version: the next one's number, or that of the version that stays; findings, taken: what checks what is chosen
    against the spec, and what it found of what is published; named: the recoding map that the spec names; confirmed:
    the digest by which somebody let the source pass."""

    ledger: LedgerState
    ranges: RangesShown
    task: Task
    searched: SearchResult
    chosen: Chosen
    findings: Callable[[], Sequence[Finding]]
    version: int
    checked: Checked

    def __init__(
        self,
        plan: Plan,
        progress: Progress | None = None,
        reporter: Reporter | None = None,
        *,
        force: bool = False,
    ) -> None:
        super().__init__(plan, reporter)
        self.stamp = new_stamp()
        self.progress = progress
        self.force = self.policy.forced = force
        self.may_decide_nothing = not force
        self.reserved = False
        self.counted: Counted | None = None
        self.named: NamedMap | None = None
        self.confirmed: str | None = None
        self.fingerprint: str | None = None
        self.taken: Sequence[Finding] = ()
        self.remembered: dict[str, Any] | None = None

    def clear_leftovers(self) -> None:
        self.notes += roles.judge(self.spec, self.store, self.identity)
        if not self.force:
            self.check_not_retired()
        common.prepare(self.spec, self.store)
        self.settle_unfinished()
        common.settle(self.spec, self.store, self.id)
        self.read_ledger()
        common.discard_unseen(self.spec, self.store, self.ledger.digests)

    def read_ledger(self) -> None:
        self.ledger = LedgerState.read(self.store, self.spec.release)
        self.version = self.ledger.next_version
        self.ranges = self.spec.publish.ranges or ranges_of(self.ledger.current, self.ledger.baseline)

    def nothing_changed(self) -> bool:
        """Whether readers see what this run would show already: `version` is that one then.

        What the rest of the source has otherwise (suppressed rows, values of them) does not count: a version with the
        same rows, made anew, would tell readers that something did.
        """
        event = self.ledger.current
        same = (
            event is not None
            and not self.ledger.pointer_problems
            and event.version is not None
            and event.spec_digest == spec_digest(self.spec)
            and event.content_digest == self.chosen.digest
            and self.ledger.stated == self.chosen.baseline.stated
            and event.target == self.identity.target
            and self.target.intact(event.version, self.chosen.copy.columns)
        )
        if same and event is not None and event.version is not None:
            self.version = event.version
        return same

    def stay(self) -> None:
        """Nothing is to be done: readers see it already."""
        self.unchanged = True
        for given in self.target.grant():
            self.reporter.report(f"granted {given}")
        waits = self.waits_in_words()
        if waits:
            detail = {"version": self.version, **self.policy.detail}
            event = Event(release=self.spec.release, state="waiting", run=self.id, detail=detail, reason=waits)
            with self.store.write() as connection:
                record(connection, event)
            self.reporter.report(f"version {self.version} stays: {waits}")
        else:
            self.reporter.report(f"nothing to do: version {self.version} holds this data and this spec")

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
        return self.ledger.current if is_inherited else self.policy.inherited

    @property
    def _verdicts(self) -> list[tuple[Tightest, bool]]:
        """The verdict of each requirement, and whether it is over the copy: of the search where that does not
        suffice."""
        searched = self.chosen.assessment.tightest
        again = self.counted.tightest if self.counted else (None,) * len(searched)
        return [(a or s, a is not None) for a, s in zip(again, searched, strict=True)]

    def guarantees(self) -> list[Guarantee]:
        guarantees: list[Guarantee] = []
        for requirement, (tightest, over_copy) in zip(self.spec.privacy, self._verdicts, strict=True):
            guarantees += Guarantee.of(requirement, tightest, "recheck" if over_copy else "search")
        return guarantees

    @property
    def tag(self) -> ObjectTag:
        """What every object of the version carries."""
        return ObjectTag(self.spec.release, self.version, self.stamp)

    def reserve_version(self, version: int, joint: str | None = None) -> str:
        """Write the version and its stamp down, once, before the crosswalk or the target is touched; the stamp."""
        if not self.reserved:
            self.version = version
            begin(self.store, self.tag, self.id, joint)
            self.reserved = True
        return self.stamp

    def record(self, connection: sa.Connection, state: State) -> None:
        """Write the event of a transition of the version, and what goes with it."""
        release = self.spec.release
        if state == "staged":
            write_kept(connection, release, self.version, self.chosen.baseline.text())
            write_spec(connection, spec_digest(self.spec), canonical_spec(self.spec))
        record(connection, self._event(state), self.guarantees(), self.store.heads.get(release))
        if state == "published":
            set_pointer(connection, release, self.version)

    def retire_versions(self, keep: int) -> list[str]:
        """Drop versions beyond the newest `keep`, and those that show people who have left; says which stay for now."""
        beyond = self.versions_beyond(keep)
        withdrawn = common.showing_withdrawn(self.spec, self.store)
        versions = dict.fromkeys([*beyond, *withdrawn])
        return self.target.retire({version: self._retiring(version) for version in versions})

    def versions_beyond(self, keep: int) -> list[int]:
        """Published versions beyond the newest `keep`, by when they were last published; never the current one."""
        there: dict[int, None] = {}
        with self.store.read() as reader:
            for event in reader.history(self.spec.release):
                if event.version is not None and event.state in (*PUBLISHING, "retired"):
                    there.pop(event.version, None)
                    if event.state != "retired":
                        there[event.version] = None
            current = reader.pointer(self.spec.release)
        return [version for version in list(there)[: max(0, len(there) - keep)] if version != current]

    def _retiring(self, version: int) -> Record:
        """How an old version is recorded as retired."""

        def retire(connection: sa.Connection, state: State) -> None:
            if version != self.spec.map_version:
                forget_kept(connection, self.spec.release, [version])
            record(connection, Event(release=self.spec.release, state=state, run=self.id, version=version))

        return retire

    def _event(self, state: State) -> Event:
        chosen = self.chosen
        boxes = {} if self.boxes is None else {"boxes": self.boxes}
        return Event(
            release=self.spec.release,
            state=state,
            run=self.id,
            version=self.version,
            quasi_identifiers=self.spec.quasi_identifiers,
            node=None if self.boxes is not None else chosen.assessment.node,
            choice=self.how_chosen,
            protected=self.protected,
            joint=joint_check(self.spec),
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
            detail=boxes | self.policy.detail | detail_of(self.taken),
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
        accepted = [answer.in_words for answer in self.spec.accept]
        if self.spec.versions.joint == "none":
            return "; ".join([NOT_JOINT, *accepted])
        said = [weighed_words(self.policy.detail), self.waits_in_words(), *accepted]
        return "; ".join(filter(None, said)) or None

    def waits_in_words(self) -> str:
        """Who waits, for the private ledger and whoever runs the job; empty where nobody does."""
        waiting = common.waits(self.policy.detail)
        return waiting_words(waiting, self.policy.lag()) if waiting else ""

    def result(self) -> Published:
        """The result of the run."""
        now = {
            "run": self.id,
            "ledger_head": self._head(),
            "seconds": round(time.monotonic() - self.started, 3),
            "waiting": common.waits(self.policy.detail),
            "lag": self.policy.lag(),
        }
        if self.remembered is not None:
            said = seen_in_words(self.spec, self.remembered["node"], None)
            return Published.model_validate({**self.remembered, **now, "in_words": said})
        outcome, chosen = self.searched.outcome, self.chosen
        levels = dict(zip(self.spec.quasi_identifiers, chosen.assessment.node, strict=True))
        node, recoding = {} if self.boxes is not None else levels, self.task.source.recoding
        fields = {
            "status": "unchanged" if self.unchanged else "published",
            "release": self.spec.release,
            "version": self.version,
            "node": node,
            "boxes": self.boxes,
            "rows": chosen.copy.rows,
            "suppressed": chosen.assessment.suppressed,
            "view": self.target.view,
            "digest": chosen.digest,
            "tightest": requirements_json(self.spec.privacy, [tightest for tightest, _ in self._verdicts]),
            "choice": self.how_chosen,
            "protected": self.protected,
            "optimality": outcome.optimality if outcome else "pinned",
            "joint": joint_check(self.spec),
            "notes": self._notes(),
            "search": self._searched(),
            "in_words": seen_in_words(self.spec, node, self.counted, None if recoding is None else recoding.stated),
        }
        return Published.model_validate(fields | now)

    def _searched(self) -> dict[str, Any]:
        figures = {k: v for k, v in self.searched.to_json().items() if k in SEARCH_FIGURES}
        recoding, chosen = self.task.source.recoding, self.chosen.assessment
        if recoding is None:
            return figures
        texts = [hierarchy.shown(0) for hierarchy in self.task.source.hierarchies]
        read = dict[Label, str]()
        counted: list[list[tuple[Label, int]]] = [[] for _ in recoding.tree.ladders]
        kept = zip(chosen.counts.keys[chosen.kept].tolist(), chosen.counts.rows[chosen.kept].tolist(), strict=True)
        for key, rows in kept:
            labels = recoding.labels(tuple(text[code] for text, code in zip(texts, key, strict=True)))
            for of, pair in zip(counted, labels or (), strict=False):
                of.append((pair[0], rows))
                read[pair[0]] = pair[1]
        return {**figures, "attributes": shares(recoding.tree.ladders, read, counted)}

    def _head(self) -> str | None:
        with self.store.read() as reader:
            return reader.head(self.spec.release)

    def _notes(self) -> list[str]:
        weighed = "" if self.unchanged else weighed_words(self.policy.detail)
        warned = named_since(self.taken, self.ledger.current)
        notes = [*self.notes, *filter(None, (weighed, warned)), *self.task.warnings]
        if self.spec.versions.joint == "none":
            notes.append(NOT_JOINT)
        if self.ledger.current is None:
            notes += later_versions(self.spec)
        if not self.protected:
            notes.append(NOT_PROTECTED)
        if self.counted is not None:
            more = [q.model.name for q, t in zip(self.spec.privacy, self.counted.tightest, strict=True) if t is None]
            if more:
                notes.append(f"not computed from the published rows, which are not enough: {', '.join(more)}")
        said = self._said_before()
        return [note for note in dict.fromkeys(notes) if note not in said]

    def _said_before(self) -> set[str]:
        """Notes that follow from the spec, where the version before was published by the same one: a job that repeats
        them each week hides those that are new."""
        event = self.ledger.current
        if event is None or event.spec_digest != spec_digest(self.spec):
            return set()
        return {*self.spec.warnings, NOT_JOINT, *([] if event.protected else [NOT_PROTECTED])}
