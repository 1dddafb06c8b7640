"""Parts of a table: their labels as bits of packed keys, and one GROUP BY that counts the children of all of them.

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

from qblock.blocks import Blocks, Ints
from qblock.engines import queries
from qblock.engines.arrow import whole_numbers
from qblock.engines.queries import Expression, numbered_entities, whole
from qblock.engines.session import Session
from qblock.frequency import FrequencySets
from qblock.frequency.coding import Coding, Mask
from qblock.lattice import Node
from qblock.recoding.tree import Tree

NAMES = itertools.count()


class Keys:
    """used: the numbers of the words that the table has. Masks and bits are given by these words."""

    def __init__(self, coding: Coding, used: Sequence[int]) -> None:
        self.coding, self.used = coding, tuple(used)
        self._top = tuple(hierarchy.height for hierarchy in coding.hierarchies)
        self._masks: dict[tuple[int, int], Mask] = {}

    def mask(self, attribute: int, level: int) -> Mask:
        """The bits that tell an attribute's labels of a level apart."""
        if (attribute, level) not in self._masks:
            node = tuple(level if i == attribute else top for i, top in enumerate(self._top))
            self._masks[attribute, level] = self.narrow(self.coding.mask(node))
        return self._masks[attribute, level]

    def of_node(self, node: Node) -> Mask:
        """The bits that tell the blocks of a node apart."""
        return self.narrow(self.coding.mask(node))

    def of_values(self, sensitive: Sequence[int]) -> Mask:
        """The bits of sensitive attributes."""
        return self.narrow(self.coding.mask(self._top, sensitive))

    def narrow(self, mask: Mask) -> Mask:
        return tuple(mask[i] for i in self.used)

    def words(self, columns: Sequence[Ints]) -> list[Ints]:
        """All words of keys of which these are there."""
        nothing = np.zeros(len(columns[0]), dtype=np.int64)
        known = dict(zip(self.used, columns, strict=True))
        return [known.get(i, nothing) for i in range(self.coding.words)]

    def codes(self, attribute: int, level: Ints, columns: Sequence[Ints]) -> Ints:
        """int64[R]: the codes of an attribute's labels in keys; level: int64[R]."""
        words = self.words(columns)
        code = np.zeros(len(level), dtype=np.int64)
        for depth in np.unique(level).tolist():
            here = level == depth
            code[here] = self.coding.codes(attribute, depth, [word[here] for word in words])
        return code

    def bits(self, attribute: int, level: Ints, code: Ints) -> list[Ints]:
        """int64[R] by word: what labels put into a key."""
        words = self.coding.bits(attribute, level, code)
        return [words[i] for i in self.used]

    def bits_of_node(self, node: Node, keys: Ints) -> list[Ints]:
        """What the labels of blocks put into a key; keys: int64[B, Q], their codes."""
        words = [np.zeros(len(keys), dtype=np.int64) for _ in self.used]
        for attribute, level in enumerate(node):
            same = np.full(len(keys), level, dtype=np.int64)
            for word, bits in zip(words, self.bits(attribute, same, keys[:, attribute]), strict=True):
                word |= bits
        return words


@dataclass(frozen=True, eq=False)
class PartedKeys:
    """Keys of parts. part: int64[R]; words: int64[R] for each word of the key; n: int64[R], their rows or entities, or
    what else belongs to each of them; rows: int64[R], where entities are counted; entity: the number of each one's,
    where they are those of an entity."""

    part: Ints
    words: list[Ints]
    n: Ints
    rows: Ints
    entity: Ints | None = None


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

    def rows(self, first: int, last: int) -> PartedKeys:
        """The rows of parts, from one number to another, each of one entity where these are counted."""
        columns, there = numbered_entities(self.table), self.table.c.part.between(first, last)
        fetched = self._session.counts(sa.select(*columns).where(there))
        words, n = [fetched[name] for name in self._words], fetched["n"]
        return PartedKeys(fetched["part"], words, n, n, fetched.get("e"))

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


def replay(tree: Tree, leaves: PartedLeaves, keys: Keys) -> list[int]:
    """Give each row of a table its box; the boxes that have a row, ascending. A combination that nobody had when the
    map was made has a box, too, which the tree has from here on."""
    whole = np.zeros(1, dtype=np.int64)
    mask = keys.of_node(tree.start)
    counts = leaves.counts(whole, [mask])
    codes = keys.coding.keys(tree.start, keys.words(counts.words))
    child = np.array([tree.begin(key) for key in codes.tolist()], dtype=np.int64)
    leaves.assign(whole, [mask], PartedKeys(counts.part, counts.words, child, child), keep=True)
    boxes, parts = [child[:0]], np.unique(child)
    while len(parts):
        divided = tree.splits.there(parts)
        boxes.append(parts[~divided])
        split = parts[divided]
        if not len(split):
            break
        attributes, levels = tree.splits.ways(split)
        masks = [keys.mask(*way) for way in zip(attributes.tolist(), levels.tolist(), strict=True)]
        counts = leaves.counts(split, masks)
        place = np.searchsorted(split, counts.part)
        attribute, level = attributes[place], levels[place]
        child = np.zeros(len(place), dtype=np.int64)
        for split_attribute in np.unique(attribute).tolist():
            here = np.flatnonzero(attribute == split_attribute)
            code = keys.codes(split_attribute, level[here], [word[here] for word in counts.words])
            child[here] = tree.children(split_attribute, counts.part[here], code)
        leaves.assign(split, masks, PartedKeys(counts.part, counts.words, child, child), keep=True)
        parts = np.unique(child)
    return np.sort(np.concatenate(boxes)).tolist()


def united(sets: FrequencySets, node: Node, keys: Ints, numbers: Sequence[Ints], sensitive: int) -> list[Blocks]:
    """The unions of a node's blocks with a sensitive attribute, for each way of uniting them.

    keys: int64[B, Q], the codes of the blocks; numbers: of each way int64[B], the union that a block is in, from 0.
    """
    mask = sets.coding.mask(node, (sensitive,))
    of = Keys(sets.coding, [i for i, bits in enumerate(mask) if bits] or [0])
    table = sets.stored(queries.roll_up(sets.base, mask, by_entity=True))
    leaves = PartedLeaves(sets.session, table, of.used, entities=True)
    whole, masks, words = np.zeros(1, dtype=np.int64), [of.of_node(node)], of.bits_of_node(node, keys)
    unions = []
    for number in numbers:
        groups = PartedKeys(np.zeros(len(number), dtype=np.int64), words, number, number)
        alone = leaves.counts_of(whole, masks, groups, None)
        pairs = leaves.counts_of(whole, masks, groups, of.of_values((sensitive,)))
        rows = np.zeros(int(number.max(initial=-1)) + 1, dtype=np.int64)
        rows[alone.part] = alone.n
        value = sets.coding.values(sensitive, of.words(pairs.words))
        union = Blocks.from_pairs(pairs.part, value, pairs.n)
        unions.append(Blocks(union.start, union.value, union.count, rows))
    leaves.drop()
    return unions
