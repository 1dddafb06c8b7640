"""What a spec takes for granted, held against a table of Spark: as against the same table in DuckDB."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlalchemy as sa
from release.test_checks import people
from release.test_group_checks import homes

from publish.spark_releases import ON_SPARK, written
from qblock.engines.session import Session
from qblock.engines.spelled import Same, Spellings
from qblock.engines.tables import TableName
from qblock.search.run import open_task

pytestmark = pytest.mark.spark
HEAD = 'version: 1\nrelease: people\nsource: {{url: "{url}", table: {table}}}\n'
PEOPLE = """attributes:
  id: identifying
  age: {role: quasi_identifier, hierarchy: {ranges: [10, 40]}}
  city: {role: quasi_identifier, hierarchy: suppress}
  born: insensitive
  code: insensitive
  ward: insensitive
  disease: sensitive
privacy: [{k_anonymity: {k: 5}}, {distinct_l_diversity: {l: 2, sensitive: disease}}]
search: {node: {age: 1, city: 1}}
"""


def everything() -> dict[str, list[Any]]:
    """A table of which each check of values, groups and history has something to say."""
    rng = random.Random(7)
    sexes = [rng.choice("fm") for _ in range(600)]
    ages = [999 if i % 20 == 0 else 20 + i % 40 for i in range(600)]
    return {
        "id": [f"p{i}" for i in range(600)],
        "sex": sexes,
        "age": ages,
        "born": [2026 - age for age in ages],
        "is_deleted": [i % 9 == 0 for i in range(600)],
        "salary": [30000 + 37 * i for i in range(600)],
        "disease": [rng.choice(["flu", "Flu", "ovary" if sex == "f" else "testis"]) for sex in sexes],
        "smoker": ["no" if i % 40 else "yes" for i in range(600)],
    }


EVERYTHING = """attributes:
  id: identifying
  is_deleted: identifying
  sex: {role: quasi_identifier, hierarchy: suppress}
  age: {role: quasi_identifier, hierarchy: {ranges: [1, 1000]}}
  born: insensitive
  salary: sensitive
  disease: sensitive
  smoker: sensitive
privacy: [{k_anonymity: {k: 5}}, {distinct_l_diversity: {l: 4, sensitive: disease}}]
search: {node: {sex: 1, age: 2}}
"""
HOMES = """attributes:
  name: identifying
  household: insensitive
  zip: {role: quasi_identifier, hierarchy: {digits: 4}}
  age: {role: quasi_identifier, hierarchy: {ranges: [20, 60]}}
  disease: sensitive
privacy: [{k_anonymity: {k: 3}}]
search: {node: {zip: 0, age: 2}}
"""
SAID = [
    ("determines", "born", "age"),
    ("history", "is_deleted"),
    ("unknown_codes", "age"),
    ("unique_sensitive", "salary"),
    ("spellings", "disease"),
    ("skew", "smoker"),
    ("skew", "disease", "sex"),
]


@pytest.mark.parametrize(
    ("columns", "spec", "said"),
    [
        (people(), PEOPLE, [("determines", "born", "age"), ("determines", "code", "city")]),
        (everything(), EVERYTHING, SAID),
        (homes(), HOMES, [("groups", "household")]),
    ],
    ids=["dependencies", "values", "groups"],
)
def test_every_check_says_what_it_says_in_duckdb(
    client: Any,
    hive: tuple[str, Path],
    tmp_path: Path,
    columns: dict[str, list[Any]],
    spec: str,
    said: list[tuple[str, ...]],
) -> None:
    rows = pa.table(columns)
    client.createDataFrame(rows).write.mode("overwrite").saveAsTable("clinic.everything")
    with duckdb.connect(tmp_path / "w.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE everything AS SELECT * FROM given")
    on_spark = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/private/ledger.sqlite", folder=hive[1])
    places = (
        ("spark", hive[0], "clinic.everything", on_spark),
        ("duck", "duckdb:///w.duckdb", "everything", 'publish: {url: "duckdb:///out.duckdb"}'),
    )
    spark, duck = (
        written(tmp_path / f"{name}.yaml", f"{HEAD.format(url=url, table=table)}{spec}{target}\n").check()
        for name, url, table, target in places
    )
    assert spark.checks == duck.checks
    assert [(finding.check, *finding.columns) for finding in spark.checks] == said


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


SPELLED = ["flu", "Flu", " flu", "flu", "gout", "Gout", "GOUT", "Gout", "n/a", "N/A", None]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["there", "elsewhere"])
@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
def test_spellings_are_made_one_of_what_is_copied(
    client: Any,
    hive: tuple[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    elsewhere: bool,
    together: bool,
) -> None:
    """Rows that come while the table is read are not in it, in whatever spelling."""
    rows = [(f"r{i:02}", 30 + i, ill, i < 11) for i, ill in enumerate([*SPELLED, "FLU", "FLU", "FLU"])]
    frame = client.createDataFrame(rows, "id string, age int, ill string, there boolean")
    frame.write.mode("overwrite").saveAsTable("clinic.spelled")
    columns_read = []

    def while_it_changes(self: Same, session: Session, value: Any, rows: Any, column: Any) -> Spellings:
        columns_read.append(column.name)
        client.sql("INSERT INTO clinic.spelled VALUES ('s', 30, 'fLU', true)")
        try:
            return spellings_of(self, session, value, rows, column)
        finally:
            client.sql("INSERT INTO clinic.spelled VALUES ('s', 30, 'fLu', true)")

    spellings_of = Same.spellings
    monkeypatch.setattr(Same, "spellings", while_it_changes)
    spec = f"""version: 1
