"""A table that is in no database (files, Arrow, a data frame), copied into a private DuckDB file: its snapshot."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.adapter import DuckdbAdapter, DuckdbWarehouse
from qblock.engines.memory import of_embedded
from qblock.engines.queries import Query
from qblock.engines.quoting import quote, quote_text
from qblock.engines.session import Restriction, Session, Warehouse, translated
from qblock.engines.sql_session import SqlSession, sql_of
from qblock.engines.tables import SourceFacts, TableName
from qblock.errors import InputError
from qblock.spec.source_file import ColumnType, column_type

ROWS, TEXTS = "qblock_rows", "qblock_texts"


class Tabular(Protocol):
    """A table outside of a database. name: as messages have it; home: the name of the copy.

    facts: of the files that it was copied from, once it was; None for what is in memory; nan_is_missing: whether NaN is
    how it says that there is no number.
    """

    name: str
    home: TableName
    facts: SourceFacts | None
    nan_is_missing: bool

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """Of columns that come as text and are to be read as something else."""

    def check(self, needed: Mapping[str, str]) -> None:
        """Raise InputError where it lacks a column. needed: the columns, each with where the spec names it."""

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        """The types of these columns, as qblock.engines.arrow takes them."""

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        """The rows, in parts with a name for messages. Raises QblockError where they cannot be read, or changed."""


class ServerTabular(Tabular, Protocol):
    """A table of a server."""

    @property
    def columns(self) -> Sequence[str]:
        """The names of all columns that can be copied."""


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


def no_column(what: str, name: str, names: Collection[str]) -> tuple[str, list[str]]:
    """What is said of a column that is not there, and the names near to it."""
    same = [known for known in names if known.casefold() == name.casefold()]
    near = same or difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"its columns are {', '.join(names)}"
    return f"{what} has no column {name!r}; {hint}", near


class CopiedWarehouse(DuckdbWarehouse):
    """The Warehouse protocol for a table that is copied when the first snapshot begins; the later ones are the same.

    needed: the columns that are copied, each with where the spec names it. rows: whether they are wanted, or only the
    columns and their types.
    """

    def __init__(
        self, table: Tabular | None, needed: Mapping[str, str], memory_limit: str | None = None, *, rows: bool = True
    ) -> None:
        super().__init__(None, memory_limit)
        self.path = self._spill.path / "source.duckdb"
        self._table, self._needed, self._rows = table, dict(needed), rows
        self._copied = False

    @contextmanager
    def snapshot(self) -> Iterator[SqlSession]:
        if not self._copied:
            self._copy()
            self._copied = True
        with super().snapshot() as session:
            session.files = self.facts
            yield session

    @property
    def facts(self) -> SourceFacts | None:
        """Of the files that it was copied from."""
        return None if self._table is None else self._table.facts

    def _copy(self) -> None:
        assert self._table is not None
        # Before the file is made.
        self._table.check(self._needed)
        with self._filling() as connection:
            self._fill(connection, self._table, self._needed)

    @contextmanager
    def _filling(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The private file, to be filled."""
        assert self.path is not None
        with (
            translated(DuckdbAdapter(None, self.path)),
            duckdb_session.connect(self.path) as connection,
        ):
            duckdb_session.hide_progress(connection)
            connection.execute(f"SET temp_directory = {quote_text(str(self._spill.path))}")
            if self._memory_limit:
                connection.execute(f"SET memory_limit = {quote_text(of_embedded(self._memory_limit))}")
            yield connection
            connection.execute("CHECKPOINT")

    def _fill(self, connection: duckdb.DuckDBPyConnection, table: Tabular, needed: Mapping[str, str]) -> None:
        """Copy the needed columns of a table."""
        table.check(needed)
        columns = list(needed)
        schema = table.schema(columns)
        _create(connection, table, schema)
        for what, batches in table.parts(columns, schema) if self._rows else ():
            _insert(connection, table, what, _Batches(batches), schema)


def home_of_copy(table: TableName) -> TableName:
    """Where the copy of a server's table is: the embedded database has no catalogs."""
    schema = table.schema if table.catalog is None else f"{table.catalog}.{table.schema}"
    return TableName(schema, table.name)


Opened = Callable[[Mapping[TableName, Restriction]], AbstractContextManager[Callable[[TableName], ServerTabular]]]


