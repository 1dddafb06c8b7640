"""Frequency sets: the only place that decides how the counts of a lattice node are obtained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Blocks, Ints
from qblock.frequency.coding import Coding, Mask
from qblock.frequency.pairs import by_block, order_of
from qblock.frequency.portions import ALL, Portion
from qblock.frequency.sizes import Sizes
from qblock.frequency.sources import Sources
from qblock.lattice import Node
from qblock.warehouse import queries
from qblock.warehouse.memory import UNLIMITED
from qblock.warehouse.protocol import Session
from qblock.warehouse.queries import Sample

LEAVES_SAMPLED = 16
"""How many leaves there are is guessed from one of so many parts of them."""
LEAST_SAMPLED = 50_000
"""Rows below which a sample is no cheaper than all of them."""
GREATEST_SQUARED = 3_000_000_000
"""Rows whose square a BIGINT holds."""


@dataclass(frozen=True)
class Small:
    """Block sizes of a node by a threshold: how many blocks, and their sizes (squared; None: not known), all of them
    and those below."""

    blocks: int
    n: int
    squares: int | None
    small: int
    small_n: int
    small_squares: int | None


class FrequencySets(Sources):
    """The counts of every node of one table. memory: bytes that the client may take for what is fetched at once."""

    def __init__(
        self,
        session: Session,
        base: sa.TableClause,
        coding: Coding,
        rows: int,
        *,
        entities: bool = False,
        name: str = "qblock_frequency_set",
        memory: int = UNLIMITED,
    ) -> None:
        super().__init__(session, base, coding, rows, entities=entities, name=name)
        self.memory = memory
        # Words as fetched, sorted and masked; number, value, order; and what a model computes of them.
        self._bytes = 8 * (3 * coding.words + 8)
        self._known: dict[Mask, int] = {}
        self._sizes: dict[Mask, Sizes] = {}
        self._small: dict[tuple[Mask, int], Small] = {}
        self._small_of_node: dict[Node, Small] = {}

    def sizes(self, node: Node) -> Sizes:
        """The block sizes of a node, without any sensitive value."""
        mask = self.coding.mask(node)
        if mask not in self._sizes:
            histogram = self.session.counts(queries.size_histogram(self._counted(mask)))
            order = np.argsort(histogram["size"])
            sizes = Sizes(histogram["size"][order], histogram["blocks"][order])
            if not self.entities:
                self.add_up(int((sizes.size * sizes.blocks).sum()), node)
            self._sizes[mask] = sizes
        return self._sizes[mask]

    def small(self, node: Node, least: int) -> Small:
        """The blocks of a node that are smaller than `least`, in entities where those are counted."""
        mask = self.coding.mask(node)
        if (mask, least) not in self._small:
            squared = self.rows < GREATEST_SQUARED
            source = self._source(mask)
            self._read(source.rows)
            facts = self._block_counts(source, mask, None, least, squared)
            figures = {name: int(values[0]) for name, values in facts.items()}
            if not self.entities:
                self.add_up(figures["n"], node)
            self._small[mask, least] = Small(
                figures["blocks"],
                figures["n"],
                figures.get("squares"),
                figures["small"],
                figures["small_n"],
                figures.get("small_squares"),
            )
            self._known[mask] = figures["blocks"]
            self._learn(node, (), figures["blocks"])
        self._small_of_node[node] = self._small[mask, least]
        return self._small[mask, least]

    def known_small(self) -> dict[Node, Small]:
        """What `small` has found so far."""
        return dict(self._small_of_node)

    @property
    def leaves(self) -> int:
        """The combinations of leaves and sensitive values that occur; estimated from a sample in a large table."""
        mask = self._base.mask
        sample = Sample(mask, LEAVES_SAMPLED) if self.rows >= LEAST_SAMPLED else None
        query = queries.size_facts(self._counts(self._base, mask, sample), 0, squared=False)
        return int(self.session.counts(query)["blocks"][0]) * (1 if sample is None else LEAVES_SAMPLED)

    def sampled_below(self, node: Node, least: int) -> int:
        """Rows (or entities) of some of the blocks that are smaller than `least`: there are at least so many."""
        mask = self.coding.mask(node)
        if (mask, least) in self._small:
            return self._small[mask, least].small_n
        if not self.worth_sampling(node, ()):
            return 0
        return int(self._block_counts(*self._sampled(node, mask), least)["small_n"][0])

    def worth_sampling(self, node: Node, sensitive: Sequence[int]) -> bool:
        """Whether counting only some blocks would be cheaper."""
        return self.cost(node, sensitive) >= LEAST_SAMPLED

    def parts(self, node: Node, sensitive: Sequence[int]) -> int:
        """In how many parts the counts of a node are fetched, so that each of them fits the client's memory."""
        rows = self._source(self.coding.mask(node, sensitive)).rows
        known = self._known.get(self.coding.mask(node))
        if known is not None:
            rows = min(rows, known * math.prod(self.coding.sizes[i] for i in sensitive))
        return max(1, -(-rows * self._bytes * self.max_concurrency // self.memory))

    def blocks(
        self, node: Node, sensitive: Sequence[int], *, portion: Portion = ALL, keyed: bool = True
    ) -> list[Blocks]:
        """The blocks of a node for each sensitive attribute named, all in the same order of blocks.

        portion: of the blocks. keyed: with their keys.
        """
        if not sensitive:
            return [self._blocks(node, None, portion, keyed)]
        return [self._blocks(node, i, portion, keyed) for i in sensitive]

    def joint(self, node: Node, sensitive: Sequence[int], *, portion: Portion = ALL) -> tuple[Ints, Ints, Ints]:
        """Several sensitive attributes at once: keys int64[R, Q], values int64[R, S] and counts int64[R]."""
        words, counts = self._fetched(node, sensitive, portion)
        if not self.entities and portion.all:
            self.add_up(int(counts["n"].sum()), node)
        values = np.stack([self.coding.values(i, words) for i in sensitive], axis=1)
        return self.coding.keys(node, words), values, counts["n"]

    def row_counts(self, node: Node, *, portion: Portion = ALL) -> Ints:
        """int64[B]: rows of each block, in the order of `blocks`, also where entities are counted."""
        words, counts = self._fetched(node, (), portion)
        rows: Ints = counts["r" if self.entities else "n"]
        return rows[order_of(words, self.coding.mask(node))]

    def leaf_counts(self, sensitive: Sequence[int]) -> tuple[Ints, Ints, Ints]:
        """Keys, values and rows (never entities) of the leaves, as `joint` gives them."""
        node = self.lattice.bottom
        words, counts = self._fetched(node, sensitive)
        values = [self.coding.values(i, words) for i in sensitive]
        stacked = np.stack(values, axis=1) if values else np.zeros((len(words[0]), 0), dtype=np.int64)
        return self.coding.keys(node, words), stacked, counts["r" if self.entities else "n"]

    def leaf_sizes(self, sensitive: Sequence[int]) -> tuple[Ints, Ints]:
        """The numbers of rows (never entities) that leaves with these values have, and how many have each."""
        mask = self.coding.mask(self.lattice.bottom, sensitive)
        source = self._source(mask)
        self._read(source.rows)
        histogram = self.session.counts(queries.size_histogram(self._grouped(source, mask)))
        return histogram["size"], histogram["blocks"]

    def marginals(self) -> list[tuple[Ints, Ints]]:
        """For each quasi-identifier the leaves that occur and the rows (never entities) of each of them."""
        marginals = []
        for i in range(len(self.lattice.heights)):
            node = tuple(0 if i == j else height for j, height in enumerate(self.lattice.heights))
            words, counts = self._fetched(node, ())
            marginals.append((self.coding.keys(node, words)[:, i], counts["r" if self.entities else "n"]))
        return marginals

    def totals(self, sensitive: int) -> tuple[Ints, Ints]:
        """The codes of a sensitive attribute that occur, and the rows (or entities) of each."""
        words, counts = self._fetched(self.lattice.top, (sensitive,))
        return self.coding.values(sensitive, words), counts["n"]

    def people(self) -> int:
        """The entities of the table."""
        return int(self._fetched(self.lattice.top, ())[1]["n"].sum())

    def _fetched(
        self, node: Node, sensitive: Sequence[int], portion: Portion = ALL
    ) -> tuple[list[Ints], dict[str, Ints]]:
        mask = self.coding.mask(node, sensitive)
        if portion.sampled:
            columns = self._block_counts(*self._sampled(node, mask))
        else:
            source = self._source(mask)
            self._read(source.rows)
            sample = None if portion.all else Sample(self.coding.mask(node), portion.of, portion.number)
            columns = self._block_counts(source, mask, sample)
        nothing = np.zeros(len(columns["n"]), dtype=np.int64)
        return [columns.pop(f"k{i}", nothing) for i in range(self.coding.words)], columns

    def _blocks(self, node: Node, sensitive: int | None, portion: Portion, keyed: bool) -> Blocks:
        kind = () if sensitive is None else (sensitive,)
        words, counts = self._fetched(node, kind, portion)
        if portion.all:
            self._learn(node, kind, len(counts["n"]))
            if not self.entities:
                self.add_up(int(counts["n"].sum()), node)
        order = order_of(words, self.coding.mask(node, kind))
        words, n = [word[order] for word in words], counts["n"][order]
        if sensitive is None:
            start = np.arange(len(n) + 1, dtype=np.int64)
            return Blocks(start, np.zeros_like(n), n, n, self.coding.keys(node, words) if keyed else None)
        value = self.coding.values(sensitive, words)
        alone = self.coding.mask(node)
        first, value, n, block = by_block(words, alone, value, n)
        start = np.append(first, len(n)).astype(np.int64)
        keys = self.coding.keys(node, block) if keyed else None
        if self.entities:
            words, counts = self._fetched(node, (), portion)
            rows = counts["n"][order_of(words, alone)]
        else:
            rows = np.add.reduceat(n, first) if len(first) else n
        return Blocks(start, value, n, rows, keys)
