"""Spark on loopback, from the classes of the wheel of pyspark: the suite's server, and clusters that a test may break.

They are started from $QBLOCK_TEST_SPARK_HOME (the folder of the package pyspark), else from .venv-spark, which `make
test-spark` makes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from engines import Absent

SECONDS = 90
ROOT = Path(__file__).resolve().parents[1]
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    # A tenth of the time is the compiler of queries; clusters of the tests have it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Most of the time of a small statement is the catalog's.
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    # The server lives for minutes and never earns what the second compiler costs: a quarter of the time. With the first
    # compiler alone code would have 48 MB, which Spark outgrows soon and is then swept all the time. Its zone must not
    # be in what it answers.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
    "-Duser.timezone=Asia/Kathmandu",
}
"""Of the suite's server, beside those of each."""
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="session")
def hive() -> Iterator[tuple[str, Path]]:
    """The suite's server: its URL, and the folder of its catalog, which is Hive's and lasts."""
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="qblock-spark-", ignore_cleanup_errors=True))
        )
        yield stack.enter_context(started(folder, "hive")), folder


@pytest.fixture(scope="session")
def spark_url(hive: tuple[str, Path]) -> str:
    """The URL of the suite's server."""
    return hive[0]


@contextmanager
def started(folder: Path, catalog: str) -> Iterator[str]:
    """The URL of a server that is its own only executor. Skips where there is none, unless QBLOCK_TEST_REQUIRE names
    `spark`."""
    port = free_port()
    settings = QUICK | {"spark.sql.catalogImplementation": catalog}
    with connect_server(home_or_absent(), folder, "local[2]", port, settings):
        yield f"sc://127.0.0.1:{port}"


def home_or_absent() -> Path:
    """The folder of the package of which a server is started. Skips where there is none, unless QBLOCK_TEST_REQUIRE
    names `spark`."""
    home, client = spark_home(), importlib.util.find_spec("pyspark")
    needs = {"Java": shutil.which("java"), ".venv-spark": home, "the package pyspark-client": client}
    missing = [name for name, has in needs.items() if not has]
    if home is None or missing:
        said = f"no Spark: {' and '.join(missing)} is absent; run make test-spark"
        if "spark" in os.environ.get("QBLOCK_TEST_REQUIRE", "").split(","):
            pytest.fail(said, pytrace=False)
        raise Absent(said)
    return home


@dataclass
class Cluster:
    """url: of the Connect server; ui: where its REST interface answers; workers: each may be killed; folder: where all
    of them may write, and what they say is."""

    url: str
    ui: str
    workers: list[subprocess.Popen[bytes]]
    add_worker: Callable[[], None]
    folder: Path

    def asked(self, what: str) -> Any:
        """An answer of the REST interface about the only application: `executors`, `jobs?status=running`, `stages`."""
        begin = f"{self.ui}/api/v1/applications"
        with urllib.request.urlopen(begin, timeout=10) as answer:
            (application,) = json.load(answer)
        with urllib.request.urlopen(f"{begin}/{application['id']}/{what}", timeout=10) as answer:
            return json.load(answer)

    def executors(self) -> list[dict[str, Any]]:
        """Those that live."""
        return [one for one in self.asked("executors") if one["id"] != "driver" and one["isActive"]]

    def wait_for_executors(self, n: int) -> None:
        end = time.monotonic() + SECONDS
        while len(self.executors()) != n:
            if time.monotonic() > end:
                raise RuntimeError(f"no {n} executors within {SECONDS} s")
            time.sleep(0.2)


@contextmanager
def own_cluster(catalog: str = "in-memory") -> Iterator[Cluster]:
    """A master, two workers of one core each and a Connect server, which the test may break. It skips as `started`."""
    home = home_or_absent()
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="qblock-spark-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        master, connect = f"spark://127.0.0.1:{free_port()}", free_port()
        port = master.rpartition(":")[2]
        command = [str(home / "bin" / "spark-class"), "org.apache.spark.deploy."]
        start = [command[0], f"{command[1]}master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
        stack.enter_context(_running(home, folder, "master", start))
        _answers(int(port), folder)
        workers: list[subprocess.Popen[bytes]] = []

        def add_worker() -> None:
            own = folder / f"work{len(workers)}"
            worker = [command[0], f"{command[1]}worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g"]
            worker += ["--work-dir", str(own), "--webui-port", "0", master]
            workers.append(stack.enter_context(_running(home, folder, own.name, worker)))

        for _ in range(2):
            add_worker()
        ui = free_port()
        settings = {"spark.ui.enabled": "true", "spark.ui.port": str(ui), "spark.sql.catalogImplementation": catalog}
        stack.enter_context(connect_server(home, folder, master, connect, settings))
        yield Cluster(f"sc://127.0.0.1:{connect}", f"http://127.0.0.1:{ui}", workers, add_worker, folder)


@contextmanager
def connect_server(
    home: Path, folder: Path, master: str, port: int, settings: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A Connect server of a master (`local[1]` is none's) on a port, from when it answers."""
    settings = {
        "spark.executor.memory": "768m",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
    } | dict(settings or {})
    start = [str(home / "bin" / "spark-submit"), "--class", CONNECT, "--master", master]
    start += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with server(home, folder, port, [*start, "spark-internal"]) as process:
        yield process


@contextmanager
def server(home: Path, folder: Path, port: int, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A Connect server that a command starts in a folder, from when its port answers."""
    with _running(home, folder, f"connect{port}", command) as process:
        _answers(port, folder)
        yield process


def spark_home() -> Path | None:
    """The folder of the package pyspark, of which a server is started; None where there is none."""
    given = os.environ.get("QBLOCK_TEST_SPARK_HOME")
    found = [Path(given)] if given else sorted(ROOT.glob(".venv-spark/lib/python*/site-packages/pyspark"))
    return found[0] if found and (found[0] / "jars").is_dir() else None


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def _running(home: Path, folder: Path, name: str, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    own = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "1g"}
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=os.environ | own, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        # The scripts end in exec or wait for Java: both are in the group of this process.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int, folder: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"no Spark: it did not start within {SECONDS} s")
