"""A table that is in no database (files, Arrow, a data frame), copied into a private DuckDB file: its snapshot."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from qblock.errors import InputError
from qblock.spec.source_file import ColumnType
from qblock.warehouse import duckdb_session
from qblock.warehouse.duckdb import DuckdbFacts, DuckdbWarehouse, quote, quote_text
from qblock.warehouse.memory import of_embedded
from qblock.warehouse.protocol import Session, SourceFacts
from qblock.warehouse.session import translated
from qblock.warehouse.text_columns import check_texts, converted

ROWS, TEXTS = "qblock_rows", "qblock_texts"


class Tabular(Protocol):
    """A table outside of a database. name: as messages have it, and the name of the copy.

    facts: of the files that it was copied from, once it was; None for what is in memory.
    """

    name: str
    facts: SourceFacts | None

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """Of columns that come as text and are to be read as something else."""

    def check(self, needed: Mapping[str, str]) -> None:
        """Raise InputError where it lacks a column. needed: the columns, each with where the spec names it."""

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        """The types of these columns, as qblock.warehouse.arrow takes them."""

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        """The rows, in parts with a name for messages. Raises QblockError where they cannot be read, or changed."""


def check_names(what: str, names: Sequence[str], needed: Mapping[str, str]) -> None:
    """Raise InputError unless each needed column is there once, under a name that no other needed one has."""
    problems, near = [], []
    for name, place in needed.items():
        if name not in names:
            sentence, close = no_column(f"{place}: {what}", name, names)
            problems.append(sentence)
            near += close
        elif names.count(name) > 1:
            problems.append(f"{place}: {what} has {names.count(name)} columns named {name!r}; rename all but one")
        elif not name or "\0" in name:
            problems.append(f"{place}: {what} has a column without a name; give it one")
    folded: dict[str, str] = {}
    for name, place in needed.items():
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            problems.append(f"{place}: the columns {other!r} and {name!r} differ by case alone; rename one of them")
    if problems:
        raise InputError(*dict.fromkeys(problems), suggestions=near)


def no_column(what: str, name: str, names: Iterable[str]) -> tuple[str, list[str]]:
    """What is said of a column that is not there, and the names near to it."""
    near = difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"its columns are {', '.join(names)}"
    return f"{what} has no column {name!r}; {hint}", near


class CopiedWarehouse(DuckdbWarehouse):
    """The Warehouse protocol for a table that is copied when the first snapshot begins; the later ones are the same.

    needed: the columns that are copied, each with where the spec names it. rows: whether they are wanted, or only the
    columns and their types.
    """

    def __init__(
        self, table: Tabular, needed: Mapping[str, str], memory_limit: str | None = None, *, rows: bool = True
    ) -> None:
        super().__init__(None, memory_limit)
        self.path = self._spill.path / "source.duckdb"
        self._table, self._needed, self._rows = table, dict(needed), rows
        self._copied = False

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        if not self._copied:
            self._copy()
            self._copied = True
        with super().snapshot() as session:
            session.files = self.facts
            yield session

    @property
    def facts(self) -> SourceFacts | None:
        """Of the files that it was copied from."""
        return self._table.facts

    def _copy(self) -> None:
        self._table.check(self._needed)
        columns = list(self._needed)
        schema = self._table.schema(columns)
        assert self.path is not None
        with (
            translated(DuckdbFacts(None, self.path)),
            duckdb_session.connect(self.path) as connection,
        ):
            connection.execute("SET enable_progress_bar = false")
            connection.execute(f"SET temp_directory = {quote_text(str(self._spill.path))}")
            if self._memory_limit:
                connection.execute(f"SET memory_limit = {quote_text(of_embedded(self._memory_limit))}")
            _create(connection, self._table, schema)
            for what, batches in self._table.parts(columns, schema) if self._rows else ():
                _insert(connection, self._table, what, _Batches(batches), schema)
            connection.execute("CHECKPOINT")


class _Batches:
    """Batches for the database, which tells an error that is raised while it reads as one of its own."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.problem: BaseException | None = None

    def reader(self, schema: pa.Schema) -> pa.RecordBatchReader:
        # Names of columns go into the statement alone: as names of what is read, the database might change them.
        plain = pa.schema([pa.field(f"c{i}", field.type) for i, field in enumerate(schema)])
        return pa.RecordBatchReader.from_batches(plain, self._renamed(plain))

    def _renamed(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._batches:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        except BaseException as error:
            self.problem = error
            raise


def _create(connection: duckdb.DuckDBPyConnection, table: Tabular, schema: pa.Schema) -> None:
    values = _values(table, schema)
    named = ", ".join(f"{value} AS {quote(field.name)}" for value, field in zip(values, schema, strict=True))
    _reading(connection, _Batches(()), schema, f"CREATE TABLE {quote(table.name)} AS SELECT {named} FROM {ROWS}")


def _insert(
    connection: duckdb.DuckDBPyConnection, table: Tabular, what: str, batches: _Batches, schema: pa.Schema
) -> None:
    values = ", ".join(_values(table, schema))
    if not table.types:
        _reading(connection, batches, schema, f"INSERT INTO {quote(table.name)} SELECT {values} FROM {ROWS}")
        return
    _reading(connection, batches, schema, f"CREATE TEMPORARY TABLE {TEXTS} AS SELECT * FROM {ROWS}")
    check_texts(
        connection, TEXTS, what, {i: (field.name, table.types.get(field.name)) for i, field in enumerate(schema)}
    )
    connection.execute(f"INSERT INTO {quote(table.name)} SELECT {values} FROM {TEXTS}")
    connection.execute(f"DROP TABLE {TEXTS}")


def _values(table: Tabular, schema: pa.Schema) -> list[str]:
    """Each column as an expression of the copy: a number that is none (NaN) is a missing one."""
    expressions = []
    for i, field in enumerate(schema):
        type_ = table.types.get(field.name)
        value = converted(f"c{i}", type_) if type_ is not None else f"c{i}"
        if pa.types.is_null(field.type):
            # In DuckDB 2 NULL alone has a type, which no column can be compared as.
            value = f"CAST({value} AS INTEGER)"
        number = pa.types.is_floating(field.type) or (type_ is not None and type_.word == "float")
        expressions.append(f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END" if number else value)
    return expressions


def _reading(connection: duckdb.DuckDBPyConnection, batches: _Batches, schema: pa.Schema, statement: str) -> None:
    reader: Any = batches.reader(schema)
    try:
        connection.register(ROWS, reader)
        connection.execute(statement)
    except Exception:
        if batches.problem is not None:
            raise batches.problem from None
        raise
    finally:
        connection.unregister(ROWS)
