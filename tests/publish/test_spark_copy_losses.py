"""A worker that is killed while a version is staged, or copied to be published: the content is the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_cluster import Cluster, own_cluster
from warehouse.test_spark_losses import Killer

from publish.spark_releases import ON_SPARK, written
from qblock.api import Release
from qblock.engines.spark.catalog import SparkCatalog
from qblock.engines.spark.client import end
from qblock.engines.spark.session import SparkSession
from qblock.publish.targets.spark_helpers import BESIDE

pytestmark = pytest.mark.spark

ROWS = 400_000
SPEC = """version: 1
release: lost
source: {{url: "{url}", table: clinic.lost}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  zip: {{role: quasi_identifier, hierarchy: {{ranges: [100]}}}}
  ill: sensitive
  ward: insensitive
privacy: [{{k_anonymity: {{k: 50}}}}]
search: {search}
{target}
versions: {{joint: none}}
"""


@pytest.fixture(scope="module")
def breakable() -> Iterator[Cluster]:
    with own_cluster("hive") as own:
        yield own


class Shares:
    """What each worker did while something was made. own: whose workers."""

    def __init__(self, own: Cluster) -> None:
        self.own = own
        self.done: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))

    def totals(self) -> dict[str, dict[str, int]]:
        names = ("completedTasks", "totalShuffleRead", "totalShuffleWrite")
        return {one["id"]: {name: one[name] for name in names} for one in self.own.executors()}

    def around(self, what: Callable[..., str], do: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            before = self.totals()
            found = do(*given, **named)
            for one, totals in self.totals().items():
                for name, value in totals.items():
                    self.done[what(*given, **named)][one][name] += value - before[one][name]
            return found

        return wrapped


def phase(_: Any, name: str, __: Any) -> str:
    if name == "qblock_base":
        return "scan"
    return "roll-up" if name.startswith("qblock_frequency_set") else "other"


def test_a_worker_that_is_killed_changes_no_version(
    breakable: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    client: Any = ConnectSession.builder.remote(breakable.url).create()
    client.sql("CREATE SCHEMA clinic")
    columns = {"age": "18 + pmod(hash(id), 72)", "zip": "CAST(pmod(hash(id, 1), 1000) AS INT)"}
    columns |= {"sex": "char(102 + 7 * pmod(hash(id, 2), 2))"}
    columns |= {"ill": "char(97 + pmod(hash(id, 3), 8))", "ward": "CAST(pmod(hash(id, 4), 5000) AS INT)"}
    drawn = ", ".join(f"{what} AS {name}" for name, what in columns.items())
    client.sql(f"SELECT {drawn} FROM range({ROWS})").repartition(8).write.format("parquet").saveAsTable("clinic.lost")
    target = ON_SPARK.format(ledger=f"sqlite:///{tmp_path}/private/ledger.sqlite", folder=breakable.folder)
    given = {"url": breakable.url, "target": target}
    release = written(tmp_path / "lost.yaml", SPEC.format(search="{roll_up: warehouse}", **given))
    breakable.wait_for_executors(2)
    shares = Shares(breakable)
    with monkeypatch.context() as patch:
        patch.setattr(SparkSession, "_save", shares.around(phase, SparkSession._save))
        patch.setattr(SparkSession, "counts_of", shares.around(lambda *_: "roll-up", SparkSession.counts_of))
        patch.setattr(SparkCatalog, "write", shares.around(lambda *_: "copy", SparkCatalog.write))
        whole = release.publish()
    both_took_part(shares)
    # The node is known: these runs are about the copies.
    node = ", ".join(f"{name}: {level}" for name, level in whole.node.items())
    release = written(tmp_path / "lost.yaml", SPEC.format(search=f"{{node: {{{node}}}}}", **given))
    for number, published in ((2, False), (3, True)):
        breakable.wait_for_executors(2)
        found = killed_while(breakable, release, published, monkeypatch)
        assert (found.version, found.digest, found.rows) == (number, whole.digest, ROWS)
        assert client.sql("SELECT count(*) AS n FROM published.lost").toArrow()["n"].to_pylist() == [ROWS]
        assert release.verify().problems == ()
        assert release.publish().status == "unchanged"
    end(client)


def both_took_part(shares: Shares) -> None:
    for name in ("scan", "roll-up", "copy"):
        done = shares.done[name].values()
        assert [one["completedTasks"] > 0 for one in done] == [True, True], name
        assert name == "scan" or [one["totalShuffleWrite"] > 0 for one in done] == [True, True], name


def killed_while(own: Cluster, release: Release, published: bool, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of which a worker is killed while a copy is made: that for readers has a mark from the begin."""
    killer = Killer(own, "copied")
    true = SparkCatalog.write

    def write(self: SparkCatalog, frame: Any, schema: str, table: str, mark: str = "", said: Any = None) -> None:
        if (mark != "") is not published or table.endswith(BESIDE):
            true(self, frame, schema, table, mark, said)
            return
        killer.around(lambda *_: true(self, frame, schema, table, mark, said))(None, "copied", frame)

    with monkeypatch.context() as patch:
        patch.setattr(SparkCatalog, "write", write)
        found = release.publish(force=True)
    own.add_worker()
    assert killer.killed
    return found
