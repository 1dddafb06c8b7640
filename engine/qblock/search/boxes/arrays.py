"""Parts of a table in memory: the rows of a part lie one behind another, and all parts of a round are counted at once.

A row has the leaves of its quasi-identifiers in a word or two, the number of its combination of sensitive values, and
how many rows of the source it stands for. What `Counting` asks a database for each quasi-identifier and round is a
look-up for each row here, and a count of cells, each a part and a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qblock.blocks import Ints, Mask
from qblock.frequency import FrequencySets, positions
from qblock.frequency.arrays import counted
from qblock.hierarchy.core import BITS
from qblock.lattice import Node
from qblock.recoding import Ladder
from qblock.search.boxes.counting import Atoms, Counting, Kind, Moves, PartCounting, every_kind, sorted_atoms
from qblock.search.boxes.groups import ANY, Groups, distinct, firsts, numbered, placed
from qblock.search.boxes.rows import Loaded, Packing, Rows, narrow, packing_of

PORTION = 1 << 19
"""Rows about that are counted at once, of as many whole parts."""
DENSE = 4
"""Cells for each row, up to which a table of what each is named is cheaper than to search among the names."""


class Places:
    """The labels of each level of a quasi-identifier by their place, those of one parent one behind another."""

    def __init__(self, ladder: Ladder) -> None:
        self._ladder = ladder
        self._at: dict[int, tuple[Ints, Ints]] = {}

    def at(self, level: int) -> tuple[Ints, Ints]:
        """int64[leaves]: the place of the label that each leaf has; int64[labels]: the code of the label of each."""
        if level not in self._at:
            hierarchy, above = self._ladder.hierarchy, np.zeros(self._ladder.size, dtype=np.int64)
            if level < hierarchy.height:
                above = self.at(level + 1)[0]
            codes = hierarchy.codes[level].astype(np.int64)
            single = above * self._ladder.size + self._ladder.rank(level)[codes]
            _, first, place = np.unique(single, return_index=True, return_inverse=True)
            self._at[level] = place.reshape(-1), codes[first]
        return self._at[level]

    def joined(self, levels: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """The places of leaves, and the codes of places, of several levels: all of them, and where those of each of
        `levels` begin."""
        every = distinct(levels if len(levels) else np.zeros(1, dtype=np.int64))
        both, which = [self.at(level) for level in every.tolist()], np.searchsorted(every, levels)
        begins = [np.cumsum([0, *(len(of[side]) for of in both)])[:-1][which] for side in (0, 1)]
        place, code = (np.concatenate([of[side] for of in both]) for side in (0, 1))
        return place, begins[0], code, begins[1]


@dataclass(frozen=True, eq=False)
class Inside:
    """The rows of some parts, in their order. sizes: int64[P], how many each has; index: their places."""

    rows: Rows
    sizes: Ints
    index: Ints | slice


@dataclass(frozen=True, eq=False)
class Cells:
    """Numbers of a part and a label. of: for each table int64[R], that of each row; start: int64[P+1], the first of
    each part; low: int64[P], the place of its label."""

    of: list[Ints]
    start: Ints
    low: Ints

    @property
    def span(self) -> int:
        """How many there are."""
        return int(self.start[-1])

    def named(self, part: Ints, place: Ints) -> Ints:
        """Those of a part and a label at a place."""
        cells: Ints = self.start[part] + place - self.low[part]
        return cells


class InMemory:
    """Counts parts as `Counting` does. tables: the table itself, then populations, then the tables of guards; begun: of
    each table int64[R], the part of each row, and these parts; one of all without. kinds: as of `Counting`."""

    def __init__(
        self,
        ladders: Sequence[Ladder],
        packing: Packing,
        tables: Sequence[Loaded],
        populations: int = 0,
        begun: tuple[Sequence[Ints], Ints] | None = None,
        kinds: Sequence[Kind] | None = None,
    ) -> None:
        self._ladders, self._packing, self._loaded, self._populations = ladders, packing, tuple(tables), populations
        self._places = [Places(ladder) for ladder in ladders]
        self._rows = [table.rows for table in tables]
        self.entities = self._rows[0].entity is not None
        values = tables[0].values
        self._kinds = [_of_kind(values, kind) for kind in kinds or every_kind(values.shape[1])]
        self._parts = np.zeros(1, dtype=np.int64)
        self._starts = [np.array([0, len(rows)], dtype=np.int64) for rows in self._rows]
        self._blocks: tuple[Node, Ints, Ints] | None = None
        self._index = np.arange(len(self._rows[0]), dtype=np.int32)
        self._box = np.full(len(self._index), -1, dtype=np.int32)
        if begun is not None:
            self._regroup(*begun)

    def begin(self, node: Node) -> tuple[Groups, Ints]:
        """The blocks of a node, and int64[G, Q] the codes of their labels."""
        _, keys, number = self._blocks_of(node)
        groups, there = self._grouped(self._rows, self._by_table(number), len(keys))
        return groups, keys[there]

    def _blocks_of(self, node: Node) -> tuple[Node, Ints, Ints]:
        """The blocks of a node: the codes of their labels, and the block of each row, table by table."""
        if self._blocks is not None and self._blocks[0] == node:
            return self._blocks
        single, span = np.zeros(sum(map(len, self._rows)), dtype=np.int64), 1
        for attribute, level in enumerate(node):
            place, code = self._places[attribute].at(level)
            if span * len(code) >= 1 << BITS - 1:
                single, first = numbered([single])
                span = len(first)
            leaves = [self._packing.leaves(rows.words, attribute) for rows in self._rows]
            single = single * len(code) + place[np.concatenate(leaves)]
            span *= len(code)
        number, first = numbered([single])
        keys = np.zeros((len(first), len(node)), dtype=np.int64)
        for attribute, level in enumerate(node):
            leaves = [self._packing.leaves(rows.words, attribute) for rows in self._rows]
            place, code = self._places[attribute].at(level)
            keys[:, attribute] = code[place[np.concatenate(leaves)[first]]]
        self._blocks = node, keys, number
        return self._blocks

    def start(self, node: Node, keys: Ints, child: Ints) -> None:
        """Give the rows of blocks of a node the parts that they are; keys: int64[B, Q]; child: int64[B]."""
        _, among, number = self._blocks_of(node)
        self._blocks = None
        of = np.full(len(among), -1, dtype=np.int64)
        of[positions(keys, among)] = child
        self._regroup(self._by_table(of[number]), distinct(child))

    def portions(self, parts: Ints) -> Sequence[slice]:
        """Which parts are counted together: neighbours, so that what is counted of them takes little memory."""
        at = np.searchsorted(self._parts, parts)
        rows = np.cumsum(sum(np.diff(start)[at] for start in self._starts)) // PORTION
        ends = np.flatnonzero(np.diff(rows, append=-1)) + 1
        return [slice(*of) for of in zip([0, *ends.tolist()[:-1]], ends.tolist(), strict=True)]

    def handed_over(self, parts: Ints, rows: Ints) -> None:
        """They are counted here."""

    def labels(self, attribute: int, parts: Ints, levels: Ints, small: Mask | None = None) -> Atoms:
        """The labels of an attribute that occur in each part, at a level of its own.

        small: bool[P], parts that are too small for two labels, and are left out where they have more than one. Only
        where there is no other table.
        """
        inside = self._inside(parts)
        cells = self._cells(attribute, inside, levels)
        rows, of, stay = [table.rows for table in inside], cells.of, np.arange(len(parts))
        if small is not None and len(rows) == 1:
            stays = ~small | (np.diff(cells.start) == 1)
            stay = np.flatnonzero(stays)
            if len(stay) < len(parts):
                there = np.flatnonzero(np.repeat(stays, inside[0].sizes))
                rows, of = [rows[0].select(there)], [of[0][there]]
        groups, occurring = self._grouped(rows, of, cells.span)
        at = np.searchsorted(cells.start, occurring, side="right") - 1
        _, _, codes, begins = self._places[attribute].joined(levels)
        part, level, code = parts[at], levels[at], codes[begins[at] + occurring - cells.start[at] + cells.low[at]]
        # Labels of several parents may be in another order than by their places.
        if not self._ascending(attribute, at, level, code):
            return sorted_atoms(self._ladders[attribute], groups, part, code, level, parts[stay])
        start = np.searchsorted(at, np.append(stay, len(parts))).astype(np.int64)
        return Atoms(groups, part, code, level, parts[stay], start)

    def by_group(self, attribute: int, atoms: Atoms, group: Ints, number: int) -> Groups:
        """The counts of groups of atoms. group: int64[atoms], the number of each, -1 for none."""
        if not self.entities:
            return atoms.groups.merged(group, number)
        there = np.flatnonzero((group >= 0) & (atoms.groups.rows > 0))
        inside, of = self._named(attribute, atoms.part[there], atoms.level[there], atoms.code[there], group[there])
        kept = np.flatnonzero(of[0] >= 0)
        groups, occurring = self._grouped([inside[0].rows.select(kept)], [of[0][kept]], number)
        size, rows = (placed(number, occurring, counts) for counts in (groups.size, groups.rows))
        beside = atoms.groups.beside(group, number)
        return Groups(occurring[groups.owner], groups.values, groups.n, size, rows, *beside)

    def move(self, moves: Moves) -> None:
        """Give rows their new parts; those that are not named go."""
        child: list[Any] = [np.full(len(rows), -1, dtype=np.int32) for rows in self._rows]
        split = distinct(moves.part)
        for portion in self.portions(split):
            first, last = split[portion][[0, -1]]
            within = (first <= moves.part) & (moves.part <= last)
            for attribute in distinct(moves.attribute[within]).tolist():
                here = np.flatnonzero(within & (moves.attribute == attribute))
                inside, named = self._named(
                    attribute, moves.part[here], moves.level[here], moves.code[here], moves.child[here]
                )
                for of, table, new in zip(child, inside, named, strict=True):
                    of[table.index] = new
        self._settle(split)
        self._regroup(child, distinct(moves.child))

    def _named(
        self, attribute: int, part: Ints, level: Ints, code: Ints, number: Ints
    ) -> tuple[list[Inside], list[Ints]]:
        """The rows of parts, and of each table int64[R], the number that the label of each row has there, -1 for none.
        part, level, code, number: int64[L], of the labels of an attribute."""
        parts, first, at = np.unique(part, return_index=True, return_inverse=True)
        inside, levels = self._inside(parts), level[first]
        cells = self._cells(attribute, inside, levels)
        place, begins, _, _ = self._places[attribute].joined(levels)
        at = at.reshape(-1)
        # A label's code is a leaf that it has.
        named = cells.named(at, place[begins[at] + code])
        return inside, [_looked_up(cell, cells.span, named, number) for cell in cells.of]

    def drop(self) -> None:
        """Let the rows go; each is in the part that it was in last."""
        self._settle(self._parts[:0])
        self._rows, self._blocks = [], None

    def _settle(self, split: Ints) -> None:
        """Note which rows of the table are in parts that are not split. split: those that are."""
        part = np.repeat(self._parts, np.diff(self._starts[0]))
        stay = np.repeat(~np.isin(self._parts, split), np.diff(self._starts[0]))
        self._box[self._index[stay]] = part[stay]

    def leaves(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The rows of the table: int64[N, Q], the codes of their leaves; int64[N, S], their values; how many rows of
        the source each stands for; and its box, -1 for what is suppressed."""
        rows, values = self._loaded[0].rows, self._loaded[0].values
        codes = np.empty((len(rows), len(self._ladders)), dtype=np.int64)
        for attribute in range(len(self._ladders)):
            codes[:, attribute] = self._packing.leaves(rows.words, attribute)
        value = np.zeros(len(rows), dtype=np.int64) if rows.value is None else rows.value
        n = np.ones(len(rows), dtype=np.int64) if rows.n is None else rows.n.astype(np.int64)
        return codes, values[value], n, self._box.astype(np.int64)

    def boxes_of(self, leaves: Ints) -> Ints:
        """int64[N]: the box of each combination of leaves that the table has, -1 for what is suppressed. leaves:
        int64[N, Q], by their codes."""
        words = [np.zeros(len(leaves), dtype=np.int64) for _ in range(self._packing.words)]
        for attribute in range(leaves.shape[1]):
            self._packing.put(words, attribute, leaves[:, attribute])
        rows = self._loaded[0].rows
        both = zip(rows.words, words, strict=True)
        number, _ = numbered([np.concatenate(of) for of in both])
        box = np.zeros(len(number), dtype=np.int64)
        box[number[: len(rows)]] = self._box
        boxes: Ints = box[number[len(rows) :]]
        return boxes

    def _by_table(self, numbers: Ints) -> list[Ints]:
        """What is known of the rows of all tables, table by table."""
        return np.split(numbers, np.cumsum([len(rows) for rows in self._rows])[:-1])

    def _inside(self, parts: Ints) -> list[Inside]:
        """The rows of some parts, of each table."""
        at = np.searchsorted(self._parts, parts)
        low, high = (int(at[0]), int(at[-1]) + 1) if len(at) else (0, 0)
        inside = []
        for rows, start in zip(self._rows, self._starts, strict=True):
            index: Ints | slice = slice(int(start[low]), int(start[high]))
            if high - low > len(at):
                wanted = np.zeros(high - low, dtype=bool)
                wanted[at - low] = True
                index = np.flatnonzero(np.repeat(wanted, np.diff(start[low : high + 1]))) + start[low]
            inside.append(Inside(rows.select(index), np.diff(start)[at], index))
        return inside

    def _cells(self, attribute: int, inside: Sequence[Inside], levels: Ints) -> Cells:
        """The cells of parts that are told apart by an attribute, at a level of its own in each."""
        places, begins, _, _ = self._places[attribute].joined(levels)
        low, high = np.full(len(levels), np.iinfo(np.int64).max), np.full(len(levels), -1)
        of = []
        for table in inside:
            place = places[self._packing.leaves(table.rows.words, attribute) + np.repeat(begins, table.sizes)]
            of.append(place)
            there = np.flatnonzero(table.sizes)
            if len(there):
                first = np.cumsum(table.sizes)[there] - table.sizes[there]
                low[there] = np.minimum(low[there], np.minimum.reduceat(place, first))
                high[there] = np.maximum(high[there], np.maximum.reduceat(place, first))
        start = np.concatenate(([0], np.cumsum(np.maximum(high + 1 - low, 0)))).astype(np.int64)
        for place, table in zip(of, inside, strict=True):
            place += np.repeat(start[:-1] - low, table.sizes)
        return Cells(of, start, low)

    def _ascending(self, attribute: int, part: Ints, level: Ints, code: Ints) -> bool:
        """Whether the labels of each part are in their order."""
        rank = np.zeros(len(code), dtype=np.int64)
        for depth in distinct(level).tolist():
            here = level == depth
            rank[here] = self._ladders[attribute].rank(depth)[code[here]]
        return not ((rank[1:] < rank[:-1]) & (part[1:] == part[:-1])).any()

    def _grouped(self, rows: Sequence[Rows], cells: Sequence[Ints], span: int) -> tuple[Groups, Ints]:
        """What is counted of cells, and which these are, ascending; those that only a population has are empty."""
        own, occurring = self._own(rows[0], cells[0], span)
        loaded = self._loaded[: len(rows)]
        beside = zip(cells[1:], rows[1:], loaded[1:], strict=True)
        others = [_pairs(of, counted, span, len(table.values)) for of, counted, table in beside]
        if others:
            there, occurring = occurring, np.unique(np.concatenate((occurring, *(of[0] for of in others))))
            place = np.searchsorted(occurring, there)
            size, total = (placed(len(occurring), place, of) for of in (own.size, own.rows))
            own = Groups(place[own.owner], own.values, own.n, size, total)
        places = [np.searchsorted(occurring, of[0]) for of in others]
        both = list(zip(places, others, loaded[1:], strict=True))
        populations = (placed(len(occurring), at, of[2]) for at, of, _ in both[: self._populations])
        guards = ((at, table.values[of[1], 0]) for at, of, table in both[self._populations :])
        return replace(own, population=tuple(populations), guards=tuple(guards)), occurring

    def _own(self, rows: Rows, cells: Ints, span: int) -> tuple[Groups, Ints]:
        """What is counted of the table itself in cells, and which these are."""
        counts = []
        for number, values in self._kinds:
            value = rows.value if rows.value is None or number is None else number[rows.value]
            cell, of, n, of_rows = _pairs(cells, replace(rows, value=value), span, len(values))
            first = firsts(cell)
            owner = np.repeat(np.arange(len(first), dtype=np.int64), np.diff(first, append=len(cell)))
            counts.append((owner, values[of], n))
        occurring, total = cell[first], np.add.reduceat(of_rows, first) if len(first) else n
        size = total
        if self.entities:
            # Who has several values of a cell is there once.
            size = n if rows.value is None else _pairs(cells, replace(rows, value=None), span, 1)[2]
        owner, told, n = (np.concatenate(of) for of in zip(*counts, strict=True))
        return Groups(owner, told, n, size, total), occurring

    def _regroup(self, child: Sequence[Ints], parts: Ints) -> None:
        """Put the rows of each part one behind another. child: of each table int64[R], -1 for rows that go."""
        self._parts = parts
        orders = [_by_part(of, parts) for of in child]
        self._index, self._starts = self._index[orders[0][0]], [start for _, start in orders]
        self._rows = [rows.select(order) for rows, (order, _) in zip(self._rows, orders, strict=True)]


