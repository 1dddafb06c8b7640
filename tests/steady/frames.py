"""Tiny histories: what the attacker knows of everybody, and every assignment of values that fits it."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

Values = tuple[int, ...]
"""A person's value in each run; ABSENT where there is none."""
ABSENT = -1


@dataclass(frozen=True, order=True)
class Column:
    """What is known of a person. present: in each run; changed: the attributes of which the value is another one than
    when the person was last present, as bits (True: the only attribute); erased: the run in which the person withdraws
    at once, or none; digest: tells those apart who leave, since who of them goes first depends on it."""

    block: int
    present: tuple[bool, ...]
    changed: tuple[int, ...]
    erased: int | None = None
    digest: int = field(default=0, kw_only=True)

    @property
    def leaves(self) -> bool:
        """Whether the person is absent at some time after coming."""
        return any(here and not later for here, later in itertools.pairwise(self.present))

    def values(self, widths: Sequence[int]) -> list[Values]:
        """Every sequence of values that fits. widths: how many values each attribute has."""
        found: list[tuple[Values, int]] = [((), ABSENT)]
        for here, other in zip(self.present, self.changed, strict=True):
            longer = []
            for values, last in found:
                if not here:
                    longer.append(((*values, ABSENT), last))
                    continue
                for value in range(math.prod(widths)) if other or last == ABSENT else (last,):
                    if last == ABSENT or difference(last, value, widths) == other:
                        longer.append(((*values, value), value))
            found = longer
        return [values for values, _ in found]


@dataclass(frozen=True)
class Frame:
    """A history without its values.

    people: how many there are of each column; values: the size of the domain, where there is one attribute; attributes:
    else the size of each one's, and a value is a number for values of all (`split`); cohorts: their sizes, by the
    number of values that the block shows (0, 1, 2, ... with the last one repeated). rollback: the run after which
    readers see an older version again; the job goes on from the newest one.
    """

    people: tuple[tuple[Column, int], ...]
    values: int
    cohorts: tuple[int, ...] = (2,)
    rollback: int | None = None
    attributes: tuple[int, ...] = ()

    @cached_property
    def widths(self) -> tuple[int, ...]:
        return self.attributes or (self.values,)

    @cached_property
    def size(self) -> int:
        return math.prod(self.widths)

    @cached_property
    def masks(self) -> list[list[int]]:
        """For each attribute and value of it a bit for each number that has it."""
        return [
            [sum(1 << n for n in range(self.size) if split(n, self.widths)[i] == value) for value in range(width)]
            for i, width in enumerate(self.widths)
        ]

    @cached_property
    def runs(self) -> int:
        return len(self.people[0][0].present)

    @property
    def coins(self) -> int:
        """How many batches of newcomers may close: one of a block in a run."""
        return len({column.block for column, _ in self.people}) * (self.runs - 1)

    @cached_property
    def names(self) -> list[list[str]]:
        """Of the people of each column."""
        return [[f"{c}.{i}" for i in range(size)] for c, (_, size) in enumerate(self.people)]

    def choices(self) -> list[list[tuple[Values, ...]]]:
        """For each column every multiset of sequences: its people are alike to the attacker, and to the policy."""
        return [
            list(itertools.combinations_with_replacement(column.values(self.widths), size))
            for column, size in self.people
        ]

    def first_block(self, column: Column) -> Any:
        """The block in which the first version shows somebody who is present then."""
        return column.block

    def multisets(self) -> int:
        """How many assignments there are up to exchange of people of one column."""
        return math.prod(math.comb(_sequences(c, self.widths) + size - 1, size) for c, size in self.people)


def told_apart(people: Counter[Column]) -> tuple[tuple[Column, int], ...]:
    """How many people there are of each column, in order; each who leaves is one of a column."""
    columns: Counter[Column] = Counter()
    for column, n in people.items():
        for digest in range(n):
            columns[replace(column, digest=digest if column.leaves else 0)] += 1
    return tuple(sorted(columns.items(), key=repr))


@cache
def _sequences(column: Column, widths: tuple[int, ...]) -> int:
    return len(column.values(widths))


def split(value: int, widths: Sequence[int]) -> tuple[int, ...]:
    """The value of each attribute."""
    found = []
    for width in widths:
        value, one = divmod(value, width)
        found.append(one)
    return tuple(found)


def joined(values: Sequence[int], widths: Sequence[int]) -> int:
    """The number of the values of all attributes."""
    found = 0
    for value, width in zip(reversed(values), reversed(widths), strict=True):
        found = found * width + value
    return found


def difference(before: int, after: int, widths: Sequence[int]) -> int:
    """The attributes that two values differ in, as bits."""
    pairs = zip(split(before, widths), split(after, widths), strict=True)
    return sum((old != new) << i for i, (old, new) in enumerate(pairs))


def arrangements(chosen: Sequence[Values]) -> int:
    """How many assignments a multiset stands for."""
    return math.factorial(len(chosen)) // math.prod(map(math.factorial, Counter(chosen).values()))


