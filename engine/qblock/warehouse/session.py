"""The session: what engines share, on top of a page of facts for each."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from qblock.errors import InputError
from qblock.warehouse.duckdb_session import DuckdbBeside
from qblock.warehouse.faults import CLIENT, interrupted
from qblock.warehouse.kept_sessions import count_temporary
from qblock.warehouse.protocol import Column, Facts, Kind, SourceFacts, TableName, not_a_table
from qblock.warehouse.queries import Part, queries_of_parts


class RawType(sa.types.UserDefinedType[Any]):
    """A type by the engine's own name, as its catalog gives it."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


@contextmanager
def translated(facts: Facts, reading: Callable[[], Sequence[str]] = list) -> Iterator[None]:
    """Turn the driver's errors into ours, without any of their text.

    reading: answers which tables the statement reads; asked for the message of an error alone, within the connection's
    failed transaction.
    """
    drivers: tuple[type[Exception], ...] = (sa.exc.SQLAlchemyError, facts.error, *CLIENT)
    try:
        yield
    except RuntimeError as error:
        if facts.name == "duckdb" and interrupted(error):
            # The driver answers Ctrl-C in the middle of a statement with an error of its own.
            raise KeyboardInterrupt from error
        raise
    except drivers as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        raise facts.explain(error, reading()) from error


