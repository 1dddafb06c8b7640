"""What a batch of some people of a cell would tell by failing: who may be in it, who outside, by public counts alone.

A batch of m people fails where their values are concentrated, or those of the others. For models to which a more
concentrated part is never better, the most concentrated choices of m people are the witnesses: if none of them fails,
nothing can; and whatever fails among them stays possible for everybody, once it is known that a batch failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache
from operator import sub
from typing import NamedTuple

import numpy as np

from qblock.blocks import Blocks, Reference
from qblock.models import Model

Models = tuple[Model, ...]
NOTHING = Reference(0, (), np.zeros(0, dtype=np.int64))


class Column(NamedTuple):
    """The values of one sensitive attribute in one part of a cell, person by person.

    l: the different values that its models imply; models: those that look at nothing but how often each value occurs.
    """

    values: tuple[Hashable, ...]
    l: int  # noqa: E741
    models: Models


def cannot_fail(columns: Sequence[Column], m: int) -> bool:
    """Whether no choice of m people fails, nor those whom it leaves."""
    return all(_most_pass(_sorted_counts(column), m, column.models) for column in _fewest_first(columns))


def leaves_candidates(columns: Sequence[Column], m: int) -> bool:
    """Whether everybody keeps l values of each attribute in each part, when m people failed.

    What is shown of a person goes together: whoever can be in a batch that fails by one column is there with the values
    of all.
    """
    n = len(columns[0].values)
    return _holds_enough(columns, m) and _holds_enough(columns, n - m)


def _fewest_first(columns: Sequence[Column]) -> list[Column]:
    """Those with few values tell most, at the least cost."""
    return sorted(columns, key=lambda column: len(set(column.values)))


def _holds_enough(columns: Sequence[Column], size: int) -> bool:
    """Whether those who can be among `size` people of whom these or the others fail have l values in each column."""
    able: set[int] = set()
    for column in _fewest_first(columns):
        counts = Counter(column.values)
        failing = failing_counts(_sorted_counts(column), size, column.models)
        able.update(i for i, value in enumerate(column.values) if counts[value] in failing)
        # More people can only have more values.
        if all(len({of.values[i] for i in able}) >= of.l for of in columns):
            return True
    return False


def _sorted_counts(column: Column) -> tuple[int, ...]:
    return tuple(sorted(Counter(column.values).values(), reverse=True))


@lru_cache(maxsize=2**16)
def _most_pass(counts: tuple[int, ...], m: int, models: Models) -> bool:
    return all(_passing([_sorted(_concentrated(counts, size)) for size in (m, sum(counts) - m)], models))


@lru_cache(maxsize=2**16)
def failing_counts(counts: tuple[int, ...], size: int, models: Models) -> frozenset[int]:
    """How many people hold each of the values that somebody of `size` people can have, while these or the others fail.

    counts: of the values of everybody. Values that as many people hold are alike. Of each value that somebody of them
    shall have: once, then the largest counts; all of it, then the largest; and the most concentrated others that leave
    it once.
    """
    witnesses = [(count, taken) for count in set(counts) for taken in _witnesses(counts, counts.index(count), size)]
    groups = [_sorted(taken) for _, taken in witnesses]
    groups += [_sorted(tuple(map(sub, counts, taken))) for _, taken in witnesses]
    distinct = list(dict.fromkeys(groups))
    passing = dict(zip(distinct, _passing(distinct, models), strict=True))
    pairs = zip(witnesses, groups, groups[len(witnesses) :], strict=False)
    return frozenset(count for (count, _), taken, left in pairs if not (passing[taken] and passing[left]))


def _witnesses(counts: tuple[int, ...], i: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Choices of so many people of whom somebody has the i-th value."""
    less, whole = _with(counts, i, counts[i] - 1), min(counts[i], size)
    rest, taken = _concentrated(less, sum(less) + 1 - size), _concentrated(less, size - 1)
    return (
        _with(taken, i, taken[i] + 1),
        _with(_concentrated(_with(counts, i, 0), size - whole), i, whole),
        tuple(map(sub, counts, rest)),
    )


def _with(counts: tuple[int, ...], i: int, n: int) -> tuple[int, ...]:
    return (*counts[:i], n, *counts[i + 1 :])


def _concentrated(counts: tuple[int, ...], size: int) -> tuple[int, ...]:
    """So many people of the values that most have, as a count of each value."""
    taken = [0] * len(counts)
    for i in sorted(range(len(counts)), key=counts.__getitem__, reverse=True):
        taken[i] = min(counts[i], size)
        size -= taken[i]
    return tuple(taken)


def _sorted(counts: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted((n for n in counts if n), reverse=True))


def _passing(groups: Sequence[tuple[int, ...]], models: Models) -> list[bool]:
    """Which groups pass, by their counts: all at once, since asking of one costs as much."""
    blocks = Blocks.of([dict(enumerate(counts)) for counts in groups])
    passing = np.ones(len(groups), dtype=bool)
    for model in models:
        passing &= model.passes(blocks, NOTHING)
    return passing.tolist()
