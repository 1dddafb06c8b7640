"""Which groups of rows satisfy all models of a spec, and the counts of all open parts by the labels of one
quasi-identifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from qblock.blocks import Blocks, Containing, Guards, Ints, Mask, Reference
from qblock.engines import queries
from qblock.frequency import FrequencySets, coding
from qblock.lattice import Node
from qblock.models import Model
from qblock.models.multi import split
from qblock.recoding import Keys, Ladder, PartedKeys, PartedLeaves
from qblock.search.assessment import Part, held_by_all
from qblock.search.boxes.groups import ANY, Groups, added, blocks_of, distinct, numbered, placed
from qblock.search.task import Task
from qblock.spec import Requirement

Path = Callable[[Ints, int], Sequence[Containing]]
"""The parts on the way from the whole table to each of some parts, themselves included, as blocks of the sensitive
attribute in a column of their values: for (n,t)-closeness."""


class Sizes:
    """Passes every group of the least size, whatever its values. least: rows or entities."""

    looks_up = False

    def __init__(self, least: int) -> None:
        self.least = least

    def failing(self, groups: Groups, parts: Ints, path: Path) -> Mask:
        """bool[G]: the groups that fail; those without rows do not. parts, path: are not looked at."""
        failing: Mask = (groups.size < self.least) & (groups.rows > 0)
        return failing


class Judge:
    """Passes the groups that satisfy all models. needed: the sensitive attributes, by number, that groups tell
    apart; least: people of each group, if other than the spec says. columns: the place of each in their values."""

    def __init__(self, task: Task, needed: Sequence[int], least: int | None = None) -> None:
        self._requirements = task.bound_models
        requirements = [requirement for requirement, _ in self._requirements]
        self._populations = {id(q): i for i, q in enumerate(with_population(requirements))}
        self._guards = {id(q): i for i, q in enumerate(with_guards(requirements))}
        self.columns = {name: needed.index(i) for i, name in enumerate(task.source.sensitives) if i in needed}
        self.least = task.least if least is None else max(task.implied, least)
        self._large = Sizes(self.least)
        self._forbids_held_by_all = task.forbids_held_by_all
        self.looks_up = any("containing" in bound[0][0].needs for _, bound in self._requirements)

    def failing(self, groups: Groups, parts: Ints, path: Path) -> Mask:
        """bool[G]: the groups that fail. parts: int64[G], the part that each one is in; path: of parts."""
        empty, failing = groups.rows == 0, self._large.failing(groups, parts, path)
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
        return held_by_all([blocks_of(groups, column) for column in self.columns.values()])

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
        columns = [self.columns[name] for name in requirement.sensitive]
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
            for (model, reference), (blocks, owner) in zip(bound, split(*groups.told(columns)), strict=True)
        )


def with_population(requirements: Sequence[Requirement]) -> list[Requirement]:
    """Those that count a population."""
    return [requirement for requirement in requirements if "population" in requirement.model.needs]


def with_guards(requirements: Sequence[Requirement]) -> list[Requirement]:
    """Those whose predicates people guard."""
    return [requirement for requirement in requirements if requirement.guards is not None]


Kind = tuple[int, ...]
"""Columns of the values that are told apart together."""
Columns = tuple[Ints, ...]
Keyed = Callable[[Keys, PartedKeys], Columns]
"""Gives what tells the groups of a part apart, from keys as they were found."""


@dataclass(frozen=True, eq=False)
class Atoms:
    """The labels of an attribute that occur in each part: groups sorted by part, and within it by the labels' order.

    part, code, level: int64[G]; start: int64[P+1], the atoms of the p-th part that was asked; parts: int64[P].
    """

    groups: Groups
    part: Ints
    code: Ints
    level: Ints
    parts: Ints
    start: Ints

    @property
    def place(self) -> Ints:
        """int64[G]: the place of each atom's part among those asked."""
        return np.repeat(np.arange(len(self.parts), dtype=np.int64), np.diff(self.start))

    def select(self, parts: Mask, atoms: Ints) -> Atoms:
        """Those of some of the parts. parts: bool[P]; atoms: int64, their places."""
        start = np.concatenate(([0], np.cumsum(np.diff(self.start)[parts])))
        part, code, level = (of[atoms] for of in (self.part, self.code, self.level))
        return Atoms(self.groups.select(atoms), part, code, level, self.parts[parts], start)

    @classmethod
    def concatenated(cls, given: Sequence[Atoms]) -> Atoms:
        """Those of several, one after another. given: of ascending parts."""
        columns = zip(*((atoms.part, atoms.code, atoms.level, atoms.parts) for atoms in given), strict=True)
        part, code, level, parts = (np.concatenate(of) for of in columns)
        start = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(atoms.start) for atoms in given]))))
        return cls(Groups.concatenated([atoms.groups for atoms in given]), part, code, level, parts, start)


