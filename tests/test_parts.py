"""The two parts of the suite are the whole of it, and the times that tell them apart are of tests that there are."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import parts
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
NAMES = st.sampled_from(["tests/a.py::test_b", "tests/a.py::test_c", "tests/a.py::TestD::test_e"])
CONFTEST = """
import os
import parts
import pytest

def pytest_configure(config):
    config.addinivalue_line("markers", "needs(what): more than there is")
    parts.record(config)

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    parts.TIMES = config.rootpath / "times.txt"
    parts.SECONDS = float(os.environ.get("SECONDS_OF_A_TEST", parts.SECONDS))
    parts.choose(config, items)
"""
TESTS = """
import pytest

@pytest.mark.parametrize("case", range(6))
def test_cases(case):
    pass

def test_long():
    pass

def test_new():
    pass

@pytest.mark.needs("a browser")
def test_that_needs():
    pass

def test_that_skips():
    pytest.skip("not here")
"""


@cache
def functions(file: Path) -> frozenset[str]:
    """The ids of the test functions of a file, without its path."""
    return frozenset(_functions(ast.parse(file.read_text("utf-8")).body))


def _functions(body: list[ast.stmt]) -> Iterator[str]:
    for found in body:
        if isinstance(found, ast.FunctionDef):
            yield found.name
        elif isinstance(found, ast.ClassDef):
            yield from (f"{found.name}::{name}" for name in _functions(found.body))


def test_the_times_are_of_tests_that_there_are() -> None:
    times = parts.read_times(parts.TIMES.read_text("utf-8"))
    assert times
    for function in times:
        file, _, name = function.partition("::")
        assert (ROOT / file).is_file(), f"{function} is there no more: write tests/times.txt anew (tests/parts.py)"
        assert name in functions(ROOT / file), f"{function} is there no more: write tests/times.txt anew"


def test_what_is_named_is_there() -> None:
    for function in (*parts.WHOLE, *parts.LONG):
        file, _, name = function.partition("::")
        assert (ROOT / file).is_file()
        assert not name or name in functions(ROOT / file)


@given(
    runs=st.sets(st.builds("{}[{}]".format, NAMES, st.integers(0, 20)), max_size=30),
    times=st.dictionaries(NAMES, st.builds(parts.Taken, st.floats(parts.SECONDS + 0.1, 30), st.integers(1, 20))),
    named=st.sets(NAMES),
)
def test_a_function_has_as_many_cases_in_the_quick_part_as_there_is_time_for(
    runs: set[str], times: dict[str, parts.Taken], named: set[str]
) -> None:
    found = parts.quick(runs, times, named)
    assert found <= runs
    for function in {parts.function_of(run) for run in runs}:
        its, quick = ({run for run in these if parts.function_of(run) == function} for these in (runs, found))
        if function in named or function not in times:
            assert its == quick
        else:
            each = times[function].seconds / times[function].cases
            assert len(quick) * each <= parts.SECONDS * 1.001
            assert its == quick or (len(quick) + 1) * each >= parts.SECONDS * 0.999


def test_what_is_written_is_read() -> None:
    text = parts.written_times({"tests/a.py::test_b[1]": 3.0, "tests/a.py::test_b[2]": 1.04, "tests/a.py::test_c": 0.1})
    assert parts.read_times(text) == {"tests/a.py::test_b": parts.Taken(4.0, 2)}


def outcomes(folder: Path, part: str, **more: str) -> list[str]:
    """The tests that are run, in order."""
    environment = {**os.environ, "QBLOCK_TEST_PART": part, **more}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), environment.get("PYTHONPATH", "")])
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        environment.pop(name, None)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return re.findall(r"(?m)^\S+::(\S+) (?:PASSED|SKIPPED)", done.stdout) or [done.stdout + done.stderr]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST, "utf-8")
    (tmp_path / "test_it.py").write_text(TESTS, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    (tmp_path / "times.txt").write_text("  1.5   6 test_it.py::test_cases\n  2.0   1 test_it.py::test_long\n", "utf-8")
    return tmp_path


def test_both_parts_together_are_the_suite(suite: Path) -> None:
    every = outcomes(suite, "")
    quick, more = outcomes(suite, "quick"), outcomes(suite, "more")
    assert sorted([*quick, *more]) == sorted([*every, "test_that_needs"])
    assert sum(run.startswith("test_cases") for run in quick) == 2
    assert "test_long" in more
    assert {"test_new", "test_that_needs"} <= set(quick)
    assert "is quick or more" in outcomes(suite, "fast")[0]


def test_times_are_written(suite: Path) -> None:
    outcomes(suite, "", QBLOCK_TEST_TIMES="taken.txt", SECONDS_OF_A_TEST="0")
    found = parts.read_times((suite / "taken.txt").read_text("utf-8"))
    ran = ("test_cases", "test_long", "test_new", "test_that_needs")
    assert {name: one.cases for name, one in found.items()} == {
        f"test_it.py::{name}": 6 if name == "test_cases" else 1 for name in ran
    }
    outcomes(suite, "", QBLOCK_TEST_TIMES="taken.txt", SECONDS_OF_A_TEST="100")
    assert (suite / "taken.txt").read_text("utf-8") == ""
