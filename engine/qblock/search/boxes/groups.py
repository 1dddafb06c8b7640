"""Counts of groups of rows: how they are chosen, united and put one behind another, and what the models see of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qblock.blocks import Blocks, Ints
from qblock.frequency.arrays import counted

Pairs = tuple[Ints, Ints]
"""The group, and the number of a predicate, each pair once."""
ANY = -1
"""In place of a value, where a count is of whatever values."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Counts of groups of rows, each of them in one part.

    owner: int64[R], the group of each count; values: int64[R, S], of the sensitive attributes that are told apart; n:
    int64[R], rows or entities; size: int64[G], rows or entities of each group; rows: int64[G], rows of each, 0 for
    labels that only a population has. population: int64[G] for each population table; guards: for each table of
    predicates, who guards what. Entities do not add up: they are counted by each attribute with ANY in place of the
    others, and by those that a model looks at together.
    """

    owner: Ints
    values: Ints
    n: Ints
    size: Ints
    rows: Ints
    population: tuple[Ints, ...] = ()
    guards: tuple[Pairs, ...] = ()

    def __len__(self) -> int:
        return len(self.size)

    def told(self, columns: Sequence[int]) -> tuple[Ints, Ints, Ints]:
        """The counts by some columns of the values: owner, values and n. Those of rows may be of other columns, too."""
        if not (self.values == ANY).any():
            return self.owner, self.values[:, columns], self.n
        others = [i for i in range(self.values.shape[1]) if i not in columns]
        kept = (self.values[:, columns] != ANY).all(axis=1) & (self.values[:, others] == ANY).all(axis=1)
        return self.owner[kept], self.values[kept][:, columns], self.n[kept]

    def select(self, index: Ints) -> Groups:
        """These groups, in that order."""
        place = np.full(len(self), -1, dtype=np.int64)
        place[index] = np.arange(len(index))
        return Groups(
            *self._counts(place),
            self.size[index],
            self.rows[index],
            tuple(population[index] for population in self.population),
            tuple(_moved(pairs, place) for pairs in self.guards),
        )

    def merged(self, group: Ints, number: int) -> Groups:
        """The union of groups of rows, which add up. group: int64[G], the new number of each, -1 for none."""
        sizes = added(self.size, group, number), added(self.rows, group, number)
        return Groups(*self._counts(group), *sizes, *self.beside(group, number))

    def _counts(self, group: Ints) -> tuple[Ints, Ints, Ints]:
        """Owner, values and n of the counts that stay, by the new number of each group, -1 for none."""
        owner = group[self.owner]
        # Places are read in half the time that a mask takes.
        kept = np.flatnonzero(owner >= 0)
        if len(kept) == len(owner):
            return owner, self.values, self.n
        return owner[kept], self.values[kept], self.n[kept]

    def beside(self, group: Ints, number: int) -> tuple[tuple[Ints, ...], tuple[Pairs, ...]]:
        """Population and predicates of the union of groups."""
        population = tuple(added(population, group, number) for population in self.population)
        return population, tuple(_moved(pairs, group) for pairs in self.guards)

    @classmethod
    def gathered(cls, given: Sequence[tuple[Groups, Ints, Ints]]) -> Groups:
        """Some groups of several. given: with the places of those that are taken, and the number that each gets; they
        are all numbers from 0."""
        total = sum(len(index) for _, index, _ in given)
        counts, sizes = [], np.zeros((2, total), dtype=np.int64)
        beside = np.zeros((len(given[0][0].population), total), dtype=np.int64)
        pairs: list[list[Pairs]] = [[] for _ in given[0][0].guards]
        for groups, index, number in given:
            place = np.full(len(groups), -1, dtype=np.int64)
            place[index] = number
            counts.append(groups._counts(place))
            sizes[:, number] = groups.size[index], groups.rows[index]
            for to, population in zip(beside, groups.population, strict=True):
                to[number] = population[index]
            for listed, of in zip(pairs, groups.guards, strict=True):
                listed.append(_moved(of, place))
        owner, values, n = (np.concatenate(column) for column in zip(*counts, strict=True))
        joined = [tuple(np.concatenate(column) for column in zip(*every, strict=True)) for every in pairs]
        guards = tuple(_moved((of[0], of[1]), np.arange(total)) for of in joined)
        return cls(owner, values, n, sizes[0], sizes[1], tuple(beside), guards)

    @classmethod
    def concatenated(cls, given: Sequence[Groups]) -> Groups:
        """Groups of several, one after another."""
        starts = np.cumsum([0, *(len(groups) for groups in given)])
        pairs = list(zip(given, starts.tolist(), strict=False))
        first = given[0]
        return cls(
            np.concatenate([groups.owner + start for groups, start in pairs]),
            np.concatenate([groups.values for groups in given]),
            np.concatenate([groups.n for groups in given]),
            np.concatenate([groups.size for groups in given]),
            np.concatenate([groups.rows for groups in given]),
            tuple(np.concatenate([groups.population[i] for groups in given]) for i in range(len(first.population))),
            tuple(
                (
                    np.concatenate([groups.guards[i][0] + start for groups, start in pairs]),
                    np.concatenate([groups.guards[i][1] for groups in given]),
                )
                for i in range(len(first.guards))
            ),
        )


def added(values: Ints, group: Ints, number: int) -> Ints:
    """Values of groups added up by new numbers, -1 for none."""
    total = np.zeros(number, dtype=np.int64)
    there = group >= 0
    np.add.at(total, group[there], values[there])
    return total


def placed(number: int, place: Ints, counts: Ints) -> Ints:
    """int64[number]: counts at their places, 0 at others."""
    total = np.zeros(number, dtype=np.int64)
    total[place] = counts
    return total


def _moved(pairs: Pairs, place: Ints) -> Pairs:
    owner = place[pairs[0]]
    kept = owner >= 0
    if not kept.any():
        return owner[kept], pairs[1][kept]
    every = np.unique(np.stack((owner[kept], pairs[1][kept]), axis=1), axis=0)
    return every[:, 0], every[:, 1]


def in_order(groups: Groups) -> Groups:
    """With its counts in the order of the groups."""
    by = np.argsort(groups.owner, kind="stable")
    return replace(groups, owner=groups.owner[by], values=groups.values[by], n=groups.n[by])


def blocks_of(groups: Groups, column: int) -> Blocks:
    """Groups as blocks of one sensitive attribute; column: of their values."""
    owner, values, count = groups.told([column])
    value = values[:, 0]
    span = int(value.max(initial=0)) + 1
    key = owner * span + value
    # The labels of parts come in this order, each pair once.
    if not (key[1:] > key[:-1]).all():
        pairs = counted(key, count)
        key, count = pairs.keys, pairs.n
        owner, value = key // span, key % span
    start = np.searchsorted(owner, np.arange(len(groups) + 1)).astype(np.int64)
    return Blocks(start, value, count, groups.size)


def firsts(ascending: Ints) -> Ints:
    """Where each of some ascending numbers is first."""
    new = np.ones(len(ascending), dtype=bool)
    new[1:] = ascending[1:] != ascending[:-1]
    return np.flatnonzero(new)


def distinct(numbers: Ints) -> Ints:
    """The numbers that occur, from 0 and not many more than these, ascending."""
    there = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=bool)
    there[numbers] = True
    return np.flatnonzero(there)


def numbered(keys: Sequence[Ints]) -> tuple[Ints, Ints]:
    """The number of each key among the distinct ones, in ascending order, and where each of these is first."""
    single = np.zeros(len(keys[0]), dtype=np.int64)
    span = 1
    for column in keys:
        size = int(column.max(initial=0)) + 1
        if span * size >= 2**62:
            every, single = np.unique(single, return_inverse=True)
            single, span = single.reshape(-1).astype(np.int64), len(every)
        single, span = single * size + column, span * size
    _, first, number = np.unique(single, return_index=True, return_inverse=True)
    return number.reshape(-1).astype(np.int64), first
