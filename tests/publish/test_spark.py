"""Releases from a real Spark server: the versions of DuckDB, shown by a view that is there at every moment."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cluster import started

from publish.spark_releases import ON_SPARK, tables, written
from qblock.api import Release
from qblock.engines.spark.catalog import SparkCatalog
from qblock.engines.spark.client import end
from qblock.errors import InputError, QblockError, Refused
from qblock.publish.targets.spark_helpers import BESIDE
from qblock.publish.targets.spark_versions import SparkChecked, SparkVersions
from qblock.spec import Spec

pytestmark = pytest.mark.spark

HOSTILE = ["a'b", 'say "x"', "back\\slash", "new\nline", "\U0001f600"]
SPEC = """version: 1
release: people
source: {{url: "{url}", table: {table}}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10, 20]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  day: {{role: quasi_identifier, hierarchy: {{dates: [month, year]}}, nulls: top}}
  ill: sensitive
  ward: insensitive
privacy: [{{k_anonymity: {{k: 3}}}}, {{distinct_l_diversity: {{l: 2}}}}]
{target}
versions: {{joint: none}}
"""
COPY = 10
"""The view and its seven helper views, and the two tables that they show."""
SHOWN = ["published", "published", "rolled_back"]


def people(rows: int, seed: int) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "age": pa.array([draw.randrange(18, 60) for _ in range(rows)], pa.int64()),
            "sex": [draw.choice("mf") for _ in range(rows)],
            "day": pa.array([draw.choice([None, *range(9000, 9400)]) for _ in range(rows)], pa.int32()).cast(
                pa.date32()
            ),
            "ill": [draw.choice(HOSTILE) for _ in range(rows)],
            "ward": pa.array([draw.choice([1.5, 2.0, None]) for _ in range(rows)], pa.float64()),
        }
    )


def on_spark(client: Any, hive: tuple[str, Path], tmp_path: Path, rows: pa.Table, ledger: str | None = None) -> Release:
    """A release of rows, which are the source from now on."""
    client.createDataFrame(rows).write.mode("overwrite").saveAsTable("clinic.people")
    ledger = ledger or f"sqlite:///{tmp_path}/qblock/ledger.sqlite"
    target = ON_SPARK.format(ledger=ledger, folder=hive[1])
    return written(tmp_path / "spark.yaml", SPEC.format(url=hive[0], table="clinic.people", target=target))


def on_duckdb(tmp_path: Path, rows: pa.Table) -> Release:
    folder = tmp_path / "duckdb"
    folder.mkdir(exist_ok=True)
    with duckdb.connect(folder / "w.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM given")
    target = 'publish: {url: "duckdb:///out.duckdb"}'
    return written(folder / "duck.yaml", SPEC.format(url="duckdb:///w.duckdb", table="people", target=target))


def seen(client: Any) -> list[tuple[Any, ...]]:
    """What readers see, but for bounds, of which the client's Python knows no far days."""
    found = client.sql("SELECT age, sex, day, ill, ward FROM published.people").collect()
    return sorted((tuple(row) for row in found), key=repr)