class SqlSession:
    """The Session protocol over one SQLAlchemy connection."""

    def __init__(self, connection: sa.Connection, facts: Facts, beside: DuckdbBeside | None = None) -> None:
        """beside: answers what other threads ask about shared tables."""
        self.connection = connection
        self.max_concurrency = 1 if beside is None else beside.max_concurrency
        self._beside = beside
        self._owner = threading.get_ident()
        self.shared = False
        self.engine = facts.name
        self.files: SourceFacts | None = None
        self.dialect = connection.dialect
        self._sent = 0
        self._facts = facts
        self._described: dict[TableName, dict[str, Column]] = {}
        self._homes: dict[TableName, TableName] = {}
        self._temporary: dict[str, sa.TableClause] = {}

    @property
    def statements(self) -> int:
        return self._sent + (0 if self._beside is None else self._beside.statements)

    @property
    def keeps_secrets(self) -> bool:
        return self._facts.keeps_secrets

    def count(self) -> None:
        """Count a statement that somebody else has sent on this connection."""
        self._sent += 1

    def run(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> None:
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            self.connection.execute(self._executable(statement), dict(parameters or {}))

    def fetch(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            return self._facts.fetch(self.connection, self._executable(statement), dict(parameters or {}))

    def scalar(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> Any:
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            return self.connection.execute(self._executable(statement), dict(parameters or {})).scalar()

    def attempt(self, statement: sa.Select[*tuple[Any, ...]]) -> tuple[Any, ...] | None:
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            return self._facts.attempt(self.connection, statement)

    def counts(self, statement: sa.Select[*tuple[Any, ...]]) -> dict[str, NDArray[np.int64]]:
        self._sent += 1
        names = list(statement.selected_columns.keys())
        with translated(self._facts, lambda: self._read_by(statement)):
            return self._facts.counts(self.connection, self.literal_sql(statement), names)

    def counts_of(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        if self._beside is not None and self.shared and threading.get_ident() != self._owner:
            with translated(self._facts):
                return self._beside.counts(sql, names)
        self._sent += 1
        with translated(self._facts):
            return self._facts.counts(self.connection, sql, names)

    def pull(self, table: sa.TableClause) -> Iterator[Part]:
        parts = self._facts.pull(self.connection, table.name, [column.name for column in table.c])
        if parts is None:
            rows = int(self.scalar(sa.select(sa.func.count()).select_from(table)))
            yield from map(self.counts, queries_of_parts(table, rows))
            return
        self._sent += 1
        with translated(self._facts):
            yield from parts

    def load(self, name: str, columns: pa.Table) -> sa.TableClause:
        self._sent += 1
        with translated(self._facts):
            self._facts.load(self.connection, name, columns)
        return self._keep(sa.table(name, *(sa.column(c) for c in columns.column_names)))

    def store(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        self.run(sa.CreateTableAs(query, name, temporary=True))
        return self._keep(sa.table(name, *(sa.column(c.name, c.type) for c in query.selected_columns)))

    def share(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        if self._beside is None:
            return self.store(name, query)
        if not self.shared:
            with translated(self._facts):
                self._beside.begin()
        self.run(sa.CreateTableAs(query, name))
        # Other connections see only what is committed; the source is attached read-only, and stays as it is.
        with translated(self._facts):
            self.connection.commit()
        self.shared = True
        return self._keep(sa.table(name, *(sa.column(c.name, c.type) for c in query.selected_columns)))

    def _keep(self, table: sa.TableClause) -> sa.TableClause:
        self._temporary[table.name] = table
        count_temporary(self.connection, 1)
        return table

    def analyze(self, table: sa.TableClause) -> None:
        with translated(self._facts):
            self._facts.analyze(self.connection, table)

    def interrupt(self) -> None:
        if self._beside is not None:
            self._beside.interrupt()

    def drop(self, table: sa.TableClause) -> None:
        self.run(f"DROP TABLE {self.dialect.identifier_preparer.format_table(table)}")
        if self._temporary.pop(table.name, None) is not None:
            count_temporary(self.connection, -1)

    def clear(self, *, keep: Sequence[sa.TableClause] = ()) -> None:
        kept = {table.name for table in keep}
        for table in [table for table in self._temporary.values() if table.name not in kept]:
            self.drop(table)

    def relation(self, table: TableName) -> sa.TableClause:
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in self.columns(table)]
        schema = self._facts.prefix(self._home(table).schema)
        return sa.table(quoted_name(table.name, quote=True), *columns, schema=schema)

    def _home(self, table: TableName) -> TableName:
        if table.catalog is not None:
            raise not_a_table(repr(str(table)))
        if table not in self._homes:
            with translated(self._facts):
                self._homes[table] = self._facts.home(self.connection, table)
        return self._homes[table]

    def _read_by(self, statement: sa.Executable | str) -> list[str]:
        """The tables of the spec that a statement reads, for messages."""
        statement = getattr(statement, "selectable", statement)  # of CREATE TABLE AS
        if isinstance(statement, str):
            return []
        names: dict[tuple[Any, str], str] = {
            (self._facts.prefix(self._homes[table].schema), table.name): str(table) for table in self._described
        }
        read = [
            names.get((part.schema, str(part.name)))
            for part in sa.sql.visitors.iterate(statement)  # type: ignore[arg-type]
            if isinstance(part, sa.TableClause)
        ]
        return list(dict.fromkeys(name for name in read if name is not None))

    def columns(self, table: TableName) -> dict[str, Column]:
        if table not in self._described:
            self._sent += 1
            home = self._home(table)
            with translated(self._facts):
                described = self._facts.describe(self.connection, home)
                if not described:
                    near = difflib.get_close_matches(str(table), self._facts.tables(self.connection), n=3, cutoff=0.5)
                    hint = f"; did you mean {' or '.join(near)}?" if near else ""
                    raise InputError(
                        f"table {table} does not exist, or you lack permission to read it{hint}", suggestions=near
                    )
            self._described[table] = {column.name: column for column in described}
        return self._described[table]

    def computed(self, table: TableName) -> bool:
        self._sent += 1
        with translated(self._facts):
            return self._facts.computed(self.connection, self._home(table))

    def comparable(self, column: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        if of.compare_as == of.type:
            return column
        return self._facts.plain_text(column, of) if of.kind == "text" else sa.cast(column, RawType(of.compare_as))

    def convert(self, text: sa.ColumnElement[Any], to: Column) -> sa.ColumnElement[Any]:
        if to.kind in ("date", "timestamp", "timestamptz"):
            text = self._facts.calendar_value(text)
        if to.kind == "date":
            text = self._facts.endless(text)
        return sa.cast(text, RawType(to.compare_as))

    def text_of(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        if kind == "float":
            return self._facts.plain_number(value)
        if kind == "decimal":
            return self._facts.plain_decimal(value)
        if kind in ("date", "timestamp", "timestamptz"):
            return self._facts.calendar_text(value, kind)
        return sa.cast(value, sa.Text)

    def bytewise(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return self._facts.bytewise(text)

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return self._facts.sha256(text)

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return self._facts.byte_length(text)

    @property
    def approximate_distinct(self) -> Callable[[sa.ColumnElement[Any]], sa.ColumnElement[int]] | None:
        name = self._facts.approximate_distinct
        return None if name is None else lambda value: sa.Function(name, value, type_=sa.BigInteger)

    def _executable(self, statement: sa.Executable | str) -> Any:
        if isinstance(statement, sa.Select) and self._facts.literals and all(map(_plain, _bound(statement))):
            try:
                text = self.literal_sql(statement)
            except sa.exc.CompileError:  # a value that has no text in SQL
                return statement
            if "\0" in text:  # which a statement cannot hold
                return statement
            statement = text
        return sa.text(statement.replace(":", r"\:")) if isinstance(statement, str) else statement

    def literal_sql(self, statement: sa.Executable) -> str:
        return str(statement.compile(dialect=self.dialect, compile_kwargs={"literal_binds": True}))  # type: ignore[attr-defined]


def _bound(statement: sa.Select[*tuple[Any, ...]]) -> Iterator[Any]:
    """The values of a query's parameters."""
    for part in sa.sql.visitors.iterate(statement):
        if isinstance(part, sa.BindParameter):
            yield from part.value if isinstance(part.value, list | tuple) else (part.value,)


def _plain(value: Any) -> bool:
    """Whether a value means the same as a literal: not so a date, whose literal is a text."""
    return value is None or isinstance(value, str | int | float | Decimal)
