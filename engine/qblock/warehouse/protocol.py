"""What the layers above know of a warehouse, and what differs between engines: a page of facts for each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from qblock.comparison import Kind as Kind
from qblock.errors import InputError, QblockError
from qblock.warehouse.queries import Part

PRIVATE_SCHEMA = "qblock"
"""The schema of private tables, where an engine keeps them in the database of the source."""


def quote(name: str) -> str:
    """A name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class TableName:
    """A table or view as the spec names it: `table`, `schema.table`, or `catalog.schema.table` where the engine has
    catalogs; a part with a dot goes in double quotes."""

    schema: str | None
    name: str
    catalog: str | None = None

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Split at dots outside of double quotes; a doubled quote within quotes stands for one. Raises InputError."""
        parts, current, quoted, i = [], "", False, 0
        while i < len(text):
            char = text[i]
            if quoted and char == '"' and text[i + 1 : i + 2] == '"':
                current, i = current + '"', i + 1
            elif char == '"':
                quoted = not quoted
            elif char == "." and not quoted:
                parts.append(current)
                current = ""
            else:
                current += char
            i += 1
        parts.append(current)
        if quoted or not all(parts) or len(parts) > 3 or "://" in text:
            shown = "(a URL)" if "://" in text else repr(text)
            raise not_a_table(shown)
        return cls(parts[-2] if len(parts) > 1 else None, parts[-1], parts[0] if len(parts) == 3 else None)

    def __str__(self) -> str:
        return ".".join(p for p in (self.catalog, self.schema, self.name) if p)


def not_a_table(shown: str) -> InputError:
    """The error for a name that is none of a table. shown: as the message has it."""
    return InputError(
        f"table name {shown} does not have the form table or schema.table; "
        'quote a part that holds a dot: "my.schema".table'
    )


@dataclass(frozen=True)
class Column:
    """A column of a table or view; `type` is the engine's own name of its type, `compare_as` the type to compare in.

    base: the type that a domain is made of in the end, where that is another one.
    """

    name: str
    type: str
    kind: Kind
    compare_as: str
    base: str | None = None


@dataclass(frozen=True)
class FileFacts:
    """A file as it was when it was copied. size: in bytes; modified: in nanoseconds since 1970; digest: sha256."""

    name: str
    size: int
    modified: int
    digest: str


@dataclass(frozen=True)
class SourceFacts:
    """The files that a snapshot was copied from, in the order of their names."""

    files: tuple[FileFacts, ...]

    def text(self) -> str:
        """As JSON: how many files, their bytes in all, when the newest was modified, and one digest.

        digest: of a single file its own, else the sha256 over name and digest of each.
        """
        newest = datetime.fromtimestamp(max(file.modified for file in self.files) / 1e9, UTC)
        whole = hashlib.sha256("".join(f"{file.name}\0{file.digest}\n" for file in self.files).encode()).hexdigest()
        facts = {
            "files": len(self.files),
            "size": sum(file.size for file in self.files),
            "modified": newest.isoformat(timespec="microseconds"),
            "digest": self.files[0].digest if len(self.files) == 1 else whole,
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))


class Session(Protocol):
    """One connection within one snapshot; temporary tables live as long as it does."""

    engine: str
    """The name of the engine in ENGINES."""
    dialect: sa.Dialect
    connection: sa.Connection
    files: SourceFacts | None
    """What it was copied from, where the source is not a table of a database."""
    max_concurrency: int
    """How many threads may call `counts_of` at once, about tables that are shared."""

    @property
    def statements(self) -> int:
        """How many statements were sent."""

    @property
    def keeps_secrets(self) -> bool:
        """Whether a secret may be lent to it, in a temporary table."""

    def count(self) -> None:
        """Count a statement that somebody else has sent on this connection."""

    def run(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> None:
        """Execute a statement that returns nothing."""

    def fetch(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Execute a query; its columns as Arrow."""

    def scalar(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row."""

    def attempt(self, statement: sa.Select[*tuple[Any, ...]]) -> tuple[Any, ...] | None:
        """The first row of a query without parameters that may fail: None then, and the transaction continues.

        Raises like the others where the connection is lost or the user interrupts.
        """

    def counts(self, statement: sa.Select[*tuple[Any, ...]]) -> dict[str, NDArray[np.int64]]:
        """Execute a query without parameters whose columns are BIGINT and never NULL."""

    def counts_of(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        """As `counts`, of `literal_sql` of a query with these columns."""

    def pull(self, table: sa.TableClause) -> Iterator[dict[str, NDArray[np.int64]]]:
        """The rows of a coded table (`queries`) of whole numbers that are never NULL: each once, by column, in parts
        and in no order."""

    def load(self, name: str, columns: pa.Table) -> sa.TableClause:
        """Create a temporary table of whole numbers (BIGINT) and text from Arrow columns."""

    def store(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        """Create a temporary table from a query."""

    def share(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        """As `store`, a table that `counts_of` finds in other threads, too, where there may be several."""

    def analyze(self, table: sa.TableClause) -> None:
        """Have the engine measure a temporary table, where its planner needs that."""

    def drop(self, table: sa.TableClause) -> None:
        """Drop a temporary table."""

    def interrupt(self) -> None:
        """End what other threads have asked."""

    def clear(self, *, keep: Sequence[sa.TableClause] = ()) -> None:
        """Drop the temporary tables that this session made, except those to be kept."""

    def relation(self, table: TableName) -> sa.TableClause:
        """The table or view with its columns; raises InputError naming near ones when it does not exist."""

    def columns(self, table: TableName) -> dict[str, Column]:
        """Its columns by name, in order."""

    def computed(self, table: TableName) -> bool:
        """Whether its rows are computed whenever they are read, as those of a view are."""

    def comparable(self, column: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        """The column in the type that its values are compared in."""

    def convert(self, text: sa.ColumnElement[Any], to: Column) -> sa.ColumnElement[Any]:
        """A text column cast to the type in which another column's values are compared."""

    def text_of(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        """The canonical text of a value: ISO dates, UTC, decimals without exponent and trailing zeros, no padding."""

    def bytewise(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """A text column that sorts by bytes."""

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The SHA-256 of a text in UTF-8, as hexadecimal text."""

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """How many bytes a text has in UTF-8."""

    @property
    def approximate_distinct(self) -> Callable[[sa.ColumnElement[Any]], sa.ColumnElement[int]] | None:
        """About how many different values there are, in memory that does not grow with them; None where the engine has
        no such count."""

    def literal_sql(self, statement: sa.Executable) -> str:
        """The statement's text on this engine."""


class Warehouse(Protocol):
    """A database that a source table lives in."""

    engine: str

    def snapshot(self) -> AbstractContextManager[Session]:
        """One session whose reads all see the same state of the database."""

    def close(self) -> None:
        """Release connections and temporary files."""


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
