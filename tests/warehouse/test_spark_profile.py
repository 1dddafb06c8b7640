"""`qblock init` on a Spark server proposes what it proposes of the same rows in DuckDB."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from qblock.cli.app import run
from qblock.engines.spark.client import end
from qblock.profiling import profiles
from qblock.spec import load_spec

pytestmark = pytest.mark.spark
ROWS = 600


def stays() -> pa.Table:
    """A hospital's table: several rows a person, free text, dirty postcodes, outliers, addresses, NULL beside ''."""
    draw = random.Random(14)
    ages = [draw.randrange(20, 80) for _ in range(ROWS - 20)] + [3] * 10 + [101] * 10
    return pa.table(
        {
            "patient_id": pa.array([1000 + i // 2 for i in range(ROWS)], pa.int64()),
            "age": pa.array(ages, pa.int32()),
            "plz": [
                draw.choice(["", None, "D-1"]) if i % 50 == 0 else f"{draw.randrange(10000, 10040)}"
                for i in range(ROWS)
            ],
            "geschlecht": [draw.choice(["m", "f", "d'"]) for _ in range(ROWS)],
            "geburt": [date(1990, 1, 1) + timedelta(days=draw.randrange(9000)) for _ in range(ROWS)],
            "aufnahme": [datetime(2024, 1, 1) + timedelta(minutes=draw.randrange(400_000)) for _ in range(ROWS)],
            "diagnose": [draw.choice(["J10.1", "E11.9", "I10", "C50"]) for _ in range(ROWS)],
            "land": [draw.choice(["DE", "FR", "PL"]) for _ in range(ROWS)],
            "email": [f"someone{i}@example.org" for i in range(ROWS)],
            "notiz": [f"ruft an: 030-{draw.randrange(10**7)}, \\n {i}" for i in range(ROWS)],
            "kinder": pa.array([draw.randrange(6) for _ in range(ROWS)], pa.int64()),
            "km": [draw.randrange(400) / 8 for _ in range(ROWS)],
        }
    )


@pytest.mark.parametrize("large", [profiles.LARGE, 0])
def test_the_proposal_is_that_of_duckdb(
    spark_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], large: int
) -> None:
    from pyspark.sql.connect.session import SparkSession

    monkeypatch.setattr(profiles, "LARGE", large)
    rows = stays()
    made: Any = SparkSession.builder.remote(spark_url).create()
    made.sql("CREATE SCHEMA IF NOT EXISTS clinic")
    made.conf.set("spark.sql.session.timeZone", "UTC")
    made.createDataFrame(rows).write.format("parquet").mode("overwrite").saveAsTable("clinic.stays")
    with duckdb.connect(tmp_path / "w.duckdb") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("given", rows)
        aware = "aufnahme AT TIME ZONE 'UTC' AS aufnahme"
        connection.execute(f"CREATE TABLE stays AS SELECT * REPLACE ({aware}) FROM given")
    monkeypatch.setenv("WAREHOUSE_URL", spark_url)
    texts = []
    for folder, url, table in (
        ("spark", spark_url, "clinic.stays"),
        ("duck", f"duckdb:///{tmp_path}/w.duckdb", "stays"),
    ):
        assert run(["init", url, table, "--directory", str(tmp_path / folder), "--sensitive", "diagnose"]) == 0
        texts.append((tmp_path / folder / "release.yaml").read_text("utf-8"))
    assert [named(text) for text in texts] == [named(texts[1])] * 2
    for file in (tmp_path / "duck" / "hierarchies").iterdir():
        assert (tmp_path / "spark" / "hierarchies" / file.name).read_bytes() == file.read_bytes()
    assert "# private: {url:" in texts[0]
    assert load_spec(tmp_path / "spark" / "release.yaml").source.table == "clinic.stays"
    left = made.sql("SHOW SCHEMAS").toArrow().column(0).to_pylist()
    made.sql("DROP SCHEMA clinic CASCADE")
    end(made)
    assert [schema for schema in left if schema.startswith("qblock")] == []


def named(text: str) -> list[str]:
    """The lines of a spec from the attributes to the search, which name no engine."""
    lines = text.split("\n")
    return lines[lines.index("attributes:") : lines.index("suppression_limit: 0")]