def test_what_looks_like_a_setting_is_a_name(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    """Spark puts settings, and variables of the server's environment, in the place of such names in a statement."""
    quasi, sensitive, plain = "${HOME}", "${env:PATH}", "${spark.sql.session.timeZone}"
    rows = pa.table({quasi: ["x", "y"] * 6, sensitive: [f"${{HOME}} {i % 3}" for i in range(12)], plain: [quasi] * 12})
    client.createDataFrame(rows).write.mode("overwrite").saveAsTable("clinic.people")
    target = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/qblock/ledger.sqlite", folder=hive[1])
    text = SPEC.format(url=hive[0], table="clinic.people", target=target)
    begin, end = text.index("attributes:"), text.index("privacy:")
    attributes = {quasi: "{role: quasi_identifier, hierarchy: suppress}", sensitive: "sensitive", plain: "insensitive"}
    lines = [f'  "{name}": {what}\n' for name, what in attributes.items()]
    release = written(tmp_path / "spark.yaml", f"{text[:begin]}attributes:\n{''.join(lines)}{text[end:]}")
    for version in (1, 2):
        assert release.publish(force=True).version == version
    assert release.verify().problems == ()
    # A reader's session, with the server's own settings.
    found = client.table("published.people").toArrow()
    assert set(found.column_names) == {quasi, sensitive, plain}
    assert sorted(found[sensitive].to_pylist()) == sorted(rows[sensitive].to_pylist())
    assert set(found[quasi].to_pylist()) == {"x", "y"}
    shown = client.table("published.people_columns").toArrow()
    assert {quasi, sensitive, plain} <= {value for column in shown.columns for value in column.to_pylist()}


def test_versions_are_those_of_duckdb(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    for seed, number in ((1, 1), (2, 2)):
        rows = people(600, seed)
        spark, duck = on_spark(client, hive, tmp_path, rows), on_duckdb(tmp_path, rows)
        published, expected = spark.publish(), duck.publish()
        assert (published.status, published.version) == ("published", number)
        assert published.digest == expected.digest
        assert published.node == expected.node
        with duckdb.connect(tmp_path / "duckdb" / "out.duckdb", read_only=True) as connection:
            there = connection.execute("SELECT age, sex, day, ill, ward FROM published.people").fetchall()
        assert seen(client) == sorted(there, key=repr)
        assert spark.verify().problems == ()
        assert spark.publish().status == "unchanged"
    # The older copy goes with the run after the next version: readers may be reading it.
    assert len(tables(client)) == COPY
    assert spark.rollback(1).digest == on_duckdb(tmp_path, people(600, 1)).publish().digest
    assert spark.verify().problems == ()
    states = [event.state for event in spark.history().events]
    assert [state for state in states if state in SHOWN] == SHOWN
    files = [file for file in hive[1].rglob("p*/*/part-*.parquet") if not file.parent.name.endswith(BESIDE)]
    assert {file.parents[1].name for file in files} >= {"private", "published"}
    for file in files:
        table = pq.read_table(file, columns=["age", "sex"]).to_pylist()
        keys = [tuple((row[n] is not None, row[n]) for n in ("age", "sex")) for row in table]
        assert keys == sorted(keys)
    spark.retire()
    assert tables(client) == set()


def test_the_ledger_may_be_in_postgresql(
    client: Any, hive: tuple[str, Path], tmp_path: Path, postgresql_url: str
) -> None:
    first = on_spark(client, hive, tmp_path, people(300, 3), ledger=postgresql_url).publish()
    second = on_spark(client, hive, tmp_path, people(300, 4), ledger=postgresql_url)
    assert second.publish().version == 2
    assert second.verify().problems == ()
    assert second.rollback(1).digest == first.digest
    assert second.publish().status == "published"  # the source is still the second one
    assert second.verify().problems == ()


@pytest.mark.parametrize("where", ["before the view", "after the view", "while writing"])
def test_a_run_that_is_stopped_loses_nothing(
    client: Any, hive: tuple[str, Path], tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_spark(client, hive, tmp_path, people(300, 5)).publish()
    before = seen(client)
    second = on_spark(client, hive, tmp_path, people(300, 6))
    kept = SparkCatalog.show if where != "while writing" else SparkCatalog.mark

    def stopped(*given: Any) -> None:
        if where == "after the view":
            kept(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SparkCatalog, kept.__name__, stopped)
        with pytest.raises(KeyboardInterrupt):
            second.publish()
    assert (seen(client) == before) == (where != "after the view")
    found = second.publish()
    assert second.verify().problems == ()
    assert seen(client) != before
    assert found.status == ("unchanged" if where == "after the view" else "published")
    second.publish()
    assert len(tables(client)) == COPY


def test_a_published_copy_that_is_another_one_is_not_shown(
    client: Any, hive: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 7))
    true = SparkCatalog.rows
    monkeypatch.setattr(SparkCatalog, "rows", lambda *given: true(*given).limit(299))
    with pytest.raises(QblockError, match="not what was checked: nothing is published"):
        release.publish()
    monkeypatch.undo()
    assert tables(client) == set()  # nor is the copy left where readers may read it
    assert release.publish().status == "published"


def test_what_others_made_is_left_alone(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 8))
    client.sql(f"CREATE SCHEMA published LOCATION '{hive[1]}/published'")
    client.sql("CREATE VIEW published.people AS SELECT 1 AS one")
    with pytest.raises(InputError, match=r"published\.people already exists and is not the view of release people"):
        release.publish()
    client.sql("DROP VIEW published.people")
    client.sql("CREATE TABLE published.people_v1_mine AS SELECT 1 AS one")
    release.publish()
    release.publish(force=True)
    assert "people_v1_mine" in tables(client)
    client.sql("ALTER VIEW published.people AS SELECT 1 AS age")
    assert release.verify().problems
    assert release.publish().status == "published"
    assert release.verify().problems == ()


def test_a_ledger_that_does_not_know_what_is_published_is_refused(
    client: Any, hive: tuple[str, Path], tmp_path: Path
) -> None:
    on_spark(client, hive, tmp_path, people(300, 11)).publish()
    before = seen(client)
    other = on_spark(client, hive, tmp_path, people(300, 12), ledger=f"sqlite:///{tmp_path}/other/ledger.sqlite")
    with pytest.raises(Refused, match="shows version 1 of release people"):
        other.publish()
    assert seen(client) == before


def test_another_folder_of_the_schema_is_refused(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 9))
    client.sql("CREATE SCHEMA published")
    with pytest.raises(InputError, match="schema published is stored in another folder"):
        release.publish()
    assert tables(client) == set()


