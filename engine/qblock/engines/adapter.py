"""What differs between engines: the types, the canonical text of values, and for those that SQLAlchemy speaks with the
catalog and how rows come and go. A method that an adapter leaves out is as in standard SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from qblock.comparison import Kind
from qblock.engines.faults import original_of, while_reading
from qblock.engines.queries import Part
from qblock.engines.quoting import quote
from qblock.engines.tables import Column, TableName
from qblock.errors import QblockError

Value = sa.ColumnElement[Any]


class Adapter(ABC):
    """What an engine is like, and its SQL."""

    name: ClassVar[str]
    error: ClassVar[type[Exception]] = sa.exc.DBAPIError
    """The base of the driver's own errors."""
    literals: ClassVar[bool] = False
    """Whether queries are sent with their values in the text, which saves the driver something."""
    text_type: ClassVar[str] = "text"
    """The type of a text, by the engine's own name; so are the next three."""
    whole_type: ClassVar[str] = "bigint"
    """The type of a whole number of 64 bits."""
    double_type: ClassVar[str] = "double precision"
    date_type: ClassVar[str] = "date"
    range_types: ClassVar[Mapping[str, str]] = {}
    """Types of ranges, by the type of a column of whole numbers, `number` or `date`; none where it has none."""
    private_schema: ClassVar[str | None] = None
    """The schema of ledger and crosswalk, where they are in the database of the source."""
    embedded: ClassVar[bool] = False
    """Whether it runs in this process, so that nothing is gained by rolling up elsewhere."""
    statements_are_jobs: ClassVar[bool] = False
    """Whether a statement takes a fraction of a second, however few rows it reads."""
    keeps_secrets: ClassVar[bool] = True
    """Whether a secret may be lent to it: not to a cluster, where it would be a file that others may read."""
    row_hash: ClassVar[tuple[str, str] | None] = None
    """The function that hashes any values to a number of 64 bits, and the version of the engine, in which alone it
    gives that number; None where it has none."""
    approximate_distinct: ClassVar[str | None] = None
    """The function that counts different values approximately; None where there is none."""
    has_roles: ClassVar[bool] = False
    """Whether readers are roles, with rights and row level security."""
    table_exists: ClassVar[str] = ""
    """The query whether there is a table :name, of schema :schema where the engine has schemas for private tables; of
    engines that keep private tables."""
    copied_words: ClassVar[str] = "in one transaction that only reads"
    """In what a source is copied that is only read."""
    snapshot_words: ClassVar[str] = "one transaction"
    """What a snapshot is, for a plan."""

    @staticmethod
    @abstractmethod
    def dialect() -> sa.Dialect:
        """For statements as text, with named parameters."""

    @staticmethod
    def type_of_copy(type_: str) -> str:
        """A type of the embedded database, which a source was copied to, as this engine names it."""
        return type_

    @staticmethod
    def private_names(connection: sa.Connection) -> AbstractContextManager[None]:
        """Within it names without a schema are those of the private tables."""
        return nullcontext()

    def prefix(self, schema: str | None) -> quoted_name | None:
        """The schema (and attached database) under which the source's tables are found."""
        return None if schema is None else quoted_name(schema, quote=True)

    @abstractmethod
    def plain_number(self, value: Value) -> Value:
        """A floating-point number as text without an exponent."""

    @abstractmethod
    def plain_decimal(self, value: Value) -> Value:
        """An exact number as text without trailing zeros."""

    @abstractmethod
    def calendar_text(self, value: Value, kind: Kind) -> Value:
        """A date or timestamp as text, one with a time zone in UTC, years before Christ with BC at the end."""

    def calendar_value(self, text: Value) -> Value:
        """What `calendar_text` wrote, as the engine reads it."""
        return text

    def endless(self, text: Value) -> Value:
        """The text of a date, which may be infinity, as the engine reads it."""
        return text

    def plain_text(self, value: Value, of: Column) -> Value:
        """A value of a column that compares as text, as that text."""
        return sa.cast(value, sa.Text)

    def bytewise(self, text: Value) -> Value:
        """A text that sorts by bytes."""
        return text

    @abstractmethod
    def sha256(self, text: Value) -> Value:
        """The SHA-256 of a text in UTF-8, as hexadecimal text."""

    @abstractmethod
    def hex_number(self, digits: Value) -> Value:
        """The number that 15 hexadecimal digits write."""

    def byte_length(self, text: Value) -> Value:
        """How many bytes a text has in UTF-8."""
        return sa.func.octet_length(text)

    def is_interrupt(self, error: BaseException) -> bool:
        """Whether an error is the driver's answer to Ctrl-C, or to a statement that was interrupted otherwise."""
        return False

    def explain(self, error: Exception, reading: Sequence[str] = ()) -> QblockError:
        """The error to show for one of the database's; reading: the tables that the statement reads."""
        kind = type(original_of(error)).__name__
        return QblockError(f"{self.name} reported an error{while_reading(reading)} ({kind})")