class InPortions(Counting):
    """Counts parts by statements until each fits in memory, and then in memory, one portion of them after another.

    at_once: rows about that fit.
    """

    def __init__(
        self,
        sets: FrequencySets,
        ladders: Sequence[Ladder],
        needed: Sequence[int],
        populations: Sequence[FrequencySets],
        guards: Sequence[FrequencySets],
        kinds: Sequence[Kind],
        at_once: int,
    ) -> None:
        super().__init__(sets, ladders, needed, populations, guards, kinds)
        self._at_once, self._number_of_populations = at_once, len(populations)

    def handed_over(self, parts: Ints, rows: Ints) -> Iterator[tuple[slice, PartCounting]] | None:
        """Portions of the parts, in memory. rows: int64[P], of each."""
        if not len(parts) or int(rows.max()) > self._at_once:
            return None
        number = np.cumsum(rows) // self._at_once
        ends = np.flatnonzero(np.diff(number, append=-1)) + 1
        slices = (slice(*of) for of in zip([0, *ends.tolist()[:-1]], ends.tolist(), strict=True))
        return ((portion, self._in_memory(parts[portion])) for portion in slices)

    def _in_memory(self, parts: Ints) -> InMemory:
        packing, loaded, child = packing_of(self._ladders), [], []
        for table in self.tables:
            fetched = table.leaves.rows(int(parts[0]), int(parts[-1]))
            keys = table.keys.words(fetched.words)
            loaded.append(Loaded.of(packing, table.keys.coding, keys, fetched.n, table.told, fetched.entity))
            child.append(fetched.part)
        return InMemory(self._ladders, packing, loaded, self._number_of_populations, (child, parts), self._kinds)


