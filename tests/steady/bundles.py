"""Tiny histories of people with several rows: a value is the number of a bundle, the values of all rows of somebody."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

from .beginnings import Chosen
from .frames import ABSENT, Column, Frame, Values, told_apart

Known = Literal["changes", "rows"]
"""What is known of somebody's rows: in which runs they are others, and whether one was added or one is another; and
also how many there are."""
ADDED, REPLACED = 1, 2
MOST = 2
"""Rows of somebody who is seen for the first time."""


@cache
def bundles(values: int, most: int) -> tuple[tuple[int, ...], ...]:
    """All of up to so many rows, by rows: a number names the same bundle whatever `most` is."""
    return tuple(rows for n in range(1, most + 1) for rows in itertools.combinations_with_replacement(range(values), n))


@cache
def _next(values: int, most: int, number: int, kind: int) -> tuple[int, ...]:
    """The bundles with one row more than this one, or with another row in the place of one."""
    named = bundles(values, most)
    rows = named[number]
    found = []
    for other, candidate in enumerate(named):
        more = Counter(candidate)
        more.subtract(rows)
        differs = sorted(n for n in more.values() if n)
        if differs == ([1] if kind == ADDED else [-1, 1]):
            found.append(other)
    return tuple(found)


@dataclass(frozen=True, order=True)
class Person(Column):
    """changed: ADDED, REPLACED or 0 in each run; rows: known of the first run in which the person is present, or 0;
    alphabet: how many values a row may have."""

    rows: int = 0
    alphabet: int = 2

    @property
    def most(self) -> int:
        return MOST + sum(kind == ADDED for kind in self.changed)

    def values(self, widths: Sequence[int]) -> list[Values]:
        named = bundles(self.alphabet, self.most)
        first = [i for i, rows in enumerate(named) if len(rows) == (self.rows or len(rows)) and len(rows) <= MOST]
        found: list[tuple[Values, int]] = [((), ABSENT)]
        for here, kind in zip(self.present, self.changed, strict=True):
            longer = []
            for values, last in found:
                if not here:
                    longer.append(((*values, ABSENT), last))
                    continue
                after = first if last == ABSENT else _next(self.alphabet, self.most, last, kind) if kind else (last,)
                longer += [((*values, value), value) for value in after]
            found = longer
        return [values for values, _ in found]


@dataclass(frozen=True)
class Bundled(Frame):
    """values: of a row; known: what is known of everybody's rows."""

    known: Known = "changes"

    @cached_property
    def named(self) -> tuple[tuple[int, ...], ...]:
        return bundles(self.values, max(column.most for column, _ in self.people if isinstance(column, Person)))

    @cached_property
    def widths(self) -> tuple[int, ...]:  # type: ignore[override]
        return (len(self.named),)

    @cached_property
    def masks(self) -> list[list[int]]:  # type: ignore[override]
        return [[sum(1 << n for n, rows in enumerate(self.named) if value in rows) for value in range(self.values)]]

    def multisets(self) -> int:
        return math.prod(math.comb(len(column.values(())) + size - 1, size) for column, size in self.people)


def balanced_bundles(frame: Bundled, l: int, rng: random.Random) -> Chosen:  # noqa: E741
    """A drawn assignment whose first rows are of few bundles, about equally often in each block."""
    pools: dict[tuple[int, int], list[int]] = {}
    chosen = []
    for column, n in frame.people:
        assert isinstance(column, Person)
        firsts = sorted({next(value for value in values if value != ABSENT) for values in column.values(())})
        pool = pools.setdefault(
            (column.block, column.rows), rng.sample(firsts, min(len(firsts), rng.randint(max(2, l), 2 * l)))
        )
        some = []
        for i in range(n):
            begins = pool[(len(chosen) + i) % len(pool)] if column.present[0] else ABSENT
            some.append(rng.choice([values for values in column.values(()) if values[0] == begins]))
        chosen.append(tuple(some))
    return tuple(chosen)


def bundled_frame(people: Sequence[str], alphabet: int) -> tuple[Bundled, list[tuple[Values, ...]]]:
    """A history that is written person by person, runs with a dot between them, a letter for each row, - for absent;
    with the choice of bundles made."""
    found: dict[Person, list[Values]] = {}
    for text in people:
        rows = [tuple(sorted(ord(letter) - ord("a") for letter in run if letter != "-")) for run in text.split(".")]
        kinds, last = [], None
        for one in rows:
            before = one if last is None or not one else last
            kinds.append(ADDED if len(one) > len(before) else REPLACED if one != before else 0)
            last = one or last
        named = bundles(alphabet, MOST + len(rows))
        person = Person(0, tuple(map(bool, rows)), tuple(kinds), None, 0, alphabet)
        digest = sum(replace(known, digest=0) == person for known in found) if person.leaves else 0
        values = tuple(named.index(one) if one else ABSENT for one in rows)
        found.setdefault(replace(person, digest=digest), []).append(values)
    people_of = tuple((column, len(found[column])) for column in sorted(found, key=repr))
    return Bundled(people_of, alphabet), [tuple(sorted(found[column])) for column, _ in people_of]


def frames_of_bundles(seed: int, l: int, blocks: int, known: Known, most: int, large: bool) -> Iterator[Bundled]:  # noqa: E741
    """Random frames without end, of at most `most` multisets each."""
    rng = random.Random(seed)
    while True:
        found = _frame(rng, l, blocks, known, large)
        if found.multisets() <= most:
            yield found


def _frame(rng: random.Random, l: int, blocks: int, known: Known, large: bool) -> Bundled:  # noqa: E741
    runs = rng.choice([3, 3, 4] if large else [2, 3, 3])
    values = rng.choice([l + 1, l + 1, l + 2])
    people: Counter[Column] = Counter()

    def person(block: int, comes: int, goes: bool, rows: int) -> Person:
        present = [run >= comes for run in range(runs)]
        changed = [0] * runs
        later = range(comes + 1, runs)
        what = rng.choice(["leave", "change", "change", *([] if goes else ["both", "stay", "stay", "stay"])])
        if later and what in ("change", "both"):
            for _ in range(1 if rng.random() < 0.8 else 2):
                changed[rng.choice(later)] = rng.choice([ADDED, ADDED, REPLACED])
        if later and what in ("leave", "both"):
            for run in range(rng.choice(later), runs):
                present[run], changed[run] = False, 0
        erased = rng.randrange(runs) if rng.random() < 0.03 else None
        return Person(block, tuple(present), tuple(changed), erased, rows, values)

    for block in range(blocks):
        left = rng.choice([l * l, l * l + 1, l * l + 2] if large and block == 0 else [l, l + 1, l + 2])
        going = rng.choice([l, l, left - 1]) if large and block == 0 else rng.choice([0, 1, left])
        rows = rng.choice([1, 1, 2])
        while left > 0:
            size = min(left, rng.choice([1, l, l]) if going > 0 else rng.choice([1, left]))
            if known == "rows" and rng.random() < 0.3:
                rows = 3 - rows
            people[person(block, 0, going > 0, rows if known == "rows" else 0)] += size
            left, going = left - size, going - size
        for _ in range(rng.choice([0, 0, 1] if large else [0, 1, 1, 2])):
            come = rng.randrange(1, runs)
            people[person(block, come, False, rows if known == "rows" else 0)] += rng.choice([1, l, l, l + 1])
    cohorts = (rng.choice([l, l, l + 1]), *rng.choice([(), (), (l + 1, l)]))
    rollback = rng.choice([None, *range(runs)])
    return Bundled(told_apart(people), values, cohorts, rollback, (), known)
