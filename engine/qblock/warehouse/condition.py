"""The rows of the source's table that `source.where` keeps: a condition checked against its columns, and as SQL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sqlalchemy as sa

from qblock.canonical import decimal_text
from qblock.errors import InputError
from qblock.hierarchy.builders import outer_cuts
from qblock.hierarchy.written import inclusive
from qblock.spec.condition import (
    ColumnName,
    Comparison,
    Condition,
    IsNull,
    Like,
    Not,
    OneOf,
    Operator,
    Value,
    ValueForm,
    columns_of,
)
from qblock.spec.sources import Ranges
from qblock.warehouse.copied import no_column
from qblock.warehouse.protocol import Column, Kind, Session
from qblock.warehouse.values import NUMERIC, canonical_text, is_value

OPERATORS: dict[Operator, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FORMS: dict[Kind, tuple[ValueForm, ...]] = {
    "text": ("text",),
    "boolean": ("flag",),
    "date": ("text", "date"),
    "timestamp": ("text", "date", "timestamp"),
    "timestamptz": ("text", "date", "timestamp"),
    **dict.fromkeys(NUMERIC, ("number",)),
}
"""In which forms values of a kind of column are written."""
WANTED: dict[Kind, str] = {
    "text": "a text of its type in quotes ('A')",
    "boolean": "TRUE or FALSE",
    "integer": "a whole number of its type, without quotes (5)",
    "decimal": "a number of its type, without quotes (0.25)",
    "float": "a number, without quotes (0.25)",
    "date": "a day (DATE '2026-01-31')",
    "timestamp": "a day, or a moment (TIMESTAMP '2026-01-31 12:00:00')",
    "timestamptz": "a moment, in UTC unless it has a zone (TIMESTAMP '2026-01-31 12:00:00+01:00')",
}


@dataclass(frozen=True)
class Where:
    """Which rows are read, and what their numbers read as. condition: of the spec; None: every row; place: of it, for
    messages; table: as the spec names it; names: the columns of the table that are read of the rows that are kept,
    since the login may be granted no other; coarser: columns that are ranges, each with where the spec says so."""

    condition: Condition | None
    place: str
    table: str
    names: Sequence[str]
    coarser: Mapping[str, tuple[Ranges, str]] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition names."""
        return () if self.condition is None else columns_of(self.condition)

    def shown(self, columns: Mapping[str, Column], text_type: str) -> Mapping[str, Column]:
        """The columns, of which those that are ranges have their labels as text. Raises InputError for others than
        numbers."""
        for name, (_, place) in self.coarser.items():
            if name in columns and columns[name].kind not in NUMERIC:
                raise InputError(
                    f"{place}: column {name} is of type {columns[name].type}, and ranges are of numbers; remove "
                    "publish_as, or cast the column in a view"
                )
        text = {name: Column(name, text_type, "text", text_type) for name in self.coarser if name in columns}
        return {**columns, **text}

    def kept(
        self, session: Session, table: sa.FromClause, columns: Mapping[str, Column], names: Sequence[str] | None
    ) -> sa.FromClause:
        """The rows that it keeps, with these columns, or with those that are read. Raises InputError where the
        condition does not fit the columns."""
        wanted = [name for name in columns if name in (self.names if names is None else names)]
        query = sa.select(*(self._value(table, columns[name]) for name in wanted))
        if self.condition is not None:
            query = query.where(self.clause(session, table, columns))
        return query.subquery("qblock_kept")

    def _value(self, table: sa.FromClause, column: Column) -> sa.ColumnElement[Any]:
        value: sa.ColumnElement[Any] = table.c[column.name]
        if column.name not in self.coarser:
            return value
        return labelled(value, self.coarser[column.name][0], column.kind).label(column.name)

    def clause(self, session: Session, table: sa.FromClause, columns: Mapping[str, Column]) -> sa.ColumnElement[bool]:
        """The condition, about the rows of a table. Raises InputError as `kept` does."""
        assert self.condition is not None
        problems, near = [], []
        for name in self.columns:
            if name not in columns:
                sentence, close = no_column(f"{self.place}: the source {self.table}", name, columns)
                problems.append(sentence)
                near += close
        if problems:
            raise InputError(*problems, suggestions=near)
        return _Clauses(session, table, columns, self.place).of(self.condition)


