"""Raw rows, hierarchies, nodes and blocks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

Row = dict[str, Any]
Node = tuple[int, ...]
Hierarchies = dict[str, dict[str, list[str]]]
"""{quasi-identifier: {leaf: [label at level 0 (the leaf), label at level 1, ...]}}"""


@dataclass(frozen=True, eq=False)
class Table:
    """The raw table and what is declared about it; nothing here may depend on a node.

    domain: dom(S) in its order (None: the observed values, sorted); taxonomy: {value: [itself, label at level 1, ..]};
    prior: weights of the values; entity: the column that says who a row is about (None: every row is somebody);
    population: rows of the population table; hierarchies: those of the quasi-identifiers.
    """

    rows: list[Row]
    sensitive: str = "s"
    domain: tuple[Any, ...] | None = None
    taxonomy: dict[Any, list[Any]] | None = None
    prior: dict[Any, Fraction] | None = None
    entity: str | None = None
    population: list[Row] | None = None
    hierarchies: Hierarchies = field(default_factory=dict)

    @cached_property
    def _values(self) -> list[Any]:
        return list(self.domain) if self.domain is not None else sorted({row[self.sensitive] for row in self.rows})

    def values(self) -> list[Any]:
        """dom(S)."""
        return self._values

    @cached_property
    def _whole(self) -> Block:
        return Block(self, self.rows)

    def whole(self) -> Block:
        """The table as one block."""
        return self._whole

    def nodes(self) -> list[Node]:
        """Every node of the lattice."""
        heights = [len(next(iter(h.values()))) for h in self.hierarchies.values()]
        return list(itertools.product(*(range(height) for height in heights)))

    def label(self, row: Row, node: Node) -> tuple[str, ...]:
        """The generalized quasi-identifiers of a row."""
        return tuple(h[row[name]][level] for (name, h), level in zip(self.hierarchies.items(), node, strict=True))

    def generalized(self, node: Node) -> list[Row]:
        """The rows with generalized quasi-identifiers, everything else as it was."""
        names = list(self.hierarchies)
        return [{**row, **dict(zip(names, self.label(row, node), strict=True))} for row in self.rows]

    def blocks(self, node: Node) -> dict[tuple[str, ...], Block]:
        """The blocks of a node, each with its population rows and every block of a coarser node that contains it."""
        coarser = [other for other in self.nodes() if all(o >= n for o, n in zip(other, node, strict=True))]
        found = {}
        for key in dict.fromkeys(self.label(row, node) for row in self.rows):
            rows = [row for row in self.rows if self.label(row, node) == key]
            containing = [
                [row for row in self.rows if self.label(row, other) == self.label(rows[0], other)] for other in coarser
            ]
            people = None if self.population is None else sum(self.label(p, node) == key for p in self.population)
            found[key] = Block(self, rows, containing, people)
        return found

    def empty_population_blocks(self, node: Node) -> int:
        """How many blocks of the population at this node hold no row of the table."""
        mine = {self.label(row, node) for row in self.rows}
        return len({self.label(row, node) for row in self.population or []} - mine)


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of the table.

    containing: supersets of it in the lattice, itself included; population: people in it; guards: the sets of sensitive
    values that its people guard, each by itself.
    """

    table: Table
    rows: list[Row]
    containing: list[list[Row]] = field(default_factory=list)
    population: int | None = None
    guards: list[frozenset[Any]] = field(default_factory=list)

    def _people(self, rows: list[Row]) -> int:
        entity = self.table.entity
        return len(rows) if entity is None else len({row[entity] for row in rows})

    def size(self) -> int:
        """n(q): rows, or people where an entity column is named."""
        return self._people(self.rows)

    @cached_property
    def _counts(self) -> dict[Any, int]:
        by_value: dict[Any, list[Row]] = {}
        for row in self.rows:
            by_value.setdefault(row[self.table.sensitive], []).append(row)
        return {value: self._people(by_value[value]) for value in self.table.values() if value in by_value}

    def counts(self) -> dict[Any, int]:
        """{value: n(q,s)} of the values that occur, in the order of dom(S)."""
        return self._counts

    def count(self, value: Any) -> int:
        """n(q,s): rows (or people) with that sensitive value."""
        return self._counts.get(value, 0)

    def mass(self) -> int:
        """The sum of n(q,s): the denominator of every share."""
        return sum(self.counts().values())

    def share(self, value: Any) -> Fraction:
        """p_q(s)."""
        return Fraction(self.count(value), self.mass())

    def shares(self) -> list[Fraction]:
        """p_q over dom(S), in its order."""
        return [self.share(value) for value in self.table.values()]

    def union(self, other: Block) -> Block:
        return Block(self.table, self.rows + other.rows)


def table_of(histograms: list[dict[Any, int]], **more: Any) -> tuple[Table, list[Block]]:
    """A table (and its blocks) from one {value: count} per block; the column `q` says which block a row is in."""
    rows = [{"q": q, "s": value} for q, h in enumerate(histograms) for value, n in h.items() for _ in range(n)]
    table = Table(rows, **more)
    return table, [Block(table, [row for row in rows if row["q"] == q]) for q in range(len(histograms))]
