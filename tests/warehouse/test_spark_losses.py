"""Workers that are killed while a statement runs on them: the answer is the same, or a clear error."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from spark_cluster import Cluster, own_cluster

from qblock import Release
from qblock.engines.spark import session as spark
from qblock.engines.spark.client import end

pytestmark = pytest.mark.spark
ROWS = 400_000
SPEC = """version: 1
release: people
source: {{url: "{url}", table: losses.people}}
attributes:
  age: {{role: quasi_identifier, hierarchy: {{ranges: [10]}}}}
  sex: {{role: quasi_identifier, hierarchy: suppress}}
  zip: {{role: quasi_identifier, hierarchy: {{ranges: [100]}}}}
  ill: sensitive
privacy: [{{k_anonymity: {{k: 50}}}}, {{distinct_l_diversity: {{l: 3}}}}]
search: {{roll_up: warehouse}}
"""


@pytest.fixture(scope="module")
def breakable() -> Iterator[Cluster]:
    with own_cluster() as own:
        yield own


@pytest.fixture(scope="module")
def expected(breakable: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is answered where nobody is killed."""
    from pyspark.sql.connect.session import SparkSession

    made: Any = SparkSession.builder.remote(breakable.url).create()
    made.sql("CREATE SCHEMA IF NOT EXISTS losses")
    columns = {"age": "18 + pmod(hash(id), 72)", "zip": "CAST(pmod(hash(id, 1), 1000) AS INT)"}
    columns |= {"sex": "char(102 + 7 * pmod(hash(id, 2), 2))", "ill": "char(97 + pmod(hash(id, 3), 8))"}
    drawn = ", ".join(f"{what} AS {name}" for name, what in columns.items())
    made.sql(f"SELECT {drawn} FROM range({ROWS})").repartition(8).write.format("parquet").saveAsTable("losses.people")
    end(made)
    return answered(breakable, tmp_path_factory.mktemp("whole"))


def answered(own: Cluster, folder: Path) -> dict[str, Any]:
    file = folder / "spec.yaml"
    file.write_text(SPEC.format(url=own.url))
    return {name: value for name, value in Release(file).search().to_dict().items() if name != "seconds"}


class Killer:
    """Kills a worker while a table of the run is being made on the cluster. own: whose worker; table: its name."""

    def __init__(self, own: Cluster, table: str) -> None:
        self.own, self.table = own, table
        self.killed: list[int] = []

    def around(self, save: Callable[..., None]) -> Callable[..., None]:
        def saved(session: Any, name: str, frame: Any) -> None:
            if name != self.table or self.killed:
                save(session, name, frame)
                return
            watch = threading.Thread(target=self._when_it_runs)
            watch.start()
            try:
                save(session, name, frame)
            finally:
                watch.join()

        return saved

    def _when_it_runs(self) -> None:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            running = self.own.asked("stages?status=active")
            if any(stage["numActiveTasks"] for stage in running):
                worker = self.own.workers[-1]
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
                self.killed.append(sum(stage["numActiveTasks"] for stage in running))
                return


@pytest.mark.parametrize("table", ["qblock_source_0", "qblock_base", "qblock_frequency_set_0"])
def test_a_worker_that_is_killed_changes_no_answer(
    breakable: Cluster, expected: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """While the source is copied, while its rows are coded, and while counts are rolled up."""
    breakable.wait_for_executors(2)
    killer = Killer(breakable, table)
    monkeypatch.setattr(spark.SparkSession, "_save", killer.around(spark.SparkSession._save))
    found = answered(breakable, tmp_path)
    breakable.add_worker()
    assert killer.killed
    assert found == expected


def test_both_workers_have_done_their_part(breakable: Cluster, expected: dict[str, Any]) -> None:
    breakable.wait_for_executors(2)
    assert expected["nodes_total"] > 10
    done = [one for one in breakable.asked("allexecutors") if one["id"] != "driver"]
    assert sum(one["completedTasks"] > 0 and one["totalShuffleWrite"] > 0 for one in done) >= 2
