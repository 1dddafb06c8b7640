"""One block whose rows are shown, with or without the number of people they are of, and exact attackers.

People have one or more rows, and a bundle is all rows of somebody. Each attacker knows one person of the block, the
least block size and the algorithm, and weighs every way to share the rows among people that fits what is known.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

Bundle = tuple[str, ...]
"""The values of somebody's rows, in order."""
Block = tuple[Bundle, ...]
"""The bundle of each person; the first is the target's."""


@dataclass(frozen=True)
class Attacker:
    """people: sees how many people the block has, or knows it; most: rows that nobody exceeds, where that is known
    (one stay in each of two years); own: knows how many rows the target has; each: how many rows everybody has."""

    people: bool = False
    most: int | None = None
    own: bool = False
    each: bool = False


def blocks(values: str, rows: int, people: int) -> Iterator[Block]:
    """Every block of so many rows and people, the order of people aside."""
    for shown in itertools.combinations_with_replacement(values, rows):
        yield from sorted({tuple(sorted(block)) for block in shared(shown, people)})


@cache
def shared(rows: Bundle, people: int) -> frozenset[Block]:
    """Every way to give all rows to so many people, each of whom has at least one."""
    if people == 1:
        return frozenset([(rows,)] if rows else [])
    found = set()
    for n in range(1, len(rows) - people + 2):
        for first in set(itertools.combinations(rows, n)):
            left = tuple(sorted((Counter(rows) - Counter(first)).elements()))
            found |= {(first, *others) for others in shared(left, people - 1)}
    return frozenset(found)


def possible(block: Block, attacker: Attacker, least: int) -> set[Bundle]:
    """The bundles that the first person may have, for an attacker who is shown the block. least: people that a block
    has, as the algorithm says."""
    rows = tuple(sorted(itertools.chain(*block)))
    numbers = [len(block)] if attacker.people or attacker.each else range(least, len(rows) + 1)
    found = set()
    for n in numbers:
        for other in shared(rows, n):
            if attacker.each and [*map(len, other)] != [*map(len, block)]:
                continue
            if attacker.own and len(other[0]) != len(block[0]):
                continue
            if attacker.most is None or max(map(len, other)) <= attacker.most:
                found.add(other[0])
    return found


def certain(block: Block, attacker: Attacker, least: int) -> set[str]:
    """The values that somebody has in every way that is possible; each person is the target once."""
    found: set[str] = set()
    for i in range(len(block)):
        turned = (block[i], *block[:i], *block[i + 1 :])
        found |= set.intersection(*map(set, possible(turned, attacker, least)))
    return found


def passes(people: Sequence[Bundle], k: int, diverse: int) -> bool:
    """k-anonymity and distinct l-diversity of people, as one version is tested: `count: entities`."""
    return len(people) >= k and len(set(itertools.chain(*people))) >= diverse


def passes_by_rows(block: Block, k: int, diverse: int) -> bool:
    """Also among those who have as many rows, of whom no value is everybody's: `versions.row_counts: known`."""
    by_rows: dict[int, list[Bundle]] = {}
    for bundle in block:
        by_rows.setdefault(len(bundle), []).append(bundle)
    return all(passes(same, k, diverse) and not set.intersection(*map(set, same)) for same in by_rows.values())
