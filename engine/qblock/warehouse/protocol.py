"""A session of a source, the tables and columns that it is asked about, and what differs between engines: a page of
facts for each."""

from __future__ import annotations

import difflib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from qblock.comparison import Kind as Kind
from qblock.errors import InputError, QblockError
from qblock.warehouse.duckdb_session import DuckdbBeside
from qblock.warehouse.faults import CLIENT, interrupted
from qblock.warehouse.kept_sessions import count_temporary
from qblock.warehouse.queries import Part, queries_of_parts
from qblock.warehouse.quoting import quote

PRIVATE_SCHEMA = "qblock"
"""The schema of private tables, where an engine keeps them in the database of the source."""


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

    @property
    def quoted(self) -> str:
        """Schema and name as quoted identifiers."""
        return ".".join(quote(part) for part in (self.schema, self.name) if part)


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
    row_hash: tuple[str, str] | None
    """The function that hashes any values to a number of 64 bits, and the version of the engine, in which alone it
    gives that number; None where it has none."""
    approximate_distinct: str | None
    """The function that counts different values approximately; None where there is none."""
    has_roles: bool
    """Whether readers are roles, with rights and row level security."""
    table_exists: str
    """The query whether there is a table :name, of schema :schema where the engine has schemas for private tables."""
    copied_words: str
    """In what a source is copied that is only read."""
    snapshot_words: str
    """What a snapshot is, for a plan."""

    @staticmethod
    def type_of_copy(type_: str) -> str:
        """A type of the embedded database, which a source was copied to, as this engine names it."""

    def prefix(self, schema: str | None) -> quoted_name | None:
        """The schema (and attached database) under which the source's tables are found."""

    def home(self, connection: sa.Connection, table: TableName) -> TableName:
        """The table with the schema in which the login finds it, where it is named without one."""

    def describe(self, connection: sa.Connection, table: TableName) -> list[Column]:
        """The columns of a table or view; empty when it does not exist."""

    def computed(self, connection: sa.Connection, table: TableName) -> bool:
        """Whether rows are computed whenever they are read: those of a view, or of another server's table."""

    def definition(self, connection: sa.Connection, table: TableName) -> str | None:
        """The text of the query that a view stands for; None of what is none, or where it is not known."""

    def expressions(self, connection: sa.Connection, table: TableName) -> Mapping[str, str]:
        """What the table computes its columns of, by name, as far as that is known; defaults, too, which name none."""

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

    def hex_number(self, digits: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The number that 15 hexadecimal digits write."""

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """How many bytes a text has in UTF-8."""

    def explain(self, error: Exception, reading: Sequence[str] = ()) -> QblockError:
        """The error to show for one of the database's; reading: the tables that the statement reads."""


class Restriction(Protocol):
    """Which rows of a table are read, and of no other is anything known (condition.py)."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide it."""

    def kept(
        self, session: Session, table: sa.FromClause, columns: Mapping[str, Column], names: Sequence[str] | None
    ) -> sa.FromClause:
        """These rows, with the named columns; with those that a run reads, where none are named."""

    def shown(self, columns: dict[str, Column], text_type: str) -> dict[str, Column]:
        """The table's columns as these rows have them. text_type: the engine's name of it."""

    def divided(self) -> tuple[Restriction | None, Restriction | None]:
        """Which rows these are, and what is read in place of their values where that depends on what values there are.

        The second is asked of a copy of these rows where two statements may see two states of the table.
        """


Restrictions = Mapping[TableName, Restriction]


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


class Session:
    """One connection within one snapshot; temporary tables live as long as it does.

    engine: its name in ENGINES; files: what it was copied from, where the source is not a table of a database;
    conflicts: how often a replica ended the copy, which was then made anew;
    max_concurrency: how many threads may call `counts_of` at once, about tables that are shared; committed: whether
    tables were committed that go with the connection alone.
    """

    def __init__(
        self,
        connection: sa.Connection,
        facts: Facts,
        beside: DuckdbBeside | None = None,
        restrictions: Restrictions | None = None,
        *,
        stays: bool = False,
    ) -> None:
        """beside: answers what other threads ask about shared tables; stays: whether nobody can write to the source
        while it is open, so that every transaction of the session sees the same state of it."""
        self.connection = connection
        self.max_concurrency = 1 if beside is None else beside.max_concurrency
        self._beside = beside
        self._owner = threading.get_ident()
        self._stays = stays
        self.shared = self.committed = False
        self.engine = facts.name
        self.files: SourceFacts | None = None
        self.conflicts = 0
        self.dialect = connection.dialect
        self._sent = 0
        self._facts = facts
        self._described: dict[TableName, dict[str, Column]] = {}
        self._homes: dict[TableName, TableName] = {}
        self._computed: dict[TableName, bool] = {}
        self._temporary: dict[str, sa.TableClause] = {}
        self._restrictions = dict(restrictions or {})
        self.spellings: dict[tuple[int, str], Any] = {}
        """Of columns, as their restrictions found them."""

    @property
    def statements(self) -> int:
        """How many statements were sent."""
        return self._sent + (0 if self._beside is None else self._beside.statements)

    @property
    def embedded(self) -> bool:
        """As of its Facts."""
        return self._facts.embedded

    @property
    def row_hash(self) -> tuple[str, str] | None:
        """As of its Facts."""
        return self._facts.row_hash

    @property
    def keeps_secrets(self) -> bool:
        """Whether a secret may be lent to it, in a temporary table."""
        return self._facts.keeps_secrets

    def count(self) -> None:
        """Count a statement that somebody else has sent on this connection."""
        self._sent += 1

    def run(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> None:
        """Execute a statement that returns nothing."""
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            self.connection.execute(self._executable(statement), dict(parameters or {}))

    def fetch(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Execute a query; its columns as Arrow."""
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            return self._facts.fetch(self.connection, self._executable(statement), dict(parameters or {}))

    def scalar(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row."""
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            return self.connection.execute(self._executable(statement), dict(parameters or {})).scalar()

    def attempt(self, statement: sa.Select[*tuple[Any, ...]]) -> tuple[Any, ...] | None:
        """The first row of a query without parameters that may fail: None then, and the transaction continues.

        Raises like the others where the connection is lost or the user interrupts.
        """
        self._sent += 1
        with translated(self._facts, lambda: self._read_by(statement)):
            return self._facts.attempt(self.connection, statement)

    def counts(self, statement: sa.Select[*tuple[Any, ...]]) -> dict[str, NDArray[np.int64]]:
        """Execute a query without parameters whose columns are BIGINT and never NULL."""
        self._sent += 1
        names = list(statement.selected_columns.keys())
        with translated(self._facts, lambda: self._read_by(statement)):
            return self._facts.counts(self.connection, self.literal_sql(statement), names)

    def counts_of(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        """As `counts`, of `literal_sql` of a query with these columns."""
        if self._beside is not None and self.shared and threading.get_ident() != self._owner:
            with translated(self._facts):
                return self._beside.counts(sql, names)
        self._sent += 1
        with translated(self._facts):
            return self._facts.counts(self.connection, sql, names)

    def pull(self, table: sa.TableClause) -> Iterator[Part]:
        """The rows of a coded table (`queries`) of whole numbers that are never NULL: each once, by column, in parts
        and in no order."""
        parts = self._facts.pull(self.connection, table.name, [column.name for column in table.c])
        if parts is None:
            rows = int(self.scalar(sa.select(sa.func.count()).select_from(table)))
            yield from map(self.counts, queries_of_parts(table, rows))
            return
        self._sent += 1
        with translated(self._facts):
            yield from parts

    def load(self, name: str, columns: pa.Table) -> sa.TableClause:
        """Create a temporary table of whole numbers (BIGINT) and text from Arrow columns."""
        self._sent += 1
        with translated(self._facts):
            self._facts.load(self.connection, name, columns)
        return self._keep(sa.table(name, *(sa.column(c) for c in columns.column_names)))

    def store(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        """Create a temporary table from a query."""
        self.run(sa.CreateTableAs(query, name, temporary=True))
        return self._keep(sa.table(name, *(sa.column(c.name, c.type) for c in query.selected_columns)))

    def share(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        """As `store`, a table that `counts_of` finds in other threads, too, where there may be several."""
        if self._beside is None:
            return self.store(name, query)
        if not self.shared:
            with translated(self._facts):
                self._beside.begin()
        self.run(sa.CreateTableAs(query, name))
        # Other connections see only what is committed; the source is attached read-only, and stays as it is.
        with translated(self._facts):
            self.connection.commit()
        self.shared = self.committed = True
        return self._keep(sa.table(name, *(sa.column(c.name, c.type) for c in query.selected_columns)))

    def _keep(self, table: sa.TableClause) -> sa.TableClause:
        self._temporary[table.name] = table
        count_temporary(self.connection, 1)
        return table

    def analyze(self, table: sa.TableClause) -> None:
        """Have the engine measure a table, where its planner needs that."""
        with translated(self._facts):
            self._facts.analyze(self.connection, table)

    def interrupt(self) -> None:
        """End what other threads have asked."""
        if self._beside is not None:
            self._beside.interrupt()

    def drop(self, table: sa.TableClause) -> None:
        """Drop a temporary table."""
        self._drop(table)
        self._let_go()

    def _drop(self, table: sa.TableClause) -> None:
        self.run(f"DROP TABLE {self.dialect.identifier_preparer.format_table(table)}")
        if self._temporary.pop(table.name, None) is not None:
            count_temporary(self.connection, -1)

    def _let_go(self) -> None:
        """Have the database let go of the memory of tables that were dropped, which DuckDB keeps until the transaction
        ends: the next one sees the same, but for what is computed by the time at which a transaction began."""
        if not self._stays or any(map(self._is_computed, self._described)):
            return
        with translated(self._facts):
            self.connection.commit()
        self.committed = True

    def _is_computed(self, table: TableName) -> bool:
        """Whether anything of a table may be computed when it is read."""
        if table not in self._computed:
            self._computed[table] = self.computed(table) or bool(self.expressions(table))
        return self._computed[table]

    def clear(self, *, keep: Sequence[sa.TableClause] = ()) -> None:
        """Drop the temporary tables that this session made, except those to be kept."""
        kept = {table.name for table in keep}
        for table in [table for table in self._temporary.values() if table.name not in kept]:
            self._drop(table)
        self._let_go()

    def end(self) -> None:
        """End the snapshot, with its temporary tables and its locks: nothing is asked of it any more."""
        self._temporary.clear()
        with translated(self._facts):
            self.connection.close()

    def relation(self, table: TableName, names: Sequence[str] | None = None) -> sa.FromClause:
        """The rows of a table or view that the spec is about, with their columns; the only way to them.

        names: of the columns, for those that a run can do without. Raises InputError naming near tables where it does
        not exist.
        """
        described = self._stored(table)
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in described]
        schema = self._facts.prefix(self._home(table).schema)
        rows = sa.table(quoted_name(table.name, quote=True), *columns, schema=schema)
        restriction = self._restriction(table)
        return rows if restriction is None else restriction.kept(self, rows, described, names)

    def _restriction(self, table: TableName) -> Restriction | None:
        """That of the table, by whatever name the spec has it."""
        home = self._home(table)
        return next((r for name, r in self._restrictions.items() if self._home(name) == home), None)

    def known_as(self, table: TableName, home: TableName) -> None:
        """A table of the spec is this one here."""
        self._homes[table] = home

    def _home(self, table: TableName) -> TableName:
        if table not in self._homes:
            if table.catalog is not None:
                raise not_a_table(repr(str(table)))
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
        """The columns of its `relation` by name, in order."""
        stored = self._stored(table)
        restriction = self._restriction(table) if self._restrictions else None
        return stored if restriction is None else restriction.shown(stored, self._facts.text_type)

    def _stored(self, table: TableName) -> dict[str, Column]:
        """The columns of the table itself."""
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
        """Whether its rows are computed whenever they are read, as those of a view are."""
        self._sent += 1
        with translated(self._facts):
            return self._facts.computed(self.connection, self._home(table))

    def definition(self, table: TableName) -> str | None:
        """The text of the query that a view stands for; None of what is none, or where it is not known."""
        self._sent += 1
        with translated(self._facts):
            return self._facts.definition(self.connection, self._home(table))

    def expressions(self, table: TableName) -> Mapping[str, str]:
        """What the table computes its columns of, by name, as far as that is known; defaults, too, which name none."""
        self._sent += 1
        with translated(self._facts):
            return self._facts.expressions(self.connection, self._home(table))

    def comparable(self, column: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        """The column in the type that its values are compared in."""
        if of.compare_as == of.type:
            return column
        return self._facts.plain_text(column, of) if of.kind == "text" else sa.cast(column, RawType(of.compare_as))

    def convert(self, text: sa.ColumnElement[Any], to: Column) -> sa.ColumnElement[Any]:
        """A text column cast to the type in which another column's values are compared."""
        if to.kind in ("date", "timestamp", "timestamptz"):
            text = self._facts.calendar_value(text)
        if to.kind == "date":
            text = self._facts.endless(text)
        return sa.cast(text, RawType(to.compare_as))

    def text_of(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        """The canonical text of a value: ISO dates, UTC, decimals without exponent and trailing zeros, no padding."""
        if kind == "float":
            return self._facts.plain_number(value)
        if kind == "decimal":
            return self._facts.plain_decimal(value)
        if kind in ("date", "timestamp", "timestamptz"):
            return self._facts.calendar_text(value, kind)
        return sa.cast(value, sa.Text)

    def bytewise(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """A text column that sorts by bytes."""
        return self._facts.bytewise(text)

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The SHA-256 of a text in UTF-8, as hexadecimal text."""
        return self._facts.sha256(text)

    def hex_number(self, digits: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The number that 15 hexadecimal digits write."""
        return self._facts.hex_number(digits)

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """How many bytes a text has in UTF-8."""
        return self._facts.byte_length(text)

    @property
    def approximate_distinct(self) -> Callable[[sa.ColumnElement[Any]], sa.ColumnElement[int]] | None:
        """About how many different values there are, in memory that does not grow with them; None where the engine has
        no such count."""
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
        """The statement's text on this engine."""
        return str(statement.compile(dialect=self.dialect, compile_kwargs={"literal_binds": True}))  # type: ignore[attr-defined]


def _bound(statement: sa.Select[*tuple[Any, ...]]) -> Iterator[Any]:
    """The values of a query's parameters."""
    for part in sa.sql.visitors.iterate(statement):
        if isinstance(part, sa.BindParameter):
            yield from part.value if isinstance(part.value, list | tuple) else (part.value,)


def _plain(value: Any) -> bool:
    """Whether a value means the same as a literal: not so a date, whose literal is a text."""
    return value is None or isinstance(value, str | int | float | Decimal)


class Warehouse(Protocol):
    """A database that a source table lives in."""

    engine: str

    def restrict(self, table: TableName, restriction: Restriction) -> None:
        """Read of a table only these rows, in every session from here on."""

    def snapshot(self) -> AbstractContextManager[Session]:
        """One session whose reads all see the same state of the database."""

    def close(self) -> None:
        """Release connections and temporary files."""