def test_a_catalog_in_memory_is_refused(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    release = on_spark(client, hive, tmp_path, people(30, 1))
    with started(tmp_path, "in-memory") as url:
        spec = release.spec.path.read_text("utf-8").replace(hive[0], url)
        with pytest.raises(InputError, match="the catalog of this Spark server is in its memory"):
            written(tmp_path / "spark.yaml", spec).plan()


def test_readers_see_a_version_at_every_moment(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    """The view alone, shown in turn by a session while another asks: none of its answers is an error or a mixture."""
    import threading

    from pyspark.sql.connect.session import SparkSession

    client.sql(f"CREATE SCHEMA published LOCATION '{hive[1]}/published'")
    for name in ("one", "two"):
        client.sql(f"CREATE TABLE published.{name} USING PARQUET AS SELECT '{name}' AS a, '{name}' AS b FROM range(3)")
    catalog, done, wrong, answers = SparkCatalog(client), threading.Event(), [], set()
    catalog.show("published", "v", "SELECT `a`, `b` FROM `published`.`one`", "qblock release v")

    def read() -> None:
        reader = SparkSession.builder.remote(hive[0]).create()
        while not done.is_set():
            try:
                found = {tuple(row) for row in reader.sql("SELECT a, b FROM published.v").collect()}
            except Exception as error:
                wrong.append(str(error)[:200])
                continue
            answers.update(found)
            if len(found) != 1:
                wrong.append(repr(found))
        end(reader)

    thread = threading.Thread(target=read)
    thread.start()
    for i in range(100):
        catalog.show("published", "v", f"SELECT `a`, `b` FROM `published`.`{('one', 'two')[i % 2]}`", "unused")
    done.set()
    thread.join()
    assert wrong == []
    assert answers == {("one", "one"), ("two", "two")}


def test_a_run_reads_private_versions_as_they_were_checked(
    client: Any, hive: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 10))
    true = SparkChecked.__init__

    def altered(
        self: SparkChecked, spec: Spec, place: Any, session: Any, catalog: Any, version: int, *more: Any
    ) -> None:
        versions = SparkVersions(spec)
        name = f"`{versions.private}`.`{versions.name(version)}`"
        client.sql(f"INSERT INTO {name} SELECT * FROM {name} LIMIT 1")
        true(self, spec, place, session, catalog, version, *more)

    monkeypatch.setattr(SparkChecked, "__init__", altered)
    with pytest.raises(QblockError, match="the copy failed its check, nothing is published"):
        release.publish()
    assert "people" not in tables(client)
