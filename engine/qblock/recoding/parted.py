"""The leaf frequency set with the part of each combination: one GROUP BY counts the children of all parts at once.

A part is divided by the labels of one quasi-identifier, or of several, at levels of its own: its mask says which bits
of the key tell them apart. So one statement serves parts that stand at different levels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

from qblock.blocks import Ints
from qblock.frequency.coding import Mask
from qblock.warehouse.arrow import whole_numbers
from qblock.warehouse.protocol import Session
from qblock.warehouse.queries import Expression, whole

NAMES = itertools.count()


@dataclass(frozen=True, eq=False)
class PartedKeys:
    """Keys of parts. part: int64[R]; words: int64[R] for each word of the key; n: int64[R], their rows or entities, or
    what else belongs to each of them; rows: int64[R], where entities are counted."""

    part: Ints
    words: list[Ints]
    n: Ints
    rows: Ints


class PartedLeaves:
    """table: some words of a key and n, with e where entities are counted: all of part 0; it is dropped. words: the
    numbers of these words."""

    def __init__(
        self, session: Session, table: sa.TableClause, words: Sequence[int], *, entities: bool = False
    ) -> None:
        self._session, self._words, self._entities = session, [f"k{i}" for i in words], entities
        self._prefix = f"qblock_parted_{next(NAMES)}"
        self._number = itertools.count()
        self._columns = [*self._words, "n", *(["e"] if entities else [])]
        zero = whole(sa.literal_column("0")).label("part")
        self.table = session.store(self._name(), sa.select(zero, *(table.c[name] for name in self._columns)))
        session.analyze(self.table)
        session.drop(table)

    def counts(self, parts: Ints, masks: Sequence[Mask]) -> PartedKeys:
        """The rows (or entities) of these parts by the bits that their masks keep; masks: of each part, by word."""
        marks, table = self._masks(parts, masks), self.table
        both = table.join(marks, table.c.part == marks.c.part)
        counts = self._counted(both, table.c.part, self._masked(marks))
        self._session.drop(marks)
        return counts

    def counts_of(self, parts: Ints, masks: Sequence[Mask], groups: PartedKeys, kept: Mask | None) -> PartedKeys:
        """The same of groups of keys. groups: their n is the number of the group, which `part` is of what is found;
        kept: the bits that tell its rows apart."""
        marks, children = self._masks(parts, masks), self._loaded(groups)
        bits = kept or (0,) * len(self._words)
        pairs = zip(self._words, bits, strict=True)
        keys = [self.table.c[name].bitwise_and(sa.literal_column(str(mask))) for name, mask in pairs]
        counts = self._counted(self._joined(marks, children), children.c.child, keys)
        for table in (marks, children):
            self._session.drop(table)
        return counts

    def _counted(self, both: sa.FromClause, part: Expression, keys: Sequence[Expression]) -> PartedKeys:
        table = self.table
        named = [part.label("part"), *(key.label(name) for name, key in zip(self._words, keys, strict=True))]
        rows = whole(sa.func.sum(table.c.n)).label("n")
        if self._entities:
            by_entity = (
                sa.select(*named, table.c.e.label("e"), rows)
                .select_from(both)
                .group_by(part, *keys, table.c.e)
                .subquery("apart")
            )
            again = [by_entity.c[column.name] for column in named]
            counted = [whole(sa.func.count()).label("n"), whole(sa.func.sum(by_entity.c.n)).label("r")]
            query = sa.select(*again, *counted).group_by(*again)
        else:
            query = sa.select(*named, rows).select_from(both).group_by(part, *keys)
        columns = self._session.counts(query)
        return PartedKeys(
            columns["part"], [columns[name] for name in self._words], columns["n"], columns.get("r", columns["n"])
        )

    def assign(self, parts: Ints, masks: Sequence[Mask], groups: PartedKeys, *, keep: bool) -> None:
        """Give each row the part that it belongs to now.

        groups: keys of these parts by their masks; n: the new part of each. keep: rows of other parts, and of keys that
        are not named, stay as they are; else they go.
        """
        session, table = self._session, self.table
        marks, children = self._masks(parts, masks), self._loaded(groups)
        part: Expression = children.c.child
        if keep:
            part = sa.func.coalesce(part, table.c.part)
        columns = [table.c[name] for name in self._columns]
        joined = self._joined(marks, children, keep=keep)
        self.table = session.store(self._name(), sa.select(part.label("part"), *columns).select_from(joined))
        session.analyze(self.table)
        for old in (table, marks, children):
            session.drop(old)

    def drop(self) -> None:
        """Drop its table."""
        self._session.drop(self.table)

    def _joined(self, marks: sa.TableClause, children: sa.TableClause, *, keep: bool = False) -> sa.FromClause:
        table = self.table
        same = [children.c.part == marks.c.part]
        same += [children.c[name] == key for name, key in zip(self._words, self._masked(marks), strict=True)]
        return table.join(marks, table.c.part == marks.c.part, isouter=keep).join(
            children, sa.and_(*same), isouter=keep
        )

    def _loaded(self, groups: PartedKeys) -> sa.TableClause:
        arrays = {"part": whole_numbers(groups.part), "child": whole_numbers(groups.n)}
        arrays |= {name: whole_numbers(word) for name, word in zip(self._words, groups.words, strict=True)}
        loaded = self._session.load(self._name(), pa.table(arrays))
        self._session.analyze(loaded)
        return loaded

    def _masks(self, parts: Ints, masks: Sequence[Mask]) -> sa.TableClause:
        bits = np.array(masks, dtype=np.int64).reshape(len(parts), len(self._words))
        arrays = {"part": whole_numbers(parts)}
        arrays |= {f"m{i}": whole_numbers(bits[:, i]) for i in range(len(self._words))}
        loaded = self._session.load(self._name(), pa.table(arrays))
        self._session.analyze(loaded)
        return loaded

    def _masked(self, marks: sa.TableClause) -> list[Expression]:
        return [self.table.c[name].bitwise_and(marks.c[f"m{i}"]) for i, name in enumerate(self._words)]

    def _name(self) -> str:
        return f"{self._prefix}_{next(self._number)}"
