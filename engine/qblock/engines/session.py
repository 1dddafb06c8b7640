"""A session of a source: what is asked of its tables within one snapshot."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from qblock.comparison import Kind
from qblock.engines.adapter import Adapter
from qblock.engines.faults import CLIENT
from qblock.engines.queries import Part
from qblock.engines.tables import Column, RawType, SourceFacts, TableName
from qblock.errors import InputError


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


@contextmanager
def translated(adapter: Adapter, reading: Callable[[], Sequence[str]] = list) -> Iterator[None]:
    """Turn the driver's errors into ours, without any of their text.

    reading: answers which tables the statement reads; asked for the message of an error alone, within the connection's
    failed transaction.
    """
    drivers: tuple[type[Exception], ...] = (sa.exc.SQLAlchemyError, adapter.error, *CLIENT)
    try:
        yield
    except Exception as error:
        if adapter.is_interrupt(error):
            raise KeyboardInterrupt from error
        if not isinstance(error, drivers):
            raise
        raise adapter.explain(error, reading()) from error


class Session(ABC):
    """What is asked of a source within one snapshot; temporary tables live as long as it does.

    engine: its name in ENGINES; files: what it was copied from, where the source is not a table of a database;
    conflicts: how often a replica ended the copy, which was then made anew;
    max_concurrency: how many threads may call `counts_of` at once, about tables that are shared; committed: whether
    tables were committed that go with the connection alone.
    """

    max_concurrency = 1
    shared = committed = False
    conflicts = 0
    files: SourceFacts | None = None

    def __init__(self, adapter: Adapter, dialect: sa.Dialect, restrictions: Restrictions | None = None) -> None:
        self.engine, self.dialect = adapter.name, dialect
        self._adapter = adapter
        self._sent = 0
        self._described: dict[TableName, dict[str, Column]] = {}
        self._homes: dict[TableName, TableName] = {}
        self._temporary: dict[str, sa.TableClause] = {}
        self._restrictions = dict(restrictions or {})
        self.spellings: dict[tuple[int, str], Any] = {}
        """Of columns, as their restrictions found them."""
        self.checked: set[tuple[str, ...]] = set()
        """What is known to be true of the source, and stays true within a snapshot."""
        self.lasting: dict[tuple[Any, ...], sa.TableClause] = {}
        """Temporary tables that `clear` leaves, by what they are."""

    @property
    def statements(self) -> int:
        """How many statements were sent."""
        return self._sent

    @property
    def embedded(self) -> bool:
        """As of its Adapter."""
        return self._adapter.embedded

    @property
    def row_hash(self) -> tuple[str, str] | None:
        """As of its Adapter."""
        return self._adapter.row_hash

    @property
    def keeps_secrets(self) -> bool:
        """Whether a secret may be lent to it, in a temporary table."""
        return self._adapter.keeps_secrets

    def count(self) -> None:
        """Count a statement that somebody else has sent on this connection."""
        self._sent += 1

    @abstractmethod
    def run(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> None:
        """Execute a statement that returns nothing."""

    @abstractmethod
    def fetch(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Execute a query; its columns as Arrow."""

    @abstractmethod
    def scalar(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row."""

    @abstractmethod
    def attempt(self, statement: sa.Select[*tuple[Any, ...]]) -> tuple[Any, ...] | None:
        """The first row of a query without parameters that may fail: None then, and the transaction continues.

        Raises like the others where the connection is lost or the user interrupts.
        """

    @abstractmethod
    def counts(self, statement: sa.Select[*tuple[Any, ...]]) -> dict[str, NDArray[np.int64]]:
        """Execute a query without parameters whose columns are BIGINT and never NULL."""

    @abstractmethod
    def counts_of(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        """As `counts`, of `literal_sql` of a query with these columns."""

    @abstractmethod
    def pull(self, table: sa.TableClause) -> Iterator[Part]:
        """The rows of a coded table (`queries`) of whole numbers that are never NULL: each once, by column, in parts
        and in no order."""

    @abstractmethod
    def load(self, name: str, columns: pa.Table) -> sa.TableClause:
        """Create a temporary table of whole numbers (BIGINT) and text from Arrow columns."""

    @abstractmethod
    def store(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        """Create a temporary table from a query."""

    def share(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        """As `store`, a table that `counts_of` finds in other threads, too, where there may be several."""
        return self.store(name, query)

    def analyze(self, table: sa.TableClause) -> None:
        """Have the engine measure a table, where its planner needs that."""
        return

    def interrupt(self) -> None:
        """End what other threads have asked."""
        return

    def end(self) -> None:
        """End the snapshot, with its temporary tables and its locks: nothing is asked of it any more."""
        return

    def is_copy(self, relation: sa.FromClause) -> bool:
        """Whether a relation is a copy of a table, with all its rows that the spec is about."""
        return False

    @abstractmethod
    def computed(self, table: TableName) -> bool:
        """Whether its rows are computed whenever they are read, as those of a view are."""

    @abstractmethod
    def definition(self, table: TableName) -> str | None:
        """The text of the query that a view stands for; None of what is none, or where it is not known."""

    def expressions(self, table: TableName) -> Mapping[str, str]:
        """What the table computes its columns of, by name, as far as that is known; defaults, too, which name none."""
        return {}

    @abstractmethod
    def _describe(self, table: TableName) -> tuple[list[Column], Callable[[], list[str]]]:
        """The columns of a table, none where it does not exist; and a question for names that a user could have
        meant."""

    def _stored(self, table: TableName) -> dict[str, Column]:
        """The columns of the table itself."""
        if table not in self._described:
            self._sent += 1
            described, names = self._describe(table)
            if not described:
                near = difflib.get_close_matches(str(table), names(), n=3, cutoff=0.5)
                hint = f"; did you mean {' or '.join(near)}?" if near else ""
                raise InputError(
                    f"table {table} does not exist, or you lack permission to read it{hint}", suggestions=near
                )
            self._described[table] = {column.name: column for column in described}
        return self._described[table]

    @abstractmethod
    def _drop(self, table: sa.TableClause) -> None: ...

    def _let_go(self) -> None:
        """Have the database let go of the memory of tables that were dropped."""
        return

    def drop(self, table: sa.TableClause) -> None:
        """Drop a temporary table."""
        self._drop(table)
        self._let_go()

    def clear(self, *, keep: Sequence[sa.TableClause] = ()) -> None:
        """Drop the temporary tables that this session made, except those to be kept and those that last."""
        kept = {table.name for table in (*keep, *self.lasting.values())}
        for table in [table for table in self._temporary.values() if table.name not in kept]:
            self._drop(table)
        self._let_go()

    def relation(self, table: TableName, names: Sequence[str] | None = None) -> sa.FromClause:
        """The rows of a table or view that the spec is about, with their columns; the only way to them.

        names: of the columns, for those that a run can do without. Raises InputError naming near tables where it does
        not exist.
        """
        described = self._stored(table)
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in described]
        schema = self._adapter.prefix(self._home(table).schema)
        rows = sa.table(quoted_name(table.name, quote=True), *columns, schema=schema)
        restriction = self._restriction(table)
        return rows if restriction is None else restriction.kept(self, rows, described, names)

    def read(self, table: TableName) -> pa.Table:
        """The rows of a small table or view that is read once, in its order. Raises as `relation`."""
        relation = self.relation(table)
        return self.fetch(sa.select(*relation.c).select_from(relation))

    def _restriction(self, table: TableName) -> Restriction | None:
        """That of the table, by whatever name the spec has it."""
        home = self._home(table)
        return next((r for name, r in self._restrictions.items() if self._home(name) == home), None)

    def known_as(self, table: TableName, home: TableName) -> None:
        """A table of the spec is this one here."""
        self._homes[table] = home

    def _home(self, table: TableName) -> TableName:
        """Where a table is that the spec names."""
        return self._homes.get(table, table)

    def columns(self, table: TableName) -> dict[str, Column]:
        """The columns of its `relation` by name, in order."""
        stored = self._stored(table)
        restriction = self._restriction(table) if self._restrictions else None
        return stored if restriction is None else restriction.shown(stored, self._adapter.text_type)

    def comparable(self, column: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        """The column in the type that its values are compared in."""
        if of.compare_as == of.type:
            return column
        return self._adapter.plain_text(column, of) if of.kind == "text" else sa.cast(column, RawType(of.compare_as))

    def convert(self, text: sa.ColumnElement[Any], to: Column) -> sa.ColumnElement[Any]:
        """A text column cast to the type in which another column's values are compared."""
        if to.kind in ("date", "timestamp", "timestamptz"):
            text = self._adapter.calendar_value(text)
        if to.kind == "date":
            text = self._adapter.endless(text)
        return sa.cast(text, RawType(to.compare_as))

    def text_of(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        """The canonical text of a value: ISO dates, UTC, decimals without exponent and trailing zeros, no padding."""
        if kind == "float":
            return self._adapter.plain_number(value)
        if kind == "decimal":
            return self._adapter.plain_decimal(value)
        if kind in ("date", "timestamp", "timestamptz"):
            return self._adapter.calendar_text(value, kind)
        return sa.cast(value, sa.Text)

    def bytewise(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """A text column that sorts by bytes."""
        return self._adapter.bytewise(text)

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The SHA-256 of a text in UTF-8, as hexadecimal text."""
        return self._adapter.sha256(text)

    def hex_number(self, digits: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The number that 15 hexadecimal digits write."""
        return self._adapter.hex_number(digits)

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """How many bytes a text has in UTF-8."""
        return self._adapter.byte_length(text)

    @property
    def approximate_distinct(self) -> Callable[[sa.ColumnElement[Any]], sa.ColumnElement[int]] | None:
        """About how many different values there are, in memory that does not grow with them; None where the engine has
        no such count."""
        name = self._adapter.approximate_distinct
        return None if name is None else lambda value: sa.Function(name, value, type_=sa.BigInteger)

    def literal_sql(self, statement: sa.Executable) -> str:
        """The statement's text on this engine."""
        return str(statement.compile(dialect=self.dialect, compile_kwargs={"literal_binds": True}))  # type: ignore[attr-defined]


class Warehouse(Protocol):
    """A database that a source table lives in."""

    engine: str

    def restrict(self, table: TableName, restriction: Restriction) -> None:
        """Read of a table only these rows, in every session from here on."""

    def snapshot(self) -> AbstractContextManager[Session]:
        """One session whose reads all see the same state of the database."""

    def close(self) -> None:
        """Release connections and temporary files."""
