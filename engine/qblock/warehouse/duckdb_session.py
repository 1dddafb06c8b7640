"""Every connection to DuckDB is made here: none of them writes or compares a value as the machine's environment
says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy as sa

from qblock.warehouse.dialects import SharedDialect
from qblock.warehouse.duckdb_dialect import Connection, DuckdbDialect
from qblock.warehouse.duckdb_files import check_database

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


def connect(file: Path, *, read_only: bool = False, storage: str = STORAGE) -> duckdb.DuckDBPyConnection:
    """A connection of the bare driver to a file. storage: for a file that is not there yet. Raises duckdb.Error, and
    QblockError for what is not a regular file."""
    check_database(file, NEEDED)
    connection = duckdb.connect(str(file), read_only=read_only, config={"storage_compatibility_version": storage})
    return _settled(connection)


def knows_storage(version: str) -> bool:
    """Whether the library can write a file that this version of it reads."""
    with _settled(duckdb.connect(":memory:")) as connection:
        try:
            connection.execute(f"SET GLOBAL storage_compatibility_version = '{version}'")
        except duckdb.InvalidInputException:
            return False
        return True


def ask_catalog(file: Path, *queries: str) -> list[list[Any]]:
    """The rows of queries of system.main, of which a file is all that they see besides what is internal. Raises as
    `connect`."""
    check_database(file, NEEDED)
    path = str(file).replace("'", "''")
    # Not connected to the file, so that none of its names is found in place of one of DuckDB's.
    with _settled(duckdb.connect(":memory:")) as connection:
        connection.execute(f"ATTACH '{path}' AS qblock_file (READ_ONLY)")
        return [connection.execute(query).fetchall() for query in queries]


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
