"""Every connection to DuckDB is made here: none of them writes or compares a value as the machine's environment
says. They are made for a dialect of SQLAlchemy's, which has what qblock needs of one, for every version of the library
that is supported.

DuckDB's SQL is PostgreSQL's where nothing is said here. Rows are fetched when a statement is executed, since a
connection of the driver has one result at a time: so questions of several threads are asked over further connections.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects.postgresql import base
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.engine.interfaces import BindTyping

from qblock.engines.kept_sessions import SharedDialect
from qblock.errors import QblockError
from qblock.files import check_file

ARROW = "duckdb_arrow"
"""Execution option: the rows are `Cursor.table`."""
KEYWORDS = frozenset(
    (
        "anti", "asof", "at", "by", "collation", "columns", "concurrently", "describe", "generated", "glob", "lambda",
        "lateral", "map", "pivot", "pivot_longer", "pivot_wider", "positional", "qualify", "semi", "show", "struct",
        "summarize", "tablesample", "try_cast", "tuple", "unpack", "unpivot",
    )
)  # fmt: skip
"""Words that DuckDB reserves, from 1.5 to 2.0, and PostgreSQL does not."""


class Cursor:
    """The cursor that SQLAlchemy asks for: the one result of a connection, in this process once it was fetched."""

    arraysize = 1
    rowcount = -1

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._rows: list[tuple[Any, ...]] = []
        self.table: pa.Table | None = None
        self.description: list[tuple[Any, ...]] | None = None

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        # Without parameters none are bound, for which the driver would import pandas.
        self._connection.execute(statement, parameters) if parameters else self._connection.execute(statement)
        # SQLAlchemy looks types up by what is said of them here, and the driver's cannot be hashed.
        self.description = [(name, str(type_)) for name, type_, *_ in self._connection.description or ()] or None

    def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        self._connection.executemany(statement, parameters)

    def execute_to_arrow(self, query: str, parameters: Sequence[Any]) -> None:
        """Have the rows of a query as a table: asked for as a relation, they are not copied on the way."""
        self.table = self._connection.sql(query, params=parameters or None).to_arrow_table()
        self.description = [(name, None) for name in self.table.column_names]

    def fetch(self) -> None:
        """Fetch the rows of the result."""
        self._rows = self._connection.fetchall()[::-1] if self.description else []

    def count(self) -> None:
        """Take the result for the number of rows that a statement has changed, which is no row of an answer."""
        counted = self._connection.fetchone() if self.description else None
        self.rowcount, self.description = counted[0] if counted else -1, None

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows.pop() if self._rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        return [self._rows.pop() for _ in range(min(size or self.arraysize, len(self._rows)))]

    def fetchall(self) -> list[tuple[Any, ...]]:
        rows, self._rows = self._rows[::-1], []
        return rows

    def close(self) -> None:
        self._rows, self.table = [], None


class Connection:
    """The connection that SQLAlchemy asks for: one of the driver, whose cursors would be sessions of their own."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        # The driver's own: nothing of ours runs between a commit that is asked for and the one that is done.
        self.begin, self.commit, self.rollback = driver.begin, driver.commit, driver.rollback
        self.execute, self.close = driver.execute, driver.close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def cursor(self) -> Cursor:
        return Cursor(self._driver)


class Context(DefaultExecutionContext):
    """The execution of one statement."""

    cursor: Any

    def post_exec(self) -> None:
        changes = self.isinsert or self.isupdate or self.isdelete
        if changes and not (self.compiled and self.compiled.effective_returning):  # type: ignore[attr-defined]
            self.cursor.count()
        elif not self.execution_options.get(ARROW):
            self.cursor.fetch()


class Compiler(base.PGCompiler):
    """Statements."""

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **given: Any) -> str:
        # The operator ~ of DuckDB compares the whole text.
        return f"regexp_matches({self.process(binary.left, **given)}, {self.process(binary.right, **given)})"


class Types(base.PGTypeCompiler):
    """Names of types."""

    def visit_FLOAT(self, type_: Any, **_: Any) -> str:  # noqa: N802
        return "DOUBLE"  # FLOAT has four bytes


