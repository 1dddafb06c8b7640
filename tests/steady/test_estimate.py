"""What `plan` would say of a node, held against the policy itself on people who come, leave and change."""

from __future__ import annotations

import random

import numpy as np
import pytest

from qblock.versions.batching.cohort import Churn, estimate
from qblock.versions.batching.proposals import by_block
from qblock.versions.batching.state import Memory, Person, Trial
from qblock.versions.batching.step import step
from steady.pure import first_version

from .settings import setting

CHOSEN = setting("distinct", 2)
RULES = CHOSEN.rules


def test_one_newcomer_a_run_waits_for_the_others() -> None:
    found = estimate([[[100, 100]] * 50], [4] * 50, Churn(0.005, 0, 0), RULES, runs=200)
    assert found.mean_wait == pytest.approx(1.5, abs=0.2)
    assert found.worst_wait >= 6
    assert (found.never, found.lag > 0) == (0, True)


def test_a_block_without_a_cohort_never_shows_its_newcomers() -> None:
    found = estimate([[[100, 0], [50, 50]]], [None, 4], Churn(0.05, 0, 0), RULES, runs=20)
    assert found.never == pytest.approx(0.5)
    assert found.worst_lag == pytest.approx(0.5 * 0.05 * 20, rel=0.2)


def test_nothing_waits_where_nothing_changes() -> None:
    found = estimate([[[10, 10]]], [4], Churn(0, 0, 0), RULES)
    assert (found.mean_wait, found.worst_wait, found.lag) == (None, 0, 0)


def test_the_policy_waits_and_lags_as_estimated() -> None:
    blocks, size, runs, churn = 20, 100, 30, Churn(0.02, 0.02, 0.002)
    rng = random.Random(2)
    present = {f"p{b}.{i}": Person((b,), "abcd"[i % 4]) for b in range(blocks) for i in range(size)}

    def passes(trial: Trial) -> bool:
        return all(CHOSEN.verdict(part, {}) for group in trial.groups for part in group.parts)

    found = first_version(present, Memory(), passes)
    lags, worst = [], 0
    for run in range(runs):
        present = {
            one: Person(p.block, rng.choice("abcd")) if rng.random() < churn.changing * 4 / 3 else p
            for one, p in present.items()
            if rng.random() > churn.leaving
        }
        for b in range(blocks):
            for i in range(np.random.default_rng([run, b]).poisson(churn.coming * size)):
                present[f"n{run}.{b}.{i}"] = Person((b,), rng.choice("abcd"))
        found = step(found.shown, present, found.memory, RULES, passes, newcomers=by_block(lambda block: 8), leave=6)
        out = sum(one in found.memory.out for one in present)
        lags.append((found.counts.lag - out) / found.counts.source)
        worst = max(worst, found.counts.oldest_newcomer)
    expected = estimate([[[size // 4] * 4] * blocks], [8] * blocks, churn, RULES, leave=6, runs=runs)
    assert np.mean(lags) == pytest.approx(expected.lag, rel=0.35)
    assert 0.5 * expected.worst_wait <= worst <= 1.5 * expected.worst_wait + 1
