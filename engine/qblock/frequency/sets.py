"""Frequency sets: the only place that decides how the counts of a lattice node are obtained.

The source is coded once, a row a key (`coding`). The counts of a node are one GROUP BY of masked keys, from the
smallest set that is finished and finer: the coded table, or a hub, a coarser frequency set that is stored since many
nodes above it are still to be asked (`hubs`). Some of the blocks come from a slice of the coded table.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Blocks, Floats, Ints
from qblock.engines import queries
from qblock.engines.memory import UNLIMITED
from qblock.engines.queries import Query, Sample
from qblock.engines.session import Session
from qblock.errors import QblockError
from qblock.frequency.arrays import FrequencySet, InMemory, Sizes, Small, facts_of
from qblock.frequency.coding import Coding, Mask, by_block, finer, located, order_of
from qblock.frequency.hubs import Hubs, worth_hubs
from qblock.frequency.slices import Slices
from qblock.lattice import Lattice, Node, up

KEEP_ROWS = 20_000_000
"""Rows of hubs kept; beyond, those go first that no node needs any more, and then the largest."""
LEAST_SHARED = 100_000
"""Rows below which one question takes no longer than to hand it to another thread, about."""
LEAVES_SAMPLED = 16
"""How many leaves there are is guessed from one of so many parts of them."""
LEAST_SAMPLED = 50_000
"""Rows below which a sample is no cheaper than all of them."""
GREATEST_SQUARED = 3_000_000_000
"""Rows whose square a BIGINT holds."""


@dataclass(frozen=True)
class Portion:
    """sampled: some of the blocks, whichever are cheapest to count; else the part of this number, of so many."""

    sampled: bool = False
    number: int = 0
    of: int = 1

    @property
    def all(self) -> bool:
        """Whether it is all of them."""
        return not self.sampled and self.of == 1


ALL, SAMPLED = Portion(), Portion(sampled=True)


class FrequencySets:
    """The counts of every node of one table.

    base: the coded table (`packed`), all of whose words are known; coding: its layout; rows: N, which every node's
    counts must add up to. entities: the table has a column e and counts are of distinct entities, which are not
    additive: hubs keep them apart. name: of the temporary tables. memory: bytes that the client may take for what is
    fetched at once.
    """

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
        self.session = session
        self.coding = coding
        self.lattice = Lattice(tuple(h.height for h in coding.hierarchies))
        self.rows = rows
        self.entities = entities
        self.memory = memory
        self.rows_read = 0
        # Words as fetched, sorted and masked; number, value, order; and what a model computes of them.
        self._bytes = 8 * (3 * coding.words + 8)
        self._prefix, self._number = name, itertools.count()
        self._shared = False
        everything = range(len(coding.sensitive))
        self._base = FrequencySet(self.lattice.bottom, coding.mask(self.lattice.bottom, everything), base, rows)
        self._hubs: list[FrequencySet] = []
        self._slices = Slices(self)
        self._in_memory: InMemory | None = None
        self._lock = threading.RLock()
        self._plans: dict[tuple[int, ...], Hubs] = {}
        self._wanted: Floats | None = None
        self._texts: dict[tuple[object, ...], tuple[str, list[str]]] = {}
        self._known: dict[Mask, int] = {}
        self._sizes: dict[Mask, Sizes] = {}
        self._small: dict[tuple[Mask, int], Small] = {}
        self._small_of_node: dict[Node, Small] = {}

    @property
    def base(self) -> sa.TableClause:
        """The coded table."""
        return self._base.stored

    @property
    def max_concurrency(self) -> int:
        """How many threads may ask for sizes and blocks of a node at once."""
        return self.session.max_concurrency if self._shared else 1

    def share(self) -> None:
        """Have several threads answered at once, where the session can, and the table is large enough for that."""
        if self._shared or self.session.max_concurrency < 2 or self.rows < LEAST_SHARED:
            return
        self.forget()
        base = self.base
        self._shared = True
        self._base = replace(self._base, table=self.stored(sa.select(*base.c)))
        self.session.drop(base)

    def count_in_memory(self) -> None:
        """Have many nodes counted in memory, where the rows fit and may be in it."""
        if self.session.embedded:
            self._in_memory = InMemory(self.session, self.memory)

    @property
    def in_memory(self) -> bool:
        """Whether what fits there is counted in memory."""
        return self._in_memory is not None

    def stored(self, query: Query) -> sa.TableClause:
        """A temporary table that what is asked about nodes may be counted from."""
        store = self.session.share if self._shared else self.session.store
        return store(f"{self._prefix}_{next(self._number)}", query)

    def cost(self, node: Node, sensitive: Sequence[int] = ()) -> int:
        """Rows that the counts of this node would be read from now."""
        return self._source(self.coding.mask(node, sensitive)).rows

    def hub(self, node: Node, sensitive: Sequence[int] = ()) -> int:
        """Store the frequency set of a node, for coarser ones to be counted from; its rows."""
        mask = self.coding.mask(node, sensitive)
        source = self._source(mask)
        if source.mask == mask and source is not self._base:
            return source.rows
        memory = None if self.entities else self._memory_of(source, mask)
        if memory is None:
            table = self.stored(queries.roll_up(source.stored, mask, by_entity=self.entities))
            self.session.analyze(table)
            rows = int(self.session.scalar(sa.select(sa.func.count()).select_from(table)))
            stored = FrequencySet(node, mask, table, rows)
        else:
            stored = memory.hub(source, node, mask)
        self._hubs.append(stored)
        while self._too_many() and len(self._hubs) > 1:
            self._drop(
                max((hub for hub in self._hubs if hub is not stored), key=lambda hub: (self._idle(hub), hub.rows))
            )
        return stored.rows

    def _too_many(self) -> bool:
        memory, rows = self._in_memory, sum(hub.rows for hub in self._hubs)
        return rows > KEEP_ROWS or (memory is not None and memory.overfull([self._base, *self._hubs]))

    def plan_hubs(self, wanted: Floats, sensitive: Sequence[int] = ()) -> Floats:
        """Store the hubs that pay for nodes to be asked; the rows that each node's counts would be read from.

        wanted: over the nodes that are searched, a lattice with the same bottom, how often each may be asked.
        """
        self._wanted = wanted
        if not worth_hubs(self.rows):
            return np.broadcast_to(float(self.rows), wanted.shape)
        kind = tuple(sensitive)
        if kind not in self._plans or self._plans[kind].cost.shape != wanted.shape:
            self._plans[kind] = Hubs(self.coding, kind, self.rows, self.rows_read, wanted.shape)
        return self._plans[kind].look(wanted, self.rows_read, lambda node: self.hub(node, kind))

    def statement(self, node: Node, sensitive: Sequence[int]) -> Query:
        """The statement that a node's counts would come from, if no hub was stored."""
        return self._counts(self._base, self.coding.mask(node, sensitive))

    def forget(self) -> None:
        """Drop the hubs and slices."""
        for hub in list(self._hubs):
            self._drop(hub)
        self._slices.drop()
        self.release()

    def release(self) -> None:
        """Let the leaves in memory go; they are fetched again for what is asked of them."""
        self._base.keys = None
        if self._in_memory is not None:
            self._in_memory.release()

    def count_read(self, rows: int) -> None:
        """Add to the rows that were read."""
        with self._lock:
            self.rows_read += rows

    def add_up(self, total: int, node: Node) -> None:
        """Raise QblockError where the counts of a node do not add up to the rows of the source."""
        if total != self.rows:
            raise QblockError(
                f"the counts of node {list(node)} add up to {total}, not to the {self.rows} rows of the source. This "
                "is a fault of qblock or of the database, and nothing may be published from it"
            )

    def sizes(self, node: Node) -> Sizes:
        """The block sizes of a node, without any sensitive value."""
        mask = self.coding.mask(node)
        if mask not in self._sizes:
            source = self._source(mask)
            self.count_read(source.rows)
            sizes = self._histogram(source, mask)
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
            self.count_read(source.rows)
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
        facts = self._block_counts(self._base, mask, sample, 0)
        return int(facts["blocks"][0]) * (1 if sample is None else LEAVES_SAMPLED)

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
        words, n = self.leaf_keys(sensitive)
        values = [self.coding.values(i, words) for i in sensitive]
        stacked = np.stack(values, axis=1) if values else np.zeros((len(words[0]), 0), dtype=np.int64)
        return self.coding.keys(self.lattice.bottom, words), stacked, n

    def leaf_keys(self, sensitive: Sequence[int]) -> tuple[list[Ints], Ints]:
        """The words of the leaves with these values, and the rows (never entities) of each."""
        words, counts = self._fetched(self.lattice.bottom, sensitive)
        return words, counts["r" if self.entities else "n"]

    def leaf_entities(self, sensitive: Sequence[int]) -> tuple[list[Ints], Ints, Ints]:
        """As `leaf_keys`, of each entity by itself: its number beside."""
        mask = self.coding.mask(self.lattice.bottom, sensitive)
        self.count_read(self.rows)
        leaves = queries.roll_up(self.base, mask, by_entity=True).subquery("leaves")
        columns = self.session.counts(sa.select(*queries.numbered_entities(leaves)))
        nothing = np.zeros(len(columns["n"]), dtype=np.int64)
        return [columns.get(f"k{i}", nothing) for i in range(self.coding.words)], columns["n"], columns["e"]

    def leaves_in(self, node: Node, keys: Ints, i: int) -> tuple[Ints, Ints, Ints]:
        """The leaves of the i-th quasi-identifier in some blocks of a node, int64[L] each: the block's number, the
        leaf, and the rows (or entities) of the pair. keys: int64[B, Q], of these blocks."""
        words, counts = self._fetched((*node[:i], 0, *node[i + 1 :]), ())
        block = located(words, self.coding.words_of(node, keys), self.coding.mask(node))
        there = block >= 0
        return block[there], self.coding.codes(i, 0, [word[there] for word in words]), counts["n"][there]

    def leaf_sizes(self, sensitive: Sequence[int]) -> tuple[Ints, Ints]:
        """The numbers of rows (never entities) that leaves with these values have, and how many have each."""
        mask = self.coding.mask(self.lattice.bottom, sensitive)
        source = self._source(mask)
        self.count_read(source.rows)
        sizes = self._histogram(source, mask, of_rows=True)
        return sizes.size, sizes.blocks

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

    def _source(self, mask: Mask) -> FrequencySet:
        usable = (hub for hub in self._hubs if finer(hub.mask, mask))
        return min(usable, key=lambda hub: hub.rows, default=self._base)

    def _memory_of(self, source: FrequencySet, mask: Mask) -> InMemory | None:
        memory = self._in_memory
        return memory if memory and memory.fits(source, mask, self.max_concurrency) else None

    def _histogram(self, source: FrequencySet, mask: Mask, *, of_rows: bool = False) -> Sizes:
        """The sizes of blocks. of_rows: in rows, also where entities are counted."""
        memory = self._memory_of(source, mask)
        if memory is not None:
            return memory.histogram(source, mask, of_rows=of_rows)
        query = queries.roll_up(source.stored, mask) if of_rows else self._counts(source, mask)
        histogram = self.session.counts(queries.size_histogram(query))
        order = np.argsort(histogram["size"])
        return Sizes(histogram["size"][order], histogram["blocks"][order])

    def _counts(self, source: FrequencySet, mask: tuple[queries.Bits, ...], sample: Sample | None = None) -> Query:
        if self.entities:
            return queries.count_entities(source.stored, mask, sample=sample)
        return queries.roll_up(source.stored, mask, sample=sample)

    def _sampled(self, node: Node, mask: Mask) -> tuple[FrequencySet, Mask, Sample | None]:
        """What counts of some of a node's blocks come from: a slice, if there can be one."""
        blocks, source = self.coding.mask(node), self._source(mask)
        with self._lock:
            stores = self._memory_of(source, mask) is None
            rows = self._slices.sample(node, blocks, source.rows, stores=stores)
        if isinstance(rows, Sample):
            return source, mask, rows
        return FrequencySet(self.lattice.bottom, self._base.mask, rows, 0), mask, None

    def _block_counts(
        self, source: FrequencySet, mask: Mask, sample: Sample | None, least: int | None = None, squared: bool = False
    ) -> dict[str, Ints]:
        """The counts of blocks, or `size_facts` of them; a statement is built once, and filled in for each mask."""
        memory = self._memory_of(source, mask)
        if memory is not None:
            words, n, rows = memory.counts(source, mask, sample)
            if least is not None:
                return facts_of(n, least, squared=squared)
            keys = {f"k{i}": word for i, word in enumerate(words)}
            return keys | {"n": n} | ({"r": rows} if self.entities else {})
        by: tuple[queries.Bits, ...] = () if sample is None else sample.mask
        key = (source.stored.name, tuple(map(bool, mask)), tuple(map(bool, by)), least is None, squared)
        if key not in self._texts:
            marked = None if sample is None else Sample(_marked("b", by), "{parts}", "{number}")
            query = self._counts(source, _marked("m", mask), marked)
            query = query if least is None else queries.size_facts(query, "{least}", squared=squared)
            self._texts[key] = self.session.literal_sql(query), list(query.selected_columns.keys())
        text, names = self._texts[key]
        values = {f"m{i}": bits for i, bits in enumerate(mask)} | {f"b{i}": bits for i, bits in enumerate(by)}
        parts, number = (1, 0) if sample is None else (sample.parts, sample.number)
        return self.session.counts_of(text.format(least=least, parts=parts, number=number, **values), names)

    def _learn(self, node: Node, kind: tuple[int, ...], rows: int) -> None:
        # A hub has a row for each entity of a block, too.
        if kind in self._plans and not self.entities:
            with self._lock:
                self._plans[kind].learn(node, rows)

    def _idle(self, hub: FrequencySet) -> bool:
        """Whether no node that may still be asked is counted from it."""
        return self._wanted is not None and not self._wanted[up(hub.node)].any()

    def _drop(self, hub: FrequencySet) -> None:
        self._hubs.remove(hub)
        if hub.table is not None:
            self.session.drop(hub.table)

    def _fetched(
        self, node: Node, sensitive: Sequence[int], portion: Portion = ALL
    ) -> tuple[list[Ints], dict[str, Ints]]:
        mask = self.coding.mask(node, sensitive)
        if portion.sampled:
            columns = self._block_counts(*self._sampled(node, mask))
        else:
            source = self._source(mask)
            self.count_read(source.rows)
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


def _marked(name: str, mask: tuple[queries.Bits, ...]) -> tuple[queries.Bits, ...]:
    """The mask as names to be filled in, where it keeps anything."""
    return tuple(f"{{{name}{i}}}" if bits else 0 for i, bits in enumerate(mask))
