"""The suite in two parts: `make test` runs the quick one, `make test-more` the others; without a part all are run.

A test function that takes more than SECONDS in all its cases (tests/times.txt) has as many of them in the quick part as
take so long, at least one if it is fast enough; the cases that stay are told by their names alone. What a fault of
tests/mutation names, and what WHOLE names, is in the quick part whole; so is a new function, until times are written,
but for what LONG names.

    QBLOCK_TEST_TIMES=tests/times.txt .venv/bin/python -m pytest -n 2 --dist worksteal

writes them. QBLOCK_TEST_PART: `quick` or `more`; tests that need more than a bare machine has are in both, since the
first skips them.
"""

from __future__ import annotations

import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from either import engine_of
from mutation.faults import MUTATIONS

TIMES = Path(__file__).with_name("times.txt")
SECONDS = 0.5
"""What a test function may take in the quick part."""
WHOLE = (
    "tests/laws/test_agreement.py",
    "tests/mutation/test_mutations.py",
    "tests/release/test_faults.py::test_a_fault_between_any_two_steps",
    "tests/transcripts/test_transcripts.py::test_transcript",
)
"""Files and functions that are in the quick part whole, however long they take: that every model says what its slow
reference says, that the faults fit the engine, that a release survives a fault at any of its steps, and what commands
print."""
LONG = (
    "tests/steady/test_decisions.py::test_all_histories_are_decided_as_before",
    "tests/transcripts/test_contents.py::test_more_contents_are_as_before",
    "tests/transcripts/test_statements.py::test_the_workloads_of_the_benchmarks",
    "tests/transcripts/test_transcripts.py::test_long_transcript",
)
"""Functions that are in the other part whole, though each of their cases may be short."""


class Taken(NamedTuple):
    """What a test function takes in all its cases."""

    seconds: float
    cases: int

    @property
    def quick(self) -> int:
        """How many cases of it are in the quick part."""
        return self.cases if self.seconds <= SECONDS else int(SECONDS * self.cases / self.seconds)


def function_of(run: str) -> str:
    """The function's id of a run's."""
    return run.partition("[")[0]


def read_times(text: str) -> dict[str, Taken]:
    """Functions that take more than SECONDS."""
    lines = (line.split(maxsplit=2) for line in text.splitlines())
    return {function: Taken(float(seconds), int(cases)) for seconds, cases, function in lines}


def written_times(taken: Mapping[str, float]) -> str:
    """The text of the file. taken: the seconds of each run that was not skipped."""
    functions: dict[str, list[float]] = defaultdict(list)
    for run, seconds in taken.items():
        functions[function_of(run)].append(seconds)
    long = {name: found for name, found in sorted(functions.items()) if sum(found) > SECONDS}
    return "".join(f"{sum(found):6.1f} {len(found):3} {name}\n" for name, found in long.items())


def is_whole(function: str, named: Iterable[str]) -> bool:
    return any(function == name or function.startswith(f"{name}::") for name in named)


def quick(runs: Iterable[str], times: Mapping[str, Taken], named: Iterable[str]) -> set[str]:
    """Those of the runs that are in the quick part. named: files, classes and functions that are there whole."""
    found, cases, named = set(), defaultdict(list), tuple(named)
    for run in runs:
        cases[function_of(run)].append(run)
    for function, of_it in cases.items():
        if is_whole(function, LONG):
            continue
        if function not in times or is_whole(function, named):
            found.update(of_it)
        else:
            in_turn = sorted(of_it, key=lambda run: (zlib.crc32(run.encode()), run))
            found.update(in_turn[: times[function].quick])
    return found


def named() -> tuple[str, ...]:
    """What is in the quick part whole."""
    return (*WHOLE, *dict.fromkeys(function_of(t) for fault in MUTATIONS for t in fault.tests if "::" in t))


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the other part."""
    part = os.environ.pop("QBLOCK_TEST_PART", None)  # not for what a test runs
    if not part:
        return
    if part not in ("quick", "more"):
        raise pytest.UsageError(f"QBLOCK_TEST_PART is {part!r}: it is quick or more")
    both = {item.nodeid for item in items if item.get_closest_marker("needs")}
    slow = {item.nodeid for item in items if engine_of(item) == "spark"}
    fast = quick(
        (i.nodeid for i in items if i.nodeid not in both | slow), read_times(TIMES.read_text("utf-8")), named()
    )
    left_out = [item for item in items if item.nodeid not in both and (item.nodeid in fast) != (part == "quick")]
    gone = {item.nodeid for item in left_out}
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.nodeid not in gone]


class Recorder:
    """Writes what each test function took. file: where."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._taken: dict[str, float] = defaultdict(float)
        self._skipped: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._taken[report.nodeid] += report.duration
        if report.skipped:
            self._skipped.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        ran = {run: seconds for run, seconds in self._taken.items() if run not in self._skipped}
        self._file.write_text(written_times(ran), "utf-8")


def record(config: pytest.Config) -> None:
    """Have the times written where QBLOCK_TEST_TIMES says so; by the process that hears of all tests."""
    if (file := os.environ.get("QBLOCK_TEST_TIMES")) and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Recorder(config.rootpath / file))
