"""A session of an engine that SQLAlchemy speaks with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray

from qblock.engines.adapter import SqlAdapter
from qblock.engines.kept_sessions import count_temporary
from qblock.engines.queries import Part, queries_of_parts
from qblock.engines.session import Restrictions, Session, translated
from qblock.engines.tables import Column, TableName, not_a_table

BATCH = 50_000
"""Rows that are read at a time."""


class Beside(Protocol):
    """Further connections to the database of a session, for other threads."""

    max_concurrency: int
    statements: int

    def begin(self) -> None:
        """From now on several questions share the cores."""

    def counts(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        """As of the adapter."""

    def interrupt(self) -> None:
        """End the statements that are running, and begin no other."""


class SqlSession(Session):
    """A session of one connection of SQLAlchemy."""

    _adapter: SqlAdapter

    def __init__(
        self,
        connection: sa.Connection,
        adapter: SqlAdapter,
        beside: Beside | None = None,
        restrictions: Restrictions | None = None,
        *,
        stays: bool = False,
    ) -> None:
        """beside: answers what other threads ask about shared tables; stays: whether nobody can write to the source
        while it is open, so that every transaction of the session sees the same state of it."""
        super().__init__(adapter, connection.dialect, restrictions)
        self.connection = connection
        self.max_concurrency = 1 if beside is None else beside.max_concurrency
        self._beside = beside
        self._owner = threading.get_ident()
        self._stays = stays
        self._computed: dict[TableName, bool] = {}

    @property
    def statements(self) -> int:
        return self._sent + (0 if self._beside is None else self._beside.statements)

    def run(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> None:
        self._sent += 1
        with translated(self._adapter, lambda: self._read_by(statement)):
            self.connection.execute(self._executable(statement), dict(parameters or {}))

    def fetch(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        self._sent += 1
        with translated(self._adapter, lambda: self._read_by(statement)):
            return self._adapter.fetch(self.connection, self._executable(statement), dict(parameters or {}))

    def rows(self, query: sa.Executable) -> Sequence[sa.Row[Any]]:
        """The rows of a small answer to a long question, which DuckDB plans once more for an Arrow table."""
        self._sent += 1
        with translated(self._adapter, lambda: self._read_by(query)):
            return self.connection.execute(query).all()

    def batches(self, query: sa.Select[*tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a query without parameters as they arrive, so many at a time."""
        self._sent += 1
        with translated(self._adapter, lambda: self._read_by(query)):
            streamed = self.connection.execution_options(stream_results=True, yield_per=BATCH)
            for rows in streamed.execute(self._executable(query)).partitions():
                columns = zip(*rows, strict=True)
                yield pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)

    def scalar(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> Any:
        self._sent += 1
        with translated(self._adapter, lambda: self._read_by(statement)):
            return self.connection.execute(self._executable(statement), dict(parameters or {})).scalar()

    def attempt(self, statement: sa.Select[*tuple[Any, ...]]) -> tuple[Any, ...] | None:
        self._sent += 1
        with translated(self._adapter, lambda: self._read_by(statement)):
            return self._adapter.attempt(self.connection, statement)

    def counts(self, statement: sa.Select[*tuple[Any, ...]]) -> dict[str, NDArray[np.int64]]:
        self._sent += 1
        names = list(statement.selected_columns.keys())
        with translated(self._adapter, lambda: self._read_by(statement)):
            return self._adapter.counts(self.connection, self.literal_sql(statement), names)

    def counts_of(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        if self._beside is not None and self.shared and threading.get_ident() != self._owner:
            with translated(self._adapter):
                return self._beside.counts(sql, names)
        self._sent += 1
        with translated(self._adapter):
            return self._adapter.counts(self.connection, sql, names)

    def pull(self, table: sa.TableClause) -> Iterator[Part]:
        parts = self._adapter.pull(self.connection, table.name, [column.name for column in table.c])
        if parts is None:
            rows = int(self.scalar(sa.select(sa.func.count()).select_from(table)))
            yield from map(self.counts, queries_of_parts(table, rows))
            return
        self._sent += 1
        with translated(self._adapter):
            yield from parts

    def json_array(self, values: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
        """The text of a JSON array: of texts, whole numbers and truth values, any of which may be NULL."""
        return self._adapter.json_array(values)

    def load(self, name: str, columns: pa.Table) -> sa.TableClause:
        self._sent += 1
        with translated(self._adapter):
            self._adapter.load(self.connection, name, columns)
        return self._keep(sa.table(name, *(sa.column(c) for c in columns.column_names)))

    def store(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        self.run(sa.CreateTableAs(query, name, temporary=True))
        return self._keep(sa.table(name, *(sa.column(c.name, c.type) for c in query.selected_columns)))

    def share(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        if self._beside is None:
            return self.store(name, query)
        if not self.shared:
            with translated(self._adapter):
                self._beside.begin()
        self.run(sa.CreateTableAs(query, name))
        # Other connections see only what is committed; the source is attached read-only, and stays as it is.
        with translated(self._adapter):
            self.connection.commit()
        self.shared = self.committed = True
        return self._keep(sa.table(name, *(sa.column(c.name, c.type) for c in query.selected_columns)))

    def _keep(self, table: sa.TableClause) -> sa.TableClause:
        self._temporary[table.name] = table
        count_temporary(self.connection, 1)
        return table

    def analyze(self, table: sa.TableClause) -> None:
        with translated(self._adapter):
            self._adapter.analyze(self.connection, table)

    def interrupt(self) -> None:
        if self._beside is not None:
            self._beside.interrupt()

    def _drop(self, table: sa.TableClause) -> None:
        self.run(f"DROP TABLE {self.dialect.identifier_preparer.format_table(table)}")
        if self._temporary.pop(table.name, None) is not None:
            count_temporary(self.connection, -1)

    def _let_go(self) -> None:
        """Have the database let go of the memory of tables that were dropped, which DuckDB keeps until the transaction
        ends: the next one sees the same, but for what is computed by the time at which a transaction began."""
        if not self._stays or any(map(self._is_computed, self._described)):
            return
        with translated(self._adapter):
            self.connection.commit()
        self.committed = True

    def _is_computed(self, table: TableName) -> bool:
        """Whether anything of a table may be computed when it is read."""
        if table not in self._computed:
            self._computed[table] = self.computed(table) or bool(self.expressions(table))
        return self._computed[table]

    def end(self) -> None:
        self._temporary.clear()
        with translated(self._adapter):
            self.connection.close()

    def _home(self, table: TableName) -> TableName:
        if table not in self._homes:
            if table.catalog is not None:
                raise not_a_table(repr(str(table)))
            with translated(self._adapter):
                self._homes[table] = self._adapter.home(self.connection, table)
        return self._homes[table]

    def _describe(self, table: TableName) -> tuple[list[Column], Callable[[], list[str]]]:
        home = self._home(table)
        with translated(self._adapter):
            return self._adapter.describe(self.connection, home), lambda: self._adapter.tables(self.connection)

    def _read_by(self, statement: sa.Executable | str) -> list[str]:
        """The tables of the spec that a statement reads, for messages."""
        statement = getattr(statement, "selectable", statement)  # of CREATE TABLE AS
        if isinstance(statement, str):
            return []
        names: dict[tuple[Any, str], str] = {
            (self._adapter.prefix(self._homes[table].schema), table.name): str(table) for table in self._described
        }
        read = [
            names.get((part.schema, str(part.name)))
            for part in sa.sql.visitors.iterate(statement)  # type: ignore[arg-type]
            if isinstance(part, sa.TableClause)
        ]
        return list(dict.fromkeys(name for name in read if name is not None))

    def computed(self, table: TableName) -> bool:
        self._sent += 1
        with translated(self._adapter):
            return self._adapter.computed(self.connection, self._home(table))

    def definition(self, table: TableName) -> str | None:
        self._sent += 1
        with translated(self._adapter):
            return self._adapter.definition(self.connection, self._home(table))

    def expressions(self, table: TableName) -> Mapping[str, str]:
        self._sent += 1
        with translated(self._adapter):
            return self._adapter.expressions(self.connection, self._home(table))

    def _executable(self, statement: sa.Executable | str) -> Any:
        if isinstance(statement, sa.Select) and self._adapter.literals and all(map(_plain, _bound(statement))):
            try:
                text = self.literal_sql(statement)
            except sa.exc.CompileError:  # a value that has no text in SQL
                return statement
            if "\0" in text:  # which a statement cannot hold
                return statement
            statement = text
        return sa.text(statement.replace(":", r"\:")) if isinstance(statement, str) else statement


def sql_of(session: Session) -> SqlSession:
    """A session that is known to be one of these."""
    assert isinstance(session, SqlSession)
    return session


def _bound(statement: sa.Select[*tuple[Any, ...]]) -> Iterator[Any]:
    """The values of a query's parameters."""
    for part in sa.sql.visitors.iterate(statement):
        if isinstance(part, sa.BindParameter):
            yield from part.value if isinstance(part.value, list | tuple) else (part.value,)


def _plain(value: Any) -> bool:
    """Whether a value means the same as a literal: not so a date, whose literal is a text."""
    return value is None or isinstance(value, str | int | float | Decimal)