class Preparer(base.PGIdentifierPreparer):
    """Identifiers, quoted where they must be."""

    reserved_words = {*base.RESERVED_WORDS, *KEYWORDS}  # noqa: RUF012


class Bytes(sa.LargeBinary):
    """Bytes, which the driver takes as they are."""

    def bind_processor(self, dialect: sa.Dialect) -> None:
        return None


class DuckdbDialect(base.PGDialect):
    """The dialect. It makes no connections: `duckdb_session` does."""

    name = "duckdb"
    driver = "duckdb"
    supports_statement_cache = True
    supports_native_decimal = True
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    use_insertmanyvalues_wo_returning = True
    div_is_floordiv = False
    max_identifier_length = 9999
    bind_typing = BindTyping.NONE
    default_schema_name = "main"
    colspecs: Any = {sa.LargeBinary: Bytes}  # noqa: RUF012
    statement_compiler = Compiler
    type_compiler_cls = Types
    preparer = Preparer
    execution_ctx_cls: Any = Context

    def __init__(self, paramstyle: Any = "numeric_dollar") -> None:
        super().__init__(dbapi=duckdb, paramstyle=paramstyle)  # type: ignore[no-untyped-call]

    def initialize(self, connection: sa.Connection) -> None:
        """Nothing is asked of a library."""

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        arrow = context is not None and context.execution_options.get(ARROW)
        (cursor.execute_to_arrow if arrow else cursor.execute)(statement, parameters)

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.begin()

    def do_rollback(self, dbapi_connection: Any) -> None:
        try:
            dbapi_connection.rollback()
        except duckdb.TransactionException as error:
            # SQLAlchemy rolls back, too, where nothing was begun.
            if "no transaction is active" not in str(error):
                raise

    def has_table(self, connection: sa.Connection, table_name: str, schema: str | None = None, **_: Any) -> bool:
        """Whether the database of the connection has a table; Alembic asks for its own."""
        query = sa.text(
            "SELECT count(*) FROM duckdb_tables() WHERE table_name = :name AND schema_name = :schema "
            "AND database_name = current_database()"
        )
        return bool(connection.scalar(query, {"name": table_name, "schema": schema or self.default_schema_name}))


LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""Suffixes of write-ahead logs: of what is not in the file yet, and of a checkpoint in progress."""


def logs_of(file: Path) -> list[Path]:
    """The write-ahead logs that there may be beside a file."""
    return [file.with_name(f"{file.name}{end}") for end in LOGS]


def check_database(file: Path, needed: str, error: type[QblockError] = QblockError, where: str = "") -> None:
    """Raise an error where a database cannot be opened because of what is at its path or beside it; a path with nothing
    there is fine. needed: what is to be done, as the end of a sentence; where: the place of the spec that names the
    file.
    """
    check_file(file, needed, error, where)
    for log in logs_of(file):
        check_file(log, "DuckDB keeps the log of the database there; move it away", error, where)


SETTINGS: dict[str, str] = {
    # The text of a value, and what a text means as a value: DuckDB takes these two from TZ and the locale.
    "TimeZone": "'UTC'",
    "Calendar": "'gregorian'",
    # What a statement means: the defaults of today, which have changed between versions.
    "default_collation": "''",
    "default_order": "'ASC'",
    "default_null_order": "'NULLS_LAST'",
    "integer_division": "false",
    "ieee_floating_point_ops": "true",
    "old_implicit_casting": "false",
    "scalar_subquery_error_on_multiple_rows": "true",
    # A name that no table has must not become a variable of ours.
    "python_enable_replacements": "false",
}
"""Of every connection, as literals."""
STORAGE = "v1.5.0"
"""The oldest version of DuckDB that can read a new file: the oldest that is supported, so that a job can go back to
it."""
NEEDED = "a DuckDB file belongs there; move it away"


def hide_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Let no bar be drawn on standard output, between the answers: before the first transaction, which a failure ends.

    In a notebook without ipywidgets DuckDB has no bar to draw, and refuses to be told to draw none.
    """
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")


def connect(file: Path, *, read_only: bool = False, storage: str = STORAGE) -> duckdb.DuckDBPyConnection:
    """A connection of the bare driver to a file. storage: for a file that is not there yet. Raises duckdb.Error, and
    QblockError for what is not a regular file."""
    check_database(file, NEEDED)
    connection = duckdb.connect(str(file), read_only=read_only, config={"storage_compatibility_version": storage})
    return _settled(connection)


