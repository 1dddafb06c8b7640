"""Helper views on a real Spark server: the rows of DuckDB, of the version that is shown, whatever stops a run."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from publish.spark_releases import ON_SPARK, tables, written
from publish.test_spark import on_spark, people
from qblock.api import Release
from qblock.engines.spark.catalog import SparkCatalog
from qblock.errors import InputError, QblockError
from qblock.publish.helpers import KINDS

pytestmark = pytest.mark.spark

HELPERS = {f"people_{kind}" for kind in KINDS}
COMPUTED = ("blocks", "midpoints")
"""Of the rows of the version, whatever is kept beside them."""
TEXTS = ["it's", 'say "x"', "back\\slash", "new\nline", "`tick`", "\U0001f600 ü"]
SEX, ILL = 'sex `x` "y" it\'s \\', "ill, or; (not)"
SPEC = """version: 1
release: people
source: {{url: "{url}", table: {table}}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [5, 10, 20]}}}}
  {sex}: {{role: quasi_identifier, hierarchy: suppress}}
  day: {{role: quasi_identifier, hierarchy: {{dates: [month, year]}}, nulls: top}}
  {ill}: sensitive
  ward: insensitive
privacy: [{{k_anonymity: {{k: 3}}}}, {{distinct_l_diversity: {{l: 2}}}}]
search: {{node: [3, 0, 2]}}
{target}
versions: {{joint: none}}
"""


def hostile(seed: int) -> pa.Table:
    rows = people(600, seed)
    sexes = [TEXTS[i % len(TEXTS)] for i in range(rows.num_rows)]
    ages = pa.array([20 + age % 40 for age in rows["age"].to_pylist()], pa.int64())
    shown = {
        "age": ages,
        SEX: pa.array(sexes),
        "day": rows["day"].combine_chunks().fill_null(datetime.date(1995, 5, 5)),
    }
    return pa.table({**shown, ILL: rows["ill"], "ward": rows["ward"]})


def both(client: Any, hive: tuple[str, Path], tmp_path: Path, seed: int) -> tuple[Release, Release]:
    """One release on either engine, whose source has these rows now."""
    rows, names = hostile(seed), {"sex": json.dumps(SEX), "ill": json.dumps(ILL)}
    client.createDataFrame(rows).write.mode("overwrite").saveAsTable("clinic.people")
    target = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/qblock/ledger.sqlite", folder=hive[1])
    text = SPEC.format(url=hive[0], table="clinic.people", target=target, **names)
    spark = written(tmp_path / "spark.yaml", text)
    folder = tmp_path / "duckdb"
    folder.mkdir(exist_ok=True)
    with duckdb.connect(folder / "w.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM given")
    target = 'publish: {url: "duckdb:///out.duckdb"}'
    return spark, written(
        folder / "duck.yaml", SPEC.format(url="duckdb:///w.duckdb", table="people", target=target, **names)
    )


def quoted(name: str, mark: str) -> str:
    return mark + name.replace(mark, 2 * mark) + mark


def compared(client: Any, tmp_path: Path) -> None:
    """Every helper view has the columns and rows of DuckDB, in their order; but for when it was made, and infinite
    days, which Spark has not."""
    for kind in KINDS:
        with duckdb.connect(tmp_path / "duckdb" / "out.duckdb", read_only=True) as connection:
            expected = connection.execute(f"SELECT * FROM published.people_{kind}")
            names = [row[0] for row in expected.description or ()]
            assert client.table(f"published.people_{kind}").columns == names
            some = [name for name in names if name not in ("published_at", "day_from", "day_until")]
            order = " ORDER BY block" if kind == "blocks" else ""
            own, theirs = (", ".join(quoted(name, mark) for name in some) for mark in '"`')
            there = connection.execute(f"SELECT {own} FROM published.people_{kind}{order}").fetchall()
        found = [tuple(row) for row in client.sql(f"SELECT {theirs} FROM published.people_{kind}{order}").collect()]
        if kind == "midpoints":  # a join keeps no order
            found, there = sorted(found, key=repr), sorted(there, key=repr)
        assert found == there, kind
        assert found


def shown(client: Any) -> Any:
    """The version of which helper views are, by themselves."""
    ((version,),) = client.sql("SELECT version FROM published.people_version").collect()
    return version


def test_helper_views_are_those_of_duckdb(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    for seed in (1, 2):
        spark, duck = both(client, hive, tmp_path, seed)
        assert (spark.publish().version, duck.publish().version) == (seed, seed)
        compared(client, tmp_path)
        assert spark.verify().problems == ()
        reports = [one.report().to_dict()["published"] for one in (spark, duck)]
        for report in reports:
            rows = report.pop("sample")["rows"]
            assert rows
            del report["at"], report["view"]
        assert reports[0] == reports[1]
    types = dict(client.table("published.people_version").dtypes) | dict(
        client.table("published.people_columns").dtypes
    )
    assert (types["published_at"], types["share_suppressed"], types["level"]) == ("timestamp_ntz", "double", "bigint")
    for release in (spark, duck):
        release.rollback(1)
    # This session has read an earlier copy of the version.
    compared(client, tmp_path)
    assert spark.verify().problems == ()
    older = [one.report(internal=True, version=2).to_dict() for one in (spark, duck)]
    for report in older:
        del report["published"]["sample"], report["published"]["at"], report["published"]["view"]
    assert older[0]["published"] == older[1]["published"]
    assert list(older[0]["internal"]["problems"]) == []
    spark.retire()
    assert tables(client) == set()


def test_everything_says_what_it_is(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 3))
    for _ in range(2):
        release.publish(force=True)
        said = {one.name: one.description for one in client.catalog.listTables("published") if one.tableType == "VIEW"}
        assert set(said) == HELPERS | {"people"}
        assert said["people"].startswith("Release people, anonymized by qblock. What each column means")
        assert said["people_blocks"].startswith("The q*-blocks of people")
        rows = client.sql("DESCRIBE TABLE published.people").collect()
        columns = {row["col_name"]: row["comment"] for row in rows}
        assert columns["age"].startswith("Quasi-identifier: a label of its hierarchy, `*` where it is suppressed")
        assert columns["day_from"].startswith("Bound of the label of day")
        assert columns["ward"] == "Published as it is in the source."
        assert all(columns.values())


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ends whoever calls a method of the catalog for the Nth time, before it does anything."""

    def at(name: str, number: int) -> pytest.MonkeyPatch:
        true, calls = getattr(SparkCatalog, name), []

        def counted(*given: Any, **named: Any) -> Any:
            calls.append(name)
            if len(calls) == number:
                raise KeyboardInterrupt
            return true(*given, **named)

        monkeypatch.setattr(SparkCatalog, name, counted)
        return monkeypatch

    return at


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("earlier", [True, False])
def test_a_run_that_is_stopped_among_its_views_is_finished(
    client: Any, hive: tuple[str, Path], tmp_path: Path, stopped: Any, number: int, earlier: bool
) -> None:
    if earlier:
        on_spark(client, hive, tmp_path, people(300, 4)).publish()
    second = on_spark(client, hive, tmp_path, people(300, 5))
    patch = stopped("show", number)
    with pytest.raises(KeyboardInterrupt):
        second.publish()
    patch.undo()
    version = 2 if earlier else 1
    if earlier:
        assert second.verify().problems  # the view is changed, and neither its helper views nor the ledger
    assert second.publish().status == "unchanged"
    assert shown(client) == version
    assert second.verify().problems == ()
    second.publish()
    assert len(tables(client)) == len(HELPERS) + 3  # with the view, its table, and theirs


