"""Per-block counts of a sensitive attribute as columnar arrays, runs of blocks, and quantities of the whole table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qblock.comparison import Matcher

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
PAIRS = 1 << 18
"""Of a block and a value in one run, so that temporary arrays stay small whatever the size of a node."""
CELLS = 5 << 18
"""Numbers in one dense temporary array: 10 MB of doubles."""


@dataclass(frozen=True, eq=False)
class Containing:
    """The blocks of one coarser node that contain the blocks of this one.

    blocks: the coarser node's blocks; index: int64[B], the containing block of each block.
    """

    blocks: Blocks
    index: Ints


@dataclass(frozen=True, eq=False)
class Guards:
    """Which predicates the people of each block guard (epsilon-privacy with a table of predicates).

    start: int64[B+1]; predicate: int64[G], ascending and without repetition within a block, indexes into
    Reference.guarded: block b guards predicate[start[b]:start[b+1]].
    """

    start: Ints
    predicate: Ints

    def select(self, index: Ints) -> Guards:
        """The guards of the blocks named, in that order."""
        start, pairs = _runs(self.start, index)
        return Guards(start, self.predicate[pairs])


@dataclass(frozen=True, eq=False)
class Blocks:
    """The q*-blocks of one node: for each block, the count of each sensitive value that occurs in it.

    Pairs (block, value) are sorted by block, then by value; absent values have no pair.
    start: int64[B+1], the pairs of block b are start[b]:start[b+1]; value: int64[P], index into Reference.domain;
    count: int64[P], n(q,s) > 0; rows: int64[B], n(q), in rows or, with `count: entities`, in distinct entities (then
    at most the sum of the counts). keys: int64[B, Q] codes of the quasi-identifiers, where known.
    population: int64[B], rows of the population table in the same block; population_only: int64[], sizes of the
    population's blocks that hold no row of the table. containing: the coarser nodes' blocks (for (n,t)-closeness).
    guards: the predicates that the people of each block guard, where a model asks for them. groups: int64[B], the
    households or other groups in each block, where k-anonymity asks for them.
    """

    start: Ints
    value: Ints
    count: Ints
    rows: Ints
    keys: Ints | None = None
    population: Ints | None = None
    population_only: Ints | None = None
    containing: tuple[Containing, ...] = field(default=())
    guards: Guards | None = None
    groups: Ints | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def owner(self) -> Ints:
        """int64[P]: the block of each pair."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.start))

    @cached_property
    def total(self) -> Ints:
        """int64[B]: sum of the counts of each block (n(q), unless entities are counted)."""
        return self.sum(self.count)

    @cached_property
    def support(self) -> Ints:
        """int64[B]: m(q), the number of values that occur in each block."""
        return np.diff(self.start)

    @cached_property
    def largest(self) -> Ints:
        """int64[B]: r_1, the largest count of each block."""
        return np.maximum.reduceat(self.count, self.start[:-1]) if len(self) else self.rows[:0]

    @cached_property
    def descending(self) -> Ints:
        """int64[P]: the counts of each block, largest first."""
        top = int(self.count.max(initial=0)) + 1
        if len(self) * top >= 2**62:
            return self.count[np.lexsort((-self.count, self.owner))]
        return top - 1 - np.sort(self.owner * top + (top - 1 - self.count)) % top  # several times faster than lexsort

    def sum(self, pairs: NDArray[np.generic]) -> NDArray[Any]:
        """Sum an array over pairs [P] within each block [B]."""
        return np.add.reduceat(pairs, self.start[:-1]) if len(self) else pairs[:0]

    def max(self, pairs: NDArray[np.generic]) -> NDArray[Any]:
        """Maximum of an array over pairs [P] within each block [B]."""
        return np.maximum.reduceat(pairs, self.start[:-1]) if len(self) else pairs[:0]

    def min(self, pairs: NDArray[np.generic]) -> NDArray[Any]:
        """Minimum of an array over pairs [P] within each block [B]."""
        return np.minimum.reduceat(pairs, self.start[:-1]) if len(self) else pairs[:0]

    def histogram(self, block: int) -> dict[int, int]:
        """One block as {value: count}, plain integers."""
        part = slice(int(self.start[block]), int(self.start[block + 1]))
        return dict(zip(self.value[part].tolist(), self.count[part].tolist(), strict=True))

    def select(self, mask: Mask | Ints | Sequence[int]) -> Blocks:
        """The blocks of a boolean mask or of an index array, in that order."""
        index = np.flatnonzero(mask) if np.asarray(mask).dtype == bool else np.asarray(mask, dtype=np.int64)
        start, pairs = _runs(self.start, index)
        return replace(
            self,
            start=start,
            value=self.value[pairs],
            count=self.count[pairs],
            rows=self.rows[index],
            keys=None if self.keys is None else self.keys[index],
            population=None if self.population is None else self.population[index],
            containing=tuple(replace(c, index=c.index[index]) for c in self.containing),
            guards=None if self.guards is None else self.guards.select(index),
            groups=None if self.groups is None else self.groups[index],
        )

    @classmethod
    def from_pairs(cls, block: Ints, value: Ints, count: Ints, keys: Ints | None = None) -> Blocks:
        """From unsorted triples; block numbers must be 0..B-1, each with a pair; equal (block, value) are added up."""
        order = np.lexsort((value, block))
        block, value, count = block[order], value[order], count[order]
        new = np.ones(len(block), dtype=bool)
        new[1:] = (block[1:] != block[:-1]) | (value[1:] != value[:-1])
        first = np.flatnonzero(new)
        count = np.add.reduceat(count, first) if len(first) else count
        block, value = block[first], value[first]
        size = int(block[-1]) + 1 if len(block) else 0
        start = np.searchsorted(block, np.arange(size + 1)).astype(np.int64)
        rows = np.add.reduceat(count, start[:-1]) if size else np.zeros(0, np.int64)
        return cls(start, value.astype(np.int64), count.astype(np.int64), rows.astype(np.int64), keys)

    @classmethod
    def of(cls, histograms: Iterable[Mapping[int, int]]) -> Blocks:
        """From one {value: count} per block; zero counts are left out. For tests and small tables."""
        triples = [(b, v, n) for b, h in enumerate(histograms) for v, n in h.items() if n]
        block, value, count = (np.array([t[i] for t in triples], dtype=np.int64) for i in range(3))
        return cls.from_pairs(block, value, count)

    def merged(self, index: Ints) -> Blocks:
        """The union of blocks: index[b] is the number (0..) of the block that block b becomes part of."""
        return Blocks.from_pairs(np.asarray(index, np.int64)[self.owner], self.value, self.count)


