"""Runs from Spark that are killed: readers meet a whole version at every moment, and the next run takes it up.

With QBLOCK_TEST_ENGINES=all every boundary of a run is tried, else every seventh.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from publish.spark_releases import ON_SPARK, tables, written
from publish.test_spark import COPY
from qblock.api import Release
from qblock.engines.spark.client import end

pytestmark = pytest.mark.spark

TESTS = Path(__file__).resolve().parents[1]
EVERYTHING = os.environ.get("QBLOCK_TEST_ENGINES") == "all"
SPEC = """version: 1
release: killed
source: {source}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10, 30]}}}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 3}}}}]
{target}
versions: {{joint: none, keep: 2}}
"""


def become(client: Any, number: int, file: Path | None = None) -> None:
    """The source of a version: everybody in it has its number, so that a mixture of two is seen. file: it is
    this one, and no table of the server."""
    draw = random.Random(number)
    rows = {"age": pa.array([draw.randrange(18, 60) for _ in range(90)], pa.int64()), "ill": [f"v{number}"] * 90}
    if file is not None:
        pq.write_table(pa.table(rows), file)
        return
    client.createDataFrame(pa.table(rows)).write.mode("overwrite").saveAsTable("clinic.killed")


def child(*command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False, env=environment
    )


@contextmanager
def reader(url: str, view: str, pause: float = 0) -> Iterator[list[Any]]:
    """Somebody who asks again and again: what they saw, one after another, without repetitions; errors as they come.
    pause: seconds between an answer and the next question."""
    from pyspark.sql.connect.session import SparkSession

    seen: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        session = SparkSession.builder.remote(url).create()
        while not done.is_set():
            try:
                rows = session.sql(f"SELECT ill, count(*) AS n FROM {view} GROUP BY ill").toArrow().to_pylist()
                found: Any = [(row["ill"], row["n"]) for row in rows]
            except Exception as error:
                found = str(error)[:300]
            if not seen or seen[-1] != found:
                seen.append(found)
            done.wait(pause)
        end(session)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("source", ["table", "file"])
def test_a_run_that_is_killed_at_a_boundary_is_taken_up(
    client: Any, hive: tuple[str, Path], tmp_path: Path, source: str
) -> None:
    target = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/private/ledger.sqlite", folder=hive[1])
    file, said = None, f'{{url: "{hive[0]}", table: clinic.killed}}'
    if source == "file":
        file, said = tmp_path / "killed.parquet", "{file: killed.parquet}"
        target = target.replace("publish: {", f'publish: {{url: "{hive[0]}", ')
    release = written(tmp_path / "killed.yaml", SPEC.format(source=said, target=target))
    spec = str(release.spec.path)
    for number in (1, 2):
        become(client, number, file)
        traced = json.loads(child("publish.spark_killed", spec).stdout)
    assert traced["version"] == 2
    boundaries = traced["passed"]
    assert len(boundaries) > 30
    killed: list[str] = []
    with reader(hive[0], "published.killed", 0.2) as seen:
        number = 2
        for boundary in range(1, len(boundaries) + 1, 1 if EVERYTHING else 7):
            number += 1
            become(client, number, file)
            ended = child("publish.spark_killed", spec, str(boundary))
            assert ended.returncode == -9, (boundary, ended.stdout, ended.stderr)
            killed.append(boundaries[boundary - 1])
            check(client, release, number)
    versions = [int(found[0][0][1:]) for found in seen]
    assert [found for found in seen if len(found) != 1 or found[0][1] != 90] == []
    assert versions == sorted(set(versions))
    assert len(killed) >= (30 if EVERYTHING else 5)


def check(client: Any, release: Release, number: int) -> None:
    """The next run publishes what the source holds, once, and leaves the view and the two newest copies."""
    found = release.publish()
    assert found.status in ("published", "unchanged")
    (row,) = client.sql("SELECT DISTINCT ill FROM published.killed").toArrow().to_pylist()
    assert row == {"ill": f"v{number}"}
    query = "SELECT (SELECT version FROM published.killed_version), (SELECT sum(rows) FROM published.killed_levels)"
    assert [tuple(one) for one in client.sql(query).collect()] == [(found.version, 90)]
    assert release.verify().problems == ()
    assert release.publish().status == "unchanged"
    assert len(tables(client)) == COPY
    shown = [event.version for event in release.history().events if event.state == "published"]
    assert shown == sorted(set(shown))


SWAPS = 1000 if EVERYTHING else 60
SWAP = """
import sys
from pyspark.sql.connect.session import SparkSession
from qblock.engines.spark.catalog import SparkCatalog
catalog = SparkCatalog(SparkSession.builder.remote(sys.argv[1]).create())
for i in range(int(sys.argv[2]), 10**6):
    catalog.show("published", "swapped", f"SELECT `ill` FROM `published`.`s{i % 2}`", "unused")
    print(i, flush=True)
"""


def test_readers_of_a_view_that_is_swapped_and_whose_writer_is_killed(
    client: Any, hive: tuple[str, Path], tmp_path: Path
) -> None:
    client.sql(f"CREATE SCHEMA IF NOT EXISTS published LOCATION '{hive[1]}/published'")
    for i in range(2):
        client.sql(f"CREATE TABLE published.s{i} USING PARQUET AS SELECT 'v{i}' AS ill FROM range(90)")
    client.sql("CREATE VIEW published.swapped COMMENT 'unused' AS SELECT `ill` FROM `published`.`s0`")
    draw, swaps, kills = random.Random(1), 0, 0
    with reader(hive[0], "published.swapped") as seen:
        while swaps < SWAPS:
            command = [sys.executable, "-c", SWAP, hive[0], str(swaps)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                for _ in range(draw.randrange(20, 60)):
                    line = process.stdout.readline()
                    assert line
                    swaps += 1
                time.sleep(draw.random() / 5)  # somewhere within the next one
                process.kill()
            kills += 1
    assert [found for found in seen if found not in ([("v0", 90)], [("v1", 90)])] == []
    assert {found[0][0] for found in seen} == {"v0", "v1"}
    assert kills >= 2
    print(f"{swaps} swaps, {kills} kills, {len(seen)} changes seen")
