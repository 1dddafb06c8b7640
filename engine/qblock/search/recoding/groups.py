"""Groups of rows with what the models see of them: counts of values, a population, and what people guard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Ints

Pairs = tuple[Ints, Ints]
"""The group, and the number of a predicate, each pair once."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Counts of groups of rows, each of them in one part.

    owner: int64[R], the group of each count; values: int64[R, S], of the sensitive attributes that are told apart; n:
    int64[R], rows or entities; size: int64[G], rows or entities of each group; rows: int64[G], rows of each, 0 for
    labels that only a population has. population: int64[G] for each population table; guards: for each table of
    predicates, who guards what.
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

    def select(self, index: Ints) -> Groups:
        """These groups, in that order."""
        place = np.full(len(self), -1, dtype=np.int64)
        place[index] = np.arange(len(index))
        owner = place[self.owner]
        kept = owner >= 0
        return Groups(
            owner[kept],
            self.values[kept],
            self.n[kept],
            self.size[index],
            self.rows[index],
            tuple(population[index] for population in self.population),
            tuple(_moved(pairs, place) for pairs in self.guards),
        )

    def merged(self, group: Ints, number: int) -> Groups:
        """The union of groups of rows, which add up. group: int64[G], the new number of each, -1 for none."""
        owner = group[self.owner]
        kept = owner >= 0
        return Groups(
            owner[kept],
            self.values[kept],
            self.n[kept],
            added(self.size, group, number),
            added(self.rows, group, number),
            *self.beside(group, number),
        )

    def beside(self, group: Ints, number: int) -> tuple[tuple[Ints, ...], tuple[Pairs, ...]]:
        """Population and predicates of the union of groups."""
        population = tuple(added(population, group, number) for population in self.population)
        return population, tuple(_moved(pairs, group) for pairs in self.guards)

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


def _moved(pairs: Pairs, place: Ints) -> Pairs:
    owner = place[pairs[0]]
    kept = owner >= 0
    if not kept.any():
        return owner[kept], pairs[1][kept]
    distinct = np.unique(np.stack((owner[kept], pairs[1][kept]), axis=1), axis=0)
    return distinct[:, 0], distinct[:, 1]
