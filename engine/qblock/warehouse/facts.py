"""What differs between engines: a page of facts for each, and what answers several threads at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from qblock.errors import QblockError
from qblock.warehouse.parts import Part
from qblock.warehouse.protocol import Column, Kind, TableName


class Facts(Protocol):
    """What differs between engines."""

    name: str
    error: type[Exception]
    """The base of the driver's own errors."""
    literals: bool
    """Whether queries are sent with their values in the text, which saves the driver something."""
    text_type: str
    """The type of a text, by the engine's own name."""
    whole_type: str
    """The type of a whole number of 64 bits, by the engine's own name."""
    double_type: str
    """The type of a double, by the engine's own name."""
    date_type: str
    """The type of a date, by the engine's own name."""
    range_types: ClassVar[Mapping[str, str]]
    """Types of ranges, by the type of a column of whole numbers, `number` or `date`; none where it has none."""
    private_schema: str | None
    """The schema of ledger and crosswalk, where they are in the database of the source."""
    embedded: bool
    """Whether it runs in this process, so that nothing is gained by rolling up elsewhere."""
    statements_are_jobs: bool
    """Whether a statement takes a fraction of a second, however few rows it reads."""
    keeps_secrets: bool
    """Whether a secret may be lent to it: not to a cluster, where it would be a file that others may read."""
    approximate_distinct: str | None
    """The function that counts different values approximately; None where there is none."""
    has_roles: bool
    """Whether readers are roles, with rights and row level security."""
    table_exists: str
    """The query whether there is a table :name, of schema :schema where the engine has schemas for private tables."""
    snapshot_words: str
    """What a snapshot is, for a plan."""

    def prefix(self, schema: str | None) -> quoted_name | None:
        """The schema (and attached database) under which the source's tables are found."""

    def home(self, connection: sa.Connection, table: TableName) -> TableName:
        """The table with the schema in which the login finds it, where it is named without one."""

    def describe(self, connection: sa.Connection, table: TableName) -> list[Column]:
        """The columns of a table or view; empty when it does not exist."""

    def computed(self, connection: sa.Connection, table: TableName) -> bool:
        """Whether rows are computed whenever they are read: those of a view, or of another server's table."""

    def tables(self, connection: sa.Connection) -> list[str]:
        """Names that a user could have meant, `schema.table`."""

    def fetch(self, connection: sa.Connection, statement: Any, parameters: Mapping[str, Any]) -> pa.Table: ...

    def counts(self, connection: sa.Connection, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]: ...

    def pull(self, connection: sa.Connection, table: str, names: list[str]) -> Iterator[Part] | None:
        """The rows of a temporary table of BIGINT, never NULL, in parts; None where `counts` is as quick."""

    def attempt(self, connection: sa.Connection, statement: sa.Executable) -> tuple[Any, ...] | None:
        """The first row of a query; None where it fails, which does not end the transaction."""

    def load(self, connection: sa.Connection, name: str, columns: pa.Table) -> None: ...

    def plain_number(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """A floating-point number as text without an exponent."""

    def plain_decimal(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """An exact number as text without trailing zeros."""

    def calendar_text(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        """A date or timestamp as text, one with a time zone in UTC, years before Christ with BC at the end."""

    def calendar_value(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """What `calendar_text` wrote, as the engine reads it."""

    def endless(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The text of a date, which may be infinity, as the engine reads it."""

    def plain_text(self, value: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        """A value of a column that compares as text, as that text."""

    def bytewise(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]: ...

    def analyze(self, connection: sa.Connection, table: sa.TableClause) -> None: ...

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The SHA-256 of a text in UTF-8, as hexadecimal text."""

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """How many bytes a text has in UTF-8."""

    def explain(self, error: Exception, reading: Sequence[str] = ()) -> QblockError:
        """The error to show for one of the database's; reading: the tables that the statement reads."""


class Beside(Protocol):
    """Further connections to the database of a session, for other threads."""

    max_concurrency: int
    statements: int

    def counts(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        """As Facts.counts."""

    def begin(self) -> None:
        """Before the first question."""

    def interrupt(self) -> None:
        """End what is asked of them, and answer nothing more."""
