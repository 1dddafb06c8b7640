"""Frequency sets: the only place that decides how the counts of a lattice node are obtained.

The base table is scanned once, at leaf level. Every other node is rolled up by a GROUP BY from the smallest frequency
set that is finished and finer, and is kept for coarser ones as long as it is worth its space.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Blocks, Ints
from qblock.errors import QblockError
from qblock.frequency.sizes import Sizes, number
from qblock.lattice import Lattice, Node, is_generalization
from qblock.warehouse import queries
from qblock.warehouse.protocol import Session
from qblock.warehouse.queries import Dimension

KEEP_BELOW = 0.7
"""A frequency set that is hardly smaller than the one it came from saves nothing: it is not kept."""
KEEP_ROWS = 20_000_000
"""Rows of frequency sets kept besides the leaf ones; beyond, the largest go first."""


@dataclass(frozen=True, eq=False)
class _FrequencySet:
    node: Node
    sensitive: tuple[int, ...]
    table: sa.TableClause
    rows: int


class FrequencySets:
    """The counts of every node of one table, from its leaf frequency set.

    leaf: the coded leaf frequency set with all sensitive attributes; dimensions: one for each quasi-identifier;
    rows: N, which every node's counts must add up to. entities: the leaf set holds a column e and counts are of
    distinct entities, which are not additive and are recounted from the leaf set at each node.
    """

    def __init__(
        self,
        session: Session,
        leaf: sa.TableClause,
        dimensions: Sequence[Dimension],
        sensitive: int,
        rows: int,
        entities: bool = False,
        name: str = "qblock_frequency_set",
    ) -> None:
        self.session = session
        self.dimensions = tuple(dimensions)
        self.lattice = Lattice(tuple(d.height for d in dimensions))
        self.rows = rows
        self.entities = entities
        self._number = itertools.count()
        self._prefix = name
        self._leaf = leaf
        everything = tuple(range(sensitive))
        leaf_rows = int(session.scalar(sa.select(sa.func.count()).select_from(leaf)))
        self._kept: list[_FrequencySet] = [_FrequencySet(self.lattice.bottom, everything, leaf, leaf_rows)]
        self._pinned = {leaf.name}
        self._sizes: dict[Node, Sizes] = {}

    @property
    def leaf(self) -> sa.TableClause:
        """The leaf frequency set with everything in it."""
        return self._leaf

    @property
    def leaf_rows(self) -> int:
        """Rows of the leaf frequency set."""
        return self._kept[0].rows

    def cost(self, node: Node, sensitive: Sequence[int] = ()) -> int:
        """Rows that a roll-up to this node would read."""
        return self._source(node, tuple(sensitive)).rows

    def sizes(self, node: Node) -> Sizes:
        """The block sizes of a node, without any sensitive value."""
        if node not in self._sizes:
            if self.entities:
                found = self.session.store(self._name(), queries.count_entities(self._leaf, node, self.dimensions, ()))
                histogram = self.session.counts(queries.size_histogram(found))
                self.session.drop(found)
            else:
                made = self._roll_up(node, ())
                histogram = self.session.counts(queries.size_histogram(made.table))
                self._keep(made, int(histogram["blocks"].sum()))
            order = np.argsort(histogram["size"])
            sizes = Sizes(histogram["size"][order], histogram["blocks"][order])
            if not self.entities:
                self._add_up(int((sizes.size * sizes.blocks).sum()), node)
            self._sizes[node] = sizes
        return self._sizes[node]

    def known_sizes(self) -> dict[Node, Sizes]:
        """The sizes that `sizes` has found so far."""
        return dict(self._sizes)

    def blocks(self, node: Node, sensitive: Sequence[int]) -> list[Blocks]:
        """The blocks of a node for each sensitive attribute named, all in the same order of blocks."""
        wanted = tuple(sensitive)
        if not wanted:
            return [self._sizes_as_blocks(node)]
        if self.entities:
            return [self._entity_blocks(node, i) for i in wanted]
        if len(wanted) > 1:
            return [self.blocks(node, (i,))[0] for i in wanted]
        made = self._roll_up(node, wanted)
        columns = self.session.counts(queries.counts(made.table, self._columns(node, wanted)))
        self._keep(made, len(columns["n"]))
        self._add_up(int(columns["n"].sum()), node)
        block, keys = self._numbered(node, columns)
        return [Blocks.from_pairs(block, columns[f"s{wanted[0]}"], columns["n"], keys)]

    def joint(self, node: Node, sensitive: Sequence[int]) -> tuple[Ints, Ints, Ints]:
        """Several sensitive attributes at once: keys int64[R, Q], values int64[R, S] and counts int64[R]."""
        wanted = tuple(sensitive)
        if self.entities:
            columns = self.session.counts(queries.count_entities(self._leaf, node, self.dimensions, wanted))
        else:
            made = self._roll_up(node, wanted)
            columns = self.session.counts(queries.counts(made.table, self._columns(node, wanted)))
            self._keep(made, len(columns["n"]))
            self._add_up(int(columns["n"].sum()), node)
        keys = self._keys(node, columns)
        return keys, np.stack([columns[f"s{i}"] for i in wanted], axis=1), columns["n"]

    def row_counts(self, node: Node) -> Ints:
        """int64[B]: rows of each block, in the order of `blocks`, also where entities are counted."""
        made = self._roll_up(node, ())
        columns = self.session.counts(queries.counts(made.table, self._columns(node, ())))
        self._keep(made, len(columns["n"]))
        block, _ = self._numbered(node, columns)
        rows = np.zeros(len(block), dtype=np.int64)
        rows[block] = columns["n"]
        return rows

    def leaf_counts(self, sensitive: Sequence[int]) -> tuple[Ints, Ints, Ints]:
        """Keys, values and rows (never entities) of the leaf frequency set, as `joint` gives them."""
        node, wanted = self.lattice.bottom, tuple(sensitive)
        made = self._roll_up(node, wanted)
        columns = self.session.counts(queries.counts(made.table, self._columns(node, wanted)))
        values = [columns[f"s{i}"] for i in wanted]
        stacked = np.stack(values, axis=1) if values else np.zeros((len(columns["n"]), 0), dtype=np.int64)
        return self._keys(node, columns), stacked, columns["n"]

    def marginals(self) -> list[tuple[Ints, Ints]]:
        """For each quasi-identifier the leaves that occur and the rows (never entities) of each of them."""
        found = [self.session.counts(queries.totals(self._leaf, f"q{i}")) for i in range(len(self.dimensions))]
        return [(columns["code"], columns["n"]) for columns in found]

    def statement(self, node: Node, sensitive: Sequence[int]) -> queries.Query:
        """The statement that a node's counts would come from now."""
        source = self._source(node, tuple(sensitive))
        return queries.roll_up(source.table, source.node, node, self.dimensions, tuple(sensitive))

    def forget(self) -> None:
        """Drop the frequency sets that are kept, except the leaf ones."""
        for kept in [k for k in self._kept if k.table.name not in self._pinned]:
            self._drop(kept)

    def _source(self, node: Node, sensitive: tuple[int, ...]) -> _FrequencySet:
        usable = (k for k in self._kept if set(sensitive) <= set(k.sensitive) and is_generalization(node, k.node))
        return min(usable, key=lambda k: k.rows)

    def _roll_up(self, node: Node, sensitive: tuple[int, ...]) -> _FrequencySet:
        self._leaf_without(sensitive)
        source = self._source(node, sensitive)
        if source.node == node and source.sensitive == sensitive and not self._by_entity(source):
            return source
        query = queries.roll_up(source.table, source.node, node, self.dimensions, sensitive)
        return _FrequencySet(node, sensitive, self.session.store(self._name(), query), source.rows)

    def _leaf_without(self, sensitive: tuple[int, ...]) -> None:
        """The leaf frequency set with fewer sensitive attributes, made once: everything else comes from it."""
        if any(
            k.sensitive == sensitive and k.node == self.lattice.bottom and not self._by_entity(k) for k in self._kept
        ):
            return
        source = self._source(self.lattice.bottom, sensitive)
        query = queries.roll_up(source.table, source.node, self.lattice.bottom, self.dimensions, sensitive)
        table = self.session.store(self._name(), query)
        self.session.analyze(table)
        rows = int(self.session.scalar(sa.select(sa.func.count()).select_from(table)))
        self._pinned.add(table.name)
        self._kept.append(_FrequencySet(self.lattice.bottom, sensitive, table, rows))

    def _by_entity(self, kept: _FrequencySet) -> bool:
        """Whether it has a row for each entity, and so several for one block and value."""
        return self.entities and kept.table is self._leaf

    def _keep(self, made: _FrequencySet, rows: int) -> None:
        if any(k.table.name == made.table.name for k in self._kept):
            return
        if rows > KEEP_BELOW * made.rows:
            self.session.drop(made.table)
            return
        self._kept.append(_FrequencySet(made.node, made.sensitive, made.table, rows))
        loose = sorted((k for k in self._kept if k.table.name not in self._pinned), key=lambda k: k.rows)
        while loose and sum(k.rows for k in loose) > KEEP_ROWS:
            self._drop(loose.pop())

    def _drop(self, kept: _FrequencySet) -> None:
        self._kept.remove(kept)
        self.session.drop(kept.table)

    def _name(self) -> str:
        return f"{self._prefix}_{next(self._number)}"

    def _columns(self, node: Node, sensitive: tuple[int, ...]) -> list[str]:
        quasi = [f"q{i}" for i, (level, d) in enumerate(zip(node, self.dimensions, strict=True)) if level < d.height]
        return [*quasi, *(f"s{i}" for i in sensitive), "n"]

    def _keys(self, node: Node, columns: dict[str, Ints]) -> Ints:
        keys = np.zeros((len(columns["n"]), len(node)), dtype=np.int64)
        for i in range(len(node)):
            if f"q{i}" in columns:
                keys[:, i] = columns[f"q{i}"]
        return keys

    def _numbered(self, node: Node, columns: dict[str, Ints]) -> tuple[Ints, Ints]:
        return number(self._keys(node, columns), [d.leaves for d in self.dimensions])

    def _sizes_as_blocks(self, node: Node) -> Blocks:
        if self.entities:
            columns = self.session.counts(queries.count_entities(self._leaf, node, self.dimensions, ()))
            block, keys = self._numbered(node, columns)
            return Blocks.from_pairs(block, np.zeros_like(columns["n"]), columns["n"], keys)
        made = self._roll_up(node, ())
        columns = self.session.counts(queries.counts(made.table, self._columns(node, ())))
        self._keep(made, len(columns["n"]))
        self._add_up(int(columns["n"].sum()), node)
        block, keys = self._numbered(node, columns)
        return Blocks.from_pairs(block, np.zeros_like(columns["n"]), columns["n"], keys)

    def _entity_blocks(self, node: Node, sensitive: int) -> Blocks:
        columns = self.session.counts(queries.count_entities(self._leaf, node, self.dimensions, (sensitive,)))
        block, keys = self._numbered(node, columns)
        pairs = Blocks.from_pairs(block, columns[f"s{sensitive}"], columns["n"], keys)
        sizes = self.session.counts(queries.count_entities(self._leaf, node, self.dimensions, ()))
        order, _ = self._numbered(node, sizes)
        rows = np.zeros(len(pairs), dtype=np.int64)
        rows[order] = sizes["n"]
        return Blocks(pairs.start, pairs.value, pairs.count, rows, keys)

    def _add_up(self, total: int, node: Node) -> None:
        if total != self.rows:
            raise QblockError(
                f"the counts of node {list(node)} add up to {total}, not to the {self.rows} rows of the source; "
                "this is a fault of qblock or of the database, and nothing may be published from it"
            )
