"""Of what runs on Spark as well, nothing is left out or skipped without a word; and a gap that closes is noticed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import engines
import on_spark
import pytest

CONFTEST = """
import on_spark
import pytest
from either import pytest_runtest_makereport

@pytest.fixture(params=["duckdb", "spark"])
def engine_name(request):
    return request.param

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    on_spark.choose(config, items)
"""
TESTS = """
import pytest
from engines import Absent

@pytest.mark.parametrize("case", [f"case {i}" for i in range(9)])
def test_cases(engine_name, case):
    pass

@pytest.mark.gap("spark", "no such thing")
def test_gap(engine_name):
    assert engine_name == "duckdb"

@pytest.mark.gap("spark", "there is such a thing")
def test_closed_gap(engine_name):
    pass

def test_that_skips(engine_name):
    pytest.skip("nothing to do here")

@pytest.fixture
def examples():
    raise Absent("the examples are absent")

def test_of_examples(engine_name, examples):
    pass

def test_of_none():
    pass
"""


def ran(folder: Path, *files: str, engines: str = "") -> subprocess.CompletedProcess[str]:
    """Pytest over copies of TESTS."""
    folder.mkdir(exist_ok=True)
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gap(engine, reason)\n    needs(what)\n", "utf-8")
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(TESTS, "utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--import-mode=importlib"],
        env={
            **os.environ,
            "QBLOCK_TEST_ENGINES": engines,
            "PYTHONPATH": str(Path(on_spark.__file__).parent),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        cwd=folder,
    )


def outcomes(run: subprocess.CompletedProcess[str]) -> dict[str, str]:
    found = re.findall(r"^tests/(.+?) (PASSED|FAILED|SKIPPED|XFAIL|ERROR)", run.stdout, re.MULTILINE)
    return {name.partition("/")[2].partition("::")[2]: said for name, said in found}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What pytest says of each test of a file that is chosen."""
    return outcomes(ran(tmp_path_factory.mktemp("found"), "tests/api/test_some.py"))


def test_a_function_runs_in_one_case(found: dict[str, str]) -> None:
    on = [re.search("duckdb|spark", name)[0] for name in found if name.startswith("test_cases")]
    assert (on.count("duckdb"), on.count("spark")) == (9, 1)
    assert found["test_of_none"] == "PASSED"


def test_all_cases_run_on_demand(tmp_path: Path) -> None:
    found = outcomes(ran(tmp_path, "tests/api/test_some.py", engines="all"))
    assert sum(name.startswith("test_cases[spark-") for name in found) == 9


def test_a_gap_is_expected_on_its_engine_until_it_closes(found: dict[str, str]) -> None:
    assert (found["test_gap[duckdb]"], found["test_gap[spark]"]) == ("PASSED", "XFAIL")
    assert (found["test_closed_gap[duckdb]"], found["test_closed_gap[spark]"]) == ("PASSED", "FAILED")


def test_one_that_skips_itself_on_spark_fails(found: dict[str, str]) -> None:
    assert (found["test_that_skips[duckdb]"], found["test_that_skips[spark]"]) == ("SKIPPED", "FAILED")
    assert found["test_of_examples[spark]"] == "SKIPPED"


def test_a_file_is_chosen_or_left_out_with_a_reason(tmp_path: Path) -> None:
    run = ran(tmp_path / "said", "tests/laws/test_some.py")
    assert {name for name in outcomes(run) if "spark" in name} == set()
    run = ran(tmp_path / "unsaid", "tests/newly/test_some.py")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "tests/on_spark.py does not say whether it runs on Spark" in run.stderr


@pytest.mark.parametrize("name", [*on_spark.CHOSEN, *on_spark.LEFT_OUT])
def test_what_is_named_exists(name: str) -> None:
    file, _, function = name.partition("::")
    path = Path(on_spark.__file__).parents[1] / file
    assert path.exists()
    assert f"def {function}(" in path.read_text("utf-8") if function else True


def test_spark_is_an_engine_where_it_is_asked_for() -> None:
    assert bool(engines.SPARK) == engines.named("spark")
