"""Nothing that is secret, and no value of the source, is in what a Spark server logs of the statements of a release."""

from __future__ import annotations

import json
import os
import random
import signal
import string
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from marks.marks import found_in
from spark_cluster import connect_server, free_port, home_or_absent

from publish.spark_releases import ON_SPARK, written
from qblock.api import Ledger
from qblock.engines.spark.client import end

pytestmark = pytest.mark.spark

DRAW = random.Random(7)
OFFSET = 48151600
"""Added to ages, which makes them unusual numbers."""
LOGGED = {
    "spark.sql.catalogImplementation": "hive",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


def mark() -> str:
    return "".join(DRAW.sample(string.ascii_letters, 10))


TOKEN, PARAMETER, PASSWORD = mark(), mark(), mark()
PLANTED = [mark(), mark()]
PEOPLE, LEAVE, CHANGED = 400, 40, 25
NAME, TOWN, STREET, ILLNESS, WARD = (mark() for _ in range(5))
"""The begin of each value of a column."""
TOWNS = [f"{TOWN}'{i}" for i in range(4)]
STREETS = [f'{STREET}"\\{i:02}' for i in range(12)]
ILLNESSES = [f"{ILLNESS}\n'{i}" for i in range(4)]
SPEC = """version: 1
release: logged
source: {{url: "{url}", table: clinic.logged}}
entity: id
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [20, 40]}}}}
  town: {{role: quasi_identifier, hierarchy: suppress}}
  street: {{role: quasi_identifier, hierarchy: {{file: street.csv}}, nulls: top}}
  day: {{role: quasi_identifier, hierarchy: {{dates: [month, year]}}, nulls: top}}
  ill: sensitive
  ward: insensitive
privacy: [{{k_anonymity: {{k: 15}}}}, {{distinct_l_diversity: {{l: 2}}}}]
{target}
{more}
"""
FEW = "search: {node: {age: 2, town: 1, street: 2, day: 3}}"
"""A node of two blocks, to which enough people come in a week for a version."""


def name_of(person: int) -> str:
    return f"{NAME}'; --\\{person}"


def people(week: int) -> pa.Table:
    """Who is there in a week: the first LEAVE of the week before are not, and a few are ill of something else."""
    rows = []
    for person in range(week * LEAVE, week * LEAVE + PEOPLE):
        draw = random.Random(person)
        row = {"id": name_of(person), "age": OFFSET + draw.randrange(60), "town": draw.choice(TOWNS)}
        row |= {"street": draw.choice([None, *STREETS]), "day": draw.randrange(90_000, 90_400)}
        row |= {"ill": draw.choice(ILLNESSES), "ward": f"{WARD}{draw.randrange(5)}"}
        if week and person % 97 == week:
            row["ill"] = ILLNESSES[0]
        rows.append(row)
    found = pa.Table.from_pylist(rows)
    day = found.column("day").cast(pa.int32()).cast(pa.date32())
    return found.set_column(found.column_names.index("day"), "day", day)


@dataclass
class Logged:
    """A server that writes an event log. url: with secrets; plain: without; folder: of its schemas and its log."""

    url: str
    plain: str
    folder: Path
    process: Any

    def log(self) -> dict[str, str]:
        """Every file of the event log, once the server has ended."""
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(60)
        files = [file for file in (self.folder / "events").rglob("*") if file.is_file()]
        return {file.name: file.read_text("latin-1") for file in files}


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    home, port = home_or_absent(), free_port()
    events = tmp_path / "events"
    events.mkdir()
    with ExitStack() as stack:
        process = stack.enter_context(
            connect_server(home, tmp_path, "local[2]", port, LOGGED | {"spark.eventLog.dir": events.as_uri()})
        )
        # The client sends a token without TLS to this name alone.
        url = f"sc://localhost:{port}/;token={TOKEN}==;x-given={PARAMETER}"
        yield Logged(url, f"sc://127.0.0.1:{port}", tmp_path, process)


def test_an_event_log_holds_no_secret_and_no_value(logged: Logged, postgresql_url: str, tmp_path: Path) -> None:
    from pyspark.sql.connect.session import SparkSession

    client = SparkSession.builder.remote(logged.plain).create()
    client.sql("CREATE SCHEMA clinic")

    def become(week: int) -> None:
        # The table's files are made here: what whoever makes the source sends is not the job's.
        client.createDataFrame(people(week)).write.mode("overwrite").saveAsTable("clinic.logged")

    ledger = sa.make_url(postgresql_url).set(password=PASSWORD).render_as_string(hide_password=False)
    labels = [f'"{street.replace(chr(34), chr(34) * 2)}",{street[:10]}x' for street in STREETS]
    release = tmp_path / "spec" / "logged.yaml"
    release.parent.mkdir()
    (release.parent / "street.csv").write_text("\n".join(["street,part", *labels]), "utf-8")
    target = ON_SPARK.format(ledger=ledger, folder=logged.folder)
    become(0)
    free = written(release, SPEC.format(url=logged.url, target=target, more=""))
    assert free.search().refused is None
    made = written(release, SPEC.format(url=logged.url, target=target, more=FEW))
    assert made.publish().status == "published"
    for week in (1, 2):
        become(week)
        assert made.publish().status == "published"
    assert Ledger(str(release)).rekey().keys == 2
    become(3)
    assert made.publish().status == "published"
    assert made.rollback(2).status == "rolled_back"
    assert made.publish().status == "published"
    assert made.erase([name_of(3 * LEAVE + 100)], now=True).shown == 1
    client.createDataFrame(people(3).slice(CHANGED)).write.mode("overwrite").saveAsTable("clinic.logged")
    assert made.erase(missing=True).asked >= 20
    assert made.verify().problems == ()
    assert made.plan()
    with psycopg.connect(postgresql_url.replace("+psycopg", "")) as connection:
        keys = [key for (key,) in connection.execute("SELECT secret FROM qblock.crosswalk_key").fetchall()]
    assert len(keys) == 2
    # What stands in a statement, or is given with it, is in the log: so nothing of the above may be in either.
    asked = "SELECT count(*) AS n FROM clinic.logged WHERE ill = :ill OR ill = '{}'"
    client.sql(asked.format(PLANTED[0]), {"ill": PLANTED[1]}).toArrow()
    end(client)
    log = logged.log()
    assert {mark for _, _, mark in found_in(PLANTED, log)} == set(PLANTED)
    lines = [line for text in log.values() for line in text.splitlines() if line.startswith("{")]
    kinds = {json.loads(line)["Event"].rpartition(".")[2] for line in lines}
    assert {"SparkListenerConnectOperationStarted", "SparkListenerSQLExecutionStart", "SparkListenerJobStart"} <= kinds
    assert found_in([TOKEN, PARAMETER, PASSWORD, *keys, NAME, TOWN, STREET, ILLNESS, WARD], log) == []
    numbers = {str(OFFSET + age) for age in range(60)} | {str(day) for day in people(0)["day"].to_pylist()}
    assert [number for number in sorted(numbers) for text in log.values() if number in text] == []