class SqlAdapter(Adapter):
    """An engine that SQLAlchemy speaks with: its catalog, and how rows come and go."""

    @abstractmethod
    def describe(self, connection: sa.Connection, table: TableName) -> list[Column]:
        """The columns of a table or view; empty when it does not exist."""

    @abstractmethod
    def tables(self, connection: sa.Connection) -> list[str]:
        """Names that a user could have meant, `schema.table`."""

    def home(self, connection: sa.Connection, table: TableName) -> TableName:
        """The table with the schema in which the login finds it, where it is named without one."""
        return table

    def computed(self, connection: sa.Connection, table: TableName) -> bool:
        """Whether rows are computed whenever they are read: those of a view, or of another server's table."""
        return self.definition(connection, table) is not None

    @abstractmethod
    def definition(self, connection: sa.Connection, table: TableName) -> str | None:
        """The text of the query that a view stands for; None of what is none, or where it is not known."""

    def json_array(self, values: Sequence[Value]) -> Value:
        """The text of a JSON array: of texts, whole numbers and truth values, any of which may be NULL."""
        return sa.func.json_array(*values, type_=sa.Text)

    def expressions(self, connection: sa.Connection, table: TableName) -> Mapping[str, str]:
        """What the table computes its columns of, by name, as far as that is known; defaults, too, which name none."""
        return {}

    def fetch(self, connection: sa.Connection, statement: Any, parameters: Mapping[str, Any]) -> pa.Table:
        """The rows of a query."""
        return table_of(connection.execute(statement, parameters))

    def counts(self, connection: sa.Connection, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        """The rows of a query whose columns are BIGINT and never NULL."""
        rows = connection.exec_driver_sql(sql).fetchall()
        columns = np.array(rows, dtype=np.int64).reshape(len(rows), len(names))
        return {name: np.ascontiguousarray(columns[:, i]) for i, name in enumerate(names)}

    def pull(self, connection: sa.Connection, table: str, names: list[str]) -> Iterator[Part] | None:
        """The rows of a temporary table of BIGINT, never NULL, in parts; None where `counts` is as quick."""
        return None

    def attempt(self, connection: sa.Connection, statement: sa.Executable) -> tuple[Any, ...] | None:
        """The first row of a query; None where it fails, which does not end the transaction."""
        try:
            with connection.begin_nested():
                row = connection.execute(statement).fetchone()
        except sa.exc.DBAPIError:
            return None
        return None if row is None else tuple(row)

    def load(self, connection: sa.Connection, name: str, columns: pa.Table) -> None:
        """Create a temporary table of whole numbers and text."""
        types = [self.whole_type if pa.types.is_integer(field.type) else self.text_type for field in columns.schema]
        names = [quote(column) for column in columns.column_names]
        body = ", ".join(f"{column} {type_}" for column, type_ in zip(names, types, strict=True))
        connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {quote(name)} ({body})")
        if columns.num_rows:
            table = sa.table(name, *map(sa.column, columns.column_names))
            connection.execute(sa.insert(table), columns.to_pylist())

    def analyze(self, connection: sa.Connection, table: sa.TableClause) -> None:
        """Have the engine measure a table, where its planner needs that."""


def table_of(result: sa.CursorResult[Any]) -> pa.Table:
    """The rows of a result."""
    names = list(result.keys())
    columns = list(zip(*result.fetchall(), strict=True)) or [()] * len(names)
    return pa.table({name: pa.array(column) for name, column in zip(names, columns, strict=True)})
