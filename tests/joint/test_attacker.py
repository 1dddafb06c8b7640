"""No attacker learns a value from histories that the gate passes; and the gate is the rule, history by history."""

from __future__ import annotations

import pytest

from qblock.joint.crosswalk import Book

from .attacker import attack, least_candidates
from .histories import history
from .register import Register, j1, j1_versions

pytestmark = pytest.mark.either_engine

SEEDS = range(1200)


def holds_at_every_version(register: Register, joint: str) -> bool:
    prefixes = [register.of_versions(v for v in register.versions if v <= last) for last in register.versions]
    return all(j1_versions(p, changes=True) if joint == "linked" else j1(p) for p in prefixes)


@pytest.mark.parametrize("joint", ["episodes", "linked"])
def test_the_gate_is_the_rule_and_no_history_that_it_passes_discloses_a_value(book: Book, joint: str) -> None:
    tally, refused = attack(book, SEEDS, joint, "attacked")
    assert refused == {seed for seed in SEEDS if not holds_at_every_version(history(seed), joint)}
    assert tally.tried == len(SEEDS)
    assert tally.passed > 200
    assert tally.changing > 5
    assert tally.disclosing == (), str(tally)


def test_the_attackers_have_teeth() -> None:
    registers = [history(seed) for seed in SEEDS]
    refused = [r for r in registers if r.published and not j1(r)]
    assert sum(least_candidates(r, linked=False) < 2 for r in refused) > len(refused) / 2
    without_failed_blocks = [r for r in registers if r.published and j1(r.weak()) and not j1(r)]
    assert sum(least_candidates(r, linked=False) < 2 for r in without_failed_blocks) > 10
    who_changed = [r for r in registers if r.published and j1(r) and len(r.episodes) > len(r.people)]
    assert sum(least_candidates(r, linked=True) < 2 for r in who_changed) > 2
