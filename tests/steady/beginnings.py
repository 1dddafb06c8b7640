"""The assignments to a frame that begin with the same rows: who has seen the first version is left with these."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .frames import ABSENT, Column, Frame, Values, joined

Chosen = tuple[tuple[Values, ...], ...]
"""For each column the sequences of its people."""


def same_first_rows(frame: Frame, chosen: Sequence[Sequence[Values]]) -> Iterator[Chosen]:
    """Every assignment that has the rows of `chosen` in the first run, block by block: up to exchange in a column."""
    for firsts in _firsts(frame, chosen):
        yield from itertools.product(
            *(_from(column, size, first, frame) for (column, size), first in zip(frame.people, firsts, strict=True))
        )


def balanced(frame: Frame, l: int, rng: random.Random) -> Chosen:  # noqa: E741
    """A drawn assignment whose first rows have the values of each attribute about equally often in each block."""
    people = Counter(column.block for column, n in frame.people for _ in range(n) if column.present[0])
    firsts: dict[int, Iterator[int]] = {}
    for block, n in people.items():
        columns = []
        for width in frame.widths:
            values = rng.sample(range(width), rng.randint(min(l, width), min(2 * l, width)))
            columns.append(rng.sample((values * n)[:n], n))
        firsts[block] = iter([joined(some, frame.widths) for some in zip(*columns, strict=True)])
    return tuple(
        tuple(
            rng.choice(_sequences(column, next(firsts[column.block]) if column.present[0] else ABSENT, frame))
            for _ in range(n)
        )
        for column, n in frame.people
    )


def how_many(frame: Frame, chosen: Sequence[Sequence[Values]]) -> int:
    """How many `same_first_rows` has."""
    return sum(
        math.prod(
            math.prod(math.comb(len(_sequences(column, value, frame)) + n - 1, n) for value, n in first.items())
            for (column, _), first in zip(frame.people, firsts, strict=True)
        )
        for firsts in _firsts(frame, chosen)
    )


def _firsts(frame: Frame, chosen: Sequence[Sequence[Values]]) -> Iterator[tuple[Counter[int], ...]]:
    """The values of each column in the first run; of whoever is absent then, ABSENT."""
    where = [frame.first_block(column) for column, _ in frame.people]
    blocks = sorted(set(where))
    rows: dict[Any, Counter[int]] = {block: Counter() for block in blocks}
    sizes: dict[Any, list[int]] = {block: [] for block in blocks}
    for block, (column, n), sequences in zip(where, frame.people, chosen, strict=True):
        if column.present[0]:
            rows[block].update(values[0] for values in sequences)
            sizes[block].append(n)
    for some in itertools.product(*(list(_split(rows[block], sizes[block])) for block in blocks)):
        of_block = {block: iter(found) for block, found in zip(blocks, some, strict=True)}
        yield tuple(
            next(of_block[block]) if column.present[0] else Counter({ABSENT: n})
            for block, (column, n) in zip(where, frame.people, strict=True)
        )


def _split(values: Counter[int], sizes: Sequence[int]) -> Iterator[tuple[Counter[int], ...]]:
    """Every way to give values to groups of these sizes."""
    if not sizes:
        yield ()
        return
    for taken in _of_size(sorted(values.elements()), sizes[0]):
        for others in _split(values - taken, sizes[1:]):
            yield (taken, *others)


def _of_size(values: Sequence[int], n: int) -> Iterator[Counter[int]]:
    for one in sorted(set(itertools.combinations(values, n))):
        yield Counter(one)


def _sequences(column: Column, first: int, frame: Frame) -> list[Values]:
    return [values for values in column.values(frame.widths) if values[0] == first]


def _from(column: Column, size: int, first: Counter[int], frame: Frame) -> list[tuple[Values, ...]]:
    """Every multiset of a column's sequences that begins so."""
    parts = (
        itertools.combinations_with_replacement(_sequences(column, value, frame), n)
        for value, n in sorted(first.items())
    )
    return [tuple(itertools.chain(*some)) for some in itertools.product(*parts)]
