"""Small random tables, as the engine and as the slow reference see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
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
KINDS = {"epsilon_privacy": 300, "nt_closeness": 150, "t_closeness": 120}
"""Examples for models that are several models in one."""


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


COUNTS = (0, 0, 1, 1, 2, 3, 4, 5)
"""Equal counts, and values that do not occur, are common."""


@lru_cache
def _below(size: int) -> st.SearchStrategy[int]:
    return st.sampled_from(range(size))


def _digits(draw: st.DrawFn, base: int, length: int) -> list[int]:
    """That many digits, all as likely, from a single draw: a draw costs more than most of what is tested."""
    number = draw(_below(base**length))
    return [number // base**place % base for place in range(length)]


def _taxonomy(levels: list[list[int]], values: int) -> tuple[tuple[int, ...], ...]:
    """Groups of values, groups of groups, .., one root: nested by construction."""
    paths = [[v] for v in range(values)]
    for level in levels:
        for path in paths:
            path.append(level[path[-1]])
    return tuple((*path, 0) for path in paths)


@st.composite
def cases(draw: st.DrawFn, least_blocks: int = 1) -> Case:
    """Tables of up to 4 blocks over a declared domain of up to 5 values, some of which may not occur."""
    values = draw(_below(5)) + 1
    size = least_blocks + draw(_below(5 - least_blocks))
    histograms = []
    for _ in range(size):
        counts = [COUNTS[digit] for digit in _digits(draw, len(COUNTS), values)]
        histograms.append({v: n for v, n in enumerate(counts) if n} or {0: 1})
    gaps = _digits(draw, 6, values)
    numbers = [Fraction(sum(gaps[: v + 1]) + v - gaps[-1] * 2, 2) for v in range(values)]
    shape = draw(_below(4))
    levels = [_digits(draw, 3, 5) for _ in range(min(shape, 2))]
    if shape == 3:
        levels[1] = list(range(5))  # a level whose groups are those of the one below
    weights = _digits(draw, 4, values)
    middle = _digits(draw, 2, size)
    extra = _digits(draw, 5, size)
    alone = draw(_below(6))
    sets = [{v for v, bit in enumerate(_digits(draw, 2, values)) if bit} for _ in range(2)]
    guarded = tuple(dict.fromkeys(tuple(sorted(chosen)) for chosen in sets if 0 < len(chosen) < values))
    bits = _digits(draw, 2, 2 * size)
    return Case(
        histograms=tuple(histograms),
        guarded=guarded,
        guards=tuple(tuple(place for place in range(len(guarded)) if bits[2 * i + place]) for i in range(size)),
        numbers=tuple(numbers),
        taxonomy=_taxonomy(levels, values),
        prior=tuple(map(Fraction, weights if any(weights) else [1] * values)),
        population=tuple(sum(h.values()) + more for h, more in zip(histograms, extra, strict=True)),
        population_only=(alone - 2,) if alone > 2 else (),
        coarser=(tuple(_dense(middle, i) for i in middle), (0,) * size),
    )


def _dense(numbers: list[int], one: int) -> int:
    """Numbers without gaps, in order of appearance."""
    return list(dict.fromkeys(numbers)).index(one)


@st.composite
def partitions(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """A way of merging blocks: the number of the union of each block."""
    numbers = _digits(draw, max(size - 1, 1), size)
    return tuple(_dense(numbers, i) for i in numbers)
