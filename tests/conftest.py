"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import either
import on_spark
import parts
import pytest
import typer.main
from either import pytest_runtest_makereport  # noqa: F401
from engines import (  # noqa: F401
    Absent,
    engine_name,
    in_memory,
    oldest_postgresql,
    postgresql_server,
    postgresql_url,
    postgresql_version,
    required,
    server,
    versions_of,
    warehouse,
)
from faults.nursery import THREADS
from handed_on import handing_on
from hypothesis import settings
from migrated import replaying
from recycled import recycle
from spark_cluster import hive, spark_url  # noqa: F401
from spark_tables import spark_database, spark_served  # noqa: F401

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.spark.adapter import SparkAdapter

# A limit of time would fail where the machine is busy.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# pytest-xdist sets it for its own output, and what commands print would be as wide.
os.environ.pop("COLUMNS", None)
# No test, and no command that one starts, opens a browser on somebody's desktop.
os.environ["BROWSER"] = "true"
for display in ("DISPLAY", "WAYLAND_DISPLAY"):
    os.environ.pop(display, None)

LONG = (
    "faults/test_faults_concurrent.py",
    "faults/test_faults_kill.py",
    "faults/test_faults_signals.py",
    "faults/test_faults_stamps.py",
    "faults/test_full_disk.py",
    "project/test_examples.py",
    "project/test_first_hour.py",
    "project/test_wheel.py",
    "steady/test_attack.py",
)
"""Files with tests that take five seconds and more: they begin."""
SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the worked examples and the Adult data, which is not part of the project."""
    if not (SHARED / "golden" / "expected.json").exists():
        raise Absent("the worked examples beside the checkout (../shared) are absent")
    return SHARED


@pytest.fixture(scope="session")
def golden(shared: Path) -> dict[str, dict]:
    """The worked examples by id."""
    return {entry["id"]: entry for entry in json.loads((shared / "golden" / "expected.json").read_text("utf-8"))}


def pytest_configure(config: pytest.Config) -> None:
    parts.record(config)
    if os.environ.get("QBLOCK_TEST_ENGINES") != "all":
        # A table of a few rows has nothing for a second thread, and waking it costs a fifth of the time.
        duckdb_session.SETTINGS["threads"] = os.environ[THREADS] = "1"
    # A process has one command line; the suite gives it hundreds.
    typer.main.get_command = cache(typer.main.get_command)
    memory = in_memory()
    if memory is not None:
        # DuckDB synchronizes a file with every commit.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    versions_of(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    either.choose(config, items)
    on_spark.choose(config, items)
    parts.choose(config, items)
    # Where a process with nothing left takes tests from the other one, the last of them are short.
    items.sort(key=lambda item: not str(item.path).endswith(LONG))


def pytest_collection_finish() -> None:
    # What was collected stays: a search for garbage that goes through all of it again and again is a sixth of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


@pytest.fixture(autouse=True)
def sessions(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sessions of PostgreSQL are handed on in a test that is about none."""
    with ExitStack() as stack:
        if either.hands_on(request.node):
            server = request.getfixturevalue("server")
            stack.enter_context(handing_on(server, stack.enter_context(pytest.MonkeyPatch.context())))
        yield


@pytest.fixture(autouse=True)
def migrations(request: pytest.FixtureRequest) -> Iterator[None]:
    """New ledgers are made by a script, but where they are what is tested."""
    if request.path.parent.name == "ledger" or os.environ.get("QBLOCK_TEST_ENGINES") == "all":
        yield
        return
    with pytest.MonkeyPatch.context() as patched, replaying(patched):
        yield


@pytest.fixture(autouse=True)
def databases_in_memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """They are used again, but where DuckDB's connections are what is tested."""
    if request.path.parent.name == "warehouse" or os.environ.get("QBLOCK_TEST_ENGINES") == "all":
        yield
        return
    with pytest.MonkeyPatch.context() as patched:
        recycle(patched)
        yield


@pytest.fixture(autouse=True)
def rolled_up(request: pytest.FixtureRequest) -> Iterator[None]:
    """On Spark frequency sets are rolled up on the cluster in half of the tests, in this process in the others."""
    with pytest.MonkeyPatch.context() as patched:
        if on_spark.rolls_up_there(request.node):
            patched.setattr(SparkAdapter, "statements_are_jobs", False)
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        required(mark.args[0])


@pytest.fixture(scope="session")
def scenarios(shared: Path) -> list[dict]:
    """The worked scenarios of successive releases."""
    return json.loads((shared / "golden" / "release_scenarios.json").read_text("utf-8"))
