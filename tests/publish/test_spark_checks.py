"""What a spec takes for granted, held against a table of Spark: as against the same table in DuckDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from release.test_checks import people

from publish.spark_releases import ON_SPARK, written
from qblock.search.run import open_task

pytestmark = pytest.mark.spark
SPEC = """version: 1
release: people
source: {{url: "{url}", table: {table}}}
attributes:
  id: identifying
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10, 40]}}}}
  city: {{role: quasi_identifier, hierarchy: suppress}}
  born: insensitive
  code: insensitive
  ward: insensitive
  disease: sensitive
privacy: [{{k_anonymity: {{k: 5}}}}, {{distinct_l_diversity: {{l: 2, sensitive: disease}}}}]
search: {{node: {{age: 1, city: 1}}}}
{target}
"""


def test_the_findings_are_those_of_duckdb(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    rows = pa.table(people())
    client.createDataFrame(rows).write.mode("overwrite").saveAsTable("clinic.people")
    with duckdb.connect(tmp_path / "w.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    on_spark = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/private/ledger.sqlite", folder=hive[1])
    places = (
        ("spark", hive[0], "clinic.people", on_spark),
        ("duck", "duckdb:///w.duckdb", "people", 'publish: {url: "duckdb:///out.duckdb"}'),
    )
    spark, duck = (
        written(tmp_path / f"{name}.yaml", SPEC.format(url=url, table=table, target=target)).check()
        for name, url, table, target in places
    )
    assert spark.checks == duck.checks
    assert [finding.columns for finding in spark.checks] == [("born", "age"), ("code", "city")]


def test_codes_for_unknown_are_null(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    ages = [999 if i % 7 == 0 else age for i, age in enumerate(people()["age"])]
    client.createDataFrame(pa.table({"age": ages})).write.mode("overwrite").saveAsTable("clinic.ages")
    on_spark = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/private/ledger.sqlite", folder=hive[1])
    entry = "{role: quasi_identifier, hierarchy: {ranges: [10, 40]}, unknown: [999]}"
    spec = (
        f'version: 1\nrelease: ages\nsource: {{url: "{hive[0]}", table: clinic.ages}}\nattributes: {{age: {entry}}}\n'
    )
    privacy = "privacy: [{k_anonymity: {k: 5}}]\n"
    with open_task(written(tmp_path / "ages.yaml", f"{spec}{privacy}{on_spark}\n").spec) as task:
        (blocks,) = task.source.frequency_sets.blocks((1,), ())
        known = Counter(age // 10 for age in ages if age != 999)
        assert sorted(blocks.total.tolist()) == sorted([*known.values(), ages.count(999)])
