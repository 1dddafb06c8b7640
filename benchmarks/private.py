"""Up to how many people a private store serves: `python -m benchmarks.private [--url sc://HOST:15002 --folder DIR]`.

Makes a table of so many people on a cluster, whose catalog must last, and drops it at the end; without --url in a
DuckDB that hashes people and is lent their digests, as a cluster is: what is measured then is the store, and no
cluster. Prints what a release takes that protects each version alone, the first and the second week of one whose
versions are checked together, and a run that finds nothing new: in units of one leaf GROUP BY of the same table, with
the job's peak memory, the bytes that come to it from a cluster, and the size of its databases.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy as sa

from benchmarks.children import run
from benchmarks.received import Received
from qblock.api import Release
from qblock.engines.duckdb.adapter import DuckdbAdapter
from qblock.engines.spark import client as spark_client
from qblock.spec import load_spec

SPEC = """version: 1
release: people
source: {{url: "{url}", table: {schema}.people}}
entity: id
{where}
attributes:
  id: identifying
  age: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10, 20]}}}}
  zip: {{role: quasi_identifier, hierarchy: {{ranges: [10, 50]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 20}}}}, {{distinct_l_diversity: {{l: 3}}}}]
search: {{node: {{age: 2, zip: 2, sex: 0}}}}
versions: {{joint: {joint}}}
"""
ON_SPARK = """private: {{url: "sqlite:///{own}/private/ledger.sqlite", path: {shared}/private}}
publish: {{schema: {schema}_{joint}, path: {shared}/published, readers_checked: by operator}}"""
COLUMNS = {"age": 70, "zip": 100, "sex": 2, "ill": 12}
"""How many values each has, all about as frequent."""
WEEK = 50
"""One in so many leaves from one week to the next, and as many come."""

WARM = 2000
"""People of the run that is not measured."""
RUNS = (
    ("alone", "none", 0),
    ("first week", "episodes", 0),
    ("nothing new", "episodes", 0),
    ("second week", "episodes", 1),
)


class Cluster:
    """Where the people are: a schema of a Spark server. folder: where job and cluster may write."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self._folder = url, Path(tempfile.mkdtemp(dir=folder))
        self._folder.chmod(0o777)  # the cluster is another user's, perhaps
        self.schema = f"qblock_private_{uuid.uuid4().hex[:8]}"
        self._client: Any = spark_client.connected(sa.make_url(url))
        self._client.sql(f"CREATE SCHEMA {self.schema}")

    def where(self, own: Path, joint: str) -> str:
        return ON_SPARK.format(own=own, shared=self._folder / joint, schema=self.schema, joint=joint)

    def become(self, people: int, week: int) -> None:
        first = week * people // WEEK
        drawn = [f"CAST(pmod(hash(id, {i}), {n}) AS INT) AS {name}" for i, (name, n) in enumerate(COLUMNS.items())]
        self._client.sql(f"DROP TABLE IF EXISTS {self.schema}.people")
        self._client.sql(
            f"CREATE TABLE {self.schema}.people USING PARQUET AS "
            f"SELECT CONCAT('person ', id) AS id, {', '.join(drawn)} FROM range({first}, {first + people})"
        )

    def run(self, query: str) -> None:
        self._client.sql(query).collect()

    def close(self) -> None:
        for row in self._client.sql("SHOW SCHEMAS").collect():
            if row[0].startswith(self.schema):
                self._client.sql(f"DROP SCHEMA {row[0]} CASCADE")
        self._client.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class File:
    """Where the people are: a DuckDB file, which stands for a cluster."""

    schema = "main"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp())
        self.url = f"duckdb:///{self._folder}/people.duckdb"

    def where(self, own: Path, joint: str) -> str:
        return f'publish: {{url: "duckdb:///{own}/out.duckdb", schema: main, view: people_{joint}}}'

    def become(self, people: int, week: int) -> None:
        first = week * people // WEEK
        drawn = ", ".join(f"(hash(i, {i}) % {n})::INT AS {name}" for i, (name, n) in enumerate(COLUMNS.items()))
        self.run(
            f"CREATE OR REPLACE TABLE people AS SELECT 'person ' || i AS id, {drawn} "
            f"FROM range({first}, {first + people}) t(i)"
        )

    def run(self, query: str) -> None:
        with duckdb.connect(str(self._folder / "people.duckdb")) as connection:
            connection.execute(query).fetchall()

    def close(self) -> None:
        shutil.rmtree(self._folder)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="of a Spark Connect server with a catalog that lasts")
    parser.add_argument("--folder", type=Path, help="where the job and the cluster may write")
    parser.add_argument("--people", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="medians of so many (%(default)s)")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(released(given.one)))
        return 0
    if given.url is not None and given.folder is None:
        parser.error("--folder is needed: where the job and the cluster may write")

    def source() -> Cluster | File:
        return File() if given.url is None else Cluster(given.url, given.folder)

    measured(source(), WARM)  # a server that has just started is several times slower
    for people in given.people:
        rounds = [measured(source(), people) for _ in range(given.repeat)]
        for name in rounds[0]:
            of_all = [figures[name] for figures in rounds]
            taken = statistics.median(figures["u"] for figures in of_all)
            most = {what: max(figures[what] for figures in of_all) / 1e6 for what in ("memory", "bytes", "held")}
            print(
                f"{people:,} people, {name} ({of_all[0]['status']}): {taken:.1f} u; the job had "
                f"{most['memory']:,.0f} MB and received {most['bytes']:,.1f} MB; its databases have "
                f"{most['held']:,.1f} MB",
                flush=True,
            )
        unit = statistics.median(figures["alone"]["unit"] for figures in rounds)
        print(f"{people:,} people: u = {unit:.2f} s", flush=True)
    return 0


def measured(source: Cluster | File, people: int) -> dict[str, dict[str, Any]]:
    """What each of the runs takes, by name."""
    results: dict[str, dict[str, Any]] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, joint, week in RUNS:
                source.become(people, week)
                own = Path(folder) / joint
                own.mkdir(exist_ok=True)
                spec = own / "people.yaml"
                where = source.where(own, joint)
                spec.write_text(SPEC.format(url=source.url, schema=source.schema, joint=joint, where=where), "utf-8")
                unit = grouped(source)
                ended = run(["-m", "benchmarks.private", "--one", str(spec)])
                if ended.status != 0:
                    raise SystemExit(ended.errors)
                held = sum(file.stat().st_size for file in own.rglob("*.duckdb"))
                figures = {**json.loads(ended.output), "memory": ended.memory, "unit": unit, "held": held}
                results[name] = figures | {"u": ended.seconds / unit}
                print(f"  {people:,} {name}: {ended.seconds:.1f} s, u = {unit:.3f} s, {figures['status']}", flush=True)
    finally:
        source.close()
    return results


def grouped(source: Cluster | File) -> float:
    """Seconds of one leaf GROUP BY: the median of three, after one that counts for nothing."""
    names, taken = ", ".join(COLUMNS), []
    for _ in range(4):
        began = time.perf_counter()
        source.run(f"SELECT count(*) FROM (SELECT count(*) FROM {source.schema}.people GROUP BY {names})")
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def released(path: Path) -> dict[str, Any]:
    """One run of the job in this process, and the bytes that came to it from the cluster."""
    received = Received()
    DuckdbAdapter.keeps_secrets = False  # as a cluster's
    published = Release(load_spec(path)).publish()
    return {"status": published.status, "bytes": received.bytes}


if __name__ == "__main__":
    raise SystemExit(main())
