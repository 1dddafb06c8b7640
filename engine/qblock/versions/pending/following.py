"""How far a run leaves the view behind the source, and whether the next one would decide anything if that stays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from qblock.versions.batching.proposals import Closing, Newcomers, Waiting
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Cell, Person, Trial
from qblock.versions.batching.step import Step
from qblock.versions.pending.differences import Newcomer
from qblock.versions.pending.state import State
from qblock.versions.texts import owner_of


class Behind(NamedTuple):
    """How far the view is behind. rows: of the source that it does not show as they are; blocks: in which newcomers
    wait; since: when somebody first waited who still does, as ISO text."""

    rows: int
    source: int
    blocks: int
    since: str | None


class Following(NamedTuple):
    """What the next run comes to where it finds the same source, and decides nothing. detail, behind: as of a
    Decision."""

    detail: Mapping[str, Any]
    behind: Behind


@dataclass(frozen=True)
class Situation:
    """What a run finds, whatever it decides. newcomers: everybody who is not shown; present: as of `step`; withdrawn:
    who counts as absent; everybody: in the source; before: of those, whoever is set apart; cohorts: whether newcomers
    are shown as cohorts."""

    newcomers: Mapping[str, Newcomer]
    present: Mapping[str, Person]
    withdrawn: Collection[str]
    everybody: int
    before: int
    quarantined: int
    moves: int
    cohorts: bool

    def behind(self, result: Step, after: State) -> Behind:
        """How far the view is behind. after: the state that is kept."""
        waiting = {self.newcomers[entity].block for entity in result.memory.since if entity in self.newcomers}
        if self.cohorts:
            waiting.clear()  # whoever waits for a cohort is in no block yet
        run = min(result.memory.since.values(), default=None)
        lag = result.counts.lag + self.before + self.quarantined + self.moves
        since = None if run is None else after.moments[run]
        return Behind(min(self.everybody, lag), self.everybody, len(waiting), since)

    def figures(self, result: Step, behind: Behind) -> dict[str, Any]:
        """Counts for the private ledger of who waits, and of batches."""
        counts = result.counts
        withdrawals = len({owner_of(entity) for entity in result.shown} & set(self.withdrawn))
        return {
            "newcomers_waiting": counts.newcomers,
            "leavers_waiting": counts.leavers - withdrawals,
            "leaving_waiting": withdrawals,
            "changes_waiting": counts.changes,
            "blocks_waiting": counts.blocks,
            "oldest_wait": counts.oldest_wait,
            "oldest_newcomer": counts.oldest_newcomer,
            "lag": behind.rows,
            "moves_waiting": self.moves,
            "quarantined": self.quarantined,
            "present_out": self.before + sum(entity in self.present for entity in result.memory.out),
            "cells_frozen": counts.frozen,
            "batches_closed": dict(counts.closed),
            "batches_failed": dict(counts.failed),
            "batches_aside": counts.aside,
        }


class _TriedError(Exception):
    """A batch would be tried."""


def _tried(trial: Trial) -> bool:
    raise _TriedError


def _waits(waiting: Waiting) -> Closing:
    raise _TriedError


def quiet_step(
    run_once: Callable[..., Step],
    result: Step,
    present: Mapping[str, Person],
    rules: Rules,
    whole: Collection[Cell],
    closing: Newcomers | None,
) -> Step | None:
    """The next run on the same source by the rules, where it tries no batch; None where it would try one, whatever
    became of it, or where somebody waits for a cohort, which closes because time goes by.

    run_once: `step`, with what is the same in each run of the release; whole: the cells of which `result` has
    everybody; closing: how newcomers close, None for cohorts.
    """
    try:
        next_one = run_once(
            result.shown,
            present,
            result.memory,
            rules,
            _tried,
            newcomers=_waits if closing is None else closing,
            whole=whole,
        )
    except _TriedError:
        return None
    return None if next_one.batches or next_one.memory.out.keys() - result.memory.out.keys() else next_one
