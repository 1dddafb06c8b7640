"""DuckDB files for tests, opened by one instance of this process: to start one for each file takes 15 ms."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb

NUMBERS = itertools.count()


@contextmanager
def duckdb_file(file: Path, *, read_only: bool = False) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that finds the tables of a file, which is there afterwards with all that was written."""
    connection = _instance(os.getpid()).cursor()
    name, path = f"file_{next(NUMBERS)}", str(file).replace("'", "''")
    try:
        connection.execute(f"ATTACH '{path}' AS {name}{' (READ_ONLY)' if read_only else ''}")
        connection.execute(f"USE {name}")
        try:
            yield connection
        finally:
            connection.execute("USE memory")
            connection.execute(f"DETACH {name}")
    finally:
        connection.close()


@cache
def _instance(process: int) -> duckdb.DuckDBPyConnection:
    """process: a fork has none of the instance's threads."""
    return duckdb.connect(":memory:")
