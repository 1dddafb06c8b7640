"""A Spark server as one end of a release whose other end is elsewhere: each combination that is claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import create_table, database
from release.test_places import COLUMNS, MORE

from publish.spark_releases import same_keys, written
from qblock.api import Release

pytestmark = pytest.mark.spark
SPEC = """version: 1
release: people
source: {source}
entity: name
attributes:
  zip: {{role: quasi_identifier, hierarchy: {{digits: 5}}}}
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10, 20], start: 0}}}}
  disease: sensitive
privacy: [{{k_anonymity: {{k: 3}}}}, {{distinct_l_diversity: {{l: 2}}}}]
versions: {{newcomers: {{within: 1, box: 6}}}}
search: {{recoding: multidimensional}}
{target}
"""
ON_SPARK = """private: {{url: "{ledger}", path: {folder}/private}}
publish: {{{url}path: {folder}/published, readers_checked: by operator}}"""
THERE = {"spark", "localhost"}
"""Sources on the server: by its address, and by a name that makes it another one."""


class Place:
    """Where a source is, and where its release is published."""

    def __init__(self, client: Any, hive: tuple[str, Path], folder: Path, server: Callable[[], str]) -> None:
        self.client, self.hive, self.folder, self.server = client, hive, folder, server
        self.url = self.there = self.private = ""

    def write(self, source: str, columns: dict[str, list[Any]]) -> None:
        """Make the source anew with these rows."""
        rows = pa.table(columns)
        if source in THERE:
            self.client.createDataFrame(rows).write.mode("overwrite").saveAsTable("clinic.people")
        elif source == "parquet":
            pq.write_table(rows, self.folder / "people.parquet")
        elif source == "duckdb":
            with duckdb.connect(self.folder / "w.duckdb") as connection:
                connection.register("given", rows)
                connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM given")
        else:
            self.url = self.url or self.server()
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("DROP TABLE IF EXISTS people")
            create_table(self.url, "people", columns)

    def ledger(self, private: str) -> str:
        """The URL of ledger and crosswalk; of a release file "" where they are beside the spec."""
        if private == "in a database":
            self.private = self.private or self.server()
        urls = {"beside": "", "in a folder": "sqlite:///elsewhere/ledger.sqlite", "in a database": self.private}
        return urls[private]

    def release(self, source: str, publish: str, private: str = "beside") -> Release:
        url = {"spark": self.hive[0], "localhost": self.hive[0].replace("127.0.0.1", "localhost")}.get(source, self.url)
        given = {
            "parquet": "{file: people.parquet}",
            "duckdb": '{url: "duckdb:///w.duckdb", table: people}',
            "postgresql": f'{{url: "{url}", table: people}}',
        }.get(source, f'{{url: "{url}", table: clinic.people}}')
        ledger = self.ledger(private)
        place = {"folder": self.hive[1], "url": f'url: "{self.hive[0]}", ', "ledger": ledger}
        target = {
            "file": 'publish: {url: "duckdb:///out.duckdb"}' + (f'\nprivate: {{url: "{ledger}"}}' if ledger else ""),
            "spark": ON_SPARK.format(**place),
        }.get(publish)
        if target is None:
            self.there = self.there or self.server()
            target = f'publish: {{url: "{self.there}", schema: published}}'
        return written(self.folder / "spec.yaml", SPEC.format(source=given, target=target))

    def rows(self, publish: str) -> int:
        """How many rows readers see."""
        query = "SELECT count(*) FROM published.people"
        if publish == "spark":
            return int(self.client.table("published.people").count())
        if publish == "database":
            with psycopg.connect(self.there) as connection:
                return int(connection.execute(query).fetchall()[0][0])
        with duckdb.connect(self.folder / "out.duckdb", read_only=True) as connection:
            return int(connection.execute(query).fetchall()[0][0])


@pytest.fixture
def place(
    client: Any, hive: tuple[str, Path], tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    monkeypatch.setattr("qblock.versions.people.ONE_IN", 0)
    same_keys(monkeypatch)
    with ExitStack() as stack:
        yield Place(client, hive, tmp_path, lambda: stack.enter_context(database(server)))


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """The content digest of the first version, from a DuckDB file to a release file."""
    place = Place(None, ("", Path()), tmp_path_factory.mktemp("plain"), str)
    place.write("duckdb", COLUMNS)
    return place.release("duckdb", "file").publish().digest


@pytest.mark.parametrize(
    ("source", "publish", "private"),
    [("spark", "database", "beside")]
    + [("spark", "file", private) for private in ("beside", "in a folder", "in a database")]
    + [(source, "spark", "in a folder") for source in ("duckdb", "parquet", "postgresql", "localhost")]
    + [("parquet", "spark", "in a database")],
)
def test_a_release_from_or_to_a_spark_server(
    place: Place, source: str, publish: str, private: str, digest: str
) -> None:
    place.write(source, COLUMNS)
    release = place.release(source, publish, private)
    first = release.publish()
    assert (first.digest, first.rows, place.rows(publish)) == (digest, 36, 36)
    assert release.publish().status == "unchanged"
    place.write(source, {name: [*values, *MORE[name]] for name, values in COLUMNS.items()})
    release = place.release(source, publish, private)
    second = release.publish()
    assert (second.status, second.version, second.rows) == ("published", 2, 48)
    release.rollback(1)
    assert place.rows(publish) == 36
    release.rollback(2)
    release.erase(["person 1"], now=True)
    assert place.rows(publish) < 48
    assert not release.verify().problems
    assert release.report().published is not None
    assert release.history().events
    assert not [name for (name,) in place.client.sql("SHOW SCHEMAS LIKE 'qblock_staging*'").collect()]


KINDS = {
    "byte": "TINYINT", "short": "SMALLINT", "whole": "INT", "long": "BIGINT", "single": "FLOAT", "real": "DOUBLE",
    "amount": "DECIMAL(20, 4)", "yes": "BOOLEAN", "day": "DATE", "moment": "TIMESTAMP", "local": "TIMESTAMP_NTZ",
    "note": "STRING", "code": "CHAR(4)", "raw": "BINARY",
}  # fmt: skip
VALUES = [
    "-128Y, 32767S, 7, 9223372036854775807L, 0.1F, DOUBLE('NaN'), -12.5BD, true, DATE'-0044-03-15', "
    "TIMESTAMP'2024-03-31 01:30:00.000001 UTC', TIMESTAMP_NTZ'0001-01-01 00:00:00', '', 'ab', X'00ff'",
    "0Y, 0S, -7, 0L, FLOAT('-Infinity'), 1e300D, 1e15BD, false, DATE'+12345-01-01', "
    r"TIMESTAMP'1900-01-01 00:00:00 UTC', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', 'a\'\\b\nß', 'c', X''",
    ", ".join(["NULL"] * len(KINDS)),
]
TYPED = """version: 1
release: typed
source: {{url: "{url}", table: clinic.typed}}
attributes:
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  {columns}
privacy: [{{k_anonymity: {{k: 2}}}}]
search: {{node: {{sex: 0}}}}
versions: {{joint: none}}
{target}
"""


def test_values_of_each_type_arrive_as_they_are(
    client: Any, hive: tuple[str, Path], tmp_path: Path, postgresql_url: str
) -> None:
    body = ", ".join(f"`{name}` {type_}" for name, type_ in KINDS.items())
    client.sql("DROP TABLE IF EXISTS clinic.typed")
    client.sql(f"CREATE TABLE clinic.typed (sex STRING, {body}) USING PARQUET")
    rows = ", ".join(f"('{sex}', {values})" for values in VALUES for sex in ("f", "m") for _ in range(9))
    client.sql(f"INSERT INTO clinic.typed VALUES {rows}")
    given = {"url": hive[0], "columns": "\n  ".join(f"{name}: insensitive" for name in KINDS)}
    targets = (
        ON_SPARK.format(folder=hive[1], url="", ledger="sqlite:///qblock/ledger.sqlite"),
        'publish: {url: "duckdb:///out.duckdb"}',
        f'publish: {{url: "{postgresql_url}", schema: published}}',
    )
    digests = [
        written(tmp_path / f"{i}" / "spec.yaml", TYPED.format(target=target, **given)).publish().digest
        for i, target in enumerate(targets)
    ]
    assert len(set(digests)) == 1
