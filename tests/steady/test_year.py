"""A year in arrays, held against the policy itself, person by person, on the same people."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from qblock.blocks import Ints, Mask
from qblock.versions.batching.cohort import Churn
from qblock.versions.batching.proposals import Closing, Waiting, every
from qblock.versions.batching.rules import Rules
from qblock.versions.batching.state import Memory, Person, Trial
from qblock.versions.batching.step import Step, step
from qblock.versions.batching.year import GONE, OUT, Policy, Year, draw_cohorts, draw_history, simulate
from steady.pure import first_version

from .settings import setting

ROWS, RUNS = 240, 20
HELD = np.array([[i * i % 7 % 4] for i in range(ROWS)], dtype=np.int64)
"""The value of each row."""
BOX = np.arange(ROWS, dtype=np.int64) // 24
"""The box of each row: ten boxes of 24 people."""


def name(person: int) -> str:
    """Digests are in the order of people, who are in none."""
    return f"p{person:05}"


class Tens:
    """Boxes of a cohort, of ten people or more each. Those of the first version have other numbers."""

    first = 1000

    def __call__(self, rows: Ints) -> Ints:
        self.first += 100
        return self.first + np.minimum(np.arange(len(rows)) // 10, len(rows) // 10 - 1)


def both(seed: int, policy: Policy, verdict: str) -> tuple[list[Step], Year]:
    """The same people by both: the policy itself, run by run, and arrays."""
    chosen = setting(verdict, 2)
    history = draw_history(ROWS, Churn(0.04, 0.04, 0), RUNS, seed)
    drawn = draw_cohorts(history, every(3), 20, Tens())

    def passes(trial: Trial) -> bool:
        return all(chosen.verdict(part, {}) for group in trial.groups for part in group.parts)

    def fails(group: Ints, rows: Ints, number: int) -> Mask:
        counts: list[Counter[str]] = [Counter() for _ in range(number)]
        for of, row in zip(group.tolist(), rows.tolist(), strict=True):
            counts[of]["abcd"[HELD[row, 0]]] += 1
        return np.array([not chosen.verdict(part, {}) for part in counts], dtype=bool)

    def closing(waiting: Waiting) -> Closing:
        cohort = drawn.get(waiting.run)
        if cohort is None:
            return Closing()
        assert set(waiting.blocks) == {name(person) for person in cohort.people.tolist()}
        boxes = np.unique(cohort.box).tolist()
        people = [[name(person) for person in cohort.people[cohort.box == box].tolist()] for box in boxes]
        return Closing([((f"n{box}",), part) for box, part in zip(boxes, people, strict=True)])

    def present(run: int) -> dict[str, Person]:
        return {
            name(i): Person((f"b{BOX[history.row[i]]}",), "abcd"[HELD[history.row[i], 0]])
            for i in np.flatnonzero(history.present(run)).tolist()
        }

    steps = [first_version(present(1), Memory(), passes)]
    for run in range(2, RUNS + 2):
        before, people = steps[-1], present(run)
        result = step(
            before.shown,
            people,
            before.memory,
            policy.rules,
            passes,
            newcomers=closing,
            leave=policy.leave,
            stale=policy.stale,
        )
        steps.append(result)
    return steps, simulate(history, BOX[history.row[:ROWS]], drawn, HELD, policy, fails)


def named(year: Year, which: Mask) -> set[str]:
    return {name(i) for i in np.flatnonzero(which).tolist()}


@pytest.mark.parametrize(
    ("verdict", "leave", "tried"),
    [
        ("distinct", 0, {"newcomers", "leavers", "leavers failed", "stale cell"}),
        ("entropy", 0, {"newcomers", "newcomers failed", "leavers", "leavers failed", "stale cell"}),
        ("distinct", 6, {"newcomers", "leavers"}),
    ],
)
def test_it_shows_the_people_whom_the_policy_shows(verdict: str, leave: int, tried: set[str]) -> None:
    kinds: set[str] = set()
    for seed in range(3):
        steps, year = both(seed, Policy(setting(verdict, 2).rules, leave, Fraction(3, 5)), verdict)
        last, later = steps[-1], steps[1:]
        assert named(year, year.cell >= 0) == set(last.shown)
        gone = {entity for entity, why in last.memory.out.items() if why in ("left", "stale", "cell")}
        assert named(year, year.cell == GONE) <= gone
        assert named(year, year.cell == OUT) <= set(last.memory.out)
        assert year.versions == 1 + sum(result.published for result in later)
        assert year.hidden == pytest.approx([result.counts.lag / result.counts.source for result in later])
        for result in later:
            kinds |= {*result.counts.closed, *(f"{kind} failed" for kind in result.counts.failed)}
    assert tried <= kinds


def test_the_same_people_come_again_from_the_same_seed() -> None:
    churn = Churn(0.1, 0.1, 0)
    again = [draw_history(50, churn, 5) for _ in range(2)]
    assert all(np.array_equal(getattr(again[0], name), getattr(again[1], name)) for name in ("row", "came", "left"))
    assert not np.array_equal(again[0].left[:50], draw_history(50, churn, 5, seed=1).left[:50])


def test_weights_are_said_anew_as_the_rule_says_and_make_versions() -> None:
    history = draw_history(ROWS, Churn(0, 0.05, 0), RUNS)
    rules = Rules(cells=False, k=4, ls=(2,), models=((),))
    year = simulate(history, BOX[history.row[:ROWS]], {}, HELD, Policy(rules), lambda group, rows, n: np.zeros(n, bool))
    box = BOX[history.row]
    for cell, of in enumerate(year.box.tolist()):
        there, said = 24, 24
        for run in history.later:
            there = int((history.present(run) & (box == of)).sum())
            said = there if abs(there - said) >= 3 else said  # a tenth of 24, rounded up
        assert year.counted[cell] == said
    assert (year.counted < 24).all()
    weighed = simulate(
        history, BOX[history.row[:ROWS]], {}, HELD, Policy(rules, weights=True), lambda g, r, n: np.zeros(n, bool)
    )
    assert weighed.counted.tolist() == year.counted.tolist()
    assert (year.versions, weighed.versions > 5) == (1, True)
