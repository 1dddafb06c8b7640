"""Versions from Spark that are checked together: those of DuckDB, and no key leaves the store."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from publish.spark_releases import ON_SPARK, same_key, same_keys, written
from qblock.api import Ledger, Release
from qblock.engines.duckdb.adapter import DuckdbAdapter
from qblock.engines.spark.session import SparkSession
from qblock.engines.sql_session import SqlSession
from qblock.errors import QblockError, Refused

pytestmark = pytest.mark.spark

SPEC = """version: 1
release: {release}
source: {{url: "{url}", table: {table}}}
entity: id
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [20, 40]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  day: {{role: quasi_identifier, hierarchy: {{dates: [month, year]}}, nulls: top, uncovered: top}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 15}}}}, {{distinct_l_diversity: {{l: 2}}}}]
{target}
{more}
"""
ILLNESSES = ["a'b", "flu", "back\\slash", "new\nline"]
PEOPLE = 600
LAST = 2**31 - 1
"""The day that stands for infinity on DuckDB, and on Spark, which has none."""


def people(week: int, *, every: int = 1) -> pa.Table:
    """Who is there in a week: the first seventy of the week before are not, and a few have another value. every: rows
    of a person."""
    found: dict[str, list[Any]] = {name: [] for name in ("id", "age", "sex", "day", "ill")}
    for person in range(week * 70, week * 70 + PEOPLE):
        draw = random.Random(person)
        own = [draw.randrange(18, 60), draw.choice("mf"), draw.choice([None, LAST, *range(9000, 9400)])]
        for row in range(every if person % 2 else 1):
            ill = "changed" if week and person % 97 == week else draw.choice(ILLNESSES)
            for name, value in zip(found, [f"p'\\{person}", *own, f"{ill}{row or ''}"], strict=True):
                found[name].append(value)
    day = pa.array(found["day"], pa.int32()).cast(pa.date32())
    return pa.table({**found, "age": pa.array(found["age"], pa.int64()), "day": day})


@dataclass
class Twins:
    """One release from a Spark server and one from DuckDB, of the same people."""

    client: Any
    hive: tuple[str, Path]
    folder: Path
    ledger: str
    more: str
    release: str = "people"

    def become(self, rows: pa.Table) -> None:
        self.client.createDataFrame(rows).write.mode("overwrite").saveAsTable(f"clinic.{self.release}")
        with duckdb.connect(self.folder / "w.duckdb") as connection:
            connection.register("given", rows)
            connection.execute(f"CREATE OR REPLACE TABLE {self.release} AS SELECT * FROM given")

    @property
    def spark(self) -> Release:
        target = ON_SPARK.format(ledger=self.ledger, folder=self.hive[1])
        return self._written(f"{self.release}_spark", self.hive[0], f"clinic.{self.release}", target)

    @property
    def duck(self) -> Release:
        target = f'publish: {{url: "duckdb:///{self.release}_out.duckdb"}}'
        return self._written(self.release, "duckdb:///w.duckdb", self.release, target)

    def _written(self, name: str, url: str, table: str, target: str) -> Release:
        given = {"release": self.release, "url": url, "table": table, "target": target, "more": self.more}
        return written(self.folder / f"{name}.yaml", SPEC.format(**given))

    def publish(self) -> tuple[Any, ...]:
        """What both say of a run, which is the same."""
        spark, duck = _said(self.spark), _said(self.duck)
        assert spark == duck
        return spark

    def weeks(self, *weeks: int, every: int = 1) -> list[tuple[Any, ...]]:
        """What both say of runs in these weeks. every: as of `people`."""
        found = []
        for week in weeks:
            self.become(people(week, every=every))
            found.append(self.publish())
        return found


def _said(release: Release) -> tuple[Any, ...]:
    try:
        found = release.publish()
    except Refused as error:
        return ("refused", str(error).partition(";")[0])
    return found.status, found.version, found.digest, found.node, found.suppressed


@pytest.fixture
def twins(client: Any, hive: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Twins:
    """Two releases whose keys are the same, and whose digests are made of hashes."""
    monkeypatch.setattr(DuckdbAdapter, "keeps_secrets", False)
    same_keys(monkeypatch)
    return Twins(client, hive, tmp_path, f"sqlite:///{tmp_path}/private/ledger.sqlite", "")


def test_steady_versions_are_those_of_duckdb(twins: Twins) -> None:
    twins.more = "versions: {cohort: auto}"
    said = twins.weeks(0, 1, 2)
    assert [Ledger(str(one.spec.path)).rekey().keys for one in (twins.spark, twins.duck)] == [2, 2]
    said += twins.weeks(3, 4)
    versions = [version for _, version, *_ in said]
    assert versions[0] == 1
    assert versions[-1] >= 3
    assert twins.spark.verify().problems == ()
    assert twins.spark.rollback(versions[-1] - 1).digest == twins.duck.rollback(versions[-1] - 1).digest
    assert twins.spark.verify().problems == ()
    twins.become(people(4).slice(25))
    missing = [one.erase(missing=True) for one in (twins.spark, twins.duck)]
    assert missing[0].asked == missing[1].asked >= 20
    named = f"p'\\{4 * 70 + 100}"
    erased = [one.erase([named], now=True) for one in (twins.spark, twins.duck)]
    assert [one.shown for one in erased] == [1, 1]
    assert erased[0].companions == erased[1].companions
    assert [one.published is None for one in erased] == [False, False]
    assert twins.spark.verify().problems == ()


@pytest.mark.parametrize(
    "more",
    [
        "versions: {on_refusal: refuse}",
        "versions: {on_refusal: refuse, keep: 1}\nsearch: {node: {age: 2, sex: 1, day: 3}}",
    ],
)
def test_versions_that_show_everybody_are_those_of_duckdb(twins: Twins, more: str) -> None:
    twins.more = more
    assert twins.weeks(0, 1, 2)[0][0] == "published"
    assert twins.spark.verify().problems == ()


@pytest.mark.parametrize("recoding", ["multidimensional", "full_domain"])
def test_newcomers_in_cohorts(twins: Twins, recoding: str) -> None:
    twins.more = f"search: {{recoding: {recoding}}}\nversions: {{newcomers: {{within: 2, box: 20}}}}"
    # The second run closes a cohort; who comes in the third one waits, and weights are others.
    assert [said[:2] for said in twins.weeks(0, 1, 2)] == [("published", version) for version in (1, 2, 3)]
    assert twins.spark.verify().problems == ()


def test_people_with_several_rows(twins: Twins) -> None:
    twins.more = "count: entities"
    assert twins.weeks(0, 1, 2, every=3)[0][0] == "published"


def test_the_crosswalk_may_be_in_postgresql(twins: Twins, postgresql_url: str) -> None:
    twins.ledger = postgresql_url
    digests = [digest for _, _, digest, *_ in twins.weeks(0, 1, 2)]
    assert len(set(digests)) > 1
    assert twins.spark.rollback(1).digest == digests[0]
    assert twins.spark.verify().problems == ()


def test_other_releases_of_the_place_count(twins: Twins) -> None:
    twins.more = "versions: {on_refusal: refuse}"
    assert twins.weeks(0)[0][0] == "published"
    other = Twins(**{**vars(twins), "release": "others", "more": "versions: {on_refusal: refuse, audience: [people]}"})
    other.become(people(0).slice(0, PEOPLE - 1))
    assert other.publish()[0] == "refused"  # one person is in one of them alone


def test_no_key_and_nobodys_name_leaves_the_store(
    client: Any, hive: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = "5e"
    same_key(monkeypatch, "qblock.versions.crosswalk", digits)
    twins = Twins(client, hive, tmp_path, f"sqlite:///{tmp_path}/private/ledger.sqlite", "")
    sent, fetched = [], []
    fetch, frame, load = SparkSession.fetch, SparkSession._frame, SparkSession.load

    def fetching(self: SparkSession, *given: Any) -> pa.Table:
        found = fetch(self, *given)
        fetched.append(str(found.to_pydict()))
        return found

    def framing(self: SparkSession, statement: Any, parameters: Mapping[str, Any] | None = None) -> Any:
        text = statement if isinstance(statement, str) else statement.compile(dialect=self.dialect)
        sent.append(f"{text}{getattr(text, 'params', '')}{parameters}")
        return frame(self, statement, parameters)

    def loading(self: SparkSession, name: str, columns: pa.Table) -> Any:
        sent.append(str(columns.to_pydict()))
        return load(self, name, columns)

    monkeypatch.setattr(SparkSession, "fetch", fetching)
    monkeypatch.setattr(SparkSession, "_frame", framing)
    monkeypatch.setattr(SparkSession, "load", loading)
    for week in range(3):
        twins.become(people(week))
        twins.spark.publish()
    assert not [text for text in sent if digits * 32 in text]
    assert any("hashed" in text for text in sent)
    assert not [text for text in (*sent, *fetched) if "p'" in text]


def test_digests_of_two_kinds_are_not_compared(
    twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgresql_url: str
) -> None:
    """A place that Spark and another engine share: the same people have other digests there."""
    twins.ledger = postgresql_url
    twins.become(people(0))
    monkeypatch.undo()
    assert twins.spark.publish().status == "published"
    import psycopg

    with psycopg.connect(postgresql_url.replace("postgresql+psycopg", "postgresql"), autocommit=True) as connection:
        connection.execute("CREATE TABLE others (id text, age bigint, sex text, day date, ill text)")
        with connection.cursor() as cursor, cursor.copy("COPY others (id, age, sex, ill) FROM STDIN") as copy:
            for row in people(0).drop_columns("day").to_pylist():  # Python has no date as late as the last of them
                copy.write_row(tuple(row.values()))
    more = "versions: {on_refusal: refuse, audience: [people]}"
    given = {"release": "others", "url": postgresql_url, "table": "others", "target": "", "more": more}
    other = written(tmp_path / "others.yaml", SPEC.format(**given))
    with pytest.raises(Refused, match="cannot be compared with release others"):
        other.publish()


def test_nothing_is_kept_of_a_session_that_is_lost(twins: Twins, monkeypatch: pytest.MonkeyPatch) -> None:
    twins.become(people(0))
    assert twins.spark.publish().status == "published"
    twins.become(people(1))
    true = SqlSession.load

    def failing(self: SqlSession, name: str, columns: pa.Table) -> Any:
        if "hashed" in columns.column_names:
            raise QblockError("the connection was lost")
        return true(self, name, columns)

    with monkeypatch.context() as patch:
        patch.setattr(SqlSession, "load", failing)
        with pytest.raises(QblockError, match="the connection was lost"):
            twins.spark.publish()
    assert _said(twins.spark)[0] in ("published", "unchanged")
    assert twins.spark.verify().problems == ()