@dataclass(frozen=True, eq=False)
class Moves:
    """Where rows go. part, attribute, level, code, child: int64[M], the rows of a part with this label; each part is
    divided by one attribute at one level. Rows that are not named go."""

    part: Ints
    attribute: Ints
    level: Ints
    code: Ints
    child: Ints


class Parted:
    """A table's rows by part. values, told: the sensitive attributes that are told apart; entities: whether these are
    counted."""

    def __init__(self, sets: FrequencySets, values: Sequence[int], *, entities: bool) -> None:
        mask = sets.coding.mask(sets.lattice.bottom, values)
        table = sets.stored(queries.roll_up(sets.base, mask, by_entity=entities))
        self.keys = Keys(sets.coding, [i for i, bits in enumerate(mask) if bits] or [0])
        self.leaves = PartedLeaves(sets.session, table, self.keys.used, entities=entities)
        self.told = tuple(values)

    def count(self, parts: Ints, masks: Sequence[coding.Mask], kind: Kind | None = None) -> PartedKeys:
        """Counts of the values in what the masks tell apart. kind: of the values; all of them without."""
        values = self.keys.of_values(self.of_kind(kind))
        return self.leaves.counts(parts, [tuple(a | b for a, b in zip(m, values, strict=True)) for m in masks])

    def values(self, counts: PartedKeys, kind: Kind | None = None) -> Ints:
        """int64[R, S]: the values of keys, ANY where they are not of this kind."""
        words, told = self.keys.words(counts.words), self.of_kind(kind)
        values = np.full((len(counts.n), len(self.told)), ANY, dtype=np.int64)
        for column, i in enumerate(self.told):
            if i in told:
                values[:, column] = self.keys.coding.values(i, words)
        return values

    def of_kind(self, kind: Kind | None) -> tuple[int, ...]:
        """The sensitive attributes that a kind of count tells apart."""
        return self.told if kind is None else tuple(self.told[column] for column in kind)

    def begin(self, node: Node, keys: Ints, child: Ints) -> None:
        bits = self.keys.bits_of_node(node, keys)
        whole = np.zeros(1, dtype=np.int64)
        blocks = PartedKeys(np.zeros(len(child), dtype=np.int64), bits, child, child)
        self.leaves.assign(whole, [self.keys.of_node(node)], blocks, keep=False)

    def move(self, moves: Moves) -> None:
        parts, first = np.unique(moves.part, return_index=True)
        pairs = zip(moves.attribute[first].tolist(), moves.level[first].tolist(), strict=True)
        masks = [self.keys.mask(attribute, level) for attribute, level in pairs]
        words = [np.zeros(len(moves.part), dtype=np.int64) for _ in self.keys.used]
        for attribute in np.unique(moves.attribute).tolist():
            here = moves.attribute == attribute
            for word, bits in zip(words, self.keys.bits(attribute, moves.level[here], moves.code[here]), strict=True):
                word[here] = bits
        self.leaves.assign(parts, masks, PartedKeys(moves.part, words, moves.child, moves.child), keep=False)


