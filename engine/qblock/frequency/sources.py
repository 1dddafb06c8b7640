"""Where the counts of a node come from: the coded table, a hub that is stored, or a slice of some of the blocks.

The source is coded once, a row a key (`coding`). The counts of a node are one GROUP BY of masked keys, from the
smallest set that is finished and finer: the coded table, or a hub, a coarser frequency set that is stored since many
nodes above it are still to be asked (`hubs`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Floats, Ints
from qblock.errors import QblockError
from qblock.frequency.coding import Coding, Mask, finer
from qblock.frequency.hubs import Hubs, worth_hubs
from qblock.frequency.slices import Slices
from qblock.lattice import Lattice, Node, up
from qblock.warehouse import queries
from qblock.warehouse.protocol import Session
from qblock.warehouse.queries import Query, Sample

KEEP_ROWS = 20_000_000
"""Rows of hubs kept; beyond, those go first that no node needs any more, and then the largest."""
LEAST_SHARED = 100_000
"""Rows below which one question takes no longer than to hand it to another thread, about."""


@dataclass(frozen=True, eq=False)
class FrequencySet:
    """A table with the keys of a node, whose mask it has. rows: how many."""

    node: Node
    mask: Mask
    table: sa.TableClause
    rows: int


class Sources:
    """What the counts of a table's nodes are read from.

    base: the coded table (`packing`), all of whose words are known; coding: its layout; rows: N, which every node's
    counts must add up to. entities: the table has a column e and counts are of distinct entities, which are not
    additive: hubs keep them apart. name: of the temporary tables.
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
        self._shared = False
        self._prefix = name
        everything = range(len(coding.sensitive))
        self._base = FrequencySet(self.lattice.bottom, coding.mask(self.lattice.bottom, everything), base, rows)
        self._hubs: list[FrequencySet] = []
        self._slices = Slices(self, self._read)
        self._lock = threading.RLock()
        self._plans: dict[tuple[int, ...], Hubs] = {}
        self._wanted: Floats | None = None
        self._texts: dict[tuple[object, ...], tuple[str, list[str]]] = {}

    @property
    def base(self) -> sa.TableClause:
        """The coded table."""
        return self._base.table

    @property
    def max_concurrency(self) -> int:
        """How many threads may ask for sizes and blocks of a node at once."""
        return self.session.max_concurrency if self._shared else 1

    def share(self) -> None:
        """Have several threads answered at once, where the session can, and the table is large enough for that."""
        if self._shared or self.session.max_concurrency < 2 or self.rows < LEAST_SHARED:
            return
        self.forget()
        base = self._base.table
        self._shared = True
        self._base = replace(self._base, table=self.stored(sa.select(*base.c)))
        self.session.drop(base)

    def stored(self, query: Query) -> sa.TableClause:
        """A temporary table that what is asked about nodes may be counted from."""
        return (self.session.share if self._shared else self.session.store)(self._name(), query)

    def cost(self, node: Node, sensitive: Sequence[int] = ()) -> int:
        """Rows that the counts of this node would be read from now."""
        return self._source(self.coding.mask(node, sensitive)).rows

    def hub(self, node: Node, sensitive: Sequence[int] = ()) -> int:
        """Store the frequency set of a node, for coarser ones to be counted from; its rows."""
        mask = self.coding.mask(node, sensitive)
        source = self._source(mask)
        if source.mask == mask and source is not self._base:
            return source.rows
        table = self.stored(self._grouped(source, mask, by_entity=self.entities))
        self.session.analyze(table)
        rows = int(self.session.scalar(sa.select(sa.func.count()).select_from(table)))
        stored = FrequencySet(node, mask, table, rows)
        self._hubs.append(stored)
        while sum(hub.rows for hub in self._hubs) > KEEP_ROWS and len(self._hubs) > 1:
            self._drop(
                max((hub for hub in self._hubs if hub is not stored), key=lambda hub: (self._idle(hub), hub.rows))
            )
        return rows

    def plan_hubs(self, wanted: Floats, sensitive: Sequence[int] = ()) -> Floats:
        """Store the hubs that pay for nodes to be asked; the rows that each node's counts would be read from.

        wanted: over the nodes that are searched, a lattice with the same bottom, how often each may be asked.
        """
        self._wanted = wanted
        if not worth_hubs(self.rows):
            return np.broadcast_to(float(self.rows), wanted.shape)
        kind = tuple(sensitive)
        if kind not in self._plans or self._plans[kind].cost.shape != wanted.shape:
            self._plans[kind] = Hubs(self, kind, wanted.shape)
        return self._plans[kind].look(wanted)

    def statement(self, node: Node, sensitive: Sequence[int]) -> Query:
        """The statement that a node's counts would come from, if no hub was stored."""
        return self._counts(self._base, self.coding.mask(node, sensitive))

    def forget(self) -> None:
        """Drop the hubs and slices."""
        for hub in list(self._hubs):
            self._drop(hub)
        self._slices.drop()

    def _source(self, mask: Mask) -> FrequencySet:
        usable = (hub for hub in self._hubs if finer(hub.mask, mask))
        return min(usable, key=lambda hub: hub.rows, default=self._base)

    def _grouped(
        self,
        source: FrequencySet,
        mask: tuple[queries.Bits, ...],
        *,
        sample: Sample | None = None,
        by_entity: bool = False,
    ) -> Query:
        return queries.roll_up(source.table, mask, sample=sample, by_entity=by_entity)

    def _counts(self, source: FrequencySet, mask: tuple[queries.Bits, ...], sample: Sample | None = None) -> Query:
        if self.entities:
            return queries.count_entities(source.table, mask, sample=sample)
        return self._grouped(source, mask, sample=sample)

    def _counted(self, mask: Mask) -> Query:
        source = self._source(mask)
        self._read(source.rows)
        return self._counts(source, mask)

    def _sampled(self, node: Node, mask: Mask) -> tuple[FrequencySet, Mask, Sample | None]:
        """What counts of some of a node's blocks come from: a slice, if there can be one."""
        blocks, source = self.coding.mask(node), self._source(mask)
        with self._lock:
            rows = self._slices.sample(node, blocks, source.rows)
        if isinstance(rows, Sample):
            return source, mask, rows
        return FrequencySet(self.lattice.bottom, self._base.mask, rows, 0), mask, None

    def _block_counts(
        self, source: FrequencySet, mask: Mask, sample: Sample | None, least: int | None = None, squared: bool = False
    ) -> dict[str, Ints]:
        """The counts of blocks, or `size_facts` of them; a statement is built once, and filled in for each mask."""
        by: tuple[queries.Bits, ...] = () if sample is None else sample.mask
        key = (source.table.name, tuple(map(bool, mask)), tuple(map(bool, by)), least is None, squared)
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
        self.session.drop(hub.table)

    def _read(self, rows: int) -> None:
        with self._lock:
            self.rows_read += rows

    def _name(self) -> str:
        return f"{self._prefix}_{next(self._number)}"

    def add_up(self, total: int, node: Node) -> None:
        """Raise QblockError where the counts of a node do not add up to the rows of the source."""
        if total != self.rows:
            raise QblockError(
                f"the counts of node {list(node)} add up to {total}, not to the {self.rows} rows of the source; "
                "this is a fault of qblock or of the database, and nothing may be published from it"
            )


def _marked(name: str, mask: tuple[queries.Bits, ...]) -> tuple[queries.Bits, ...]:
    """The mask as names to be filled in, where it keeps anything."""
    return tuple(f"{{{name}{i}}}" if bits else 0 for i, bits in enumerate(mask))
