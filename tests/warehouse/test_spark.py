"""Reading from a real Spark cluster: the same answers as from DuckDB, from one state of the source."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlalchemy as sa
from spark_cluster import connect_server, free_port, home_or_absent

from qblock.cli.app import run
from qblock.engines.faults import Unreachable
from qblock.engines.registry import open_warehouse
from qblock.engines.spark.client import end
from qblock.engines.tables import TableName
from qblock.errors import QblockError

pytestmark = pytest.mark.spark

HOSTILE = ["a'b", 'say "x"', "back\\slash", "\\u0041", "new\nline", "\U0001f600", ":name", "?", "", "`q`", "{m0}", None]
SPEC = """version: 1
release: people
source: {{url: "{url}", table: {table}}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10, 20]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  zip: {{role: quasi_identifier, hierarchy: {{ranges: [5, 20]}}}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 3}}}}, {{distinct_l_diversity: {{l: 2}}}}]
publish: {{url: "duckdb:///out.duckdb", schema: main, view: v}}
"""
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [-(2**63), 0, None]),
    "small": (pa.int16(), [-7, 7, None]),
    "exact": (pa.decimal128(12, 4), [Decimal("10.5000"), Decimal("-0.0001"), Decimal("100")]),
    "double": (pa.float64(), [8.41e21, 2.0**-44, -0.0]),
    "more": (pa.float64(), [1e7, float("inf"), 123456.75]),
    "single": (pa.float32(), [0.1, 16777216.0, 1e-7]),
    "day": (pa.date32(), [date(1999, 12, 31), date(1, 1, 1), None]),
    "moment": (pa.timestamp("us"), [datetime(2024, 2, 29, 1, 2, 3, 450000), datetime(1900, 1, 1), None]),
    "zoned": (pa.timestamp("us", "UTC"), [datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), None, None]),
    "yes": (pa.bool_(), [True, False, None]),
    "text": (pa.string(), ["", " x ", None]),
    "bytes": (pa.binary(), [b"\x00\xff", b"", None]),
}


@pytest.fixture(scope="module")
def client(spark_url: str) -> Iterator[Any]:
    """A session of the bare client, in which tables are made."""
    from pyspark.sql.connect.session import SparkSession

    made = SparkSession.builder.remote(spark_url).create()
    made.sql("CREATE SCHEMA IF NOT EXISTS clinic")
    yield made
    made.sql("DROP SCHEMA clinic CASCADE")
    end(made)


def people(rows: int, seed: int) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "age": pa.array([draw.randrange(18, 60) for _ in range(rows)], pa.int64()),
            "sex": [draw.choice(HOSTILE[:-1]) for _ in range(rows)],
            "zip": pa.array([draw.randrange(30) for _ in range(rows)], pa.int32()),
            "ill": [draw.choice(HOSTILE[:5]) for _ in range(rows)],
            "name": [str(i) for i in range(rows)],
        }
    )


def save(client: Any, name: str, columns: pa.Table) -> None:
    client.createDataFrame(columns).write.format("parquet").mode("overwrite").saveAsTable(f"clinic.{name}")


def answer(folder: Path, url: str, table: str, command: str, capsys: Any) -> dict[str, Any]:
    file = folder / "spec.yaml"
    file.write_text(SPEC.format(url=url, table=table))
    assert run([command, str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return {name: value for name, value in found.items() if name not in ("seconds", "queries")}


def test_the_answers_are_those_of_duckdb(client: Any, spark_url: str, tmp_path: Path, capsys: Any) -> None:
    table = people(300, 7)
    save(client, "people", table)
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    for command in ("search", "audit", "compare"):
        there = answer(tmp_path, spark_url, "spark_catalog.clinic.people", command, capsys)
        assert there == answer(tmp_path, "duckdb:///w.duckdb", "people", command, capsys)
    left = client.sql("SHOW SCHEMAS").toArrow().column(0).to_pylist()
    assert [name for name in left if name.startswith("qblock")] == []
    in_spark = SPEC.format(url=spark_url, table="clinic.people").partition("publish:")[0]
    (tmp_path / "spec.yaml").write_text(in_spark)
    assert run(["release", str(tmp_path / "spec.yaml")]) == 2
    assert "Spark cannot hold the ledger of a release" in capsys.readouterr().err


def test_what_is_read_once_is_not_copied_and_keeps_its_order(client: Any, spark_url: str) -> None:
    save(client, "people", people(300, 8))
    client.sql("CREATE VIEW clinic.in_order AS SELECT name FROM clinic.people ORDER BY CAST(name AS INT) DESC")
    opened = open_warehouse(spark_url, Path())
    with closing(opened), opened.snapshot() as session:
        found = session.read(TableName.parse("clinic.in_order"))
        schemas = client.sql("SHOW SCHEMAS").toArrow().column(0).to_pylist()
    assert found["name"].to_pylist() == [str(i) for i in reversed(range(300))]
    assert not [name for name in schemas if name.startswith("qblock")]
    assert session.statements == 2


def test_texts_of_values_are_those_of_duckdb(client: Any, spark_url: str, tmp_path: Path) -> None:
    columns = pa.table({name: pa.array(values, type_) for name, (type_, values) in TYPES.items()})
    # The client sends timestamps without a zone as ones of the session's.
    client.conf.set("spark.sql.session.timeZone", "UTC")
    chosen = [f"CAST({c} AS TIMESTAMP_NTZ) AS {c}" if c == "moment" else c for c in TYPES]
    frame = client.createDataFrame(columns).selectExpr(*chosen)
    frame.write.format("parquet").mode("overwrite").saveAsTable("clinic.kinds")
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", columns)
        connection.execute("CREATE TABLE kinds AS SELECT * FROM given")
    found = []
    for url, name in ((spark_url, "clinic.kinds"), ("duckdb:///w.duckdb", "kinds")):
        opened = open_warehouse(url, tmp_path)
        with closing(opened), opened.snapshot() as session:
            table = TableName.parse(name)
            relation, described = session.relation(table), session.columns(table)
            texts = [
                session.text_of(session.comparable(relation.c[c], described[c]), described[c].kind).label(c)
                for c in TYPES
            ]
            read = session.fetch(sa.select(*texts))
            found.append({c: set(read.column(c).to_pylist()) for c in TYPES})
    assert found[0] == found[1]


def test_hostile_texts_come_back(client: Any, spark_url: str) -> None:
    save(client, "texts", pa.table({"we`ird ;,{}()=\\n:x?": pa.array(HOSTILE)}))
    opened = open_warehouse(spark_url, Path())
    with closing(opened), opened.snapshot() as session:
        relation = session.relation(TableName("clinic", "texts"))
        column = next(iter(relation.c))
        assert set(session.fetch(sa.select(column)).column(0).to_pylist()) == set(HOSTILE)
        found = session.fetch(sa.select(column).where(column.in_(HOSTILE[:-1]))).column(0).to_pylist()
        assert set(found) == set(HOSTILE[:-1])
        loaded = session.load("texts", pa.table({"t": pa.array(HOSTILE)}))
        joined = sa.select(sa.func.count()).select_from(relation.join(loaded, column == loaded.c.t))
        assert session.scalar(joined) == len(HOSTILE) - 1


def test_the_client_writes_no_error_of_its_own(client: Any, spark_url: str, capfd: Any) -> None:
    save(client, "texts", pa.table({"t": ["a secret value"]}))
    opened = open_warehouse(spark_url, Path())
    with closing(opened), opened.snapshot() as session:
        relation = session.relation(TableName("clinic", "texts"))
        with pytest.raises(QblockError, match="CAST_INVALID_INPUT"):
            session.fetch(sa.select(sa.cast(relation.c.t, sa.Integer)))
    said = capfd.readouterr()
    assert "secret" not in said.out + said.err


def test_a_change_of_the_source_is_not_seen(client: Any, spark_url: str) -> None:
    save(client, "moving", pa.table({"x": [1, 2, 3]}))
    opened = open_warehouse(spark_url, Path())
    with closing(opened), opened.snapshot() as session:
        relation = session.relation(TableName("clinic", "moving"))
        count = sa.select(sa.func.count()).select_from(relation)
        assert session.scalar(count) == 3
        client.sql("INSERT INTO clinic.moving VALUES (4)")
        assert session.scalar(count) == 3
        client.sql("DROP TABLE clinic.moving")
        assert session.scalar(sa.select(sa.func.sum(relation.c.x))) == 6


def test_what_a_killed_run_left_is_dropped_by_the_next(client: Any, spark_url: str) -> None:
    opened = open_warehouse(spark_url, Path())
    with closing(opened), opened.snapshot() as session:
        session.private_schema()
        alive = [s for s in client.sql("SHOW SCHEMAS").toArrow().column(0).to_pylist() if s.startswith("qblock")]
        begin = "_".join(alive[0].split("_")[:3])
        client.sql(f"CREATE SCHEMA {begin}_gone1234_0")
        client.sql("CREATE SCHEMA qblock_staging_elsewhere_gone1234_0")
        other = open_warehouse(spark_url, Path())
        with closing(other), other.snapshot() as another:
            another.private_schema()
            left = client.sql("SHOW SCHEMAS").toArrow().column(0).to_pylist()
        assert f"{begin}_gone1234_0" not in left
        assert {alive[0], "qblock_staging_elsewhere_gone1234_0"} <= set(left)
    client.sql("DROP SCHEMA qblock_staging_elsewhere_gone1234_0")


def test_a_server_that_is_restarted_is_a_clear_error(tmp_path: Path) -> None:
    home, port = home_or_absent(), free_port()
    with ExitStack() as stack:
        process = stack.enter_context(connect_server(home, tmp_path, "local[1]", port))
        opened = stack.enter_context(closing(open_warehouse(f"sc://127.0.0.1:{port}/;x-secret=SECRET", Path())))
        with pytest.raises(Unreachable) as raised, opened.snapshot() as session:  # noqa: PT012
            assert session.scalar("SELECT 1") == 1
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            stack.enter_context(connect_server(home, tmp_path, "local[1]", port))
            session.scalar("SELECT 1")
        assert raised.value.exit_status == 1
        assert "SECRET" not in str(raised.value)