def _of_kind(values: Ints, kind: Kind) -> tuple[Ints | None, Ints]:
    """The number of each combination of values among those of a kind, None where it is the same, and these. values:
    int64[V, S]."""
    if len(kind) == values.shape[1]:
        return None, values
    told = np.full_like(values, ANY)
    told[:, kind] = values[:, kind]
    distinct_values, number = np.unique(told, axis=0, return_inverse=True)
    return narrow(number.reshape(-1)), distinct_values


def _by_part(child: Ints, parts: Ints) -> tuple[Ints, Ints]:
    """The order of rows by parts, and where each of these begins. parts: ascending, all that `child` has."""
    there = np.flatnonzero(child >= 0)
    place = np.zeros(int(parts.max(initial=-1)) + 1, dtype=np.int64)
    place[parts] = np.arange(len(parts))
    number = place[child[there]]
    # To sort numbers takes a fraction of what it takes to sort by them.
    bits = len(child).bit_length()
    order = np.sort(number << bits | there) & (1 << bits) - 1
    start = np.concatenate(([0], np.cumsum(np.bincount(number, minlength=len(parts))))).astype(np.int64)
    return order, start


def _pairs(cell: Ints, rows: Rows, span: int, values: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Cells, the values in each of them, how many rows, or people, have both, and how many rows; ascending."""
    if span * values >= 1 << BITS - 1:
        every, cell = np.unique(cell, return_inverse=True)
        place, value, n, of_rows = _pairs(cell.reshape(-1), rows, len(every), values)
        return every[place], value, n, of_rows
    key = cell if rows.value is None else cell * values + rows.value
    pairs = counted(key, rows.n, rows.entity)
    if rows.value is None:
        return pairs.keys, np.zeros(len(pairs.keys), dtype=np.int64), pairs.n, pairs.rows
    return pairs.keys // values, pairs.keys % values, pairs.n, pairs.rows


def _looked_up(cell: Ints, span: int, named: Ints, child: Ints) -> Ints:
    """int64[R]: what cells were named to be, -1 for those that were not. named: distinct."""
    if span <= DENSE * len(cell):
        of = np.full(span, -1, dtype=np.int64)
        of[named] = child
        looked_up: Ints = of[cell]
        return looked_up
    order = np.argsort(named)
    named = named[order]
    at = np.minimum(np.searchsorted(named, cell), len(named) - 1)
    return np.where(named[at] == cell, child[order[at]], -1)