release: spelled
source: {{url: "{hive[0]}", table: clinic.spelled, where: there}}
{"entity: id" if together else ""}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10, 40]}}}}
  ill: {{role: sensitive, nulls: value, same: [case, space], unknown: [n/a]}}
privacy: [{{k_anonymity: {{k: 2}}}}]
"""
    target = 'publish: {url: "duckdb:///out.duckdb"}'
    if not elsewhere:
        target = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/private/ledger.sqlite", folder=hive[1])
    with open_task(written(tmp_path / "spelled.yaml", f"{spec}{target}\n").spec) as task:
        session, table = task.source.session, TableName.parse("clinic.spelled")
        relation = session.relation(table)
        ages = session.fetch(sa.select(relation.c.age.label("age"), relation.c.ill.label("ill"))).to_pylist()
    gout = "gout" if together else "Gout"
    read = [row["ill"] for row in sorted(ages, key=lambda row: row["age"])]
    assert read == ["flu"] * 4 + [gout] * 4 + [None] * 3
    assert columns_read == ["ill"]


def test_a_release_has_one_spelling(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    columns = {"id": [f"r{i}" for i in range(20)], "age": [i // 2 for i in range(20)], "ill": ["flu", "gout"] * 10}
    spelled = columns | {"ill": [ill.upper() if i % 5 == 0 else ill for i, ill in enumerate(columns["ill"])]}
    digests = []
    for name, rows, same in (("plain", columns, ""), ("spelled", spelled, ", same: [case]")):
        client.createDataFrame(pa.table(rows)).write.mode("overwrite").saveAsTable(f"clinic.{name}")
        folder = tmp_path / name
        folder.mkdir()
        on_spark = ON_SPARK.format(ledger=f"sqlite:///{folder}/private/ledger.sqlite", folder=hive[1])
        spec = f"""version: 1
release: {name}
source: {{url: "{hive[0]}", table: clinic.{name}}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [5]}}}}
  ill: {{role: sensitive{same}}}
privacy: [{{distinct_l_diversity: {{l: 2}}}}]
{on_spark}
"""
        release = written(folder / "release.yaml", spec)
        assert release.publish().status == "published"
        assert not release.verify().problems
        shown = client.sql(f"SELECT age, ill, count(*) AS n FROM published.{name} GROUP BY ALL ORDER BY ALL")
        digests.append([tuple(row) for row in shown.collect()])
    assert digests[0] == digests[1]
    assert len(digests[0]) > 1


def test_a_view_that_differs_each_time_is_named(client: Any, hive: tuple[str, Path], tmp_path: Path) -> None:
    client.createDataFrame(pa.table(people())).write.mode("overwrite").saveAsTable("clinic.people")
    client.sql("CREATE OR REPLACE VIEW clinic.some AS SELECT * FROM clinic.people WHERE rand() < 0.99")
    client.sql("CREATE OR REPLACE VIEW clinic.again AS SELECT * FROM clinic.some")
    client.sql("CREATE OR REPLACE VIEW clinic.dated AS SELECT * FROM clinic.people WHERE now() > DATE'2020-01-01'")
    client.sql("CREATE OR REPLACE VIEW clinic.still AS SELECT *, 'rand()' AS now FROM clinic.people")
    target = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/private/ledger.sqlite", folder=hive[1])
    told = {}
    for table in ("people", "again", "dated", "still"):
        spec = f"{HEAD.format(url=hive[0], table=f'clinic.{table}')}{PEOPLE}{target}\n"
        checks = written(tmp_path / f"{table}.yaml", spec).check().checks
        told[table] = [finding.sentence for finding in checks if finding.check == "volatile"]
    assert told == {
        "people": [],
        "again": [
            "clinic.again is a view with random() in clinic.some, which it reads: each run reads other rows, and "
            "versions differ though no row changed"
        ],
        "dated": [
            "clinic.dated is a view with now(): each run reads other rows, and versions differ though no row changed"
        ],
        "still": [],
    }
