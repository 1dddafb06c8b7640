"""Tiny histories of people with several rows who come in cohorts, each of them at one leaf."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .bundles import ADDED, REPLACED, Bundled, Person
from .cohorts import RULES, CohortFrame, Cohorts, Drawn, Part, divided
from .frames import Column, told_apart
from .players import EngineOfBundles


@dataclass(frozen=True)
class VisitFrame(CohortFrame, Bundled):
    """A combination of quasi-identifiers for each person, who has a bundle there."""

    def first_block(self, column: Column) -> Any:
        return self._first_boxes.get(column, (column.block,))

    @cached_property
    def _first_boxes(self) -> dict[Column, Any]:
        of = {name: column for (column, _), names in zip(self.people, self.names, strict=True) for name in names}
        at = {name: self.combinations[column.block] for name, column in of.items() if column.present[0]}
        parts = divided(Part(self.top, tuple(at)), at, dict.fromkeys(at, 0), self.base, self.rule)
        return {of[name]: part.box for part in parts for name in part.people}


@dataclass
class CohortsOfBundles(Cohorts, EngineOfBundles):
    """The policy of the engine with bundles, and newcomers in cohorts."""


def frames_of_visits(seed: int, of: Drawn, most: int) -> Iterator[VisitFrame]:
    """Random frames without end, of at most `most` multisets each, in which some boxes may close."""
    rng = random.Random(seed)
    while True:
        frame = _frame(rng, of)
        if frame.coins and frame.multisets() <= most:
            yield frame


def _frame(rng: random.Random, of: Drawn) -> VisitFrame:
    grid, l = rng.choice([(2, 2), (2, 2), (3, 2), (2,), (3,)]), of.l  # noqa: E741
    combinations, values = math.prod(grid), rng.choice([l + 1, l + 1, l + 2])
    runs = rng.choice([3, 3, 4] if of.within < 3 else [3, 4, 4])
    people: Counter[Column] = Counter()
    for n, block in enumerate(rng.sample(range(combinations), min(combinations, rng.randint(1, of.blocks)))):
        left = rng.choice([l * l, l * l + 1] if of.large and n == 0 and rng.random() < 0.3 else [l, l, l + 1])
        while left:
            size = rng.choice([left, rng.randint(1, left)])
            people[_person(rng, block, runs, 0, of, values)] += size
            left -= size
    left = of.least * rng.choice([1, 2, 2]) + rng.choice([0, 0, 1])
    comes = rng.randrange(1, runs)
    while left > 0:
        size = min(left, rng.choice([1, 2, of.least, of.least]))
        comes = rng.choice([comes, comes, rng.randrange(1, runs)])
        people[_person(rng, rng.randrange(combinations), runs, comes, of, values)] += size
        left -= size
    return VisitFrame(
        told_apart(people),
        values,
        rollback=rng.choice([None, None, *range(runs)]),
        grid=grid,
        within=of.within,
        least=of.least,
        base=rng.choice([l, l + 1, 100]),
        rule=rng.choice(["even", *RULES]),
    )


def _person(rng: random.Random, block: int, runs: int, comes: int, of: Drawn, values: int) -> Person:
    present, changed = [run >= comes for run in range(runs)], [0] * runs
    later = range(comes + 1, runs)
    what = rng.choice(["leave", "change", "both", *["stay"] * (2 if of.large else 4)])
    if later and what in ("change", "both"):
        changed[rng.choice(later)] = rng.choice([ADDED, ADDED, REPLACED])
    if later and what in ("leave", "both"):
        leaves = rng.choice(later)
        returns = rng.randrange(leaves + 1, runs + 1) if rng.random() < 0.3 else runs
        for run in range(leaves, returns):
            present[run], changed[run] = False, 0
    erased = rng.randrange(runs) if rng.random() < 0.03 else None
    return Person(block, tuple(present), tuple(changed), erased, 0, values)
