"""What a search takes on a Spark cluster: `python -m benchmarks.scale --url sc://HOST:15002 --ui http://HOST:4040`.

Makes a table of so many rows on the cluster, drops it at the end, and prints for each: what the private copy, the scan
and the search took in units of one leaf GROUP BY on the same cluster, statements, bytes that came to the client, its
peak memory, and tasks and shuffled bytes of each executor. Roll-ups are on the cluster, then in the embedded DuckDB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from benchmarks.children import run
from benchmarks.received import Received
from qblock.engines.from_spec import warehouse_of
from qblock.engines.spark import client as spark_client
from qblock.engines.tables import TableName
from qblock.search.run import open_task, run_search
from qblock.spec import load_spec

ROLL_UPS = ("warehouse", "local")
COLUMNS = {"age": 72, "zip": 1000, "sex": 2, "job": 40, "country": 30, "ill": 12}
"""How many values each has, all about as frequent, so that there are as many leaf combinations as rows allow."""
SPEC = """version: 1
release: scale
source: {{url: "{url}", table: {schema}.{table}}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10, 20]}}}}
  zip: {{role: quasi_identifier, hierarchy: {{ranges: [10, 100, 500]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  job: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10, 20]}}}}
  country: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10]}}}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 10}}}}, {{distinct_l_diversity: {{l: 3}}}}]
search: {{roll_up: {roll_up}}}
publish: {{url: "duckdb:///out.duckdb", schema: main, view: v}}
"""


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", help="of a Spark Connect server")
    parser.add_argument("--ui", help="of the REST interface of its application")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 4_000_000])
    parser.add_argument("--roll-up", nargs="+", choices=ROLL_UPS, default=list(ROLL_UPS))
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="medians of so many runs (%(default)s)")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(searched(given.one)))
        return 0
    if given.url is None or given.ui is None:
        parser.error("--url and --ui are needed: of a cluster that is there")
    with tempfile.TemporaryDirectory() as folder:
        for rows in given.rows:
            measured(given.url, given.ui, rows, given.repeat, Path(folder), given.roll_up)
    return 0


def measured(url: str, ui: str, rows: int, repeat: int, folder: Path, roll_ups: Sequence[str]) -> None:
    schema, table = f"qblock_scale_{uuid.uuid4().hex[:8]}", f"people_{rows}"
    client: Any = spark_client.connected(sa.make_url(url))
    drawn = ", ".join(f"CAST(pmod(hash(id, {i}), {n}) AS INT) AS {name}" for i, (name, n) in enumerate(COLUMNS.items()))
    client.sql(f"CREATE SCHEMA {schema}")
    try:
        client.sql(f"SELECT {drawn} FROM range({rows})").write.format("parquet").saveAsTable(f"{schema}.{table}")
        for roll_up in roll_ups:
            spec = folder / f"{table}_{roll_up}.yaml"
            spec.write_text(SPEC.format(url=url, schema=schema, table=table, roll_up=roll_up), "utf-8")
            before, runs = executors(ui), []
            for _ in range(repeat):
                ended = run(["-m", "benchmarks.scale", "--one", str(spec)])
                if ended.status != 0:
                    raise SystemExit(ended.errors)
                runs.append({**json.loads(ended.output), "memory": ended.memory})
            after = executors(ui)
            unit, copy, scan, search = (
                statistics.median(figures[name] for figures in runs) for name in ("unit", "copy", "scan", "search")
            )
            most = {name: max(figures[name] for figures in runs) / 1e6 for name in ("bytes", "memory")}
            print(
                f"{rows:,} rows, {runs[0]['leaves']:,} leaves, roll-ups {roll_up}: u = {unit:.2f} s; copy "
                f"{copy / unit:.1f} u, scan {scan / unit:.1f} u, search of {runs[0]['nodes']} nodes "
                f"{search / unit:.1f} u ({runs[0]['statements']} statements); {most['bytes']:.1f} MB to the client, "
                f"which had {most['memory']:,.0f} MB",
                flush=True,
            )
            for name in sorted(after):
                more = {key: (after[name][key] - before.get(name, {}).get(key, 0)) / repeat for key in after[name]}
                print(f"  executor {name}: " + ", ".join(f"{key} {value:,.0f}" for key, value in more.items()))
    finally:
        client.sql(f"DROP SCHEMA {schema} CASCADE")
        client.stop()


def searched(path: Path) -> dict[str, float]:
    """Seconds of one leaf GROUP BY, of the copy and of the search after it, in this process."""
    received = Received()
    spec = load_spec(path)
    warehouse = warehouse_of(spec)
    names = [*spec.quasi_identifiers, *spec.sensitives]
    with warehouse.snapshot() as session:
        start = time.perf_counter()
        relation = session.relation(TableName.parse(spec.source.table))
        copied = time.perf_counter()
        columns = [relation.c[name] for name in names]
        grouped = sa.select(*columns, sa.func.count().label("qblock_rows")).group_by(*columns)
        leaves = session.scalar(sa.select(sa.func.count()).select_from(session.store("qblock_unit", grouped)))
        unit = time.perf_counter() - copied
    warehouse.close()
    received.bytes = 0
    began = time.perf_counter()
    with open_task(spec) as task:
        opened = time.perf_counter()
        answer = run_search(task).to_json()
        return {
            "copy": copied - start,
            "unit": unit,
            "scan": opened - began - (copied - start),
            "search": time.perf_counter() - opened,
            "leaves": leaves,
            "nodes": answer["nodes_total"],
            "statements": answer["queries"],
            "bytes": received.bytes,
        }


def executors(ui: str) -> dict[str, dict[str, int]]:
    """Tasks and shuffled bytes so far."""

    def fetched(what: str) -> Any:
        with urllib.request.urlopen(f"{ui}/api/v1/applications{what}", timeout=10) as answer:
            return json.load(answer)

    (application,) = fetched("")
    keys = {"tasks": "completedTasks", "bytes read": "totalInputBytes", "bytes shuffled": "totalShuffleWrite"}
    return {
        executor["id"]: {name: executor[key] for name, key in keys.items()}
        for executor in fetched(f"/{application['id']}/executors")
        if executor["id"] != "driver"
    }


if __name__ == "__main__":
    raise SystemExit(main())
