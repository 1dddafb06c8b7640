"""Tests marked `either_engine` run on one engine each; on every engine where QBLOCK_TEST_ENGINES is `all`."""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Generator

import pytest
from engines import Absent

ENGINES = ("duckdb", "postgresql")
ONE_IN = 36
"""One marked test in so many runs on DuckDB, where every file that is opened is a database that is started, so that a
run of the job takes three times as long."""


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect one of the two runs of each test that is marked; which one is told by the test's name alone."""
    if os.environ.get("QBLOCK_TEST_ENGINES") == "all":
        return
    runs: dict[str, dict[str, pytest.Item]] = defaultdict(dict)
    for item in filter(_marked, items):
        engine = engine_of(item)
        if engine in ENGINES and not item.get_closest_marker("needs"):
            runs[_without_engine(item, engine)][engine] = item
    left_out = set()
    for name, found in runs.items():
        if len(found) == len(ENGINES):
            left_out.add(found[ENGINES[zlib.crc32(name.encode()) % ONE_IN == 0]].nodeid)
    # A run that was asked for by its own name, or is alone, stays.
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
    items[:] = [item for item in items if item.nodeid not in left_out]


def runs_on(item: pytest.Item) -> str | None:
    """The engine of a run of a marked test; None of another one."""
    return engine_of(item) if _marked(item) else None


def hands_on(item: pytest.Item) -> bool:
    """Whether sessions of PostgreSQL are handed on in a run: it is about none."""
    marked = _marked(item) or item.get_closest_marker("handed_on") is not None
    engine = engine_of(item) or "postgresql"
    return marked and engine == "postgresql" and "postgresql_version" in item.fixturenames  # type: ignore[attr-defined]


def engine_of(item: pytest.Item) -> str | None:
    return item.callspec.params.get("engine_name") if hasattr(item, "callspec") else None


def _marked(item: pytest.Item) -> bool:
    nearest = next((m.name for m in item.iter_markers() if m.name in ("either_engine", "each_engine")), None)
    return nearest == "either_engine"


def _without_engine(item: pytest.Item, engine: str) -> str:
    words = item.callspec.id.split("-")  # type: ignore[attr-defined]
    words.remove(engine)
    return f"{item.path.parent.name}/{item.path.name}::{item.name.split('[')[0]}[{'-'.join(words)}]"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a marked test that skips itself on an engine: by turns it might be run nowhere; and any that does on Spark,
    where what is not run is said in tests/on_spark.py or by the mark `gap`."""
    report = yield
    raised = None if call.excinfo is None else call.excinfo.value
    skips = isinstance(raised, pytest.skip.Exception) and not isinstance(raised, Absent)
    if skips and engine_of(item) == "spark":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} skips itself on Spark: mark it gap, or have tests/on_spark.py leave it out"
    elif skips and report.skipped and runs_on(item) in ENGINES:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} is marked either_engine and skips itself on this one: mark it each_engine"
    return report
