"""No attacker learns a value from histories that the gate passes; and the gate is the rule, history by history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from qblock.versions.crosswalk import Crosswalk
from qblock.versions.episodes import Mode

from .attacker import attack, least_candidates
from .histories import history
from .register import Register, j1, j1_versions
from .versions import make_spec, publish

pytestmark = pytest.mark.either_engine

SEEDS = range(1200)


RULES: dict[Mode | None, Callable[[Register], bool]] = {
    "episodes": j1,
    "linked": lambda register: j1_versions(register, changes=True),
    None: lambda register: j1(register) and j1_versions(register, changes=True),
}
"""What each rule says, and the gate of both."""


def holds_at_every_version(register: Register, mode: Mode | None) -> bool:
    prefixes = [register.of_versions(v for v in register.versions if v <= last) for last in register.versions]
    return all(map(RULES[mode], prefixes))


@pytest.mark.parametrize("mode", RULES)
def test_the_gate_is_the_rule_and_no_history_that_it_passes_discloses_a_value(
    crosswalk: Crosswalk, mode: Mode | None
) -> None:
    tally, refused = attack(crosswalk, SEEDS, mode, "attacked")
    assert refused == {seed for seed in SEEDS if not holds_at_every_version(history(seed), mode)}
    assert tally.tried == len(SEEDS)
    assert tally.passed > 200
    assert tally.changing > 5
    assert tally.disclosing == (), str(tally)


def test_the_gate_holds_both_rules_at_once(crosswalk: Crosswalk) -> None:
    """Each history by itself: as a run asks, which knows only that something fails."""
    said: Counter[tuple[bool, bool]] = Counter()
    changing = [s for s in SEEDS if len(history(s).episodes) > len(history(s).people) and j1(history(s))]
    for seed in changing[:30]:
        register = history(seed)
        spec = make_spec(release=f"alone_{seed}")
        for last, verdict in enumerate(publish(crosswalk, register, spec), 1):
            prefix = register.of_versions(register.versions[:last])
            first, linked = j1(prefix), j1_versions(prefix, changes=True)
            assert verdict.passed == (first and linked), (seed, last)
            assert verdict.mode == ("linked" if first and not linked else "episodes")
            said[first, linked] += 1
    assert min(said[True, True], said[True, False]) > 5


def test_the_attackers_have_teeth() -> None:
    registers = [history(seed) for seed in SEEDS]
    refused = [r for r in registers if r.published and not j1(r)]
    assert sum(least_candidates(r, linked=False) < 2 for r in refused) > len(refused) / 2
    without_failed_blocks = [r for r in registers if r.published and j1(r.weak()) and not j1(r)]
    assert sum(least_candidates(r, linked=False) < 2 for r in without_failed_blocks) > 10
    who_changed = [r for r in registers if r.published and j1(r) and len(r.episodes) > len(r.people)]
    assert sum(least_candidates(r, linked=True) < 2 for r in who_changed) > 2