def frame_of(people: Sequence[str], widths: Sequence[int]) -> tuple[Frame, list[tuple[Values, ...]]]:
    """A history that is written person by person, one letter a run and - for absent; with the choice of values made.

    Of several attributes a letter for each, and a dot between runs.
    """
    found: dict[Column, list[Values]] = {}
    for text in people:
        sequence = tuple(_value(run, widths) for run in (text if len(widths) == 1 else text.split(".")))
        changed, last = [], ABSENT
        for value in sequence:
            changed.append(0 if ABSENT in (value, last) else difference(last, value, widths))
            last = last if value == ABSENT else value
        column = Column(0, tuple(value != ABSENT for value in sequence), tuple(changed))
        digest = sum(replace(known, digest=0) == column for known in found) if column.leaves else 0
        found.setdefault(replace(column, digest=digest), []).append(sequence)
    people_of = tuple((column, len(found[column])) for column in sorted(found, key=repr))
    frame = Frame(people_of, widths[0], attributes=tuple(widths) if len(widths) > 1 else ())
    return frame, [tuple(sorted(found[column])) for column, _ in frame.people]


def _value(letters: str, widths: Sequence[int]) -> int:
    if "-" in letters:
        return ABSENT
    return joined([ord(letter) - ord("a") for letter in letters], widths)


def frames(
    seed: int,
    l: int,  # noqa: E741
    blocks: int,
    most: int,
    small: bool = False,
    large: bool = False,
    attributes: int = 1,
    wide: bool = False,
) -> Iterator[Frame]:
    """Random frames without end, of at most `most` multisets each.

    small: with too few people for leavers to go; large: with enough; attributes: that are published of a person; wide:
    whether each has more values.
    """
    rng, too_large = random.Random(seed), 0
    while too_large < 20_000:
        found = _frame(
            rng, l, blocks, not large and (small or rng.random() < (0.4 if l == 2 else 0.7)), attributes, wide
        )
        too_large += 1
        if found.multisets() <= most:
            too_large = 0
            yield found


def _frame(
    rng: random.Random,
    l: int,  # noqa: E741
    blocks: int,
    small: bool,
    attributes: int,
    wide: bool,
) -> Frame:
    """First people, in the first block enough for a batch of their cell unless `small`, and newcomers."""
    runs = rng.choice([2, 3, 3] if small else [3, 3, 4])
    people: Counter[Column] = Counter()
    for block in range(blocks):
        large = not small and block == 0
        left = rng.choice([l * l, l * l + 1, l * l + 1, l * l + 2] if large else [l, l, l + 1])
        # Mostly enough people leave or change for a batch, some of them each in a run of their own.
        going = rng.choice([l, l, left - 1, left]) if large else rng.choice([0, 0, 1, left])
        while left:
            size = min(left, rng.choice([1, 1, l, l]) if going > 0 else rng.choice([1, left, left]))
            people[_column(rng, block, runs, 0, large and going > 0, attributes)] += size
            left, going = left - size, going - size
        for _ in range(rng.choice([0, 0, 1] if large else [0, 1, 1, 2])):
            people[_column(rng, block, runs, rng.randrange(1, runs), False, attributes)] += rng.choice([1, l, l, l + 1])
    cohorts = (rng.choice([l, l, l + 1]), *rng.choice([(), (), (l + 1, l)]))
    values = rng.choice([l + 1, l + 2, 2 * l, 2 * l] if small else [l, l + 1, l + 2, l + 3])
    rollback = rng.choice([None, *range(runs)])
    sizes = [l + 1, 2 * l] if wide else [l, 2 * l, 2 * l] if small else [l, l, l + 1]
    widths = () if attributes == 1 else tuple(rng.choice(sizes) for _ in range(attributes))
    return Frame(told_apart(people), values, cohorts, rollback, widths)


def _column(rng: random.Random, block: int, runs: int, comes: int, goes: bool, attributes: int) -> Column:
    """Somebody who comes in a run. goes: who leaves or changes for certain."""
    present = [run >= comes for run in range(runs)]
    changed: list[int] = [False] * runs
    later = range(comes + 1, runs)
    what = rng.choice(["leave", "change", *([] if goes else ["both", "stay", "stay", "stay", "stay"])])
    if later and what in ("change", "both"):
        for _ in range(1 if rng.random() < 0.7 else 2):
            run = rng.choice(later)
            # Mostly the same attribute, so that batches form.
            changed[run] = True if attributes == 1 else rng.choice([1, 1, 1, 2, 2**attributes - 1])
    if later and what in ("leave", "both"):
        leaves = rng.choice(later)
        returns = rng.randrange(leaves + 1, runs + 1) if rng.random() < 0.2 else runs
        for run in range(leaves, returns):
            present[run] = changed[run] = False
    erased = rng.randrange(runs) if rng.random() < 0.03 else None
    return Column(block, tuple(present), tuple(changed), erased)