class ServerCopy(CopiedWarehouse):
    """The Warehouse protocol for tables of a server that is only read, copied when the first snapshot begins.

    opened: opens tables of the server, of which those rows are seen that it is given; table: the source; beside: other
    tables, of which all columns are copied; of_one_moment: whether all statements that read a table see one state.
    """

    def __init__(
        self,
        opened: Opened,
        table: TableName,
        needed: Mapping[str, str],
        beside: Sequence[TableName],
        memory_limit: str | None = None,
        *,
        rows: bool = True,
        of_one_moment: bool = True,
    ) -> None:
        super().__init__(None, needed, memory_limit, rows=rows)
        self._opened, self._of, self._beside = opened, table, beside
        self._of_one_moment = of_one_moment
        self._restricted: dict[TableName, Restriction] = {}

    def restrict(self, table: TableName, restriction: Restriction) -> None:
        # By the server: a copy may not hold what decides it, such as a day without an end.
        rows, replaced = (restriction, None) if self._of_one_moment else restriction.divided()
        if rows is not None:
            self._restricted[table] = rows
        if replaced is not None:
            super().restrict(table, replaced)

    @contextmanager
    def snapshot(self) -> Iterator[SqlSession]:
        with super().snapshot() as session:
            for table in (self._of, *self._beside):
                session.known_as(table, home_of_copy(table))
            yield session

    def _copy(self) -> None:
        assert self.path is not None
        self.path.unlink(missing_ok=True)
        with self._opened(self._restricted) as tabular, self._filling() as connection:
            for table in (self._of, *self._beside):
                source = tabular(table)
                self._fill(connection, source, self._needed if table == self._of else dict.fromkeys(source.columns, ""))


class SessionTable:
    """The Tabular protocol for a table of a session. What is copied are canonical texts, which are read as what the
    columns are: so an engine says what its values are in one place."""

    facts: SourceFacts | None = None
    nan_is_missing = False

    def __init__(self, session: SqlSession, table: TableName) -> None:
        self.name, self.home = str(table), home_of_copy(table)
        self._session, self._table = session, table
        self._columns = session.columns(table)

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self._columns)

    @property
    def types(self) -> Mapping[str, ColumnType]:
        return {
            name: column_type("decimal(38, 10)" if column.kind == "decimal" else column.kind)
            for name, column in self._columns.items()
        }

    def check(self, needed: Mapping[str, str]) -> None:
        check_names(f"the source {self.name}", self.columns, needed)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([pa.field(name, pa.string()) for name in columns])

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        session, relation = self._session, self._session.relation(self._table, columns)
        texts = []
        for name in columns:
            column = self._columns[name]
            texts.append(session.text_of(session.comparable(relation.c[name], column), column.kind).label(name))
        yield self.name, session.batches(sa.select(*texts), schema)


def tables_of(opened: Callable[[], Warehouse]) -> Opened:
    """Tables of one snapshot of a warehouse, for `ServerCopy`."""

    @contextmanager
    def tables(restricted: Mapping[TableName, Restriction]) -> Iterator[Callable[[TableName], ServerTabular]]:
        warehouse = opened()
        for table, restriction in restricted.items():
            warehouse.restrict(table, restriction)
        try:
            with warehouse.snapshot() as session:
                yield partial(SessionTable, sql_of(session))
        finally:
            warehouse.close()

    return tables


def rows_sent(source: Session, query: Query, rows: int) -> pa.RecordBatchReader:
    """The rows of a query of the embedded database, in order, so many at a time."""
    text = str(query.compile(dialect=source.dialect, compile_kwargs={"literal_binds": True}))
    connection = sql_of(source).connection
    driver: Any = connection.connection.driver_connection
    source.count()
    with translated(DuckdbAdapter()):
        return driver.sql(text).to_arrow_reader(rows)


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
    if table.home.schema is not None:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(table.home.schema)}")
    _reading(connection, _Batches(()), schema, f"CREATE TABLE {table.home.quoted} AS SELECT {named} FROM {ROWS}")


def _insert(
    connection: duckdb.DuckDBPyConnection, table: Tabular, what: str, batches: _Batches, schema: pa.Schema
) -> None:
    values = ", ".join(_values(table, schema))
    if not table.types:
        _reading(connection, batches, schema, f"INSERT INTO {table.home.quoted} SELECT {values} FROM {ROWS}")
        return
    _reading(connection, batches, schema, f"CREATE TEMPORARY TABLE {TEXTS} AS SELECT * FROM {ROWS}")
    check_texts(
        connection, TEXTS, what, {i: (field.name, table.types.get(field.name)) for i, field in enumerate(schema)}
    )
    connection.execute(f"INSERT INTO {table.home.quoted} SELECT {values} FROM {TEXTS}")
    connection.execute(f"DROP TABLE {TEXTS}")


