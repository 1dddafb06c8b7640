"""What is counted of the columns of a table, in one pass or two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from qblock.comparison import Kind
from qblock.engines.condition import Where
from qblock.engines.queries import whole
from qblock.engines.session import Session
from qblock.engines.tables import Column, TableName
from qblock.engines.values import plain_number
from qblock.profiling.words import CODES, numbers_rows
from qblock.spec.repeats import MOST_ROWS

FEW_NUMBERS = 20
"""With more values than this, each in few rows, visit_id is the number of a visit; with fewer, city_id is that of a
city."""
LONG = 20
"""Texts of more characters are sentences, where most are, rather than names of things."""
LEAST_DIGITS = 7
"""Of a telephone number."""
DIGITS, BETWEEN = "0123456789", " +-/().0123456789"
"""Of telephone and account numbers: digits, and what stands between them."""
CONTINUOUS = ("float", "decimal", "date", "timestamp", "timestamptz")
"""Kinds of values that differ from row to row without being names of rows."""
FRACTIONS = ("float", "decimal")
FEW = 1000
"""Text with more distinct values than this needs a hierarchy that nobody writes by hand: it is left out."""
LEAST_CODES = 3
"""Fewer different texts may look like codes of any kind by chance."""
OF_ALL = ("least", "greatest", "shortest", "longest")
OF_TEXTS = ("long", "at", "mails", "digits", "numbers")
"""Figures of a profile, as it has them."""
LENGTHS = range(3, 13)
"""Of codes of digits."""
OWN = 0.95
"""The share of the rows from which on nearly each has a value of its own."""
LARGE = 100_000
"""Rows from which on values are counted approximately first."""
FIGURES, COLUMNS = 500, 100
"""Of one statement: PostgreSQL has no more than 1,664, and DuckDB plans 2,000 for 25 times as long."""
SURE = 3
"""An approximate count is off by a seventh, a few times in a hundred by a quarter, and never seen by more than a third:
where it is more than so many times away from what decides something, the exact one decides the same."""


@dataclass(frozen=True)
class Table:
    """A table that is looked at, within one snapshot. where: which of its rows, if not all."""

    session: Session
    name: TableName
    where: Where | None = None

    @cached_property
    def relation(self) -> sa.FromClause:
        rows = self.session.relation(self.name)
        return rows if self.where is None else self.where.kept(self.session, rows, self.columns, list(self.columns))

    @property
    def columns(self) -> dict[str, Column]:
        return self.session.columns(self.name)

    def value(self, column: Column) -> sa.ColumnElement[Any]:
        """A column in the type that it compares in."""
        return self.session.comparable(self.relation.c[column.name], column)

    def texts(self, columns: Sequence[Column]) -> list[sa.Label[Any]]:
        """Columns as canonical texts, in their order as c0, c1 ..."""
        values = [self.session.text_of(self.value(column), column.kind) for column in columns]
        return [text.label(f"c{i}") for i, text in enumerate(values)]

    def row(self, figures: Sequence[sa.ColumnElement[Any]], of: sa.FromClause | None = None) -> dict[str, Any]:
        """Figures of it by name; one statement for each FIGURES of them. of: what is asked instead of all its rows."""
        row: dict[str, Any] = {}
        for part in portions(figures, FIGURES):
            query = sa.select(*part).select_from(self.relation if of is None else of)
            row |= self.session.fetch(query).to_pylist()[0]
        return row


def portions(items: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """The items, so many at a time."""
    return [items[at : at + most] for at in range(0, len(items), most)]


@dataclass(frozen=True)
class Profile:
    """One column: distinct values, NULLs, the least and greatest value as text, and how many characters texts have.

    approximate: whether the number of distinct values is, which decides nothing then; whole: whether decimals or floats
    are whole numbers, all of them.

    Of texts also in how many rows there is one of more than LONG characters, one with an @, one like an e-mail address,
    one with a digit, and one of LEAST_DIGITS and more, with nothing else but what stands between digits;
    forms: in how many there is a code of each kind of CODES.
    """

    column: Column
    distinct: int
    nulls: int
    least: str | None
    greatest: str | None
    shortest: int | None = None
    longest: int | None = None
    long: int = 0
    at: int = 0
    mails: int = 0
    digits: int = 0
    numbers: int = 0
    codes: tuple[int, ...] = ()
    forms: tuple[int, ...] = (0,) * len(CODES)
    approximate: bool = False
    whole: bool = False

    @property
    def kind(self) -> Kind:
        """The kind of its values: whole numbers are that, whatever the column's type, which may be one of decimals
        because some are NULL."""
        return "integer" if self.whole else self.column.kind

    @property
    def distinct_in_words(self) -> str:
        """How many values it has, as people are told: 1,234, or ~1,200 where the number is approximate."""
        return f"~{float(f'{self.distinct:.1e}'):,.0f}" if self.approximate else f"{self.distinct:,}"


def profile(table: Table, columns: Sequence[Column] | None = None) -> tuple[int, list[Profile]]:
    """Rows of a table, and a profile of each column, in two statements, of many columns in more.

    columns: that are looked at, if not all.

    Where the engine counts values approximately, those of a large table are counted so, and in another one
    exactly where it decides something.
    """
    count = sa.select(sa.func.count()).select_from(table.relation)
    approximate = table.session.approximate_distinct is not None and int(table.session.scalar(count)) >= LARGE
    looked_at = list(table.columns.values()) if columns is None else columns
    rows, profiles = _profiles(table, looked_at, approximate=approximate)
    exact = distinct_of(table, [p.column for p in profiles if p.approximate and _decides(p, rows)])
    return rows, [
        replace(p, distinct=exact[p.column.name], approximate=False) if p.column.name in exact else p for p in profiles
    ]


def distinct_of(table: Table, columns: Sequence[Column]) -> dict[str, int]:
    """How many different values columns have, exactly; one statement."""
    if not columns:
        return {}
    values = [table.value(column) for column in columns]
    row = table.row([sa.func.count(sa.distinct(value)).label(f"distinct_{i}") for i, value in enumerate(values)])
    return {column.name: row[f"distinct_{i}"] for i, column in enumerate(columns)}


def _decides(p: Profile, rows: int) -> bool:
    """Whether the exact number of values is wanted: there are few, or it may decide something that the approximate one
    leaves open."""
    there, name, kind = rows - p.nulls, p.column.name, p.kind
    if p.distinct <= SURE * FEW:  # which costs nothing
        return True
    marks: list[float] = []
    if kind not in CONTINUOUS or kind == "decimal" or numbers_rows(name):
        # What may number rows or people, repeat texts, or be free text.
        marks += [rows / MOST_ROWS, math.sqrt(there), there / 2, OWN * rows, there]
    return any(mark / SURE <= p.distinct <= mark * SURE for mark in marks)


def _profiles(table: Table, columns: Sequence[Column], *, approximate: bool) -> tuple[int, list[Profile]]:
    session = table.session
    figures: list[Any] = [sa.func.count().label("rows")]
    for i, column in enumerate(columns):
        value = table.value(column)
        count: sa.ColumnElement[int] = sa.func.count(sa.distinct(value))
        if approximate and session.approximate_distinct is not None:
            count = session.approximate_distinct(value)
        figures += [count.label(f"distinct_{i}"), sa.func.count(value).label(f"there_{i}")]
        ordered = column.kind != "boolean"
        least, greatest = (sa.func.min(value), sa.func.max(value)) if ordered else (sa.null(), sa.null())
        for name, end in (("least", least), ("greatest", greatest)):
            # What makes plain text of a number takes four times as long to plan as all other figures of its column.
            text = sa.cast(end, sa.Text) if column.kind in FRACTIONS else session.text_of(end, column.kind)
            figures.append(text.label(f"{name}_{i}"))
        if column.kind in FRACTIONS:
            figures.append(sa.func.count(sa.case((value == sa.func.floor(value), 1))).label(f"whole_{i}"))
        length = sa.func.length(value) if column.kind == "text" else sa.null()
        figures += [
            sa.cast(sa.func.min(length), sa.Integer).label(f"shortest_{i}"),
            sa.cast(sa.func.max(length), sa.Integer).label(f"longest_{i}"),
        ]
    row = table.row(figures)
    for i, column in enumerate(columns):
        for name in (f"least_{i}", f"greatest_{i}") if column.kind in FRACTIONS else ():
            row[name] = None if row[name] is None else plain_number(row[name])
    texts = {
        column.name: 2 * row[f"distinct_{i}"] <= row[f"there_{i}"]
        for i, column in enumerate(columns)
        if column.kind == "text"
    }
    look: dict[str, dict[str, Any]] = {}
    for part in portions(list(texts), COLUMNS):
        look |= _look(table, {name: texts[name] for name in part})
    profiles = [
        Profile(
            column,
            row[f"distinct_{i}"],
            row["rows"] - row[f"there_{i}"],
            approximate=approximate,
            whole=row.get(f"whole_{i}", 0) == row[f"there_{i}"] > 0,
            **{key: row[f"{key}_{i}"] for key in OF_ALL},
            **look.get(column.name, {}),
        )
        for i, column in enumerate(columns)
    ]
    return int(row["rows"]), profiles


def _look(table: Table, repeats: Mapping[str, bool]) -> dict[str, dict[str, Any]]:
    """What texts look like, by column: the figures of a profile that count rows; one statement. repeats: whether its
    values repeat, so that each is looked at once."""
    each = [_texts(table, name, i, repeats=repeat) for i, (name, repeat) in enumerate(repeats.items())]
    texts = _measured((sa.union_all(*each) if len(each) > 1 else each[0]).subquery("qblock_texts"))
    counts = [whole(sa.func.coalesce(sa.func.sum(sa.case((kind, texts.c.n))), 0)) for kind in _kinds(texts)]
    figures = [count.label(f"f{j}") for j, count in enumerate(counts)]
    answer = table.session.fetch(sa.select(texts.c.i, *figures).group_by(texts.c.i)).to_pylist()
    counted = {row.pop("i"): [*row.values()] for row in answer}
    return {name: _named(counted[i]) for i, name in enumerate(repeats) if i in counted}


def _texts(table: Table, name: str, number: int, *, repeats: bool) -> sa.Select[Any]:
    """The texts of a column, in how many rows each is, and the column's number."""
    column = table.value(table.columns[name])
    n = sa.func.count() if repeats else sa.literal_column("1")
    rows = sa.select(
        sa.literal_column(str(number)).label("i"), table.session.bytewise(column).label("value"), n.label("n")
    )
    rows = rows.select_from(table.relation).where(column.is_not(None))
    return rows.group_by(column) if repeats else rows


