"""What is marked `either_engine` runs on one engine, and never nowhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import either
import pytest

CONFTEST = """
import either
import pytest
from either import pytest_runtest_makereport

@pytest.fixture(params=["duckdb", "postgresql"])
def engine_name(request):
    return request.param

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    either.choose(config, items)
"""
TESTS = """
import pytest
from engines import Absent
pytestmark = pytest.mark.either_engine

@pytest.mark.parametrize("case", [f"case {i}" for i in range(60)])
def test_cases(engine_name, case):
    pass

@pytest.mark.each_engine
def test_each(engine_name):
    pass

@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
def test_of_one(engine_name):
    pass

def test_of_none():
    pass

def test_that_skips(engine_name):
    pytest.skip("nothing to do here")

@pytest.fixture
def examples():
    raise Absent("the examples are absent")

def test_of_examples(engine_name, examples):
    pass
"""


def outcomes(folder: Path, *arguments: str, engines: str = "") -> dict[str, str]:
    """What pytest says of each test."""
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = either_engine\n    each_engine\n    needs(what)\n", "utf-8")
    (folder / "test_some.py").write_text(TESTS, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments],
        env={
            **os.environ,
            "QBLOCK_TEST_ENGINES": engines,
            "PYTHONPATH": str(Path(either.__file__).parent),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        cwd=folder,
    )
    return dict(re.findall(r"^test_some\.py::(.+?) (PASSED|FAILED|SKIPPED|ERROR)", done.stdout, re.MULTILINE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("found")


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, str]:
    """What pytest says of each test of the folder where nothing is asked for."""
    return outcomes(folder)


def test_each_case_runs_on_one_engine_by_turns(found: dict[str, str], folder: Path) -> None:
    cases = [re.fullmatch(r"test_cases\[(.+)\]", name).group(1) for name in found if name.startswith("test_cases")]
    assert sorted(re.sub("^(duckdb|postgresql)-", "", case) for case in cases) == sorted(f"case {i}" for i in range(60))
    assert {case.split("-")[0] for case in cases} == set(either.ENGINES)
    assert {n for n in found if n.startswith("test_each")} == {"test_each[duckdb]", "test_each[postgresql]"}
    assert {"test_of_one[duckdb]", "test_of_none"} <= set(found)
    assert outcomes(folder) == found


def test_the_full_cross_runs_on_demand(tmp_path: Path) -> None:
    found = outcomes(tmp_path, engines="all")
    assert sum(name.startswith("test_cases") for name in found) == 120


@pytest.mark.parametrize("engine", either.ENGINES)
def test_a_run_that_is_asked_for_is_not_left_out(tmp_path: Path, engine: str) -> None:
    name = f"test_cases[{engine}-case 3]"
    assert outcomes(tmp_path, f"test_some.py::{name}") == {name: "PASSED"}
    assert sum(n.startswith("test_cases") for n in outcomes(tmp_path, "-k", engine)) == 60


def test_one_that_skips_itself_fails(found: dict[str, str]) -> None:
    skipped = {name: said for name, said in found.items() if name.startswith("test_that_skips")}
    assert list(skipped.values()) == ["FAILED"]


def test_one_that_the_machine_has_no_means_for_is_skipped(found: dict[str, str]) -> None:
    skipped = {name: said for name, said in found.items() if name.startswith("test_of_examples")}
    assert list(skipped.values()) == ["SKIPPED"]