class PartCounting(Protocol):
    """Counts parts and moves their rows into smaller ones, wherever these are; `Counting` says what each method
    does."""

    entities: bool

    def begin(self, node: Node) -> tuple[Groups, Ints]: ...
    def portions(self, parts: Ints) -> Sequence[slice]: ...
    def handed_over(self, parts: Ints, rows: Ints) -> Iterator[tuple[slice, PartCounting]] | None: ...
    def labels(self, attribute: int, parts: Ints, levels: Ints, small: Mask | None = None) -> Atoms: ...
    def by_group(self, attribute: int, atoms: Atoms, group: Ints, number: int) -> Groups: ...
    def start(self, node: Node, keys: Ints, child: Ints) -> None: ...
    def move(self, moves: Moves) -> None: ...
    def drop(self) -> None: ...


class Counting:
    """Counts a table's parts. needed: the sensitive attributes that are told apart; populations, guards: the tables of
    models that ask for them; kinds: by what values entities are counted, by all of them without."""

    def __init__(
        self,
        sets: FrequencySets,
        ladders: Sequence[Ladder],
        needed: Sequence[int],
        populations: Sequence[FrequencySets] = (),
        guards: Sequence[FrequencySets] = (),
        kinds: Sequence[Kind] | None = None,
    ) -> None:
        self._ladders, self._needed, self.entities = tuple(ladders), tuple(needed), sets.entities
        self._kinds = every_kind(len(needed)) if kinds is None else tuple(kinds)
        self._own = Parted(sets, needed, entities=sets.entities)
        self._populations = [Parted(population, (), entities=population.entities) for population in populations]
        self._guards = [Parted(guarded, (0,), entities=guarded.entities) for guarded in guards]

    def begin(self, node: Node) -> tuple[Groups, Ints]:
        """The blocks of a node, and int64[G, Q] the codes of their labels."""

        def keyed(keys: Keys, counts: PartedKeys) -> Columns:
            return tuple(keys.coding.keys(node, keys.words(counts.words)).T)

        whole = np.zeros(1, dtype=np.int64)
        groups, keys = self._grouped(whole, lambda of: [of.of_node(node)], keyed)
        return groups, np.stack(keys[1:], axis=1) if len(keys) > 1 else np.zeros((len(groups), 0), dtype=np.int64)

    def portions(self, parts: Ints) -> Sequence[slice]:
        """All at once: each is a statement for each attribute."""
        return [slice(len(parts))]

    def handed_over(self, parts: Ints, rows: Ints) -> Iterator[tuple[slice, PartCounting]] | None:
        """Portions of the parts with what counts them from here on; None where this does."""
        return None

    def labels(self, attribute: int, parts: Ints, levels: Ints, small: Mask | None = None) -> Atoms:
        """The labels of an attribute that occur in each part, at a level of its own. small: as of `InMemory`."""
        ladder = self._ladders[attribute]

        def keyed(keys: Keys, counts: PartedKeys) -> Columns:
            level = levels[np.searchsorted(parts, counts.part)]
            return keys.codes(attribute, level, counts.words), level

        def masks(keys: Keys) -> list[coding.Mask]:
            return [keys.mask(attribute, level) for level in levels.tolist()]

        groups, (part, code, level) = self._grouped(parts, masks, keyed)
        return sorted_atoms(ladder, groups, part, code, level, parts)

    def by_group(self, attribute: int, atoms: Atoms, group: Ints, number: int) -> Groups:
        """The counts of groups of atoms. group: int64[atoms], the number of each, -1 for none."""
        if not self.entities:
            return atoms.groups.merged(group, number)
        own, there = self._own, np.flatnonzero((group >= 0) & (atoms.groups.rows > 0))
        parts, first = np.unique(atoms.part[there], return_index=True)
        masks = [own.keys.mask(attribute, level) for level in atoms.level[there][first].tolist()]
        bits = own.keys.bits(attribute, atoms.level[there], atoms.code[there])
        children = PartedKeys(atoms.part[there], bits, group[there], group[there])
        alone = own.leaves.counts_of(parts, masks, children, None)
        size, rows = (placed(number, alone.part, of) for of in (alone.n, alone.rows))
        counts = [alone]
        if self._needed:
            kept = (own.keys.of_values(own.of_kind(kind)) for kind in self._kinds)
            counts = [own.leaves.counts_of(parts, masks, children, bits) for bits in kept]
        beside = atoms.groups.beside(group, number)
        return Groups(*self._joined(counts, [of.part for of in counts]), size, rows, *beside)

    def _joined(self, counts: Sequence[PartedKeys], owners: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
        """The counts of all kinds, one behind another. owners: of each."""
        values = [self._own.values(of, kind) for of, kind in zip(counts, self._kinds, strict=True)]
        return np.concatenate(owners), np.concatenate(values), np.concatenate([of.n for of in counts])

    def start(self, node: Node, keys: Ints, child: Ints) -> None:
        """Give the rows of blocks of a node the parts that they are; keys: int64[B, Q]; child: int64[B]."""
        for parted in self.tables:
            parted.begin(node, keys, child)

    def move(self, moves: Moves) -> None:
        """Give rows their new parts."""
        for parted in self.tables:
            parted.move(moves)

    def drop(self) -> None:
        """Drop the tables of parts."""
        for parted in self.tables:
            parted.leaves.drop()

    @property
    def tables(self) -> list[Parted]:
        """The table itself, then the populations, then the tables of guards."""
        return [self._own, *self._populations, *self._guards]

    def _grouped(
        self, parts: Ints, masks: Callable[[Keys], Sequence[coding.Mask]], keyed: Keyed
    ) -> tuple[Groups, tuple[Ints, ...]]:
        """Groups by part and key, with the columns of both; those that only a population has are empty."""
        own, kinds = self._own, len(self._kinds)
        counts = [own.count(parts, masks(own.keys), kind) for kind in self._kinds]
        alone = counts[0]
        if self.entities and self._needed:
            alone = own.leaves.counts(parts, masks(own.keys))
        other_counts = [table.count(parts, masks(table.keys)) for table in (*self._populations, *self._guards)]
        tables = [*[own] * (kinds + 1), *self._populations, *self._guards]
        columns = [
            (of.part, *keyed(table.keys, of)) for table, of in zip(tables, (*counts, alone, *other_counts), strict=True)
        ]
        joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
        number, first = numbered(joined)
        owners = np.split(number, np.cumsum([len(of[0]) for of in columns])[:-1])
        if self.entities:
            size, rows = (placed(len(first), owners[kinds], of) for of in (alone.n, alone.rows))
        else:
            size = rows = added(alone.n, owners[0], len(first))
        beside = list(zip(owners[kinds + 1 :], other_counts, strict=True))
        populations = tuple(placed(len(first), owner, of.n) for owner, of in beside[: len(self._populations)])
        guards = []
        for table, (owner, of) in zip(self._guards, beside[len(populations) :], strict=True):
            order = np.lexsort((table.values(of)[:, 0], owner))
            guards.append((owner[order], table.values(of)[order, 0]))
        groups = Groups(*self._joined(counts, owners[:kinds]), size, rows, populations, tuple(guards))
        return groups, tuple(column[first] for column in joined)


def every_kind(columns: int) -> tuple[Kind, ...]:
    """All values together, from which counts of rows are added up."""
    return (tuple(range(columns)),)


def kinds_of(requirements: Sequence[Requirement], columns: Mapping[str, int]) -> tuple[Kind, ...]:
    """By what values entities are counted, which do not add up. columns: the place of each attribute in the values."""
    together = {tuple(columns[name] for name in of.sensitive) for of in requirements if len(of.sensitive) > 1}
    return tuple(sorted({(column,) for column in columns.values()} | together)) or every_kind(0)


def sorted_atoms(ladder: Ladder, groups: Groups, part: Ints, code: Ints, level: Ints, parts: Ints) -> Atoms:
    """Groups as the atoms of parts, whatever their order. part, code, level: int64[G]; parts: ascending."""
    rank = np.zeros(len(part), dtype=np.int64)
    for depth in distinct(level).tolist():
        rank[level == depth] = ladder.rank(depth)[code[level == depth]]
    order = np.lexsort((rank, part))
    part, code, level = part[order], code[order], level[order]
    start = np.searchsorted(part, np.append(parts, np.iinfo(np.int64).max)).astype(np.int64)
    return Atoms(groups.select(order), part, code, level, parts, start)
