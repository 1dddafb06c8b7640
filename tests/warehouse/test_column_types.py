"""The table of docs/column-types.md: what each type's values are called, the same on DuckDB, PostgreSQL and Spark."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from integration.sources import execute

from qblock.engines.registry import open_warehouse
from qblock.engines.spark.adapter import ENDLESS, column_of, is_read
from qblock.engines.spark.client import end
from qblock.engines.tables import TableName

PAGE = Path(__file__).resolve().parents[2] / "docs" / "column-types.md"
ENGINES = ("duckdb", "postgresql", "spark")


class Line(NamedTuple):
    """types: by engine, without those that have none."""

    written: str
    text: str
    types: dict[str, str]


def lines() -> list[Line]:
    found = []
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| `"):
            written, text, *types = [part[1:-1] for part in line[1:-1].split("|")]
            named = {e: t.strip("`") for e, t in zip(ENGINES, types, strict=True) if t != "–"}
            found.append(Line(written.removeprefix("`").removesuffix("`"), text[1:-1], named))
    return found


def literal(engine: str, type_: str, written: str) -> str:
    """A value as an expression of an engine's SQL: three of them have spellings of their own."""
    if type_ in ("BLOB", "BINARY"):
        return f"unhex('{written}')"
    if type_ == "bytea":
        return f"decode('{written}', 'hex')"
    if engine == "duckdb":
        written = re.sub(r" BC$", " (BC)", written)
    if engine == "spark" and type_ == "DATE":
        written = ENDLESS.get(written, written)
        if written.endswith(" BC"):
            written = f"-{int(written[:4]) - 1:04}{written[4:-3]}"
        written = f"+{written}" if re.match(r"\d{5}", written) else written
    # Spark knows CHAR and VARCHAR in tables alone.
    cast = re.sub(r"^(VAR)?CHAR\(\d+\)$", "STRING", type_) if engine == "spark" else type_
    return f"CAST('{written}' AS {cast})"


def made(engine: str) -> list[str]:
    """Statements that make a table `kinds`: a column for each line, a row of values, and one of NULL."""
    own = [(f"c{i}", line.types[engine], line.written) for i, line in enumerate(lines()) if engine in line.types]
    columns = ", ".join(f"{name} {type_}" for name, type_, _ in own)
    values = ", ".join(literal(engine, type_, written) for _, type_, written in own)
    nulls = ", ".join("NULL" for _ in own)
    using = " USING PARQUET" if engine == "spark" else ""
    return [f"CREATE TABLE kinds ({columns}){using}", f"INSERT INTO kinds VALUES ({values})",
            f"INSERT INTO kinds VALUES ({nulls})"]  # fmt: skip


def check(engine: str, url: str, table: TableName, folder: Path) -> None:
    opened = open_warehouse(url, folder)
    with closing(opened), opened.snapshot() as session:
        relation, described = session.relation(table), session.columns(table)
        kinds = described.items()
        texts = [session.text_of(session.comparable(relation.c[c], of), of.kind).label(c) for c, of in kinds]
        read = session.fetch(sa.select(*texts))
    found = {name: read.column(name).to_pylist() for name in read.column_names}
    expected = {f"c{i}": {line.text, None} for i, line in enumerate(lines()) if engine in line.types}
    assert {name: set(values) for name, values in found.items()} == expected
    assert all(len(values) == 2 for values in found.values())


@pytest.mark.parametrize("engine_name", ["duckdb", "postgresql"])
def test_the_page_says_how_values_are_called(engine_name: str, warehouse: Any, tmp_path: Path) -> None:
    url = warehouse("empty", {"x": [1]})
    execute(url, *made(engine_name))
    check(engine_name, url, TableName(None, "kinds"), tmp_path)


@pytest.mark.spark
def test_spark_calls_them_so_too(spark_url: str, tmp_path: Path) -> None:
    from pyspark.sql.connect.session import SparkSession

    client: Any = SparkSession.builder.remote(spark_url).create()
    client.conf.set("spark.sql.session.timeZone", "UTC")
    client.sql("CREATE SCHEMA types")
    client.sql("USE types")
    try:
        for statement in made("spark"):
            client.sql(statement)
        check("spark", spark_url, TableName("types", "kinds"), tmp_path)
    finally:
        client.sql("DROP SCHEMA types CASCADE")
        end(client)


def test_the_page_names_what_is_refused() -> None:
    said = re.search(r"^- Spark does not read (.*?): a column", PAGE.read_text("utf-8"), re.M | re.S)
    assert said
    types = re.findall(r"`([^`]+)`", said[1])
    assert len(types) == 5
    assert not any(is_read(column_of("x", type_)) for type_ in types)
    read = {line.types["spark"].lower() for line in lines() if "spark" in line.types}
    assert all(is_read(column_of("x", type_)) for type_ in read)
