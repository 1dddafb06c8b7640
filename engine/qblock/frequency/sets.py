"""Frequency sets: the only place that decides how the counts of a lattice node are obtained.

The source is coded once, a row a key (`coding`). The counts of a node are one GROUP BY of masked keys, from the
smallest set that is finished and finer: the coded table, or a hub, a coarser frequency set that is stored since many
nodes above it are still to be asked (`hubs`).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Blocks, Floats, Ints
from qblock.errors import QblockError
from qblock.frequency.coding import Coding, Mask, finer
from qblock.frequency.hubs import Hubs
from qblock.frequency.sizes import Sizes
from qblock.lattice import Lattice, Node
from qblock.warehouse import queries
from qblock.warehouse.protocol import Session
from qblock.warehouse.queries import Query, Sample

KEEP_ROWS = 20_000_000
"""Rows of hubs kept; beyond, the largest go first."""
PARTS = 16
"""A sample of blocks is one of so many parts."""
LEAST_SAMPLED = 50_000
"""Rows below which a sample is no cheaper than all of them."""
SLICED = 64
"""A slice is a part of at least so many blocks, which all finer nodes share."""
FILTERED = 4
"""To filter a sample costs so little of counting all; a slice, which is stored, needs none."""
MISSED = 3
"""How often a slice must have been of use before it is stored."""
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


@dataclass(frozen=True, eq=False)
class _FrequencySet:
    mask: Mask
    table: sa.TableClause
    rows: int


class FrequencySets:
    """The counts of every node of one table.

    base: the coded table (`packing`), all of whose words are known; coding: its layout; rows: N, which every node's
    counts must add up to. entities: the table has a column e and counts are of distinct entities, which are not
    additive: hubs keep them apart.
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
    ) -> None:
        self.session = session
        self.coding = coding
        self.lattice = Lattice(tuple(h.height for h in coding.hierarchies))
        self.rows = rows
        self.entities = entities
        self.rows_read = 0
        self._number = itertools.count()
        self._prefix = name
        everything = range(len(coding.sensitive))
        self._base = _FrequencySet(coding.mask(self.lattice.bottom, everything), base, rows)
        self._hubs: list[_FrequencySet] = []
        self._slices: dict[Mask, sa.TableClause] = {}
        self._missed: Counter[Mask] = Counter()
        self._sliced_by: dict[Mask, Mask | None] = {}
        self._sizes: dict[Mask, Sizes] = {}
        self._small: dict[tuple[Mask, int], Small] = {}
        self._asked: dict[Node, Small] = {}
        self._plans: dict[tuple[int, ...], Hubs] = {}
        self._texts: dict[tuple[object, ...], tuple[str, list[str]]] = {}

    @property
    def base(self) -> sa.TableClause:
        """The coded table."""
        return self._base.table

    def cost(self, node: Node, sensitive: Sequence[int] = ()) -> int:
        """Rows that the counts of this node would be read from now."""
        return self._source(self.coding.mask(node, sensitive)).rows

    def hub(self, node: Node, sensitive: Sequence[int] = ()) -> int:
        """Store the frequency set of a node, for coarser ones to be counted from; its rows."""
        mask = self.coding.mask(node, sensitive)
        source = self._source(mask)
        if source.mask == mask and source is not self._base:
            return source.rows
        table = self.session.store(self._name(), self._grouped(source, mask, by_entity=self.entities))
        self.session.analyze(table)
        rows = int(self.session.scalar(sa.select(sa.func.count()).select_from(table)))
        made = _FrequencySet(mask, table, rows)
        self._hubs.append(made)
        while sum(hub.rows for hub in self._hubs) > KEEP_ROWS and len(self._hubs) > 1:
            self._drop(max((hub for hub in self._hubs if hub is not made), key=lambda hub: hub.rows))
        return rows

    def expect(self, wanted: Floats, sensitive: Sequence[int] = ()) -> Floats:
        """Store the hubs that pay for nodes to be asked; the rows that each node's counts would be read from.

        wanted: float64 over the lattice, how often each may be asked.
        """
        kind = tuple(sensitive)
        if kind not in self._plans:
            self._plans[kind] = Hubs(self, kind)
        return self._plans[kind].look(wanted)

    def sizes(self, node: Node) -> Sizes:
        """The block sizes of a node, without any sensitive value."""
        mask = self.coding.mask(node)
        if mask not in self._sizes:
            histogram = self.session.counts(queries.size_histogram(self._counted(mask)))
            order = np.argsort(histogram["size"])
            sizes = Sizes(histogram["size"][order], histogram["blocks"][order])
            if not self.entities:
                self._add_up(int((sizes.size * sizes.blocks).sum()), node)
            self._sizes[mask] = sizes
        return self._sizes[mask]

    def small(self, node: Node, least: int) -> Small:
        """The blocks of a node that are smaller than `least`, in entities where those are counted."""
        mask = self.coding.mask(node)
        if (mask, least) not in self._small:
            squared = self.rows < GREATEST_SQUARED
            source = self._source(mask)
            self.rows_read += source.rows
            asked = self._asked_for(source, mask, None, least, squared)
            found = {name: int(values[0]) for name, values in asked.items()}
            if not self.entities:
                self._add_up(found["n"], node)
            self._small[mask, least] = Small(
                found["blocks"],
                found["n"],
                found.get("squares"),
                found["small"],
                found["small_n"],
                found.get("small_squares"),
            )
            self._learn(node, (), found["blocks"])
        self._asked[node] = self._small[mask, least]
        return self._small[mask, least]

    def known_small(self) -> dict[Node, Small]:
        """What `small` has found so far."""
        return dict(self._asked)

    @property
    def leaves(self) -> int:
        """The combinations of leaves and sensitive values that occur; estimated from a sample in a large table."""
        mask = self._base.mask
        sample = Sample(mask, PARTS) if self.rows >= LEAST_SAMPLED else None
        query = queries.size_facts(self._counts(self._base, mask, sample), 0, squared=False)
        return int(self.session.counts(query)["blocks"][0]) * (1 if sample is None else PARTS)

    def sampled_below(self, node: Node, least: int) -> int:
        """Rows (or entities) of some of the blocks that are smaller than `least`: there are at least so many."""
        mask = self.coding.mask(node)
        if (mask, least) in self._small:
            return self._small[mask, least].small_n
        if not self.worth_sampling(node, ()):
            return 0
        return int(self._asked_for(*self._sampled(node, mask), least)["small_n"][0])

    def worth_sampling(self, node: Node, sensitive: Sequence[int]) -> bool:
        """Whether counting only some blocks would be cheaper."""
        return self.cost(node, sensitive) >= LEAST_SAMPLED

    def blocks(
        self, node: Node, sensitive: Sequence[int], *, sampled: bool = False, keyed: bool = True
    ) -> list[Blocks]:
        """The blocks of a node for each sensitive attribute named, all in the same order of blocks.

        sampled: only some of the blocks, whole. keyed: with their keys.
        """
        if not sensitive:
            return [self._blocks(node, None, sampled, keyed)]
        return [self._blocks(node, i, sampled, keyed) for i in sensitive]

    def joint(self, node: Node, sensitive: Sequence[int], *, sampled: bool = False) -> tuple[Ints, Ints, Ints]:
        """Several sensitive attributes at once: keys int64[R, Q], values int64[R, S] and counts int64[R]."""
        words, counts = self._fetched(node, sensitive, sampled)
        if not self.entities and not sampled:
            self._add_up(int(counts["n"].sum()), node)
        values = np.stack([self.coding.values(i, words) for i in sensitive], axis=1)
        return self.coding.keys(node, words), values, counts["n"]

    def row_counts(self, node: Node, *, sampled: bool = False) -> Ints:
        """int64[B]: rows of each block, in the order of `blocks`, also where entities are counted."""
        words, counts = self._fetched(node, (), sampled)
        rows: Ints = counts["r" if self.entities else "n"]
        return rows[_order(words)]

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
        self.rows_read += source.rows
        found = self.session.counts(queries.size_histogram(self._grouped(source, mask)))
        return found["size"], found["blocks"]

    def marginals(self) -> list[tuple[Ints, Ints]]:
        """For each quasi-identifier the leaves that occur and the rows (never entities) of each of them."""
        found = []
        for i in range(len(self.lattice.heights)):
            node = tuple(0 if i == j else height for j, height in enumerate(self.lattice.heights))
            words, counts = self._fetched(node, ())
            found.append((self.coding.keys(node, words)[:, i], counts["r" if self.entities else "n"]))
        return found

    def totals(self, sensitive: int) -> tuple[Ints, Ints]:
        """The codes of a sensitive attribute that occur, and the rows (or entities) of each."""
        words, counts = self._fetched(self.lattice.top, (sensitive,))
        return self.coding.values(sensitive, words), counts["n"]

    def people(self) -> int:
        """The entities of the table."""
        return int(self._fetched(self.lattice.top, ())[1]["n"].sum())

    def statement(self, node: Node, sensitive: Sequence[int]) -> Query:
        """The statement that a node's counts would come from, if no hub was stored."""
        return self._counts(self._base, self.coding.mask(node, sensitive))

    def forget(self) -> None:
        """Drop the hubs and slices."""
        for hub in list(self._hubs):
            self._drop(hub)
        for table in self._slices.values():
            self.session.drop(table)
        self._slices.clear()

    def _source(self, mask: Mask) -> _FrequencySet:
        usable = (hub for hub in self._hubs if finer(hub.mask, mask))
        return min(usable, key=lambda hub: hub.rows, default=self._base)

    def _grouped(
        self,
        source: _FrequencySet,
        mask: tuple[queries.Bits, ...],
        *,
        sample: Sample | None = None,
        by_entity: bool = False,
    ) -> Query:
        return queries.roll_up(source.table, mask, sample=sample, by_entity=by_entity)

    def _counts(self, source: _FrequencySet, mask: tuple[queries.Bits, ...], sample: Sample | None = None) -> Query:
        if self.entities:
            return queries.count_entities(source.table, mask, sample=sample)
        return self._grouped(source, mask, sample=sample)

    def _counted(self, mask: Mask) -> Query:
        source = self._source(mask)
        self.rows_read += source.rows
        return self._counts(source, mask)

    def _sampled(self, node: Node, mask: Mask) -> tuple[_FrequencySet, Mask, Sample | None]:
        """What counts of some of a node's blocks come from: a slice, if there can be one."""
        blocks, source = self.coding.mask(node), self._source(mask)
        if blocks not in self._sliced_by:
            # Once: all that is asked of some of a node's blocks must be of the same ones.
            self._sliced_by[blocks] = self._slice_for(node, blocks, source)
        by = self._sliced_by[blocks]
        if by is None:
            self.rows_read += source.rows // FILTERED
            return source, mask, Sample(blocks, PARTS)
        if by not in self._slices:
            query = queries.sliced(self._base.table, Sample(by, PARTS))
            self._slices[by] = self.session.store(self._name(), query)
            self.session.analyze(self._slices[by])
            self.rows_read += self.rows // 2
        self.rows_read += self.rows // PARTS
        return _FrequencySet(self._base.mask, self._slices[by], 0), mask, None

    def _slice_for(self, node: Node, blocks: Mask, source: _FrequencySet) -> Mask | None:
        """The mask of the slice that pays for a node; None where it is cheaper to filter what would be counted."""
        if source.rows <= self.rows // FILTERED:
            return None
        by = next((by for by in self._slices if finer(blocks, by)), None) or self.coding.coarse(node, SLICED)
        if by is None or by in self._slices:
            return by
        self._missed[by] += 1
        return by if self._missed[by] >= MISSED else None

    def _asked_for(
        self, source: _FrequencySet, mask: Mask, sample: Sample | None, least: int | None = None, squared: bool = False
    ) -> dict[str, Ints]:
        """The counts of blocks, or `size_facts` of them; a statement is built once, and filled in for each mask."""
        by: tuple[queries.Bits, ...] = () if sample is None else sample.mask
        key = (source.table.name, tuple(map(bool, mask)), tuple(map(bool, by)), least is None, squared)
        if key not in self._texts:
            marked = None if sample is None else Sample(_marked("b", by), sample.parts)
            query = self._counts(source, _marked("m", mask), marked)
            query = query if least is None else queries.size_facts(query, "{least}", squared=squared)
            self._texts[key] = self.session.literal_sql(query), list(query.selected_columns.keys())
        text, names = self._texts[key]
        values = {f"m{i}": bits for i, bits in enumerate(mask)} | {f"b{i}": bits for i, bits in enumerate(by)}
        return self.session.counts_of(text.format(least=least, **values), names)

    def _fetched(
        self, node: Node, sensitive: Sequence[int], sampled: bool = False
    ) -> tuple[list[Ints], dict[str, Ints]]:
        mask = self.coding.mask(node, sensitive)
        if sampled:
            columns = self._asked_for(*self._sampled(node, mask))
        else:
            source = self._source(mask)
            self.rows_read += source.rows
            columns = self._asked_for(source, mask, None)
        nothing = np.zeros(len(columns["n"]), dtype=np.int64)
        return [columns.pop(f"k{i}", nothing) for i in range(self.coding.words)], columns

    def _blocks(self, node: Node, sensitive: int | None, sampled: bool, keyed: bool) -> Blocks:
        words, counts = self._fetched(node, () if sensitive is None else (sensitive,), sampled)
        if not sampled:
            self._learn(node, () if sensitive is None else (sensitive,), len(counts["n"]))
        if not sampled and not self.entities:
            self._add_up(int(counts["n"].sum()), node)
        if sensitive is None:
            order = _order(words)
            words, n = [word[order] for word in words], counts["n"][order]
            start = np.arange(len(n) + 1, dtype=np.int64)
            return Blocks(start, np.zeros_like(n), n, n, self.coding.keys(node, words) if keyed else None)
        order = _order([*words])
        words, n = [word[order] for word in words], counts["n"][order]
        alone = self.coding.mask(node)
        block = [word & bits for word, bits in zip(words, alone, strict=True)]
        value = self.coding.values(sensitive, words)
        return self._paired(node, block, value, n, sampled, keyed)

    def _paired(self, node: Node, block: list[Ints], value: Ints, n: Ints, sampled: bool, keyed: bool) -> Blocks:
        """Blocks of pairs; of words whose order is not that of blocks where the value is not in the lowest bits."""
        order = np.lexsort((value, *reversed(block))) if not _ascending(block) else slice(None)
        block, value, n = [word[order] for word in block], value[order], n[order]
        new = np.ones(len(n), dtype=bool)
        if len(n):
            new[1:] = block[0][1:] != block[0][:-1]
            for word in block[1:]:
                new[1:] |= word[1:] != word[:-1]
        first = np.flatnonzero(new)
        start = np.append(first, len(n)).astype(np.int64)
        keys = self.coding.keys(node, [word[first] for word in block]) if keyed else None
        if self.entities:
            words, counts = self._fetched(node, (), sampled)
            rows = counts["n"][_order(words)]
        else:
            rows = np.add.reduceat(n, first) if len(first) else n
        return Blocks(start, value, n, rows, keys)

    def _learn(self, node: Node, kind: tuple[int, ...], rows: int) -> None:
        # A hub has a row for each entity of a block, too.
        if kind in self._plans and not self.entities:
            self._plans[kind].learn(node, rows)

    def _drop(self, hub: _FrequencySet) -> None:
        self._hubs.remove(hub)
        self.session.drop(hub.table)

    def _name(self) -> str:
        return f"{self._prefix}_{next(self._number)}"

    def _add_up(self, total: int, node: Node) -> None:
        if total != self.rows:
            raise QblockError(
                f"the counts of node {list(node)} add up to {total}, not to the {self.rows} rows of the source; "
                "this is a fault of qblock or of the database, and nothing may be published from it"
            )


def _marked(name: str, mask: tuple[queries.Bits, ...]) -> tuple[queries.Bits, ...]:
    """The mask as names to be filled in, where it keeps anything."""
    return tuple(f"{{{name}{i}}}" if bits else 0 for i, bits in enumerate(mask))


def _order(words: Sequence[Ints]) -> Ints:
    """The ascending order of keys by word, the first one first."""
    return np.argsort(words[0]) if len(words) == 1 else np.lexsort(tuple(reversed(words)))


def _ascending(words: Sequence[Ints]) -> bool:
    if len(words) > 1:
        return False
    return bool((words[0][1:] >= words[0][:-1]).all())
