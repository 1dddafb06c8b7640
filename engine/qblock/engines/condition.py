"""The rows of the source's table that `source.where` keeps: a condition checked against its columns, and as SQL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.comparison import Kind
from qblock.engines.copied import no_column
from qblock.engines.session import Session
from qblock.engines.tables import Column
from qblock.engines.values import NUMERIC, canonical_text, is_value
from qblock.errors import InputError
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
    """The condition of a spec. place: of it, for messages; table: as the spec names it; names: the columns of the table
    that are read of the rows that are kept, since the login may be granted no other."""

    condition: Condition
    place: str
    table: str
    names: Sequence[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the condition names."""
        return columns_of(self.condition)

    def kept(
        self, session: Session, table: sa.FromClause, columns: Mapping[str, Column], names: Sequence[str] | None
    ) -> sa.FromClause:
        """The rows that it keeps, with these columns, or with those that are read. Raises InputError where the
        condition does not fit the columns."""
        clause = self.clause(session, table, columns)
        wanted = [name for name in columns if name in (self.names if names is None else names)]
        return sa.select(*(table.c[name] for name in wanted)).where(clause).subquery("qblock_kept")

    def shown(self, columns: dict[str, Column], text_type: str) -> dict[str, Column]:
        """The columns as they are."""
        return columns

    def divided(self) -> tuple[Where, None]:
        """Nothing is read in place of a value."""
        return self, None

    def clause(self, session: Session, table: sa.FromClause, columns: Mapping[str, Column]) -> sa.ColumnElement[bool]:
        """The condition, about the rows of a table. Raises InputError as `kept` does."""
        problems, near = [], []
        for name in self.columns:
            if name not in columns:
                sentence, close = no_column(f"{self.place}: the source {self.table}", name, columns)
                problems.append(sentence)
                near += close
        if problems:
            raise InputError(*problems, suggestions=near)
        return _Clauses(session, table, columns, self.place).of(self.condition)


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
