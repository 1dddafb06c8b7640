"""What `plan` says of a node before it is chosen: how long newcomers would wait, and how far the view would lag.

A simulation with a fixed seed of people who come, leave and change as often as the churn says, block by block. It reads
block sizes, their counts of values and cohort sizes, which a candidate node has as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Floats, Ints
from qblock.joint.steady.rules import Rules

SEED = 20_261


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
    counts: Sequence[Sequence[int]],
    cohorts: Sequence[int | None],
    churn: Churn,
    rules: Rules,
    *,
    least: int = 0,
    runs: int = 52,
) -> Estimate:
    """The estimate for a node.

    counts: [B, V], people by value in each block; cohorts: [B], the sizes that close one; least: as of `step`, here for
    changed values. Takes every batch to pass, which is so where their sizes are large enough.
    """
    table: Ints = np.asarray(counts, dtype=np.int64)
    sizes = table.sum(axis=1)
    never = np.array([size is None for size in cohorts])
    closing: Ints = np.array([np.iinfo(np.int64).max if size is None else size for size in cohorts], dtype=np.int64)
    # The most people of a cell whose leaving or change, even if it failed, would leave l candidates.
    ranked = -np.sort(-table, axis=1)
    most = ranked[:, rules.l - 1] if table.shape[1] >= rules.l and rules.cells else np.zeros_like(sizes)
    rng = np.random.default_rng(SEED)
    came = np.zeros((runs, len(sizes)), dtype=np.int64)  # who wait, by the run in which they came
    once, stuck = np.zeros_like(sizes), np.zeros_like(sizes)
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
        fresh = rng.poisson(churn.changing * np.maximum(sizes - once - stuck, 0))
        again = rng.binomial(np.minimum(once, sizes), min(1.0, churn.changing))
        once, stuck = once + fresh - again, stuck + again
        shows = (once >= max(rules.k, least)) & (once <= most) & (sizes - once >= rules.k)
        once = np.where(shows, 0, once)
        # Who leaves lags no more: the source does not have them.
        once -= rng.binomial(once, min(1.0, churn.leaving))
        stuck -= rng.binomial(stuck, min(1.0, churn.leaving))
        lags[run] = (came.sum() + once.sum() + stuck.sum()) / max(1, sizes.sum())
    total = float(sizes.sum())
    return Estimate(
        waited / shown if shown else 0.0,
        worst,
        float(lags.mean()),
        float(lags.max(initial=0.0)),
        float(sizes[never].sum() / total) if total else 0.0,
    )