def _measured(texts: sa.Subquery) -> sa.Subquery:
    """How long texts are, too: as they are, without their digits, and without what stands between these as well. Each
    length is computed once for all that asks for it."""
    text = texts.c.value
    return sa.select(
        *texts.c,
        sa.func.length(text).label("characters"),
        sa.func.length(sa.func.translate(text, DIGITS, "")).label("without_digits"),
        sa.func.length(sa.func.translate(text, BETWEEN, "")).label("other"),
    ).subquery("qblock_measured")


def _kinds(texts: sa.Subquery) -> list[sa.ColumnElement[bool]]:
    """What texts may look like: as OF_TEXTS, codes of digits for each of LENGTHS, and as CODES."""
    text, characters, bare = texts.c.value, texts.c.characters, texts.c.without_digits
    return [
        characters > LONG,
        text.like("%@%"),
        sa.and_(text.like("%_@_%._%"), text.not_like("% %")),
        bare < characters,
        sa.and_(texts.c.other == 0, characters - bare >= LEAST_DIGITS),
        *(sa.and_(bare == 0, characters == n) for n in LENGTHS),
        *(code.matches(text) for code in CODES),
    ]


def _named(counts: Sequence[int]) -> dict[str, Any]:
    """Counts of `_kinds` by the names that a profile has for them."""
    first, last = len(OF_TEXTS), len(OF_TEXTS) + len(LENGTHS)
    named = dict(zip(OF_TEXTS, counts[:first], strict=True))
    return {**named, "codes": tuple(counts[first:last]), "forms": tuple(counts[last:])}
