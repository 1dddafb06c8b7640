"""The part of a steady job in one run: the version that it makes lags behind the source (`on_refusal: hold_back`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from qblock.errors import Refused
from qblock.ledger.events import RecordedEvent
from qblock.search.task import QUARANTINED, Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.versions.admission import Admission
from qblock.versions.crosswalk import FAILED, QUEUED, Crosswalk, open_crosswalk
from qblock.versions.gate import Verdict, check_models, members, members_of
from qblock.versions.lag import first, memory
from qblock.versions.lag.begin import adopt, begin
from qblock.versions.lag.checks import check_layout, check_node, check_shown
from qblock.versions.lag.edits import moved_by_edits, refine, units_moved
from qblock.versions.lag.failed import let_fail, never_shown
from qblock.versions.lag.judged import as_first
from qblock.versions.lag.memory import Kept
from qblock.versions.lag.policy import Turn, decide, keep
from qblock.versions.lag.relation import Shown
from qblock.versions.people import entities_apart
from qblock.versions.recorded import UNPROTECTED, Candidate, recorded
from qblock.versions.turn import JointVersions
from qblock.versions.waiting import StartOver
from qblock.warehouse.protocol import Column, TableName
from qblock.warehouse.values import type_class

FAILED_TOGETHER = (
    "newcomers whose batch passed fail together with another release that the same readers may hold: its people stay "
    "out for good"
)
KEPT = "the published node was kept, since all versions must have the same node (versions.on_refusal: hold_back)"
NO_STATE = (
    "columns are published as they are, and what version {} shows of whom was not kept: the next version is checked as "
    "with `on_refusal: refuse`, and those after it lag"
)
AS_FIRST = "models that compare with the distribution of the table compare with that of version {}, whoever came since"
OTHER_BLOCKS = (
    "hierarchies were edited, which shows {} units in another block; where people have several rows (`count: "
    "entities`) what is kept of them cannot follow; nothing is published. Change the hierarchies back, or write "
    "{unprotected}"
)
EDITED = "hierarchies were edited, which shows {} people in another block: their joint cells are split"
FAILED_WORDS = {
    "newcomers": "{} of newcomers failed: its people stay out for good, since topping them up until they pass would "
    "reveal their values",
    "leavers": "{} of people who left failed: their joint cells stay as they are shown",
    "changed values": "{} of changed values failed: their joint cells stay as they are shown",
    "whole cell": "{} of people who left failed: they stay as they are shown",
}


class Behind(NamedTuple):
    """How far the view is behind. rows: of the source that it does not show as they are; blocks: in which newcomers
    wait; since: when somebody first waited who still does, as ISO text."""

    rows: int
    source: int
    blocks: int
    since: str | None


class LaggingVersions(JointVersions):
    """kept: what is remembered, None before there is a state, when versions are made as without it; turn: what this run
    decided; moved, uncovered: people in another block, and rows that no hierarchy covers."""

    kept: Kept | None = None
    turn: Turn | None = None
    recalled: Behind | None = None
    moved = uncovered = 0

    def begin(self, current: RecordedEvent | None, shown: Collection[int]) -> Spec:
        spec = super().begin(current, shown)
        self.turn = None
        with open_crosswalk(self.place) as crosswalk:
            self.kept = memory.load(crosswalk, self.spec.release)
            if self.kept is not None and self.kept.first not in shown:
                memory.forget(crosswalk, self.spec.release)
                self.kept = None
            if self.kept is None and shown and adopt(crosswalk, self.spec, frozenset(shown)):
                self.kept = memory.load(crosswalk, self.spec.release)
            before = first.refused_before(crosswalk, self.spec) if self.kept is None and not shown else None
        if self.kept is None:
            if shown:
                self.notes.append(NO_STATE.format(max(shown)))
            if before and not self.forced:
                raise Refused(first.NOT_AGAIN.format(release=self.spec.release))
            if before is not None:
                self.notes.append(first.AGAIN)
            return spec
        check_layout(self.spec, self.kept)
        check_models(self.spec)
        if current is None or spec.pinned is not None:
            return spec
        self.inherited = current
        return replace(spec, search=replace(spec.search, node=self.kept.node))

    def refused(self) -> str:
        shown = self.admission is not None and self.admission.shown
        if self.kept is not None or shown or self.dry or not first.depends_on_values(self.spec):
            return ""
        with open_crosswalk(self.place) as crosswalk:
            first.remember(crosswalk, self.spec)
        return first.REMEMBERED

    def let_in(self, source: SourceTable) -> Admission | None:
        kept, release = self.kept, self.spec.release
        if kept is None:
            return super().let_in(source)
        assert self.admission is not None
        check_node(kept, source)
        references = Task(source).references
        self.moved, self.uncovered = self.admission.moves(source.session), source.quarantined
        if self.spec.bundles:
            self._check_units(kept, source)
        with open_crosswalk(self.place, source.session) as crosswalk:
            other_releases = any(v.key.release != release for v in members(self.spec, recorded(crosswalk)))
            self.turn = decide(
                crosswalk,
                source,
                references,
                kept,
                queued=entities_apart(crosswalk, release, [QUEUED]),
                stuck=entities_apart(crosswalk, release, [FAILED]),
                other_releases=other_releases,
                everybody=self._everybody(source),
                newest=max(self.admission.shown or [0]),
            )
        if not self.dry:
            with open_crosswalk(self.place) as crosswalk:
                keep(crosswalk, release, self.turn)
        self.kept = self.turn.kept
        self._say(self.turn)
        layout = self.kept.layout
        self.admission = Shown(
            self.spec, self.place, shown=self.admission.shown, layout=layout, gone=self.turn.gone, rows=self.turn.rows
        )
        return self.admission

    def _check_units(self, kept: Kept, source: SourceTable) -> None:
        table, session = TableName.parse(self.spec.source.table), source.session
        state = Shown(self.spec, self.place, layout=kept.layout)
        shown = state(session, session.relation(table), source.columns)
        with open_crosswalk(self.place, session) as crosswalk:
            moved = units_moved(crosswalk, source, shown, kept.node)
        if moved:
            raise Refused(OTHER_BLOCKS.format(moved, unprotected=UNPROTECTED))

    def settled(self, source: SourceTable) -> SourceTable:
        """With the distribution of the first version, where a model asks for one: moving, it would tell who came."""
        needs = frozenset().union(*(model.needs for q in self.spec.privacy for model in q.models))
        if self.turn is None or self.kept is None or not needs & {"distribution", "domain"}:
            return source
        with open_crosswalk(self.place, source.session) as crosswalk:
            version = next(v for v in recorded(crosswalk, self.spec.release) if v.key.version == self.kept.first)
        known = version.references
        self.notes.append(AS_FIRST.format(self.kept.first))
        return replace(
            source,
            sensitives={
                name: replace(values, reference=as_first(self.spec, name, values.reference, known[name]))
                for name, values in source.sensitives.items()
            },
        )

    def opened(self, source: SourceTable) -> None:
        if self.turn is None:
            super().opened(source)
            return
        counts = self.turn.counts
        figures: dict[str, Any] = {
            "came": self.turn.came,
            "left": self.turn.left,
            "changed": self.turn.changed,
            "newcomers": self.turn.admitted,
            "newcomers_waiting": counts.newcomers,
            "leavers_waiting": counts.leavers - self.turn.withdrawals,
            "leaving_waiting": self.turn.withdrawals,
            "changes_waiting": counts.changes,
            "blocks_waiting": counts.blocks,
            "oldest_wait": counts.oldest_wait,
            "oldest_newcomer": counts.oldest_newcomer,
            "lag": min(counts.source, counts.lag + self.moved),
            "moves_waiting": self.moved,
            "quarantined": self.uncovered,
            "present_out": self.turn.present_out,
            "cells_frozen": counts.frozen,
            "batches_closed": dict(counts.closed),
            "batches_failed": dict(counts.failed),
            "batches_aside": counts.aside,
        }
        self.detail = {name: n for name, n in figures.items() if n}

    def lag(self) -> dict[str, Any]:
        behind = self._behind()
        if behind is None:
            return {}
        versions = self.spec.versions
        oldest = None
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

    def _behind(self) -> Behind | None:
        if self.turn is None:
            return self.recalled
        counts, kept = self.turn.counts, self.turn.kept
        run = min(kept.memory.since.values(), default=None)
        since = None if run is None else kept.moments[run]
        return Behind(min(counts.source, counts.lag + self.moved), counts.source, self.turn.blocks, since)

    @property
    def quiet(self) -> bool:
        """Whether this run tried no batch and found the same people in the same state as the run before."""
        turn = self.turn
        return turn is not None and not (turn.batches or turn.gone or turn.rows or turn.out)

    def as_remembered(self) -> dict[str, Any]:
        """What `recall` needs in a later run."""
        behind = self._behind()
        return {"detail": self.detail, "behind": None if behind is None else list(behind)}

    def recall(self, remembered: Mapping[str, Any]) -> None:
        """Take over what the run before came to, since everything is as that one left it."""
        self.detail = dict(remembered["detail"])
        self.recalled = None if remembered["behind"] is None else Behind(*remembered["behind"])

    def unchanged(self, version: int) -> None:
        super().unchanged(version)
        if self.kept is not None and self.kept.awaits is not None and not self.dry:
            # What closed makes no other rows (two people with each other's values): there is nothing to show.
            self.kept = replace(self.kept, awaits=None)
            with open_crosswalk(self.place) as crosswalk:
                memory.save(crosswalk, self.spec.release, self.kept)

    def _recorded(self, crosswalk: Crosswalk, source: SourceTable, candidate: Candidate) -> None:
        if self.kept is None:
            begin(crosswalk, self.spec, source, candidate)

    def _again(
        self, crosswalk: Crosswalk, candidate: Candidate, verdict: Verdict, version: int, shown: Collection[int]
    ) -> StartOver | None:
        if self.kept is None or self.dry:
            return None
        release = self.spec.release
        new = never_shown(crosswalk, release, members_of(crosswalk, self.spec, verdict, candidate), shown)
        return StartOver(FAILED_TOGETHER, lambda own: let_fail(own, release, new)) if new else None

    def _compared(self, crosswalk: Crosswalk, candidate: Candidate) -> None:
        # Of units that was asked before anything was decided.
        moved = moved_by_edits(crosswalk, candidate) if self.kept is not None and not self.spec.bundles else {}
        if moved:
            release = self.spec.release
            raise StartOver(EDITED.format(len(moved)), lambda own: refine(own, release, moved))

    def _check_shown(self, crosswalk: Crosswalk, columns: Mapping[str, Column]) -> None:
        kept = self.kept
        if kept is None:
            return
        for name, before in kept.types.items():
            now = columns[name].compare_as
            if type_class(now) != type_class(before):
                raise Refused(
                    f"column {name} is of type {now} now, and was of type {before} when version {kept.first} of "
                    f"release {self.spec.release} was made: values that did not change may read differently; nothing "
                    f"is published. Give the column its type again, or write {UNPROTECTED}"
                )
        check_shown(crosswalk, self.spec, kept, columns)
        self.kept = replace(kept, types={name: columns[name].compare_as for name in kept.types})

    def _everybody(self, source: SourceTable) -> int:
        """The rows of the whole source."""
        assert self.admission is not None
        assert self.admission.everybody is not None
        query = sa.select(sa.func.count()).select_from(self.admission.everybody)
        return int(source.session.scalar(query))

    def _say(self, turn: Turn) -> None:
        if self.uncovered:
            self.notes.append(QUARANTINED.format(self.uncovered))
        for kind, n in turn.counts.failed.items():
            self.notes.append(FAILED_WORDS[kind].format("a batch" if n == 1 else f"{n} batches"))
