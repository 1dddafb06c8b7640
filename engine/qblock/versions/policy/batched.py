"""Batched policy, the steady job: versions lag behind the source, in batches that pass (`on_refusal: hold_back`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from qblock.blocks import Reference
from qblock.engines.memory import uncollected
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.errors import Refused
from qblock.ledger.events import RecordedEvent
from qblock.ledger.store import Store
from qblock.search.assessment import Assessment
from qblock.search.task import QUARANTINED, Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.admission import Admission, ShownState, check_known_types
from qblock.versions.crosswalk import Crosswalk, open_crosswalk
from qblock.versions.explanation import plural, refusal
from qblock.versions.gate import Verdict, as_first, check, check_models, members_of
from qblock.versions.pending.baseline import adopt_newest, begin_state
from qblock.versions.pending.cohorts import cohort_maps
from qblock.versions.pending.decision import Decision, decide, keep, let_fail, never_shown, refine
from qblock.versions.pending.differences import check_layout, check_node, check_shown, moved_people, units_moved
from qblock.versions.pending.following import Behind
from qblock.versions.pending.state import (
    State,
    first_versions,
    forget_state,
    one_more_run,
    read_state,
    refused_before,
    remember_refusal,
    version_numbers,
    write_state,
)
from qblock.versions.policy import common
from qblock.versions.policy.common import Reopen, Restart, TogetherRefused
from qblock.versions.recorded import UNPROTECTED, Candidate, identified, recorded
from qblock.versions.withdrawals import NOBODY

FAILED_TOGETHER = (
    "newcomers whose batch passed fail together with another release that the same readers may hold: its people stay "
    "out for good"
)
KEPT = "the published node was kept, since all versions must have the same node (versions.on_refusal: hold_back)"
NO_STATE = (
    "the next version is checked as with `on_refusal: refuse`, and those after it lag. Columns are published as they "
    "are, and version {} kept no record of whom it shows how"
)
AS_FIRST = "models that compare with the table's distribution use that of version {}, even for people who came since"
OTHER_BLOCKS = (
    "hierarchies were edited, which shows {} of people's records in another block; nothing is published. With `count: "
    "entities` they cannot follow. Change the hierarchies back, or write {unprotected}"
)
EDITED = "hierarchies were edited, which shows {} in another block: their joint cells are split"
FAILED_WORDS = {
    "newcomers": "{} of newcomers failed: its people stay out for good, since topping them up until they pass would "
    "reveal their values",
    "leavers": "{} of people who left failed: their joint cells stay as they are shown",
    "changed values": "{} of changed values failed: their joint cells stay as they are shown",
    "whole cell": "{} of people who left failed: they stay as they are shown",
}

REFUSED_FIRST = (
    "The next run does not try again while the spec asks the same, even if other people are in the source by then. "
    "Repeating it could reveal values to anyone who saw this refusal. Change the models, node or attributes in the "
    "spec, or use --force if nobody outside knows of the refusal"
)
"""Of a first version that was refused for its values. Shown later with one person more, the others would be known to be
what was refused; and a version without them would tell that they were (docs/steady-job.md sections 2 and 5)."""
NOT_AGAIN = (
    "the first version of release {release} was refused, and the spec asks the same; nothing is published. Repeating "
    "it could reveal values to anyone who saw the refusal. Change the models, node or attributes in the spec, or use "
    "--force if nobody outside knows of the refusal"
)
AGAIN = (
    "people of a first version that was refused are tried again. This may reveal their values to anyone who saw that "
    "refusal"
)


class Batched:
    """state: what is kept, None before there is one, when versions are made as `Exact` makes them; decision: what this
    run decided; behind: how far the view lags by it; leaving: who leaves with a version that is made without a state;
    verdict: of the check that passed; lasting: the notes that a run has again that finds the same source; seen: what it
    found of what it decides by beside the crosswalk, for `release.prechecks`."""

    def __init__(self, spec: Spec, store: Store, run: str, notes: list[str]) -> None:
        self.spec, self.store, self.run, self.notes = spec, store, run, notes
        self.dry = self.forced = False
        self.admission: Admission | ShownState | None = None
        self.inherited: RecordedEvent | None = None
        self.detail: dict[str, Any] = {}
        self.shown: tuple[int, ...] = ()
        self.state: State | None = None
        self.decision: Decision | None = None
        self.behind: Behind | None = None
        self.leaving = NOBODY
        self.verdict: Verdict | None = None
        self.since: Sequence[Mapping[str, int]] = ()
        self.lasting: list[str] = []
        self.seen: Mapping[str, Any] | None = None

    def begin(self, current: RecordedEvent | None, shown: Collection[int]) -> Spec:
        spec, self.shown, self.decision, self.behind = self.spec, tuple(shown), None, None
        self.lasting, self.seen = [], None
        self.admission = Admission(spec, self.store, shown=self.shown)
        self.state, refused = self._state_now()
        if self.state is None:
            if shown:
                self.notes.append(NO_STATE.format(max(shown)))
            if refused and not self.forced:
                raise Refused(NOT_AGAIN.format(release=spec.release))
            if refused is not None:
                self.notes.append(AGAIN)
            return spec
        check_layout(spec, self.state)
        check_models(spec)
        if current is None or spec.pinned is not None:
            return spec
        self.inherited = current
        return replace(spec, search=replace(spec.search, node=self.state.node))

    def _state_now(self) -> tuple[State | None, bool | None]:
        """The state that is kept, or that of versions published before the steady job; and where there are none,
        whether a first one was refused (as of `refused_before`)."""
        release, shown = self.spec.release, self.shown
        with open_crosswalk(self.store) as crosswalk:
            state = read_state(crosswalk, release)
            if state is not None and state.first not in shown:
                forget_state(crosswalk, release)
                state = None
            if state is None and shown and adopt_newest(crosswalk, self.spec, frozenset(shown)):
                state = read_state(crosswalk, release)
            return state, refused_before(crosswalk, self.spec) if state is None and not shown else None

    def check_types(self, session: Session, columns: Mapping[str, Column]) -> None:
        with open_crosswalk(self.store, session, read_only=True) as crosswalk:
            check_known_types(self.spec, recorded(crosswalk, self.spec.release), columns, self.shown)
            if self.state is not None:
                check_shown(crosswalk, self.spec, self.state, columns)
                types = {name: columns[name].compare_as for name in self.state.types}
                self.state = replace(self.state, types=types)

    def admit(self, source: SourceTable, reopen: Reopen) -> SourceTable:
        assert isinstance(self.admission, Admission)
        if self.state is None:
            exact = common.admit(self.store, source, self.admission, reopen)
            self.admission, self.leaving, self.detail = exact.admission, exact.leaving, {**exact.detail}
            return exact.source
        check_node(self.state, source)
        references = Task(source).references
        moves = self.admission.moves(source.session)
        if self.spec.bundles:
            self._check_units(self.state, source)
        assert self.admission.everybody is not None
        with open_crosswalk(self.store, source.session) as crosswalk:
            maps = cohort_maps(crosswalk, self.spec.release)
            if source.recoding is not None:
                source.recoding.add_cohorts(maps)
            whole, newest = self.admission.everybody, max(self.shown)
            numbers = version_numbers(crosswalk, self.spec.release, self.state, self.shown)
            with uncollected():
                decision = decide(crosswalk, source, references, self.state, whole=whole, newest=newest, moves=moves)
        if not self.dry:
            with open_crosswalk(self.store) as crosswalk:
                keep(crosswalk, self.spec.release, decision)
        self.decision, self.state = decision, decision.state
        if source.recoding is not None and decision.cohort is not None:
            source.recoding.add_cohorts([*maps, decision.cohort])
        self._note(decision, source.quarantined)
        state, gone, rows = self.state, decision.gone, decision.rows
        self.admission = ShownState(self.spec, self.store, state.layout, gone, rows, state.stated or {}, numbers)
        admitted = self._with_baseline(reopen(self.admission), self.state.first)
        self.detail, self.behind = dict(decision.detail), decision.behind
        return admitted

    def _check_units(self, state: State, source: SourceTable) -> None:
        table, session = TableName.parse(self.spec.source.table), source.session
        shown = ShownState(self.spec, self.store, state.layout)(session, session.relation(table), source.columns)
        with open_crosswalk(self.store, session) as crosswalk:
            moved = units_moved(crosswalk, source, shown, state.node)
        if moved:
            raise Refused(OTHER_BLOCKS.format(plural(moved, "set"), unprotected=UNPROTECTED))

    def _note(self, decision: Decision, uncovered: int) -> None:
        if uncovered:
            self._say_each_time(QUARANTINED.format(uncovered))
        for kind, n in decision.failed.items():
            self.notes.append(FAILED_WORDS[kind].format("a batch" if n == 1 else f"{n} batches"))

    def _say_each_time(self, note: str) -> None:
        self.notes.append(note)
        self.lasting.append(note)

    def _with_baseline(self, source: SourceTable, first: int) -> SourceTable:
        """With the distribution of the first version of each attribute whose models ask for one: moving, it would tell
        who came."""
        compared = {
            name
            for requirement in self.spec.privacy
            for name, model in zip(requirement.sensitive, requirement.models, strict=False)
            if model.needs & {"distribution", "domain"}
        }
        if not compared:
            return source
        with open_crosswalk(self.store, source.session) as crosswalk:
            version = next(v for v in recorded(crosswalk, self.spec.release) if v.key.version == first)
        known, sensitives = version.references, dict(source.sensitives)
        self._say_each_time(AS_FIRST.format(first))
        for name in compared:
            reference = as_first(self.spec, name, sensitives[name].reference, known[name])
            sensitives[name] = replace(sensitives[name], reference=reference)
        return replace(source, sensitives=sensitives)

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
            again = self._as_edited(crosswalk, proposed)
            if again is not None:
                return again
            verdict = check(crosswalk, self.spec, references, proposed)
            common.note_edits(crosswalk, self.spec, proposed, self.notes)
            if not verdict.passed:
                again = self._without_newcomers(crosswalk, proposed, verdict)
                if again is None:
                    raise TogetherRefused(refusal(crosswalk, task, proposed, verdict))
                return again
            if self.dry:
                return None
            self._record(crosswalk, task, proposed, reserve)
        self.verdict = verdict
        return None

    def _record(self, crosswalk: Crosswalk, task: Task, proposed: Candidate, reserve: Callable[[int], str]) -> None:
        """Record a version that passed, and which state it shows."""
        release, version = self.spec.release, proposed.about.key.version
        if self.state is not None:
            proposed = replace(proposed, about=replace(proposed.about, state=self.state.memory.version))
        common.record_passed(crosswalk, task.source, proposed, self.leaving, reserve)
        if self.state is None:
            begin_state(crosswalk, self.spec, task.source, proposed)
            numbers = {1: version}
        else:
            numbers = version_numbers(crosswalk, release, self.state, {*self.shown, version})
        self.since = first_versions(crosswalk, release, numbers)

    def _as_edited(self, crosswalk: Crosswalk, candidate: Candidate) -> Restart | None:
        """A candidate that is not what was decided: its people are in other blocks of edited hierarchies. Of units that
        was asked before anything was decided."""
        release = self.spec.release
        moved = moved_people(crosswalk, candidate) if self.state is not None and not self.spec.bundles else {}
        said = EDITED.format(plural(len(moved), "person"))
        return Restart(said, lambda own: refine(own, release, moved)) if moved else None

    def _without_newcomers(self, crosswalk: Crosswalk, candidate: Candidate, verdict: Verdict) -> Restart | None:
        """A version that failed may pass without those whom none has shown; None where it is refused."""
        if self.state is None or self.dry:
            return None
        release = self.spec.release
        people = members_of(crosswalk, self.spec, verdict, candidate)
        new = never_shown(crosswalk, release, people, self.shown)
        return Restart(FAILED_TOGETHER, lambda own: let_fail(own, release, new)) if new else None

    def after_refusal(self) -> str:
        if self.state is not None or self.shown or self.dry or not _depends_on_values(self.spec):
            return ""
        with open_crosswalk(self.store) as crosswalk:
            remember_refusal(crosswalk, self.spec)
        return REFUSED_FIRST

    def restart(self, again: Restart) -> None:
        self.notes.append(str(again))
        with open_crosswalk(self.store) as crosswalk:
            again.settle(crosswalk)

    def stays(self, version: int) -> None:
        if self.state is not None and self.state.awaits is not None and not self.dry:
            # What closed makes no other rows (two people with each other's values): there is nothing to show.
            self.state = replace(self.state, awaits=None)
            with open_crosswalk(self.store) as crosswalk:
                write_state(crosswalk, self.spec.release, self.state)

    def lag(self) -> dict[str, Any]:
        behind, versions, oldest = self.behind, self.spec.versions, None
        if behind is None:
            return {}
        if behind.since is not None:
            oldest = (datetime.now(UTC) - datetime.fromisoformat(behind.since)).total_seconds()
        over = {
            "max_lag": versions.max_lag is not None and behind.rows > versions.max_lag * max(1, behind.source),
            "max_wait": versions.max_wait is not None
            and oldest is not None
            and oldest > versions.max_wait.total_seconds(),
        }
        return {
            "rows": behind.rows,
            "share": behind.rows / max(1, behind.source),
            "blocks": behind.blocks,
            "oldest_seconds": oldest,
            "beyond": [name for name, is_over in over.items() if is_over],
        }

    @property
    def quiet(self) -> bool:
        """Whether this run tried no batch and found the same people in the same state as the run before."""
        return self.decision is not None and self.decision.quiet

    def as_remembered(self) -> dict[str, Any]:
        """What `recall` needs in a later run."""
        return {"detail": self.detail, "behind": None if self.behind is None else list(self.behind)}

    def recall(self, remembered: Mapping[str, Any]) -> None:
        """Take over what the run before came to, since everything is as that one left it."""
        self.detail = dict(remembered["detail"])
        self.behind = None if remembered["behind"] is None else Behind(*remembered["behind"])

    def next(self, current: RecordedEvent | None) -> Batched | None:
        """The policy of the next run as it ends where it finds the same source, and decides nothing; None where it may
        decide something. current: the version that this run has published."""
        following = None if self.decision is None or self.dry else self.decision.following
        if following is None:
            return None
        later = copy(self)
        later.detail, later.behind = dict(following.detail), following.behind
        later.inherited = None if self.inherited is None else current
        return later

    def count_run(self) -> None:
        """Count a run that found what the one before knew that it would, as one that decides does."""
        assert self.state is not None
        self.state = one_more_run(self.state)
        with open_crosswalk(self.store) as crosswalk:
            write_state(crosswalk, self.spec.release, self.state)


def _depends_on_values(spec: Spec) -> bool:
    """Whether a version can be refused for the sensitive values of its people. Of people with several rows it can for
    one that everybody in a block holds, whatever the models are."""
    if spec.bundles and spec.sensitives:
        return True
    return any(model.about.steady != "sizes" for requirement in spec.privacy for model in requirement.models)
