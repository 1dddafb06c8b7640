"""Tiny histories of newcomers in cohorts: a block is a combination of quasi-identifiers, and boxes of these are shown.

How a part is divided is a part of what is known of a frame: by quasi-identifiers, sizes and arrival alone.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from qblock.versions.batching.proposals import Newcomers, Waiting, every, in_cohorts
from qblock.versions.batching.rules import Coin
from qblock.versions.batching.state import Block, Person

from .frames import Column, Frame, Values, frame_of, told_apart
from .players import Engine, State

Combination = tuple[int, ...]
Box = tuple[int, ...]
"""The least and the greatest value of each quasi-identifier in turn."""
RULES = ("even", "first", "arrival", "never")
"""Which cut of a part is made: that into the most equal halves, the first one, that which tells early people from late
ones best, or none."""


class Part(NamedTuple):
    box: Box
    people: tuple[str, ...]


def cuts_of(part: Part, at: Mapping[str, Combination], least: int) -> list[tuple[Part, Part]]:
    """Every cut of a part at one quasi-identifier that leaves so many people on both sides. at: of each person."""
    pairs = []
    for i in range(len(part.box) // 2):
        low, high = part.box[2 * i : 2 * i + 2]
        for last in range(low, high):
            below = tuple(person for person in part.people if at[person][i] <= last)
            above = tuple(person for person in part.people if at[person][i] > last)
            if min(len(below), len(above)) >= least:
                sides = (part.box[: 2 * i], part.box[2 * i + 2 :])
                pairs.append(
                    (
                        Part((*sides[0], low, last, *sides[1]), below),
                        Part((*sides[0], last + 1, high, *sides[1]), above),
                    )
                )
    return pairs


def chosen_cut(pairs: Sequence[tuple[Part, Part]], rule: str, since: Mapping[str, int]) -> tuple[Part, Part] | None:
    """The cut that a rule makes. since: the run in which each person came."""
    if rule == "never" or not pairs:
        return None

    def mean(part: Part) -> Fraction:
        return Fraction(sum(since[person] for person in part.people), len(part.people))

    if rule == "even":
        return min(pairs, key=lambda pair: abs(len(pair[0].people) - len(pair[1].people)))
    return max(pairs, key=lambda pair: abs(mean(pair[0]) - mean(pair[1]))) if rule == "arrival" else pairs[0]


def divided(part: Part, at: Mapping[str, Combination], since: Mapping[str, int], least: int, rule: str) -> list[Part]:
    """The boxes of a part, from the top."""
    pair = chosen_cut(cuts_of(part, at, least), rule, since)
    if pair is None:
        return [part]
    return [box for half in pair for box in divided(half, at, since, least, rule)]


@dataclass(frozen=True)
class CohortFrame(Frame):
    """grid: how many values each quasi-identifier has; within, least: the delay and the people of a box; base: the
    least people of a box of the first version; rule: how parts are cut."""

    grid: tuple[int, ...] = (2, 2)
    within: int = 1
    least: int = 2
    base: int = 2
    rule: str = "even"

    @cached_property
    def combinations(self) -> list[Combination]:
        """What each block stands for."""
        return list(itertools.product(*map(range, self.grid)))

    @cached_property
    def top(self) -> Box:
        return tuple(bound for width in self.grid for bound in (0, width - 1))

    @property
    def coins(self) -> int:
        """Boxes that may close."""
        return sum(size for column, size in self.people if not column.present[0]) // self.least


@dataclass
class Cohorts(Engine):
    """The policy of the engine with newcomers in cohorts, and boxes of quasi-identifiers for blocks."""

    frame: CohortFrame = field(default_factory=lambda: CohortFrame((), 2))

    def _people(self, state: State | None, present: Mapping[str, tuple[int, int]]) -> dict[str, Person]:
        combinations = self.frame.combinations
        people = {name: Person(combinations[block], value) for name, (block, value) in present.items()}
        if state is not None and state.memory.version:
            return people
        out = {} if state is None else state.memory.out
        first = {name: person.block for name, person in people.items() if name not in out}
        boxes = {name: box for box, names in self._boxes(first, {}, self.frame.base) for name in names}
        return {name: person._replace(block=boxes.get(name, person.block)) for name, person in people.items()}

    def _boxes(self, at: Mapping[str, Any], since: Mapping[str, int], least: int) -> list[Part]:
        frame = self.frame
        came = {name: since.get(name, 0) for name in at}
        return divided(Part(frame.top, tuple(at)), at, came, least, frame.rule)

    def _newcomers(
        self,
        state: State,
        people: Mapping[str, Person],
        cohorts: tuple[int, ...],
        counted: Callable[[Any], Any],
    ) -> Newcomers:
        def closing(waiting: Waiting) -> Any:
            at = waiting.blocks
            rule = in_cohorts(
                every(self.frame.within),
                self.frame.least,
                lambda names: self._boxes({name: at[name] for name in names}, waiting.since, self.frame.least),
            )
            return rule(waiting)

        return closing

    def _coin(self, state: State, aside: Coin) -> Coin:
        """The n-th box of all, whatever its label is."""
        numbers = itertools.count(1 + sum(state.memory.batches.values()))
        return lambda box, number: aside((0,), next(numbers))

    def _label(self, block: Block) -> Any:
        return block


def cohort_frame_of(
    people: Sequence[str], values: int, within: int = 1, base: int = 100
) -> tuple[CohortFrame, list[tuple[Values, ...]]]:
    """A history that is written person by person, one letter a run and - for absent, with the value x, y or z of the
    only quasi-identifier and a colon before it unless it is x; with the choice of values made."""
    columns: dict[Column, list[Values]] = {}
    for text in people:
        letter, _, runs = text.rpartition(":")
        frame, chosen = frame_of([runs], (values,))
        block = "xyz".index(letter or "x")
        column = Column(block, frame.people[0][0].present, frame.people[0][0].changed)
        digest = sum(replace(known, digest=0) == column for known in columns) if column.leaves else 0
        columns.setdefault(replace(column, digest=digest), []).append(chosen[0][0])
    order = sorted(columns, key=repr)
    frame = CohortFrame(
        tuple((column, len(columns[column])) for column in order), values, grid=(3,), within=within, base=base
    )
    return frame, [tuple(sorted(columns[column])) for column in order]


@dataclass(frozen=True)
class Drawn:
    """What random frames have in common. l: of the models; blocks: of the first version, at most; large: whether boxes
    have enough people for a batch of leavers; attributes: that are published of a person; wide: whether each has more
    values."""

    l: int  # noqa: E741
    within: int
    least: int
    blocks: int
    large: bool = False
    attributes: int = 1
    wide: bool = False


def frames_of_cohorts(seed: int, of: Drawn, most: int) -> Iterator[CohortFrame]:
    """Random frames without end, of at most `most` multisets each, in which some boxes may close."""
    rng = random.Random(seed)
    while True:
        frame = _frame(rng, of)
        if frame.coins and frame.multisets() <= most:
            yield frame


def _frame(rng: random.Random, of: Drawn) -> CohortFrame:
    grid = rng.choice([(2, 2), (2, 2), (3, 2), (2,), (3,)])
    combinations, l = math.prod(grid), of.l  # noqa: E741
    runs = rng.choice([3, 3, 4] if of.within < 3 else [3, 4, 4])
    people: Counter[Column] = Counter()
    base = rng.choice([l, l, l + 1])
    where = rng.sample(range(combinations), min(combinations, rng.choice([1, 2]) if of.blocks > 1 else 1))
    for n, block in enumerate(where):
        left = rng.choice([l * l, l * l + 1] if of.large and n == 0 and rng.random() < 0.3 else [l, l, l + 1])
        while left:
            size = rng.choice([left, rng.randint(1, left)])
            people[_column(rng, block, runs, 0, of)] += size
            left -= size
    left = of.least * rng.choice([1, 2, 2]) + rng.choice([0, 0, 1, 2])
    comes = rng.randrange(1, runs)
    while left > 0:
        size = min(left, rng.choice([1, 1, 2, of.least, of.least]))
        block = rng.choice([*where, *range(combinations)])
        comes = rng.choice([comes, comes, rng.randrange(1, runs)])
        people[_column(rng, block, runs, comes, of)] += size
        left -= size
    sizes = [l + 1, 2 * l] if of.wide else [l, l, l + 1]
    return CohortFrame(
        told_apart(people),
        rng.choice([l, l + 1, l + 2, 2 * l]),
        rollback=rng.choice([None, None, *range(runs)]),
        attributes=() if of.attributes == 1 else tuple(rng.choice(sizes) for _ in range(of.attributes)),
        grid=grid,
        within=of.within,
        least=of.least,
        base=base if rng.random() < 0.7 else 100,
        rule=rng.choice(["even", *RULES]),
    )


def _column(rng: random.Random, block: int, runs: int, comes: int, of: Drawn) -> Column:
    """Somebody who comes in a run, and may stay, leave for good or for a while, or change, more than once."""
    present, changed = [run >= comes for run in range(runs)], [0] * runs
    later = range(comes + 1, runs)
    what = rng.choice(["leave", "change", "both", *["stay"] * (2 if of.large else 5)])
    if later and what in ("change", "both"):
        for _ in range(rng.choice([1, 1, 2])):
            changed[rng.choice(later)] = rng.choice([1, 1, 1, 2, 3]) if of.attributes > 1 else 1
    if later and what in ("leave", "both"):
        leaves = rng.choice(later)
        returns = rng.randrange(leaves + 1, runs + 1) if rng.random() < 0.4 else runs
        for run in range(leaves, returns):
            present[run], changed[run] = False, 0
    erased = rng.randrange(runs) if rng.random() < 0.03 else None
    return Column(block, tuple(present), tuple(changed), erased)
