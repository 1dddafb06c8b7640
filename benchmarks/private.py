"""Up to how many people a private store serves: `python -m benchmarks.private --url sc://HOST:15002 --folder DIR`.

Makes a table of so many people on the cluster, whose catalog must last, and drops it at the end. Prints what a release
takes that protects each version alone, the first and the second week of one whose versions are checked together, and a
run that finds nothing new: in units of one leaf GROUP BY on the same cluster, with the job's peak memory, the bytes
that come to it, and the size of its databases.
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

import sqlalchemy as sa

from benchmarks.children import run
from benchmarks.received import Received
from qblock.api import Release
from qblock.spec import load_spec
from qblock.warehouse import spark_client

SPEC = """version: 1
release: people
source: {{url: "{url}", table: {schema}.people}}
entity: id
private: {{url: "duckdb:///{own}/private/ledger.duckdb", path: {shared}/private}}
publish: {{schema: {schema}_{joint}, path: {shared}/published, readers_checked: by operator}}
attributes:
  id: identifying
  age: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10, 20]}}}}
  zip: {{role: quasi_identifier, hierarchy: {{ranges: [10, 50]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 20}}}}, {{distinct_l_diversity: {{l: 3}}}}]
versions: {{joint: {joint}}}
"""
COLUMNS = {"age": 70, "zip": 100, "sex": 2, "ill": 12}
"""How many values each has, all about as frequent."""
WEEK = 50
"""One in so many leaves from one week to the next, and as many come."""


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
    if given.url is None or given.folder is None:
        parser.error("--url and --folder are needed: of a cluster that is there")
    for people in given.people:
        rounds = [measured(given.url, given.folder, people) for _ in range(given.repeat)]
        for name in rounds[0]:
            of_all = [one[name] for one in rounds]
            taken = statistics.median(one["u"] for one in of_all)
            most = {what: max(one[what] for one in of_all) / 1e6 for what in ("memory", "bytes", "ledger")}
            print(
                f"{people:,} people, {name} ({of_all[0]['status']}): {taken:.1f} u; the job had "
                f"{most['memory']:,.0f} MB and received {most['bytes']:,.1f} MB; its databases have "
                f"{most['ledger']:,.1f} MB",
                flush=True,
            )
        unit = statistics.median(one["alone"]["unit"] for one in rounds)
        print(f"{people:,} people: u = {unit:.2f} s", flush=True)
    return 0


def measured(url: str, folder: Path, people: int) -> dict[str, dict[str, Any]]:
    """What each of the runs takes, by name."""
    schema = f"qblock_private_{uuid.uuid4().hex[:8]}"
    client: Any = spark_client.connected(sa.make_url(url))
    found: dict[str, dict[str, Any]] = {}
    shared = Path(tempfile.mkdtemp(dir=folder))
    shared.chmod(0o777)  # the cluster is another user's, perhaps
    client.sql(f"CREATE SCHEMA {schema}")
    try:
        with tempfile.TemporaryDirectory() as own:
            for name, joint, week in (
                ("alone", "none", 0),
                ("first week", "hold_back", 0),
                ("nothing new", "hold_back", 0),
                ("second week", "hold_back", 1),
            ):
                if name != "nothing new":
                    become(client, schema, people, week)
                place = Path(own) / joint
                place.mkdir(exist_ok=True)
                spec = place / "people.yaml"
                paths = {"own": place, "shared": shared / joint}
                spec.write_text(SPEC.format(url=url, schema=schema, joint=joint, **paths), "utf-8")
                unit = grouped(client, schema)
                ended = run(["-m", "benchmarks.private", "--one", str(spec)])
                if ended.status != 0:
                    raise SystemExit(ended.errors)
                one = {**json.loads(ended.output), "memory": ended.memory, "unit": unit, "seconds": ended.seconds}
                held = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
                found[name] = {**one, "u": ended.seconds / unit, "ledger": held}
                print(f"  {people:,} {name}: {ended.seconds:.1f} s, u = {unit:.2f} s, {one['status']}", flush=True)
    finally:
        for row in client.sql("SHOW SCHEMAS").collect():
            if row[0].startswith(schema):
                client.sql(f"DROP SCHEMA {row[0]} CASCADE")
        client.stop()
        shutil.rmtree(shared, ignore_errors=True)
    return found


def become(client: Any, schema: str, people: int, week: int) -> None:
    """The table of a week: a share of the people of the week before is not in it, and as many others are."""
    first = week * people // WEEK
    drawn = ", ".join(f"CAST(pmod(hash(id, {i}), {n}) AS INT) AS {name}" for i, (name, n) in enumerate(COLUMNS.items()))
    client.sql(f"DROP TABLE IF EXISTS {schema}.people")
    client.sql(
        f"CREATE TABLE {schema}.people USING PARQUET AS SELECT CONCAT('person ', id) AS id, {drawn} "
        f"FROM range({first}, {first + people})"
    )


def grouped(client: Any, schema: str) -> float:
    """Seconds of one leaf GROUP BY: the median of three, after one that counts for nothing."""
    names, taken = ", ".join(COLUMNS), []
    for _ in range(4):
        began = time.perf_counter()
        client.sql(f"SELECT count(*) FROM (SELECT count(*) FROM {schema}.people GROUP BY {names})").collect()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken[1:])


def released(path: Path) -> dict[str, Any]:
    """One run of the job in this process, and the bytes that came to it from the cluster."""
    received = Received()
    found = Release(load_spec(path)).publish()
    return {"status": found.status, "rows": found.rows, "suppressed": found.suppressed, "bytes": received.bytes}


if __name__ == "__main__":
    raise SystemExit(main())
