"""Small random tables, as the engine and as the slow reference see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from reference.tables import Block, Row, Table

from qblock.blocks import Blocks, Containing, Guards, Reference

quick = settings(
    max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
"""Every law runs with this; derandomized, so that a failure in CI is the failure at home."""


@dataclass(frozen=True)
class Case:
    """A table by its blocks, {value number: count}, and what is declared about the values 0..V-1.

    numbers: ascending; taxonomy: [value][level] codes, level 0 the value; prior: weights; population: people in each
    block, and the sizes of the population's blocks without a row of the table; coarser: for each coarser node that
    contains this one, finer ones first, the number of the block that each block becomes part of.
    guarded: sets of values; guards: for each block, which of these sets its people guard, empty where nobody is asked.
    counts: the table-wide counts where the blocks are only a part of the table; names: of the values, in the engine.
    """

    histograms: tuple[dict[int, int], ...]
    numbers: tuple[Fraction, ...]
    taxonomy: tuple[tuple[int, ...], ...]
    prior: tuple[Fraction, ...]
    population: tuple[int, ...]
    population_only: tuple[int, ...] = ()
    coarser: tuple[tuple[int, ...], ...] = ()
    guarded: tuple[tuple[int, ...], ...] = ()
    guards: tuple[tuple[int, ...], ...] = ()
    counts: tuple[int, ...] | None = None
    names: tuple[str, ...] = tuple("01234")

    @property
    def values(self) -> int:
        return len(self.numbers)

    @cached_property
    def totals(self) -> tuple[int, ...]:
        return self.counts or tuple(sum(h.get(v, 0) for h in self.histograms) for v in range(self.values))

    @cached_property
    def engine(self) -> tuple[Blocks, Reference]:
        plain = Blocks.of(self.histograms)
        guards = self.guards or ((),) * len(self.histograms)
        indices = [np.array(index, np.int64) for index in self.coarser]
        blocks = replace(
            plain,
            population=np.array(self.population, np.int64),
            population_only=np.array(self.population_only, np.int64),
            containing=tuple(Containing(plain.merged(index), index) for index in indices),
            guards=Guards(
                np.cumsum([0, *map(len, guards)]).astype(np.int64),
                np.array([place for mine in guards for place in sorted(mine)], np.int64),
            ),
        )
        reference = Reference(
            rows=sum(self.totals),
            domain=self.names[: self.values],
            totals=np.array(self.totals, np.int64),
            ordered=True,
            numbers=self.numbers,
            taxonomy=np.array(self.taxonomy, np.int64),
            prior=self.prior,
            guarded=self.guarded,
        )
        return blocks, reference

    @cached_property
    def slow(self) -> tuple[Table, list[Block]]:
        """The same as rows; a value is its number, so that models of numbers need no translation."""
        rows = [self._rows(h) for h in self.histograms]
        everything = self._rows(dict(enumerate(self.totals)))
        table = Table(
            everything,
            domain=self.numbers,
            taxonomy={x: [x, *path[1:]] for x, path in zip(self.numbers, self.taxonomy, strict=True)},
            prior=dict(zip(self.numbers, self.prior, strict=True)),
        )
        blocks = []
        for i, mine in enumerate(rows):
            containing = [
                [row for j, other in enumerate(rows) if index[j] == index[i] for row in other] for index in self.coarser
            ]
            guards = [
                frozenset(self.numbers[v] for v in self.guarded[place])
                for place in (self.guards[i] if self.guards else ())
            ]
            blocks.append(Block(table, mine, [mine, *containing], self.population[i], guards))
        return table, blocks

    def _rows(self, histogram: dict[int, int]) -> list[Row]:
        return [{"s": self.numbers[value]} for value, n in histogram.items() for _ in range(n)]

    def merged(self, index: Sequence[int]) -> Case:
        """The union of blocks with the same number 0.., in the same table; coarser nodes that contain them stay."""
        size = max(index) + 1
        kept = [above for above in self.coarser if len(set(zip(index, above, strict=True))) == size]
        histograms: list[dict[int, int]] = [{} for _ in range(size)]
        population = [0] * size
        guards: list[set[int]] = [set() for _ in range(size)]
        for i, histogram, people, mine in zip(
            index, self.histograms, self.population, self.guards or ((),) * len(index), strict=True
        ):
            population[i] += people
            guards[i].update(mine)
            for value, n in histogram.items():
                histograms[i][value] = histograms[i].get(value, 0) + n
        return replace(
            self,
            histograms=tuple(histograms),
            population=tuple(population),
            guards=tuple(tuple(sorted(mine)) for mine in guards),
            coarser=tuple(tuple(dict(zip(index, above, strict=True))[i] for i in range(size)) for above in kept),
            counts=self.totals,
        )

    def renamed(self, new: Sequence[int], reverse: bool = False) -> Case:
        """Value v becomes value new[v]; the numbers stay ascending, or are negated with `reverse`."""
        old = [new.index(v) for v in range(self.values)]
        return replace(
            self,
            histograms=tuple({new[v]: n for v, n in reversed(h.items())} for h in self.histograms),
            numbers=tuple(-x for x in reversed(self.numbers)) if reverse else self.numbers,
            taxonomy=tuple((v, *self.taxonomy[old[v]][1:]) for v in range(self.values)),
            prior=tuple(self.prior[v] for v in old),
            guarded=tuple(tuple(sorted(new[v] for v in chosen)) for chosen in self.guarded),
            counts=tuple(self.totals[v] for v in old),
            names=tuple(f"w{v}" for v in range(self.values)),
        )

    def only(self, chosen: Sequence[int]) -> Case:
        """Some of the blocks, in the same table."""
        return replace(
            self,
            histograms=tuple(self.histograms[i] for i in chosen),
            population=tuple(self.population[i] for i in chosen),
            guards=tuple(self.guards[i] for i in chosen) if self.guards else (),
            coarser=tuple(tuple(index[i] for i in chosen) for index in self.coarser),
            counts=self.totals,
        )


def plain_case(histograms: Sequence[dict[int, int]], values: int | None = None, **more: Any) -> Case:
    """A case where nothing special is declared, for counterexamples written by hand."""
    size = values or max(v for h in histograms for v in h) + 1
    sizes = [sum(h.values()) for h in histograms]
    usual: dict[str, Any] = {
        "numbers": tuple(map(Fraction, range(size))),
        "taxonomy": tuple((v, 0) for v in range(size)),
        "prior": (Fraction(1),) * size,
        "population": tuple(sizes),
        "coarser": ((0,) * len(sizes),),
        "guards": ((),) * len(sizes),
    }
    return Case(tuple(dict(h) for h in histograms), **{**usual, **more})


def _taxonomy(codes: list[list[int]], values: int) -> tuple[tuple[int, ...], ...]:
    """Groups of values, groups of groups, .., one root: nested by construction."""
    paths = [[v] for v in range(values)]
    for level in codes:
        for path in paths:
            path.append(level[path[-1]])
    return tuple((*path, 0) for path in paths)


@st.composite
def cases(draw: st.DrawFn, least_blocks: int = 1) -> Case:
    """Tables of up to 4 blocks over a declared domain of up to 5 values, some of which may not occur."""
    values = draw(st.integers(1, 5))
    counts = st.sampled_from([1, 1, 2, 2, 3, 4, 5])
    histogram = st.dictionaries(st.integers(0, values - 1), counts, min_size=1)
    histograms = draw(st.lists(histogram, min_size=least_blocks, max_size=4))
    size = len(histograms)
    halves = draw(st.lists(st.integers(-6, 12), min_size=values, max_size=values, unique=True))
    levels = draw(st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), max_size=2))
    weights = draw(st.lists(st.integers(0, 3), min_size=values, max_size=values).filter(any))
    middle = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    extra = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    some = st.sets(st.integers(0, values - 1), min_size=1, max_size=max(values - 1, 1)).map(lambda v: tuple(sorted(v)))
    guarded = draw(st.lists(some, max_size=3, unique=True)) if values > 1 else []
    mine = st.sets(st.sampled_from(range(len(guarded)))) if guarded else st.just(set())
    return Case(
        histograms=tuple(histograms),
        guarded=tuple(guarded),
        guards=tuple(tuple(sorted(draw(mine))) for _ in histograms),
        numbers=tuple(Fraction(x, 2) for x in sorted(halves)),
        taxonomy=_taxonomy(levels, values),
        prior=tuple(map(Fraction, weights)),
        population=tuple(sum(h.values()) + more for h, more in zip(histograms, extra, strict=True)),
        population_only=tuple(draw(st.lists(st.integers(1, 5), max_size=2))),
        coarser=(tuple(_dense(middle, i) for i in middle), (0,) * size),
    )


def _dense(numbers: list[int], one: int) -> int:
    """Numbers without gaps, in order of appearance."""
    return list(dict.fromkeys(numbers)).index(one)


@st.composite
def partitions(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A way of merging blocks: the number of the union of each block."""
    numbers = draw(st.lists(st.integers(0, max(size - 2, 0)), min_size=size, max_size=size))
    return tuple(_dense(numbers, i) for i in numbers)