def labelled(value: sa.ColumnElement[Any], ranges: Ranges, kind: Kind) -> sa.ColumnElement[str]:
    """The label of the range that each number is in, as the hierarchy of these ranges has it; NULL of NULL."""
    (width,) = ranges.ranges
    first, last = outer_cuts(width, ranges.start, ranges.from_, ranges.to)
    assert first is not None
    assert last is not None
    cuts = [ranges.start + number * Fraction(width) for number in range(first, last + 1)]
    within = [*(cut - Fraction(width) / 2 for cut in cuts), cuts[-1] + Fraction(width) / 2]
    whole = kind == "integer" and inclusive(kind, ranges.labels, (ranges.start, width))
    if whole:
        within = [cuts[0] - 1, *cuts]
    texts = [decimal_text(number) for number in within]
    hierarchy = ranges.hierarchy_of("", texts, kind if whole else "decimal")
    labels = dict(zip(hierarchy.leaves, hierarchy.shown(1), strict=True))
    shown = [_quoted(labels[text]) for text in texts]
    cases = [(value < sa.literal_column(decimal_text(cut)), label) for cut, label in zip(cuts, shown, strict=False)]
    return sa.case((value.is_(None), sa.null()), *cases, else_=shown[-1])


def _quoted(label: str) -> sa.ColumnElement[str]:
    """In the statement: as a bound value, one expression would be two in SELECT and GROUP BY."""
    return sa.literal_column("'" + label.replace("'", "''") + "'", sa.Text)


@dataclass(frozen=True)
class _Clauses:
    session: Session
    table: sa.FromClause
    columns: Mapping[str, Column]
    place: str

    def of(self, condition: Condition) -> sa.ColumnElement[bool]:
        """A part of the condition as SQL."""
        if isinstance(condition, Comparison):
            return self._compared(condition)
        if isinstance(condition, OneOf):
            column = self._column(condition.column)
            values = [self._value(value, column) for value in condition.values]
            return self._expression(column).in_(values)
        if isinstance(condition, Like):
            column = self._column(condition.column)
            if column.kind != "text":
                raise self._unfit(column, "LIKE is for texts", "compare it with = < > or BETWEEN")
            pattern = sa.literal(condition.pattern, sa.Text)
            return self.session.bytewise(self._expression(column)).like(pattern, escape="!")
        if isinstance(condition, IsNull):
            return self.table.c[condition.column.name].is_(None)
        if isinstance(condition, Not):
            return sa.not_(self.of(condition.part))
        join = sa.and_ if condition.word == "AND" else sa.or_
        return join(*map(self.of, condition.parts))

    def _compared(self, comparison: Comparison) -> sa.ColumnElement[bool]:
        column = self._column(comparison.column)
        left = self._expression(column)
        if isinstance(comparison.other, ColumnName):
            other = self._column(comparison.other)
            if column.kind != other.kind and not {column.kind, other.kind} <= NUMERIC:
                raise self._unfit(column, f"column {other.name} is of type {other.type}", "compare columns of one type")
            right = self._expression(other)
        else:
            right = self._value(comparison.other, column)
        if comparison.operator not in ("=", "<>"):
            if column.kind == "boolean":
                raise self._unfit(column, f"it has no {comparison.operator}", "write = TRUE or = FALSE")
            if column.kind == "text":
                left, right = self.session.bytewise(left), self.session.bytewise(right)
        compared: sa.ColumnElement[bool] = OPERATORS[comparison.operator](left, right)
        return compared

    def _column(self, named: ColumnName) -> Column:
        return self.columns[named.name]

    def _expression(self, column: Column) -> sa.ColumnElement[Any]:
        return self.session.comparable(self.table.c[column.name], column)

    def _value(self, value: Value, column: Column) -> sa.ColumnElement[Any]:
        text = _text_of(value, column) if value.form in FORMS[column.kind] and _is_of_form(value) else None
        if text is None:
            raise self._unfit(column, "the condition has another value for it", f"write {WANTED[column.kind]}")
        literal = sa.literal(text, sa.Text)
        return literal if column.kind == "text" else self.session.convert(literal, column)

    def _unfit(self, column: Column, problem: str, remedy: str) -> InputError:
        return InputError(f"{self.place}: column {column.name} is of type {column.type}, and {problem}; {remedy}")


def _text_of(value: Value, column: Column) -> str | None:
    """The value as the column writes it; None where it is none of its values."""
    try:
        return canonical_text(value.text, column)
    except OverflowError:  # a moment whose time in UTC is in no year that there is
        return None


def _is_of_form(value: Value) -> bool:
    """Whether what follows DATE or TIMESTAMP is one."""
    if value.form not in ("date", "timestamp"):
        return True
    kind: Kind = "date" if value.form == "date" else "timestamptz"
    return is_value(value.text, kind)
