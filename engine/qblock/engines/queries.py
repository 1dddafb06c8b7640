"""Statements built from the spec, for every engine alike, and parts of what they answer.

Columns of a coded table and of a frequency set: k0, k1, ... the words of the packed key, of which a mask keeps the bits
of a node (frequency.coding); n, the rows, which a coded table does not have: each of its rows is one; e, the number of
the entity, where entities are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

Expression = sa.ColumnElement[Any]
Query = sa.Select[*tuple[Any, ...]]


@dataclass(frozen=True)
class Dimension:
    """A hierarchy as a table: leaf (typed as the column compares), c0..cH codes, p0.. path codes, t0..tH labels.

    null_code and other_code are the code of the leaf whose label is `*` at every level: for NULL, and for values that
    the hierarchy does not cover, where the spec maps them to it. null_parts: of the path code of that leaf.
    """

    table: sa.TableClause
    height: int
    leaves: int
    null_code: int | None = None
    other_code: int | None = None
    null_parts: tuple[int, ...] = ()

    def covered(self, raw: Expression, joined: sa.FromClause | None = None) -> Expression:
        """The code of a raw value at leaf level, after an outer join on the leaf; NULL where nothing covers it.

        joined: the table under another name.
        """
        table = self.table if joined is None else joined
        return self._covered(raw, table.c.c0, self.null_code, self.other_code)

    def lacks(self, raw: Expression) -> Expression:
        """Whether a raw value is not NULL, and none of the leaves."""
        leaf = self.table.c.leaf
        return sa.and_(raw.is_not(None), raw.not_in(sa.select(leaf).where(leaf.is_not(None))))

    def part(self, raw: Expression, part: int, joined: sa.FromClause) -> Expression:
        """As `covered`, a part of its path code."""
        top = self.null_parts[part] if self.null_parts else None
        null, other = (None if code is None else top for code in (self.null_code, self.other_code))
        return self._covered(raw, joined.c[f"p{part}"], null, other)

    def _covered(self, raw: Expression, code: Expression, null: int | None, other: int | None) -> Expression:
        cases: list[tuple[Any, Expression]] = []
        if null is not None:
            cases.append((raw.is_(None), sa.literal_column(str(null))))
        if other is not None:
            cases.append((raw.is_not(None), sa.literal_column(str(other))))
        return sa.func.coalesce(code, sa.case(*cases)) if cases else code

    def code(self, level: int) -> Expression:
        return self.table.c[f"c{level}"]

    def label(self, level: int) -> Expression:
        return self.table.c[f"t{level}"]


def whole(value: Expression) -> Expression:
    """A sum or count as BIGINT, whatever wider type the engine gives it."""
    return sa.cast(value, sa.BigInteger)


def raw_scan(relation: sa.FromClause, columns: Mapping[str, Expression]) -> Query:
    """The one scan of the base table: every combination of raw values with its number of rows."""
    return (
        sa.select(*(column.label(name) for name, column in columns.items()), sa.func.count().label("n"))
        .select_from(relation)
        .group_by(*columns.values())
    )


def distinct_values(relation: sa.FromClause, value: Expression, text: Callable[[Expression], Expression]) -> Query:
    """Each distinct value as text (`value`), NULL among them."""
    distinct = sa.select(value.label("v")).select_from(relation).distinct().subquery("found")
    return sa.select(text(distinct.c.v).label("value"))


def coded(raw: sa.TableClause, dimensions: Mapping[str, Dimension], keep: Sequence[str]) -> Query:
    """Codes for raw values; NULL where no dimension covers the value. Loses no row. keep: further columns."""
    joined: sa.FromClause = raw
    columns: list[Expression] = []
    for name, dimension in dimensions.items():
        joined = joined.outerjoin(dimension.table, raw.c[name] == dimension.table.c.leaf)
        columns.append(dimension.covered(raw.c[name]).label(name))
    return sa.select(*columns, *(raw.c[name] for name in keep)).select_from(joined)


def uncovered_rows(leaf: sa.TableClause, names: Iterable[str]) -> Query:
    """For each coded column, the rows whose value no dimension covers; and all rows."""
    sums = [
        whole(sa.func.coalesce(sa.func.sum(sa.case((leaf.c[name].is_(None), leaf.c.n), else_=0)), 0)).label(name)
        for name in names
    ]
    return sa.select(*sums, whole(sa.func.coalesce(sa.func.sum(leaf.c.n), 0)).label("n"))


def uncovered_values(relation: sa.FromClause, raw: Expression, text: Expression, dimension: Dimension) -> Query:
    """The values that a dimension does not cover (`value`, NULL for a NULL) with their rows, most rows first."""
    rows = whole(sa.func.count()).label("n")
    return (
        sa.select(text.label("value"), rows)
        .select_from(relation.outerjoin(dimension.table, raw == dimension.table.c.leaf))
        .where(dimension.covered(raw).is_(None))
        .group_by(text)
        .order_by(rows.desc(), text)
    )


def uncovered_keys(coded: sa.TableClause, words: int) -> Query:
    """`n`: all rows of a coded table; `lost`: those with a value that no dimension covers."""
    missing = sa.or_(*(coded.c[f"k{i}"].is_(None) for i in range(words)))
    lost = whole(sa.func.count(sa.case((missing, 1)))).label("lost")
    return sa.select(whole(sa.func.count()).label("n"), lost)


KEYS = frozenset(f"k{i}" for i in range(64))
"""Names of the words of a key."""
PRIMES = (1_000_003, 999_983)
"""The remainder of a key spreads evenly, whatever its low bits are."""


Bits = int | str
"""The bits of a word that are kept, or a name in braces that stands for them in a text to be filled in."""


@dataclass(frozen=True)
class Sample:
    """The part of this number, of so many equal ones, of the blocks that a mask tells apart: whole blocks."""

    mask: tuple[Bits, ...]
    parts: Bits
    number: Bits = 0


def roll_up(
    finer: sa.TableClause, mask: tuple[Bits, ...], *, sample: Sample | None = None, by_entity: bool = False
) -> Query:
    """A frequency set from one with a finer key: k0, k1, ... and n, the rows; by_entity: of each entity (e), too.

    finer: where it has no column n, each row is one. mask: of each word of the key; a word without any bits has no
    column, unless it is the only one.
    """
    groups = [_masked(finer, i, bits).label(f"k{i}") for i, bits in enumerate(mask) if bits]
    if not groups:
        # One block: of any word.
        groups = [next(c for c in finer.c if c.key in KEYS).bitwise_and(sa.literal_column("0")).label("k0")]
    if by_entity:
        groups.append(finer.c.e.label("e"))
    rows = sa.func.sum(finer.c.n) if "n" in finer.c else sa.func.count()
    query = sa.select(*groups, whole(rows).label("n")).select_from(finer).group_by(*map(_unlabelled, groups))
    if sample is None:
        return query
    return query.where(_within(finer, sample))


def numbered_entities(table: sa.FromClause, names: Sequence[str] | None = None) -> list[sa.ColumnElement[Any]]:
    """Columns of a table, all of them unless they are named, with the number of each entity in place of it."""
    return [
        whole(sa.func.dense_rank().over(order_by=column)).label("e") if column.name == "e" else column
        for column in table.c
        if names is None or column.name in names
    ]


def sliced(table: sa.TableClause, sample: Sample) -> Query:
    """The rows of a coded table that are in a sample of blocks."""
    return sa.select(*table.c).where(_within(table, sample))


def _within(table: sa.TableClause, sample: Sample) -> sa.ColumnElement[bool]:
    total: Expression = sa.literal_column("0")
    for i, bits in enumerate(sample.mask):
        if bits:
            total = total + _remainder(_masked(table, i, bits), PRIMES[i % 2])
    return _remainder(total, sample.parts) == sa.literal_column(str(sample.number))


def count_entities(finer: sa.TableClause, mask: tuple[Bits, ...], *, sample: Sample | None = None) -> Query:
    """As `roll_up`, n the distinct entities, which are not additive, and r the rows."""
    per_entity = roll_up(finer, mask, sample=sample, by_entity=True).subquery("apart")
    keys = [column for column in per_entity.c if column.key not in ("e", "n")]
    entities, rows = whole(sa.func.count()).label("n"), whole(sa.func.sum(per_entity.c.n)).label("r")
    return sa.select(*keys, entities, rows).group_by(*keys)


def size_histogram(sizes: Query) -> Query:
    """How many blocks there are of each size."""
    blocks = sizes.subquery("sizes")
    return sa.select(whole(blocks.c.n).label("size"), whole(sa.func.count()).label("blocks")).group_by(blocks.c.n)


def size_facts(sizes: Query, least: Bits, *, squared: bool) -> Query:
    """Of all blocks: how many, and their sizes added up (and squared); the same of those smaller than `least`."""
    blocks = sizes.subquery("sizes")
    small = blocks.c.n < sa.literal_column(str(least))

    def added(value: Expression, name: str) -> Expression:
        return whole(sa.func.coalesce(sa.func.sum(value), 0)).label(name)

    zero: Expression = sa.literal_column("0")
    columns = [
        whole(sa.func.count()).label("blocks"),
        added(blocks.c.n, "n"),
        whole(sa.func.count(sa.case((small, sa.literal_column("1"))))).label("small"),
        added(sa.case((small, blocks.c.n), else_=zero), "small_n"),
    ]
    if squared:
        square = blocks.c.n * blocks.c.n
        columns += [added(square, "squares"), added(sa.case((small, square), else_=zero), "small_squares")]
    return sa.select(*columns)


def _remainder(value: Expression, divisor: Bits) -> Expression:
    return sa.func.mod(value, sa.literal_column(str(divisor)))


def _masked(table: sa.TableClause, word: int, bits: Bits) -> Expression:
    return table.c[f"k{word}"].bitwise_and(sa.literal_column(str(bits)))


def _unlabelled(expression: Expression) -> Expression:
    return expression.element if isinstance(expression, sa.Label) else expression


VALUES = 2_000_000
"""In a part, about."""
Part = dict[str, NDArray[np.int64]]
"""Rows by column, all of one length."""


def queries_of_parts(table: sa.TableClause, rows: int, values: int = VALUES) -> Iterator[Query]:
    """Queries that give each row of a coded table once, for engines that have no quicker way to part one.

    Rows with the same key are in one part.
    """
    number = -(-rows * len(table.c) // values)
    words = [column for column in table.c if column.key in KEYS]
    total: sa.ColumnElement[int] = sa.literal_column("0")
    for i, word in enumerate(words):
        total = total + sa.func.mod(word, sa.literal_column(str(PRIMES[i % 2])))
    for i in range(number):
        remainder = sa.func.mod(total, sa.literal_column(str(number)))
        yield sa.select(*table.c).where(remainder == sa.literal_column(str(i)))


def joined(pieces: Iterable[Mapping[str, NDArray[np.int64]]], values: int = VALUES) -> Iterator[Part]:
    """The same rows in fewer parts: pieces are put together until they have so many values."""
    waiting: list[Mapping[str, NDArray[np.int64]]] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += sum(len(column) for column in piece.values())
        if count >= values:
            yield _together(waiting)
            waiting, count = [], 0
    if count:
        yield _together(waiting)


def _together(pieces: list[Mapping[str, NDArray[np.int64]]]) -> Part:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
