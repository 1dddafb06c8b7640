"""Groups of rows: what the models see of them, and which of them satisfy all models of a spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qblock.blocks import Blocks, Containing, Guards, Ints, Mask, Reference
from qblock.models import Model
from qblock.models.multi import split
from qblock.search.assessment import Part, held_by_all
from qblock.search.task import Task
from qblock.spec import Requirement

Pairs = tuple[Ints, Ints]
"""The group, and the number of a predicate, each pair once."""
Path = Callable[[Ints, int], Sequence[Containing]]
"""The parts on the way from the whole table to each of some parts, themselves included, as blocks of the sensitive
attribute in a column of their values: for (n,t)-closeness."""


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
        kept = owner >= 0
        return owner[kept], self.values[kept], self.n[kept]

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


class Judge:
    """needed: the sensitive attributes, by number, that groups tell apart. sizes: whether nothing counts but the least
    size that the models imply."""

    def __init__(self, task: Task, needed: Sequence[int], *, sizes: bool = False) -> None:
        self._requirements = task.bound_models
        requirements = [requirement for requirement, _ in self._requirements]
        self._populations = {id(q): i for i, q in enumerate(with_population(requirements))}
        self._guards = {id(q): i for i, q in enumerate(with_guards(requirements))}
        self._column = {name: needed.index(i) for i, name in enumerate(task.source.sensitives) if i in needed}
        self.least = task.least
        self._forbids_held_by_all = task.forbids_held_by_all
        self._sizes = sizes
        self.looks_up = any("containing" in bound[0][0].needs for _, bound in self._requirements)

    def failing(self, groups: Groups, parts: Ints, path: Path) -> Mask:
        """bool[G]: the groups that fail. parts: int64[G], the part that each one is in; path: of parts."""
        empty = groups.rows == 0
        failing: Mask = (groups.size < self.least) & ~empty
        if self._sizes:
            return failing
        for requirement, bound in self._requirements:
            # A part of the population that nobody of the table is in.
            if id(requirement) in self._populations and getattr(bound[0][0], "min", 0) > 0:
                failing |= empty & (groups.population[self._populations[id(requirement)]] > 0)
        large = np.flatnonzero(~failing & ~empty)
        if not len(large):
            return failing
        judged = groups if len(large) == len(groups) else groups.select(large)
        bad = np.zeros(len(large), dtype=bool)
        for applied in self.parts(judged, parts[large], path):
            for part in applied:
                bad |= part.failing(len(large))
        common = self.held_by_all(judged)
        if common is not None:
            bad |= common
        failing[large] = bad
        return failing

    def held_by_all(self, groups: Groups) -> Mask | None:
        """bool[G]: the groups in which everybody holds some value, where that fails them."""
        if not self._forbids_held_by_all:
            return None
        return held_by_all([blocks_of(groups, column) for column in self._column.values()])

    def parts(
        self, groups: Groups, parts: Ints, path: Path, empty: Sequence[Ints] | None = None
    ) -> list[tuple[Part, ...]]:
        """The models to apply, for each requirement. empty: of each population, the sizes of its parts that nobody of
        the table is in."""
        return [
            self._parts(requirement, bound, groups, parts, path, empty) for requirement, bound in self._requirements
        ]

    def _parts(
        self,
        requirement: Requirement,
        bound: Sequence[tuple[Model, Reference]],
        groups: Groups,
        parts: Ints,
        path: Path,
        empty: Sequence[Ints] | None,
    ) -> tuple[Part, ...]:
        if not requirement.sensitive:
            start = np.arange(len(groups) + 1, dtype=np.int64)
            blocks = Blocks(start, np.zeros_like(groups.size), groups.size, groups.size)
            if id(requirement) in self._populations:
                number = self._populations[id(requirement)]
                alone = groups.size[:0] if empty is None else empty[number]
                blocks = replace(blocks, population=groups.population[number], population_only=alone)
            return (Part(bound[0][0], blocks, bound[0][1]),)
        columns = [self._column[name] for name in requirement.sensitive]
        if len(columns) == 1:
            blocks = blocks_of(groups, columns[0])
            if "containing" in bound[0][0].needs:
                blocks = replace(blocks, containing=tuple(path(parts, columns[0])))
            if id(requirement) in self._guards:
                owner, predicate = groups.guards[self._guards[id(requirement)]]
                start = np.searchsorted(owner, np.arange(len(groups) + 1)).astype(np.int64)
                blocks = replace(blocks, guards=Guards(start, predicate))
            return (Part(bound[0][0], blocks, bound[0][1]),)
        return tuple(
            Part(model, blocks, reference, owner)
            for (model, reference), (blocks, owner) in zip(
                bound, split(groups.owner, groups.values[:, columns], groups.n), strict=True
            )
        )


def with_population(requirements: Sequence[Requirement]) -> list[Requirement]:
    """Those that count a population."""
    return [requirement for requirement in requirements if "population" in requirement.model.needs]


def with_guards(requirements: Sequence[Requirement]) -> list[Requirement]:
    """Those whose predicates people guard."""
    return [requirement for requirement in requirements if requirement.guards is not None]


def blocks_of(groups: Groups, column: int) -> Blocks:
    """Groups as blocks of one sensitive attribute; column: of their values."""
    value = groups.values[:, column]
    span = int(value.max(initial=0)) + 1
    key = groups.owner * span + value
    order = np.argsort(key)
    key = key[order]
    new = np.ones(len(key), dtype=bool)
    new[1:] = key[1:] != key[:-1]
    first = np.flatnonzero(new)
    count = np.add.reduceat(groups.n[order], first) if len(first) else groups.n
    owner = key[first] // span
    start = np.searchsorted(owner, np.arange(len(groups) + 1)).astype(np.int64)
    return Blocks(start, key[first] % span, count, groups.size)