def concatenated(nodes: Sequence[Blocks]) -> Blocks:
    """The blocks of nodes one behind the other, by their counts alone: without keys, and what a model knows of a node
    beside its blocks."""
    ends = np.cumsum([0, *(len(blocks.value) for blocks in nodes)])
    starts = [blocks.start[:-1] + before for blocks, before in zip(nodes, ends, strict=False)]
    groups = [blocks.groups for blocks in nodes if blocks.groups is not None]
    return Blocks(
        np.concatenate([*starts, ends[-1:]]).astype(np.int64),
        np.concatenate([blocks.value for blocks in nodes]),
        np.concatenate([blocks.count for blocks in nodes]),
        np.concatenate([blocks.rows for blocks in nodes]),
        groups=np.concatenate(groups) if groups else None,
    )


def number_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Number the distinct ones of keys int64[R, Q], all at least 0, in ascending order.

    Returns int64[R], the number of each key, and int64[B], the first row that has each number.
    """
    sizes = [int(column.max(initial=0)) + 1 for column in keys.T]
    if math.prod(sizes) < 2**62:
        single = np.zeros(len(keys), dtype=np.int64)
        for column, size in zip(keys.T, sizes, strict=True):
            single = single * size + column
        _, first, numbers = np.unique(single, return_index=True, return_inverse=True)
    else:
        _, first, numbers = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64), first


def _runs(start: Ints, index: Ints) -> tuple[Ints, Ints]:
    """The runs start[i]:start[i+1] of the blocks named, one after another: their new starts, and positions."""
    lengths = np.diff(start)[index]
    new = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    return new, np.repeat(start[:-1][index] - new[:-1], lengths) + np.arange(new[-1], dtype=np.int64)


def _first_codes(taxonomy: Ints) -> Ints:
    """Each label's code at each level is the smallest number of a value that carries it."""
    columns = []
    for labels in taxonomy.T:
        _, first, place = np.unique(labels, return_index=True, return_inverse=True)
        columns.append(first[place.reshape(-1)])
    return np.stack(columns, axis=1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Reference:
    """The quantities of the whole table, taken once from the raw table and the same for every node.

    rows: N; domain: dom(S) as text, in the order of the values where they are `ordered` (an order was given, or they
    are numbers); totals: int64[V], N_s; kind: how the column compares; people: the entities of the table, where
    entities are counted; numbers: the value of each domain entry for a numeric attribute;
    taxonomy: int64[V, H+1], the code of each value's label at each level of its taxonomy, level 0 the value itself;
    prior: [V], what an adversary's prior says of each value: weights from the spec, or the raw counts a(s) of another
    table (adversary.prior_shape makes shares of either).
    """

    rows: int
    domain: tuple[str | None, ...]
    totals: Ints
    ordered: bool = False
    numbers: tuple[Fraction, ...] | None = None
    taxonomy: Ints | None = None
    prior: tuple[Fraction, ...] | None = None
    guarded: tuple[tuple[int, ...], ...] | None = None
    kind: str | None = None
    people: int | None = None

    @cached_property
    def _matcher(self) -> Matcher:
        kind = self.kind or ("text" if self.numbers is None else "decimal")
        return Matcher(self.domain, kind)

    def code_of(self, named: str | None) -> int | None:
        """The code of a value that a parameter names, compared as its column does; None where it is not in dom(S)."""
        return self._matcher.find(named)

    @property
    def size(self) -> int:
        """What n(q) adds up to at the top: the rows of the table or, where entities are counted, its entities."""
        return self.rows if self.people is None else self.people

    def like(self, other: Reference) -> Reference:
        """This reference in the order that another one of the attribute has, where that has one for these values."""
        place = [other.code_of(value) for value in self.domain]
        if not other.ordered or None in place:
            rising = other.ordered and other.numbers is not None and list(other.numbers) == sorted(other.numbers)
            return self.ascending() if rising else self
        return self.arranged(np.argsort(np.array(place, dtype=np.int64), kind="stable").tolist())

    def ascending(self) -> Reference:
        """This reference in the order of its numbers, where its values are numbers."""
        numbers = self.numbers
        return self if numbers is None else self.arranged(sorted(range(self.values), key=lambda i: numbers[i]))

    def arranged(self, order: Sequence[int]) -> Reference:
        """This reference with its values in another order: order[new] is the code that a value has now."""
        index = np.asarray(order, dtype=np.int64)
        new = np.empty_like(index)
        new[index] = np.arange(len(index), dtype=np.int64)
        taxonomy = None if self.taxonomy is None else _first_codes(self.taxonomy[index])
        return replace(
            self,
            domain=tuple(self.domain[i] for i in order),
            totals=self.totals[index],
            numbers=None if self.numbers is None else tuple(self.numbers[i] for i in order),
            taxonomy=taxonomy,
            prior=None if self.prior is None else tuple(self.prior[i] for i in order),
            guarded=None
            if self.guarded is None
            else tuple(tuple(sorted(new[list(members)].tolist())) for members in self.guarded),
        )

    @property
    def values(self) -> int:
        """V, the number of values of dom(S)."""
        return len(self.domain)

    @cached_property
    def shares(self) -> Floats:
        """float64[V]: P_s = N_s / sum of the N_s."""
        total = int(self.totals.sum())
        return self.totals / total if total else np.zeros(self.values)

    @classmethod
    def of(cls, blocks: Blocks, values: int | None = None, **more: object) -> Reference:
        """The reference of a table given by its blocks alone: values 0..V-1 named by their number. For tests."""
        size = values if values is not None else (int(blocks.value.max()) + 1 if len(blocks.value) else 0)
        totals = np.zeros(size, dtype=np.int64)
        np.add.at(totals, blocks.value, blocks.count)
        domain = tuple(str(v) for v in range(size))
        return cls(int(blocks.rows.sum()), domain, totals, **more)  # type: ignore[arg-type]


def parts(blocks: Blocks, width: int = 0) -> Iterator[Blocks]:
    """Views of consecutive blocks with at most PAIRS pairs and, with a row width, at most CELLS dense cells.

    A single block may exceed both.
    """
    first, size = 0, len(blocks)
    while first < size:
        last = int(np.searchsorted(blocks.start, blocks.start[first] + PAIRS, side="right")) - 1
        if width:
            last = min(last, first + CELLS // width)
        last = min(max(last, first + 1), size)
        pairs = slice(int(blocks.start[first]), int(blocks.start[last]))
        run = slice(first, last)
        yield replace(
            blocks,
            start=blocks.start[first : last + 1] - blocks.start[first],
            value=blocks.value[pairs],
            count=blocks.count[pairs],
            rows=blocks.rows[run],
            keys=None if blocks.keys is None else blocks.keys[run],
            population=None if blocks.population is None else blocks.population[run],
            containing=tuple(replace(c, index=c.index[run]) for c in blocks.containing),
            guards=None if blocks.guards is None else blocks.guards.select(np.arange(first, last)),
            groups=None if blocks.groups is None else blocks.groups[run],
        )
        first = last


def by_parts(function: Callable[[Blocks], Floats], blocks: Blocks, width: int = 0) -> Floats:
    """float64[B]: a function of blocks, applied part by part."""
    results = [function(part) for part in parts(blocks, width)]
    return np.concatenate(results) if results else np.zeros(0)


def grouped(blocks: Blocks, group: Ints) -> Blocks:
    """The same blocks counted by group instead of value: group is int64[V], the group of each value, -1 for none.

    A block may have any number of groups; a block without any grouped value keeps one pair of group 0, count 0.
    """
    size = int(group.max(initial=0)) + 1
    code = group[blocks.value]
    count = np.where(code < 0, 0, blocks.count)
    key = blocks.owner * size + np.maximum(code, 0)
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(key) else np.zeros(0, np.int64)
    key, count = key[first], np.add.reduceat(count[order], first) if len(first) else count
    start = np.searchsorted(key, np.arange(len(blocks) + 1, dtype=np.int64) * size).astype(np.int64)
    return replace(blocks, start=start, value=key % size, count=count, containing=())
