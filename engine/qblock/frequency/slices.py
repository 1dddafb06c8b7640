"""Some of the blocks of a node: which of them are counted, and from what."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import sqlalchemy as sa

from qblock.engines import queries
from qblock.engines.queries import Query, Sample
from qblock.engines.session import Session
from qblock.frequency.coding import Coding, Mask, finer
from qblock.lattice import Node

PARTS = 16
"""A sample of blocks is one of so many parts."""
SLICED = 64
"""A slice is a part of at least so many blocks, which all finer nodes share."""
FILTERED = 4
"""To filter a sample costs so little of counting all; a slice, which is stored, needs none."""
MISSED = 3
"""How often a slice must have been of use before it is stored."""


class CodedTable(Protocol):
    """What slices are cut from; `FrequencySets` is one."""

    session: Session
    coding: Coding
    rows: int

    @property
    def base(self) -> sa.TableClause: ...

    def stored(self, query: Query) -> sa.TableClause: ...

    def count_read(self, rows: int) -> None: ...


class Slices:
    """Some of the blocks of a node: a slice of the coded table that is stored, or a filter of what would be counted.

    A slice has whole blocks of a coarse node, and so of all that are finer than it: it serves them all.
    """

    def __init__(self, sets: CodedTable) -> None:
        self._sets = sets
        self._tables: dict[Mask, sa.TableClause | None] = {}
        self._missed: Counter[Mask] = Counter()
        self._sliced_by: dict[Mask, Mask | None] = {}

    def sample(self, node: Node, blocks: Mask, rows: int, *, stores: bool) -> sa.TableClause | Sample:
        """Some of a node's blocks: a slice, if one may be stored (`stores`), or what to filter by.

        blocks: the node's mask; rows: of the set that its counts would be read from.
        """
        if blocks not in self._sliced_by:
            # Once: all that is asked of some of a node's blocks must be of the same ones.
            self._sliced_by[blocks] = self._slice_for(node, blocks, rows)
        by = self._sliced_by[blocks]
        if by is None:
            self._sets.count_read(rows // FILTERED)
            return Sample(blocks, PARTS)
        sets = self._sets
        if by not in self._tables:
            self._tables[by] = None
            sets.count_read(sets.rows // 2)
        sets.count_read(sets.rows // PARTS)
        if not stores:
            return Sample(by, PARTS)
        if (table := self._tables[by]) is None:
            table = self._tables[by] = sets.stored(queries.sliced(sets.base, Sample(by, PARTS)))
            sets.session.analyze(table)
        return table

    def _slice_for(self, node: Node, blocks: Mask, rows: int) -> Mask | None:
        """The mask of the slice that pays for a node; None where it is cheaper to filter what would be counted."""
        if rows <= self._sets.rows // FILTERED:
            return None
        by = next((by for by in self._tables if finer(blocks, by)), None) or self._sets.coding.coarse(node, SLICED)
        if by is None or by in self._tables:
            return by
        self._missed[by] += 1
        return by if self._missed[by] >= MISSED else None

    def drop(self) -> None:
        """Drop them."""
        for table in self._tables.values():
            if table is not None:
                self._sets.session.drop(table)
        self._tables.clear()