@cache
def knows_storage(version: str) -> bool:
    """Whether the library can write a file that this version of it reads."""
    with _settled(duckdb.connect(":memory:")) as connection:
        try:
            connection.execute(f"SET GLOBAL storage_compatibility_version = '{version}'")
        except duckdb.InvalidInputException:
            return False
        return True


class Catalogs:
    """Reads what files say of themselves, one after the other: a connection to a database in memory attaches each."""

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        # Not connected to a file, so that none of its names is found in place of one of DuckDB's.
        connection: duckdb.DuckDBPyConnection = _settled(duckdb.connect(":memory:"))
        return connection

    def ask(self, file: Path, *queries: str) -> list[list[Any]]:
        """The rows of queries of system.main, of which a file is all that they see besides what is internal. Raises as
        `connect`."""
        check_database(file, NEEDED)
        path = str(file).replace("'", "''")
        self._connection.execute(f"ATTACH '{path}' AS qblock_file (READ_ONLY)")
        try:
            return [self._connection.execute(query).fetchall() for query in queries]
        finally:
            self._connection.execute("DETACH qblock_file")


def engine_from(connection: Callable[[], duckdb.DuckDBPyConnection]) -> sa.Engine:
    """An engine whose connections are made by a function, and closed when they are let go."""
    return _dialect().engine(sa.make_url("duckdb://"), lambda _: Connection(connection()))


def memory_engine() -> sa.Engine:
    """An engine with one connection, to a database in memory."""

    def open_memory(_: Any) -> Any:
        return Connection(_settled(duckdb.connect(":memory:")))

    return _dialect().engine(sa.make_url("duckdb://"), open_memory, sa.StaticPool)


def file_engine(file: Path, *, read_only: bool = True) -> sa.Engine:
    """An engine whose connections are to a file."""
    return engine_from(partial(connect, file, read_only=read_only))


@cache
def _dialect() -> SharedDialect:
    return SharedDialect(DuckdbDialect())


def _settled(connection: Any) -> Any:
    try:
        # Of the instance: a cursor of the connection is a session of its own.
        connection.execute("; ".join(f"SET GLOBAL {name} = {value}" for name, value in SETTINGS.items()))
    except BaseException:
        connection.close()
        raise
    return connection


MOST = 4
"""Questions at once, however many cores there are: each is asked before the verdicts of the others are known."""
EACH = 2
"""Cores that a statement has for itself. With one, two questions on two cores took as long as one after the other."""


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class DuckdbBeside:
    """Further connections to the database of a session, for other threads. driver: the connection of the session."""

    def __init__(self, driver: duckdb.DuckDBPyConnection) -> None:
        self.max_concurrency = max(1, min(MOST, cores() // EACH))
        self.statements = 0
        self._driver = driver
        self._lock = threading.Lock()
        self._idle: list[duckdb.DuckDBPyConnection] = []
        self._busy: list[duckdb.DuckDBPyConnection] = []
        self._ended = False

    def begin(self) -> None:
        """From now on several questions share the cores."""
        self._driver.execute(f"SET threads = {max(1, cores() // self.max_concurrency)}")

    def counts(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        """As Facts.counts."""
        connection = self._taken()
        try:
            columns = connection.execute(sql).fetchnumpy()
        finally:
            with self._lock:
                self._busy.remove(connection)
                self._idle.append(connection)
        return {name: np.ascontiguousarray(columns[name], dtype=np.int64) for name in names}

    def _taken(self) -> Any:
        with self._lock:
            if self._ended:
                raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")
            self.statements += 1
            connection = self._idle.pop() if self._idle else self._new_connection()
            self._busy.append(connection)
        return connection

    def _new_connection(self) -> duckdb.DuckDBPyConnection:
        connection = self._driver.duplicate()
        hide_progress(connection)
        return connection

    def interrupt(self) -> None:
        """End the statements that are running, and begin no other."""
        with self._lock:
            self._ended = True
            for connection in self._busy:
                connection.interrupt()

    def close(self) -> None:
        """Close the connections; none may be in use."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
