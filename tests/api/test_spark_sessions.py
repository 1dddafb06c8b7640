"""Releases in a session of Spark that the program has, classic or Connect: `spark:`, without an address."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from spark_cluster import home_or_absent

import qblock
from qblock.engines.given import GIVEN
from qblock.engines.registry import parse_url
from qblock.engines.spark import client
from qblock.engines.spark.client import connected, end
from qblock.errors import InputError

ROWS = 60
SPEC = """version: 1
release: people
source: {{url: "{url}", table: clinic.people}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10, 20]}}}}
  town: {{role: quasi_identifier, hierarchy: suppress, nulls: top}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 5}}}}]
private: {{url: "sqlite:///private/ledger.sqlite"{private}}}
{publish}
versions: {{joint: none}}
"""
CLASSIC = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import qblock

folder = Path(sys.argv[1])
settings = {
    "spark.sql.catalogImplementation": "hive",
    "spark.sql.warehouse.dir": str(folder / "warehouse"),
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:own;create=true",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.ui.enabled": "false",
}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sql("CREATE SCHEMA clinic")
spark.read.parquet(str(folder / "people.parquet")).write.saveAsTable("clinic.people")
spark.range(3).createOrReplaceTempView("mine")
release = qblock.Release(folder / "spark.yaml")  # the active session
made = release.publish()
print(json.dumps({
    "made": [made.status, made.digest],
    "again": release.publish().status,
    "verified": list(release.verify().problems),
    "rows": spark.table("published.people").count(),
    "mine": spark.table("mine").count(),
    "zone": spark.conf.get("spark.sql.session.timeZone"),
    "schemas": [row[0] for row in spark.sql("SHOW SCHEMAS").collect()],
}))
"""


def people() -> pa.Table:
    towns = ["Ulm", "", "a'b", None]
    return pa.table(
        {
            "age": pa.array([20 + i % 37 for i in range(ROWS)], pa.int32()),
            "town": [towns[i % 4] for i in range(ROWS)],
            "ill": ["flu" if i % 3 else "cold" for i in range(ROWS)],
        }
    )


def of_spark(folder: Path, target: Path) -> Path:
    """The spec of a release in the session of the process. target: the folder of its tables."""
    file = folder / "spark.yaml"
    publish = f"publish: {{path: {target}/published, readers_checked: by operator}}"
    file.write_text(SPEC.format(url="spark:", private=f", path: {target}/private", publish=publish), "utf-8")
    return file


def on_duckdb(folder: Path) -> Any:
    """The same release of the same rows in DuckDB."""
    folder = folder / "duckdb"
    folder.mkdir()
    with duckdb.connect(folder / "w.duckdb") as connection:
        connection.register("given", people())
        connection.execute("CREATE SCHEMA clinic; CREATE TABLE clinic.people AS SELECT * FROM given")
    file = folder / "duck.yaml"
    file.write_text(SPEC.format(url="duckdb:///w.duckdb", private="", publish='publish: {url: "duckdb:///o.duckdb"}'))
    return qblock.Release(file)


@pytest.mark.spark
def test_a_release_in_a_session_of_connect(hive: tuple[str, Path], tmp_path: Path) -> None:
    from pyspark.sql.connect.session import SparkSession

    session: Any = SparkSession.builder.remote(hive[0]).create()
    session.sql("CREATE SCHEMA IF NOT EXISTS clinic")
    session.createDataFrame(people()).write.mode("overwrite").saveAsTable("clinic.people")
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    session.range(3).createOrReplaceTempView("mine")
    release = qblock.Release(of_spark(tmp_path, hive[1] / "sessions"), spark=session)
    duck = on_duckdb(tmp_path)
    here, there = duck.search().to_dict(), release.search().to_dict()
    differ = {name for name, value in here.items() if there[name] != value}
    assert differ <= {"seconds", "queries", "rows_read"}
    made = release.publish()
    assert (made.status, made.digest) == ("published", duck.publish().digest)
    assert release.publish().status == "unchanged"
    assert release.verify().problems == ()
    assert session.table("published.people").count() == ROWS
    assert session.table("mine").count() == 3
    assert session.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu"
    # The last one is of its kept versions.
    for schema in session.sql("SHOW SCHEMAS LIKE 'clinic|published|qblock_*'").toArrow().column(0).to_pylist():
        session.sql(f"DROP SCHEMA {schema} CASCADE")
    end(session)


@pytest.mark.spark
def test_a_release_in_a_classic_session(tmp_path: Path) -> None:
    """In a process of its own, whose package is the server's."""
    home = home_or_absent()
    import pyarrow.parquet as pq

    pq.write_table(people(), tmp_path / "people.parquet")
    of_spark(tmp_path, tmp_path)
    path = [str(home.parent), *map(str, home.glob("python/lib/py4j-*.zip")), os.environ.get("PYTHONPATH", "")]
    run = subprocess.run(
        [sys.executable, "-c", CLASSIC, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "SPARK_HOME": str(home)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout)
    schemas = found.pop("schemas")
    assert found == {
        "made": ["published", on_duckdb(tmp_path).publish().digest],
        "again": "unchanged",
        "verified": [],
        "rows": ROWS,
        "mine": 3,
        "zone": "Asia/Kathmandu",
    }
    assert [name for name in schemas if name.startswith("qblock_staging")] == []


def test_without_a_session_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "sys", SimpleNamespace(modules={}))
    with pytest.raises(InputError, match=r"it has none; write qblock\.Release\(SPEC, spark=session\)"):
        connected(parse_url("spark:"))


@pytest.mark.parametrize("url", ["spark://host", "spark://user@/", "spark:///name"])
def test_it_has_no_address(url: str) -> None:
    with pytest.raises(InputError, match="write spark: alone, or sc://HOST"):
        parse_url(url)


def test_each_release_keeps_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise InputError(f"asked {GIVEN.get()}")

    monkeypatch.setattr(client, "session_of_process", refuse)
    spec = of_spark(tmp_path, tmp_path)
    first, second = (qblock.Release(spec, spark=name) for name in ("first", "second"))
    for release, name in ((first, "first"), (second, "second"), (first, "first")):
        with pytest.raises(InputError, match=f"asked {name}"):
            release.search()


def test_a_client_that_opens_no_session_beside_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "is_connect", lambda session: True)
    with pytest.raises(InputError, match=r"opens none beside it; write the address of its server as source\.url"):
        client.beside(SimpleNamespace(client=SimpleNamespace()))


def test_a_session_that_the_spec_does_not_name_is_refused(tmp_path: Path) -> None:
    spec = of_spark(tmp_path, tmp_path).read_text("utf-8").replace("spark:", "sc://localhost:1")
    (tmp_path / "spark.yaml").write_text(spec, "utf-8")
    qblock.Release(tmp_path / "spark.yaml")
    with pytest.raises(InputError, match="a session of Spark is given, and the spec names none; write source"):
        qblock.Release(tmp_path / "spark.yaml", spark=object())
