"""The counts of all open parts by the labels of one quasi-identifier, and of groups of these labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qblock.blocks import Ints
from qblock.frequency import FrequencySets
from qblock.frequency.coding import Mask
from qblock.lattice import Node
from qblock.recoding import Keys, Ladder, PartedKeys, PartedLeaves
from qblock.search.boxes.groups import Groups
from qblock.warehouse import queries

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
    """A table's rows by part. values: the sensitive attributes that are told apart; entities: whether these are
    counted."""

    def __init__(self, sets: FrequencySets, values: Sequence[int], *, entities: bool) -> None:
        mask = sets.coding.mask(sets.lattice.bottom, values)
        table = sets.stored(queries.roll_up(sets.base, mask, by_entity=entities))
        self.keys = Keys(sets.coding, [i for i, bits in enumerate(mask) if bits] or [0])
        self.leaves = PartedLeaves(sets.session, table, self.keys.used, entities=entities)
        self._values = tuple(values)

    def count(self, parts: Ints, masks: Sequence[Mask]) -> PartedKeys:
        """Counts of the values in what the masks tell apart."""
        values = self.keys.of_values(self._values)
        return self.leaves.counts(parts, [tuple(a | b for a, b in zip(m, values, strict=True)) for m in masks])

    def values(self, counts: PartedKeys) -> Ints:
        words = self.keys.words(counts.words)
        columns = [self.keys.coding.values(i, words) for i in self._values]
        return np.stack(columns, axis=1) if columns else np.zeros((len(counts.n), 0), dtype=np.int64)

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


class Counting:
    """Counts a table's parts. needed: the sensitive attributes that are told apart; populations, guards: the tables of
    models that ask for them."""

    def __init__(
        self,
        sets: FrequencySets,
        ladders: Sequence[Ladder],
        needed: Sequence[int],
        populations: Sequence[FrequencySets] = (),
        guards: Sequence[FrequencySets] = (),
    ) -> None:
        self._ladders, self._needed, self.entities = tuple(ladders), tuple(needed), sets.entities
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

    def labels(self, attribute: int, parts: Ints, levels: Ints) -> Atoms:
        """The labels of an attribute that occur in each part, at a level of its own."""
        ladder = self._ladders[attribute]

        def keyed(keys: Keys, counts: PartedKeys) -> Columns:
            level = levels[np.searchsorted(parts, counts.part)]
            return keys.codes(attribute, level, counts.words), level

        def masks(keys: Keys) -> list[Mask]:
            return [keys.mask(attribute, level) for level in levels.tolist()]

        groups, (part, code, level) = self._grouped(parts, masks, keyed)
        rank = np.zeros(len(part), dtype=np.int64)
        for depth in np.unique(level).tolist():
            rank[level == depth] = ladder.rank(depth)[code[level == depth]]
        order = np.lexsort((rank, part))
        part, code, level = part[order], code[order], level[order]
        start = np.searchsorted(part, np.append(parts, np.iinfo(np.int64).max)).astype(np.int64)
        return Atoms(groups.select(order), part, code, level, parts, start)

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
        size, rows = (np.zeros(number, dtype=np.int64) for _ in range(2))
        size[alone.part], rows[alone.part] = alone.n, alone.rows
        counts = alone
        if self._needed:
            counts = own.leaves.counts_of(parts, masks, children, own.keys.of_values(self._needed))
        beside = atoms.groups.beside(group, number)
        return Groups(counts.part, own.values(counts), counts.n, size, rows, *beside)

    def start(self, node: Node, keys: Ints, child: Ints) -> None:
        """Give the rows of blocks of a node the parts that they are; keys: int64[B, Q]; child: int64[B]."""
        for parted in self._all:
            parted.begin(node, keys, child)

    def move(self, moves: Moves) -> None:
        """Give rows their new parts."""
        for parted in self._all:
            parted.move(moves)

    def drop(self) -> None:
        """Drop the tables of parts."""
        for parted in self._all:
            parted.leaves.drop()

    @property
    def _all(self) -> list[Parted]:
        return [self._own, *self._populations, *self._guards]

    def _grouped(
        self, parts: Ints, masks: Callable[[Keys], Sequence[Mask]], keyed: Keyed
    ) -> tuple[Groups, tuple[Ints, ...]]:
        """Groups by part and key, with the columns of both; those that only a population has are empty."""
        own, counts = self._own, self._own.count(parts, masks(self._own.keys))
        alone = counts
        if self.entities and self._needed:
            alone = own.leaves.counts(parts, masks(own.keys))
        other_counts = [table.count(parts, masks(table.keys)) for table in (*self._populations, *self._guards)]
        tables = [own, own, *self._populations, *self._guards]
        columns = [
            (of.part, *keyed(table.keys, of)) for table, of in zip(tables, (counts, alone, *other_counts), strict=True)
        ]
        joined = [np.concatenate(column) for column in zip(*columns, strict=True)]
        number, first = numbered(joined)
        owners = np.split(number, np.cumsum([len(of[0]) for of in columns])[:-1])
        size, rows = (np.zeros(len(first), dtype=np.int64) for _ in range(2))
        if self.entities:
            size[owners[1]], rows[owners[1]] = alone.n, alone.rows
        else:
            np.add.at(size, owners[0], counts.n)
            rows = size
        populations = []
        for owner, counted in zip(owners[2:], other_counts[: len(self._populations)], strict=False):
            population = np.zeros(len(first), dtype=np.int64)
            population[owner] = counted.n
            populations.append(population)
        guards = []
        of_guards = zip(self._guards, owners[2 + len(populations) :], other_counts[len(populations) :], strict=True)
        for table, owner, counted in of_guards:
            order = np.lexsort((table.values(counted)[:, 0], owner))
            guards.append((owner[order], table.values(counted)[order, 0]))
        groups = Groups(owners[0], own.values(counts), counts.n, size, rows)
        groups = replace(groups, population=tuple(populations), guards=tuple(guards))
        return groups, tuple(column[first] for column in joined)


def numbered(keys: Sequence[Ints]) -> tuple[Ints, Ints]:
    """The number of each key among the distinct ones, in ascending order, and where each of these is first."""
    single = np.zeros(len(keys[0]), dtype=np.int64)
    span = 1
    for column in keys:
        size = int(column.max(initial=0)) + 1
        if span * size >= 2**62:
            distinct, single = np.unique(single, return_inverse=True)
            single, span = single.reshape(-1).astype(np.int64), len(distinct)
        single, span = single * size + column, span * size
    _, first, number = np.unique(single, return_index=True, return_inverse=True)
    return number.reshape(-1).astype(np.int64), first
