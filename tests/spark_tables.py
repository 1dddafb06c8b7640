"""Tables of a test on the suite's Spark server.

A server has one database, so a test has it for itself: what is in it is dropped at the test's end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from qblock.engines.spark.client import end

TYPES = {
    "DOUBLE PRECISION": "DOUBLE",
    "REAL": "FLOAT",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMPTZ": "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "VARCHAR": "STRING",
    "TEXT": "STRING",
    "INT8": "BIGINT",
    "INT": "INT",
    "INTEGER": "INT",
    "BYTEA": "BINARY",
    "BLOB": "BINARY",
}
"""Spark's names of types, where they are others."""
CHANGES = re.compile(r"(DELETE FROM|UPDATE|ALTER TABLE) (?P<table>[\w\"]+)")
SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Names in double quotes, as tests write them.
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.variable.substitute": "false",
}


class SparkDatabase:
    """What a test does to the server as somebody else than the job: who makes the source, and readers."""

    def __init__(self, url: str, client: Any) -> None:
        self.url, self.client = url, client

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return [tuple(row.values()) for row in self.client.sql(statement).toArrow().to_pylist()]

    def columns(self, schema: str, table: str) -> list[str]:
        """The names of a table's or view's columns, in order."""
        return list(self.client.table(f"{quoted(schema)}.{quoted(table)}").columns)

    def create(
        self, table_name: str, columns: Mapping[str, Sequence[Any]], types: Mapping[str, str], schema: str | None
    ) -> None:
        """Create a table of these rows. types: of every column, as the other engines name them."""
        if schema:
            self.client.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        own = {name: spark_type(type_) for name, type_ in types.items()}
        body = ", ".join(f"{quoted(name)} {type_}" for name, type_ in own.items())
        table = ".".join(quoted(part) for part in (schema, table_name) if part)
        self.client.sql(f"CREATE TABLE {table} ({body}) USING PARQUET")
        texts = [pa.array(list(map(text_of, values)), pa.string()) for values in columns.values()]
        if not texts or not len(texts[0]):
            return
        names = [f"c{i}" for i in range(len(texts))]
        self.client.createDataFrame(pa.table(texts, names=names)).createOrReplaceTempView("rows_to_insert")
        casts = ", ".join(f"CAST({c} AS {type_})" for c, type_ in zip(names, own.values(), strict=True))
        self.client.sql(f"INSERT INTO {table} SELECT {casts} FROM rows_to_insert")
        self.client.catalog.dropTempView("rows_to_insert")

    def execute(self, statement: str) -> None:
        """Run a statement; what Spark does to no Parquet table, DuckDB does to a copy, which takes its place."""
        changes = CHANGES.match(statement)
        if changes:
            self._replaced(statement, changes["table"].strip('"'))
        else:
            self.client.sql(statement)

    def _replaced(self, statement: str, table: str) -> None:
        fields = self.client.table(table).schema.fields
        with duckdb.connect() as connection:
            connection.register("given", self.client.table(table).toArrow())
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM given")
            before = {name: str(type_) for name, type_, *_ in connection.sql(f"DESCRIBE {table}").fetchall()}
            connection.execute(statement)
            after = {name: str(type_) for name, type_, *_ in connection.sql(f"DESCRIBE {table}").fetchall()}
            changed = connection.sql(f"SELECT * FROM {table}").to_arrow_table()
        own = {field.name: field.dataType.simpleString() for field in fields}
        own |= {name: spark_type(type_) for name, type_ in after.items() if before.get(name, type_) != type_}
        made = pa.table({name: changed.column(name) for name in changed.column_names})
        self.client.createDataFrame(made).createOrReplaceTempView("rows_to_insert")
        casts = ", ".join(
            f"CAST({quoted(name)} AS {own[name]}) AS {quoted(name)}" if name in own else quoted(name)
            for name in made.column_names
        )
        self.client.sql(f"DROP TABLE {quoted(table)}")
        self.client.sql(f"CREATE TABLE {quoted(table)} USING PARQUET AS SELECT {casts} FROM rows_to_insert")
        self.client.catalog.dropTempView("rows_to_insert")

    def made(self) -> list[str]:
        """The tables and views that are in other schemas than those of sources are."""
        schemas = [name for (name,) in self.query("SHOW SCHEMAS") if name != "default"]
        return [f"{row[0]}.{row[1]}" for name in schemas for row in self.query(f"SHOW TABLES IN {quoted(name)}")]

    def sweep(self) -> None:
        """Drop everything that is not a new server's."""
        for (name,) in self.query("SHOW SCHEMAS"):
            if name != "default":
                self.client.sql(f"DROP SCHEMA {quoted(name)} CASCADE")
        for table in self.client.catalog.listTables("default"):
            if not table.isTemporary:
                kind = "VIEW" if table.tableType == "VIEW" else "TABLE"
                self.client.sql(f"DROP {kind} default.{quoted(table.name)}")


def spark_type(type_: str) -> str:
    """The name that Spark has for a type."""
    plain = re.sub(r"^(NUMERIC|VARCHAR|CHAR)", lambda m: m[0].replace("NUMERIC", "DECIMAL"), type_.upper())
    return TYPES.get(plain, plain)


def text_of(value: Any) -> str | None:
    """What a value is cast from; None for NULL."""
    return None if value is None else str(value)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


_databases: dict[str, SparkDatabase] = {}


def spark_database_of(url: str) -> SparkDatabase:
    """The database of a URL that `spark_database` has given."""
    return _databases[url]


@pytest.fixture(scope="session")
def spark_served(hive: tuple[str, Path]) -> Iterator[SparkDatabase]:
    """The only database of the suite's server, in a session of its own."""
    from pyspark.sql.connect.session import SparkSession

    client = SparkSession.builder.remote(hive[0]).create()
    for name, value in SETTINGS.items():
        client.conf.set(name, value)
    _databases[hive[0]] = SparkDatabase(hive[0], client)
    yield _databases[hive[0]]
    end(client)


@pytest.fixture
def spark_database(spark_served: SparkDatabase) -> Iterator[SparkDatabase]:
    """The database of the suite's server, empty."""
    yield spark_served
    spark_served.sweep()
