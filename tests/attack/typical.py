"""Typical values beside labels, and exact attackers who are shown them.

The attacker of `divided` knows everybody's quasi-identifiers and the search, runs it on every assignment of sensitive
values, and tells these apart by what readers see: labels as texts, the values of each block, and its typical value or
none. Numbers are exact; the first quasi-identifier is the one that has typical values.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from recoding.searched import Attribute, Box, Holds, People, Values

Typical = Callable[[Sequence[int], tuple[int, int]], Hashable]
"""What is shown beside a label, for the numbers of a block, and the least and the greatest one that the label has."""
Seen = frozenset[tuple[Hashable, int]]
"""Blocks as readers see them, with how many read alike."""
Told = Callable[[Values], Sequence[tuple[Hashable, Box]] | None]
"""What is published of an assignment: blocks with their labels; None where nothing is."""
HALF = Fraction(1, 2)


def mean(numbers: Sequence[int], label: tuple[int, int]) -> Hashable:
    """The exact mean of every block: no rule tells more."""
    return Fraction(sum(numbers), len(numbers))


def grain(width: int, people: int) -> Fraction:
    """The least of 1, 2, 5 times a power of ten that is no less than what one person moves the mean by."""
    exponents = range(-6, 7)
    steps = sorted(Fraction(10) ** exponent * first for exponent in exponents for first in (1, 2, 5))
    return next(step for step in steps if step * people >= width)


def rounded_anywhere(numbers: Sequence[int], label: tuple[int, int]) -> Fraction:
    """To the nearest multiple of the grain, whether the label has it or not."""
    low, high = label
    step = grain(high - low, len(numbers))
    return math.floor(Fraction(sum(numbers), len(numbers)) / step + HALF) * step


def rounded(numbers: Sequence[int], label: tuple[int, int]) -> Fraction | None:
    """To the nearest multiple that the label has; none where it has none."""
    low, high = label
    step = grain(high - low, len(numbers))
    multiples = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    average = Fraction(sum(numbers), len(numbers))
    return min(multiples, key=lambda multiple: (abs(multiple - average), -multiple), default=None)


@dataclass
class Divided:
    """All assignments by what readers see: weights of places and values, without typical values and with them; within:
    what is seen with them, by what is seen without."""

    plain: dict[Seen, Counter[tuple[int, str]]] = field(default_factory=dict)
    beside: dict[Seen, Counter[tuple[int, str]]] = field(default_factory=dict)
    within: dict[Seen, set[Seen]] = field(default_factory=dict)
    assignments: int = 0

    def add(self, values: Values, plain: Seen, beside: Seen) -> None:
        ways = (math.factorial(len(some)) // math.prod(map(math.factorial, Counter(some).values())) for some in values)
        weight = math.prod(ways)
        self.assignments += weight
        self.within.setdefault(plain, set()).add(beside)
        for told, seen in ((self.plain, plain), (self.beside, beside)):
            counts = told.setdefault(seen, Counter())
            for place, some in enumerate(values):
                for value, n in Counter(some).items():
                    counts[place, value] += weight * n

    @property
    def changed(self) -> list[Seen]:
        """What is seen without typical values, and means other beliefs of somebody's value with them."""
        return [
            seen
            for seen, more in self.within.items()
            if any(beliefs(self.beside[one]) != beliefs(self.plain[seen]) for one in more)
        ]


def beliefs(counts: Mapping[tuple[int, str], int]) -> dict[tuple[int, str], Fraction]:
    """The share of the assignments in which somebody of a place has a value, each assignment as likely as any."""
    of_place: Counter[int] = Counter()
    for (place, _), n in counts.items():
        of_place[place] += n
    return {key: Fraction(n, of_place[key[0]]) for key, n in counts.items()}


def divided(people: People, told: Told, values: str, typical: Typical = mean) -> Divided:
    """Every assignment of these values to the people, by what is published of it."""
    result, leaves = Divided(), list(people.at)
    shown: dict[Box, Hashable] = {}
    for some in people.assignments(values):
        blocks = told(some)
        if blocks is None:
            continue
        plain: list[tuple[Hashable, ...]] = []
        beside: list[tuple[Hashable, ...]] = []
        for label, box in blocks:
            inside = people.inside(box)
            if box not in shown:
                numbers = [leaves[i][0] for i in inside for _ in range(people.at[leaves[i]])]
                shown[box] = typical(numbers, (min(box[0]), max(box[0])))
            plain.append((label, tuple(sorted(itertools.chain(*(some[i] for i in inside))))))
            beside.append((*plain[-1], shown[box]))
        result.add(some, frozenset(Counter(plain).items()), frozenset(Counter(beside).items()))
    return result


def read(attribute: Attribute, leaves: frozenset[object]) -> Hashable:
    """How a label of a map reads: as one of the hierarchy, as neighbours from one to another, or as others of what
    holds them all, whichever these are."""
    if attribute.order is not None or any(leaves in level for level in attribute.levels):
        return leaves
    return "others", min((one for level in attribute.levels for one in level if leaves <= one), key=len)


def of_map(people: People, parts: Callable[[Values], Sequence[Box] | None]) -> Told:
    """The boxes of a map that hold somebody, as they read."""

    def told(values: Values) -> list[tuple[Hashable, Box]] | None:
        boxes = parts(values)
        if boxes is None:
            return None
        named = [(tuple(map(read, people.attributes, box)), box) for box in boxes if people.inside(box)]
        return named

    return told


@dataclass(frozen=True, eq=False)
class Nodes:
    """The search for a node that loses least, with a suppression limit. limit: rows; by_sizes: whether the node is
    chosen by block sizes of k alone, and then checked."""

    people: People
    holds: Holds
    limit: int
    by_sizes: bool = False
    k: int = 2

    def told(self, values: Values) -> list[tuple[Hashable, Box]] | None:
        good = {node: self._passing(values, node, sizes=self.by_sizes) for node in self.people.nodes}
        rows = sum(self.people.at.values())
        lost = {node: rows - sum(map(self._size, boxes)) for node, boxes in good.items()}
        allowed = [node for node in good if lost[node] <= self.limit and good[node]]
        if not allowed:
            return None
        node = min(allowed, key=lambda n: (sum(self._size(b) ** 2 for b in good[n]) + lost[n] * rows, sum(n), n))
        boxes = self._passing(values, node, sizes=False)
        if not boxes or rows - sum(map(self._size, boxes)) > self.limit:
            return None
        levels = [one.levels[level] for one, level in zip(self.people.attributes, node, strict=True)]
        return [(tuple(level[leaves] for level, leaves in zip(levels, box, strict=True)), box) for box in boxes]

    def _size(self, box: Box) -> int:
        leaves = list(self.people.at)
        return sum(self.people.at[leaves[i]] for i in self.people.inside(box))

    def _passing(self, values: Values, node: tuple[int, ...], *, sizes: bool) -> list[Box]:
        return [
            box
            for box in self.people.table.blocks(node)
            if self._size(box) >= self.k
            and (sizes or self.holds(Counter(itertools.chain(*(values[i] for i in self.people.inside(box))))))
        ]


def every(numbers: Sequence[int], people: int) -> Iterator[tuple[int, ...]]:
    """The numbers of so many people, in every order."""
    return itertools.product(numbers, repeat=people)
