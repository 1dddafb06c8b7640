"""Every connection to DuckDB is made here: none of them writes or compares a value as the machine's environment
says."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy as sa

from qblock.warehouse import duckdb_attached
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
    return duckdb_attached.ask(file, _in_memory, queries)


def attached_engine(file: Path, *, read_only: bool) -> sa.Engine:
    """An engine each of whose connections attaches a file to an instance that stays (`duckdb_attached`). Names in the
    file are found as in a connection to it."""

    def connect(_: Any) -> Any:
        return Connection(duckdb_attached.connect(file, _in_memory, read_only=read_only))

    return _dialect().engine(sa.make_url("duckdb://"), connect)


def memory_engine() -> sa.Engine:
    """An engine with one connection, to a database in memory."""

    def open_memory(_: Any) -> Any:
        return Connection(_settled(duckdb.connect(":memory:")))

    return _dialect().engine(sa.make_url("duckdb://"), open_memory, sa.StaticPool)


def file_engine(file: Path) -> sa.Engine:
    """An engine whose connections read a file."""
    return _dialect().engine(sa.make_url("duckdb://"), lambda _: Connection(connect(file, read_only=True)))


@cache
def _dialect() -> SharedDialect:
    return SharedDialect(DuckdbDialect())


def _in_memory(spilled: str) -> duckdb.DuckDBPyConnection:
    connection: duckdb.DuckDBPyConnection = _settled(duckdb.connect(":memory:", config={"temp_directory": spilled}))
    return connection


def _settled(connection: Any) -> Any:
    try:
        # Of the instance: a cursor of the connection is a session of its own.
        connection.execute("; ".join(f"SET GLOBAL {name} = {value}" for name, value in SETTINGS.items()))
    except BaseException:
        connection.close()
        raise
    return connection