def _values(table: Tabular, schema: pa.Schema) -> list[str]:
    """Each column as an expression of the copy."""
    expressions = []
    for i, field in enumerate(schema):
        type_ = table.types.get(field.name)
        value = converted(f"c{i}", type_) if type_ is not None else f"c{i}"
        if pa.types.is_null(field.type):
            # In DuckDB 2 NULL alone has a type, which no column can be compared as.
            value = f"CAST({value} AS INTEGER)"
        floats = pa.types.is_floating(field.type) or (type_ is not None and type_.word == "float")
        number = floats and table.nan_is_missing
        expressions.append(f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END" if number else value)
    return expressions


def _reading(connection: duckdb.DuckDBPyConnection, batches: _Batches, schema: pa.Schema, statement: str) -> None:
    reader: Any = batches.reader(schema)
    try:
        connection.register(ROWS, reader)
        connection.execute(statement)
    except Exception:
        if batches.problem is not None:
            # What it was made of tells whether to try again.
            raise batches.problem from batches.problem.__cause__
        raise
    finally:
        connection.unregister(ROWS)


TYPES = {
    "integer": "BIGINT",
    "float": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "text": "VARCHAR",
}
DAY, TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
PATTERNS = {
    "integer": r"[+-]?[0-9]+",
    "float": r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?|[+-]?(?i:nan|inf|infinity)",
    "boolean": r"(?i:true|false)",
    "date": DAY,
    "timestamp": f"{DAY}({TIME})?",
    "timestamptz": f"{DAY}({TIME}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?",
}
"""DuckDB's own casts round numbers, and take more than one way to write a day."""
INFINITE = r"[+-]?(?i:inf|infinity)"


def sql_type(type_: ColumnType) -> str:
    """The engine's name of a type."""
    return f"DECIMAL({type_.digits},{type_.decimals})" if type_.word == "decimal" else TYPES[type_.word]


def converted(column: str, type_: ColumnType) -> str:
    """The values of a column of text, which has been checked."""
    return column if type_.word == "text" else f"CAST({column} AS {sql_type(type_)})"


def check_texts(
    connection: duckdb.DuckDBPyConnection, table: str, what: str, columns: Mapping[int, tuple[str, ColumnType | None]]
) -> None:
    """Raise InputError where a text of the columns c0, c1, ... is not a value of its type; none of them is named.

    The rows of the table are in the order of the file.
    """
    checks = [
        (name, type_, _wrong(f"c{i}", type_))
        for i, (name, type_) in columns.items()
        if type_ is not None and type_.word != "text"
    ]
    if not checks:
        return
    figures = ", ".join(f"count(*) FILTER (WHERE {wrong}), min(rowid) FILTER (WHERE {wrong})" for _, _, wrong in checks)
    counts = connection.execute(f"SELECT {figures} FROM {table}").fetchone()
    assert counts is not None
    problems = []
    for (name, type_, _), count, first in zip(checks, counts[::2], counts[1::2], strict=True):
        if count:
            many = "1 value is" if count == 1 else f"{count} values are"
            problems.append(
                f"{what}: column {name}: {many} not {type_.meaning}, the first in row {first + 1} below the header; "
                f"correct the file, or the type {type_} of the column in `types`"
            )
    if problems:
        raise InputError(*problems)


def _wrong(column: str, type_: ColumnType) -> str:
    pattern = PATTERNS.get(type_.word) or _decimal(type_)
    cast = f"TRY_CAST({column} AS {sql_type(type_)})"
    wrong = f"NOT regexp_full_match({column}, {quote_text(pattern)}) OR {cast} IS NULL"
    if type_.word == "float":  # a number beyond the range would become an infinite one
        wrong += f" OR (isinf({cast}) AND NOT regexp_full_match({column}, {quote_text(INFINITE)}))"
    return f"{column} IS NOT NULL AND ({wrong})"


def _decimal(type_: ColumnType) -> str:
    after = f"[0-9]{{0,{type_.decimals}}}0*"
    return rf"[+-]?([0-9]+(\.{after})?|\.{after})"
