"""What `plan` says of a node before it is chosen: how long newcomers would wait, and how far the view would lag.

A simulation with a fixed seed of people who come, leave and change as often as the churn says, block by block. It reads
block sizes, their counts of values and cohort sizes, which a candidate node has as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Floats, Ints
from qblock.versions.batching.rules import Rules

SEED = 20_261
MOST_CHANGES = 15
"""Kinds of change that are told apart; with more attributes most people change in few ways."""


@dataclass(frozen=True)
class Churn:
    """Shares of the people per run: who come, leave, and whose value changes."""

    coming: float
    leaving: float
    changing: float


@dataclass(frozen=True)
class Estimate:
    """Over some runs.

    mean_wait: of newcomers who were shown; worst_wait: of anybody, those still waiting included; both in runs. lag,
    worst_lag: share of the source's people whom the view does not show as they are, the mean over the runs and the
    largest. never: share of the newcomers whose block gets no cohort.
    """

    mean_wait: float
    worst_wait: int
    lag: float
    worst_lag: float
    never: float


def estimate(
    counts: Sequence[Sequence[Sequence[int]] | Ints],
    cohorts: Sequence[int | None],
    churn: Churn,
    rules: Rules,
    *,
    attributes: int = 1,
    least: int = 0,
    runs: int = 52,
) -> Estimate:
    """The estimate for a node.

    counts: for each sensitive attribute [B, V], people by value in each block; cohorts: [B], the sizes that close one;
    attributes: that are published of a person beside the block, any of which may change; least: as of `step`, here for
    changed values. Takes every batch to pass, which is so where their sizes are large enough.
    """
    tables: list[Ints] = [np.asarray(table, dtype=np.int64) for table in counts]
    sizes = tables[0].sum(axis=1)
    never = np.array([size is None for size in cohorts])
    closing: Ints = np.array([np.iinfo(np.int64).max if size is None else size for size in cohorts], dtype=np.int64)
    # The share of a cell whose change, even if it failed, would leave l candidates.
    most: Floats = np.zeros(len(sizes))
    each = list(zip(tables, rules.ls, strict=False))
    if rules.cells and all(table.shape[1] >= l for table, l in each):  # noqa: E741
        held = np.min([-np.sort(-table, axis=1)[:, l - 1] for table, l in each], axis=0)  # noqa: E741
        most = held / np.maximum(sizes, 1)
    rng = np.random.default_rng(SEED)
    came = np.zeros((runs, len(sizes)), dtype=np.int64)  # who wait, by the run in which they came
    # People of the cells as they are now, whose changes may be shown; those who came since are in cells of few people.
    old, stuck = sizes.copy(), np.zeros_like(sizes)
    # By what changed of them: only people with the same change share a batch.
    once = np.zeros((min(2**attributes - 1, MOST_CHANGES), len(sizes)), dtype=np.int64)
    leaving, changing = min(1.0, churn.leaving), min(1.0, churn.changing)
    waited, shown, worst = 0, 0, 0
    lags: Floats = np.zeros(runs)
    for run in range(runs):
        came[run] = rng.poisson(churn.coming * sizes)
        closes = came.sum(axis=0) >= closing
        ages = run - np.arange(runs)
        done = came[:, closes]
        waited += int((done.sum(axis=1) * ages)[: run + 1].sum())
        shown += int(done.sum())
        came[:, closes] = 0
        waiting = np.flatnonzero(came[:, ~never].sum(axis=1))
        worst = max(worst, int(ages[waiting[0]]) if len(waiting) else 0, int(ages[done.any(axis=1)].max(initial=0)))
        # Whoever changes again before the first change is shown keeps the old value.
        again = rng.binomial(once, changing)
        fresh = rng.poisson(churn.changing * np.maximum(old - once.sum(axis=0), 0) / len(once), size=once.shape)
        # Nearly everybody else is in a cell with too few people for a batch.
        rest = np.maximum(sizes - old - stuck, 0)
        once, stuck = once + fresh - again, stuck + again.sum(axis=0) + rng.binomial(rest, changing)
        shows = (once >= max(rules.k, least)) & (once <= most * old) & (old - once >= rules.k)
        # One batch of a cell in a run.
        shows &= np.cumsum(shows, axis=0) == 1
        old = np.maximum(old - np.where(shows, once, 0).sum(axis=0) - again.sum(axis=0), 0)
        once = np.where(shows, 0, once)
        # Who leaves lags no more: the source does not have them.
        once -= rng.binomial(once, leaving)
        stuck -= rng.binomial(stuck, leaving)
        old -= rng.binomial(old, leaving)
        lags[run] = (came.sum() + once.sum() + stuck.sum()) / max(1, sizes.sum())
    total = float(sizes.sum())
    return Estimate(
        waited / shown if shown else 0.0,
        worst,
        float(lags.mean()),
        float(lags.max(initial=0.0)),
        float(sizes[never].sum() / total) if total else 0.0,
    )
