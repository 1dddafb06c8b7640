"""Rolls back to an older version: its private copy is recounted, and published like a release."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlalchemy as sa

from qblock.effects import current_effects
from qblock.engines.kept_sessions import kept_sessions
from qblock.errors import Refused
from qblock.ledger.chain import record, set_pointer
from qblock.ledger.events import PUBLISHING, Guarantee, RecordedEvent, State
from qblock.ledger.kept import Kept, PublishedColumn, kept_digest
from qblock.ledger.reader import LedgerReader
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of
from qblock.publish.digest import content_digest
from qblock.publish.kept_counts import Rematched, rematch
from qblock.publish.recheck import Counted, count_again
from qblock.publish.targets import Checked, Rows
from qblock.release import private_state, roles
from qblock.release.job import ClearLeftovers, Job, Plan, Step, models_named, opening
from qblock.release.log import Reporter
from qblock.release.result import seen_in_words
from qblock.release.run import NOT_JOINT, NOT_PROTECTED
from qblock.results.release import Published
from qblock.search.assessment import requirements_json
from qblock.spec import Spec, spec_digest
from qblock.versions.later import WITHOUT_ENTITY, joint_check
from qblock.versions.policy import common

NEXT_RUN = "the next run publishes the source again. To keep this version, fix the source first or pause the schedule"
CHANGED = (
    "the spec has changed since this version was published. The version was checked against the spec of now, with the "
    "quantities kept with it"
)


@kept_sessions()
def rollback(
    spec: Spec,
    version: int,
    *,
    wait: float = 0,
    reporter: Reporter | None = None,
) -> Published:
    """Publish an older version that is still kept, after the checks of a release; status `rolled_back`, or `unchanged`
    where readers already see it.

    wait: seconds to wait for another run of the release. reporter: is told each step. Raises Refused for a version that
    was never published, is no longer kept, was altered, or does not satisfy what the spec asks now: the refusal is in
    the ledger, and what was published stays published. Raises InputError, Busy and QblockError as a release does.
    """
    with store_of(spec) as store:
        planned = plan_rollback(spec, version, wait=wait, judge=False, store=store)
        if planned.revision is None:
            private_state.check(spec, store, planned.target, joint=spec.checked_together)
            raise Refused(f"release {spec.release} has no ledger: it was never published")
        run = _Rollback(planned, version, reporter)
        run.perform()
        return run.result()


@kept_sessions()
def plan_rollback(spec: Spec, version: int, *, wait: float = 0, judge: bool = True, store: Store | None = None) -> Plan:
    """The steps of a rollback to a version. store, judge: as of `plan`."""
    planned = opening(spec, store or store_of(spec), wait, judge)
    return planned.then(
        ClearLeftovers(spec.release),
        CheckVersion(version, models_named(spec)),
        Republish(version, planned.target.view),
    )


@dataclass(frozen=True)
class CheckVersion(Step):
    version: int
    models: tuple[str, ...]

    def describe(self) -> str:
        return (
            f"Recount the kept copy of version {self.version}: content and guarantees as the ledger has them, "
            f"and {', '.join(self.models)} as the spec asks now."
        )

    def perform(self, run: _Rollback) -> None:
        run.check_version()


@dataclass(frozen=True)
class Republish(Step):
    version: int
    view: str

    def describe(self) -> str:
        return f"Publish version {self.version} again as {self.view}, together with the ledger row."

    def perform(self, run: _Rollback) -> None:
        run.lock.check()
        roles.judge(run.spec, run.store, run.identity, running=True)
        said, number = f"version {run.version} was published again", run.version
        ask = partial(run.said_published, number, again=True)
        with current_effects().committing(said, ask, status="rolled_back", version=number):
            run.notes += run.checked.publish(run.record)


class _Rollback(Job):
    """One run: what the ledger says of the version, and what its copy holds. version: to publish again; lowest_joint:
    of a version that was published without the joint check, once there was one."""

    builds = False
    event: RecordedEvent
    first: RecordedEvent
    recorded: list[Guarantee]
    baseline: Kept
    matched: Rematched
    counted: Counted
    checked: Checked

    def __init__(self, planned: Plan, version: int, reporter: Reporter | None = None) -> None:
        super().__init__(planned, reporter)
        self.version = version
        self.lowest_joint = joint_check(planned.spec)

    def check_version(self) -> None:
        """Hold the ledger, the kept copy and the spec against each other."""
        self._read_ledger()
        self.lock.check()
        self.checked = self.transaction.enter_context(self.target.checking(self.version, self.baseline.columns))
        problems = self._check(self.checked.rows)
        if problems:
            raise self._refused("; ".join(problems))

    def _read_ledger(self) -> None:
        release, version = self.spec.release, self.version
        with self.store.read() as reader:
            problems = reader.verify_chain(release) + reader.verify_pointer(release)
            if problems:
                raise self._refused("; ".join(problems))
            events = reader.history(release)
            published = [e for e in events if e.state in PUBLISHING and e.version is not None]
            own = [e for e in published if e.version == version]
            if not own:
                raise self._refused("it was never published")
            self.first, self.event = own[0], own[-1]
            if version not in reader.kept_versions(release) or not self.target.holds(version):
                raise self._refused("it is no longer kept")
            if self._shows_withdrawn(events):
                raise self._refused("people have withdrawn since it was published")
            joints = {e.joint for e in published}
            self.lowest_joint = next((j for j in ("none", WITHOUT_ENTITY) if j in joints), self.lowest_joint)
            self.recorded = reader.guarantees(release, self.first.number)
            self._read_baseline(reader)
            same = self.first.spec_digest == spec_digest(self.spec)
            self.unchanged = same and reader.pointer(release) == version
        self.unchanged = self.unchanged and self.target.intact(version, self.baseline.columns)
        if not same:
            self.notes.append(CHANGED)
        self._check_columns()
        self.target.check_columns(self.baseline.columns)
        self.matched = rematch(self.spec, self.baseline, self.recorded, same_spec=same)
        if self.matched.problems:
            raise self._refused("; ".join(self.matched.problems))

    def _shows_withdrawn(self, events: Sequence[RecordedEvent]) -> bool:
        if not self.spec.checked_together:
            return any(e.state == "erased" and e.number > self.event.number for e in events)
        common.prepare(self.spec, self.store)
        return self.version in common.showing_withdrawn(self.spec, self.store)

    def _read_baseline(self, reader: LedgerReader) -> None:
        text = reader.reference(self.spec.release, self.version)
        if text is None or kept_digest(text) != self.event.reference_digest:
            raise self._refused("the quantities kept with it are missing or were altered")
        self.baseline = Kept.of_text(text)

    def _check_columns(self) -> None:
        """A column of another role was generalized, or left as it is, by other rules than those of today."""
        published = {n: a.role for n, a in self.spec.attributes.items() if a.role != "identifying"}
        if published != {column.name: column.role for column in self.baseline.columns if not column.derived}:
            raise self._refused("it publishes other columns, or in other roles, than the spec says now")
        before, now = self.baseline.coarser, self.spec.coarser
        other = [name for name in self.spec.sensitives if before.get(name) != now.get(name)]
        if other:
            raise self._refused(f"it shows other labels of {other[0]} than the spec says now (`publish_as`)")
        read, reads = self.baseline.replaced, self.spec.replaced
        otherwise = [name for name in published if read.get(name) != reads.get(name)]
        if otherwise:
            raise self._refused(f"it shows {otherwise[0]} otherwise than the spec reads it now (`unknown`, `same`)")

    def _check(self, rows: Rows) -> list[str]:
        columns: Sequence[PublishedColumn] = self.baseline.columns
        problems = []
        count = int(rows.session.scalar(sa.select(sa.func.count()).select_from(rows.rows)))
        if count != self.event.rows_published:
            problems.append(f"its copy has {count} rows, and the ledger says {self.event.rows_published}")
        if content_digest(rows.session, rows.rows, columns) != self.event.content_digest:
            problems.append("its content was altered: the digest is not the one in the ledger")
        if problems:
            return problems
        counted = count_again(self.spec, rows.session, rows.rows, columns, self.matched.references)
        self.counted = counted
        before = {(g.model, g.sensitive, g.parameters, g.parameter): g for g in self.recorded if g.stage == "recheck"}
        for index, (requirement, tightest) in enumerate(zip(self.spec.privacy, counted.tightest, strict=True)):
            if tightest is None and index not in self.matched.accepted:
                problems.append(f"{requirement.model.name} cannot be computed from the kept version")
            if tightest is None:
                continue
            if not tightest.holds:
                problems.append(f"it does not satisfy {requirement.model.name} as the spec asks now")
            for g in Guarantee.of(requirement, tightest, "recheck"):
                if before.get((g.model, g.sensitive, g.parameters, g.parameter), g) != g:
                    problems.append(
                        f"{g.model} satisfies {g.parameter} = {g.satisfied}, and the ledger says another value"
                    )
        return problems

    def _guarantees(self) -> list[Guarantee]:
        guarantees: list[Guarantee] = []
        for index, (requirement, tightest) in enumerate(zip(self.spec.privacy, self.counted.tightest, strict=True)):
            guarantees += (
                self.matched.accepted[index] if tightest is None else Guarantee.of(requirement, tightest, "recheck")
            )
        return guarantees

    def record(self, connection: sa.Connection, state: State) -> None:
        """The ledger row of a transition; what a release calls published is a version rolled back to."""
        is_shown = state == "published"
        event = self.event.again(
            release=self.spec.release,  # the version may be of an earlier name
            state="rolled_back" if is_shown else state,
            run=self.id,
            joint=self.lowest_joint,
            view=self.target.view,
            **self.identity.columns(),
            columns=roles.published_columns(self.spec),
            audience=self.spec.versions.audience,
            stale_after=self.spec.versions.stale_after,
            reason=NOT_JOINT if self.lowest_joint == "none" and is_shown else None,
        )
        record(connection, event, self._guarantees())
        if is_shown:
            set_pointer(connection, self.spec.release, self.version)

    def failure_columns(self, unfinished: RecordedEvent | None) -> dict[str, Any]:
        return {"joint": self.lowest_joint, "detail": {"rollback_to": self.version}}

    def _refused(self, why: str) -> Refused:
        with self.store.read() as reader:
            published = reader.kept_versions(self.spec.release)
        available = [v for v in published if v != self.version and self.target.holds(v)]
        instead = (
            f"; kept, and available to roll back to: {', '.join(map(str, sorted(available)))}"
            if available
            else ("; no other version is kept")
        )
        return Refused(f"version {self.version} of release {self.spec.release} is not published again: {why}{instead}")

    def result(self) -> Published:
        """The result of the run."""
        event = self.event
        with self.store.read() as reader:
            head = reader.head(self.spec.release)
        pairs = [(q, t) for q, t in zip(self.spec.privacy, self.counted.tightest, strict=True) if t is not None]
        notes = list(self.notes)
        if self.lowest_joint == "none":
            notes.append(NOT_JOINT)
        if not event.protected:
            notes.append(NOT_PROTECTED)
        more = [self.spec.privacy[index].model.name for index in self.matched.accepted]
        if more:
            notes.append(f"not recomputed, since the published rows are not enough: {', '.join(more)}")
        if not self.unchanged:
            notes.append(NEXT_RUN)
        node = {} if event.node is None else dict(zip(event.quasi_identifiers or (), event.node, strict=True))
        fields = {
            "status": "unchanged" if self.unchanged else "rolled_back",
            "release": self.spec.release,
            "run": self.id,
            "version": self.version,
            "node": node,
            "boxes": event.detail.get("boxes"),
            "rows": event.rows_published or 0,
            "suppressed": event.rows_suppressed or 0,
            "view": self.target.view,
            "digest": event.content_digest,
            "ledger_head": head,
            "tightest": requirements_json([q for q, _ in pairs], [t for _, t in pairs]),
            "choice": event.choice or "minimal",
            "protected": bool(event.protected),
            "optimality": "not searched",
            "joint": self.lowest_joint,
            "seconds": round(time.monotonic() - self.started, 3),
            "notes": notes,
            "search": {},
            "waiting": {},
            "lag": {},
            "in_words": seen_in_words(self.spec, node, self.counted, self.baseline.map),
        }
        return Published.model_validate(fields)