def test_a_helper_view_that_was_altered_is_found_and_set_right(
    client: Any, hive: tuple[str, Path], tmp_path: Path
) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 6))
    release.publish()
    text = "SELECT 9L AS version, TIMESTAMP_NTZ '2020-01-01' AS published_at, 1L AS rows, 0L AS previous"
    client.sql(f"ALTER VIEW published.people_version AS {text}")
    assert any("is not as version 1 was published" in one for one in release.verify().problems)
    assert release.publish().status == "unchanged"
    assert shown(client) == 1
    assert release.verify().problems == ()
    (table,) = (name for name in tables(client) if name.endswith("_shown"))
    client.sql(f"INSERT INTO published.{table} SELECT * FROM published.{table} WHERE kind = 'guarantees' LIMIT 1")
    assert any("is not as version 1 was published" in one for one in release.verify().problems)


def test_something_else_of_a_helper_s_name_is_left_alone(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 7))
    client.sql(f"CREATE SCHEMA published LOCATION '{hive[1]}/published'")
    for kind, made in (("view", "VIEW published.people_levels AS"), ("table", "TABLE published.people_blocks AS")):
        client.sql(f"CREATE {made} SELECT 1 AS one")
        for look in (release.plan, release.publish):
            with pytest.raises(InputError, match=f"already exists, a {kind} that does not belong to release people"):
                look()
        assert len(tables(client)) == 1
        assert client.sql("SHOW SCHEMAS LIKE 'qblock*'").collect() == []
        client.sql(f"DROP {made.removesuffix(' AS')}")
    client.sql("CREATE TABLE published.people_levels AS SELECT 1 AS one")
    text = release.spec.path.read_text("utf-8").replace("publish: {", "publish: {names: {levels: labels}, ")
    renamed = written(release.spec.path, text)
    assert renamed.publish().version == 1
    assert renamed.verify().problems == ()
    assert {"labels", "people_columns"} <= tables(client)
    renamed.retire()
    assert tables(client) == {"people_levels"}


def test_helper_views_get_other_names(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 8))
    release.publish()
    text = release.spec.path.read_text("utf-8")
    new = "publish: {names: {levels: people_columns, columns: people_levels, version: which}, "
    renamed = written(release.spec.path, text.replace("publish: {", new))
    assert renamed.publish().version == 2
    assert client.table("published.people_levels").columns[1] == "role"
    assert client.table("published.people_columns").columns[2] == "label"
    assert "which" in tables(client)
    assert "people_version" not in tables(client)
    assert renamed.verify().problems == ()


def test_what_helper_views_would_show_is_what_was_staged(
    client: Any, hive: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 10))
    true = SparkCatalog.rows

    def fewer(self: SparkCatalog, schema: str, table: str) -> Any:
        found = true(self, schema, table)
        return found.limit(1) if table.endswith("_shown") else found  # type: ignore[attr-defined]

    monkeypatch.setattr(SparkCatalog, "rows", fewer)
    with pytest.raises(QblockError, match="what helper views would show is not what was staged: nothing is published"):
        release.publish()
    assert tables(client) == set()


def test_a_release_that_is_taken_away_is_so_whole(
    client: Any, hive: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = on_spark(client, hive, tmp_path, people(300, 11))
    release.publish()
    true = SparkCatalog.drop

    def half(self: SparkCatalog, schema: str, names: Any, kind: str = "TABLE") -> None:
        true(self, schema, names[:2], kind)
        if kind == "VIEW" and names:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SparkCatalog, "drop", half)
        with pytest.raises(KeyboardInterrupt):
            release.retire()
    assert "people" not in tables(client)
    assert len(tables(client)) > 2
    assert release.retire().status == "unchanged"
    assert tables(client) == set()
