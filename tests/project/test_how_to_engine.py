"""The page that says how to add an engine, followed on a copy of the code: what it then answers is held to DuckDB."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from test_how_to import BLOCK, ROOT, follow, text_of

PAGE = "add-an-engine"
MOST_LINES = 250
SPEC = """version: 1
release: in_ENGINE
source: {url: "ENGINE:///people.ENGINE", table: TABLE}
attributes:
  id: {role: identifying}
  age: {role: quasi_identifier, nulls: top, hierarchy: {ranges: [10, 40]}}
  size: {role: quasi_identifier, nulls: top, hierarchy: {ranges: [100]}}
  code: {role: quasi_identifier, nulls: top, hierarchy: suppress}
  s: sensitive
privacy:
  - k_anonymity: {k: 9}
  - distinct_l_diversity: {l: 2}
search: {recoding: multidimensional}
publish: {url: "duckdb:///release_of_ENGINE.duckdb"}
"""
SIZES = (1.5, 2.0, -2.5, 1e-7, 3e20, 1e15, 123456789012345680.0, 0.1, -0.0, 5e-324, None)
CODES = ("", "x", "X", "Ö'\"", " y", "NULL", "1", None)
OF_THE_RUN = ("seconds", "queries", "release")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine")
    for name in ("engine", "sql", "migrations"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    follow(PAGE, folder)
    rng = random.Random(5)
    rows = [
        (number, rng.choice((None, 20, 31, 45, 52, 67)), rng.choice(SIZES), rng.choice(CODES), rng.choice("abc"))
        for number in range(3000)
    ]
    with sqlite3.connect(folder / "people.sqlite") as database:
        database.execute("CREATE TABLE people (id INTEGER, age INTEGER, size REAL, code TEXT, s TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
        database.execute("CREATE TABLE mixed (id, age, size, code, s)")  # of no type
        database.execute("INSERT INTO mixed SELECT * FROM people")
        database.execute("UPDATE mixed SET code = id % 3 WHERE code = 'x'")
        database.execute("CREATE VIEW seen AS SELECT * FROM people WHERE id < 2000")
    database.close()
    with duckdb.connect(str(folder / "people.duckdb")) as other:
        other.execute("CREATE TABLE people (id BIGINT, age BIGINT, size DOUBLE, code VARCHAR, s VARCHAR)")
        other.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", rows)
        other.execute(
            "CREATE TABLE mixed AS SELECT * REPLACE (if(code = 'x', CAST(id % 3 AS VARCHAR), code) AS code) FROM people"
        )
        other.execute("CREATE VIEW seen AS SELECT * FROM people WHERE id < 2000")
    return folder


@pytest.fixture(scope="module")
def run(copy: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    environment = os.environ | {"PYTHONPATH": str(copy / "engine")}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from qblock.cli import main; main()", *words]
        return subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, check=False)

    return run


def written(copy: Path, engine: str, table: str = "people", **changed: str) -> str:
    text = SPEC.replace("ENGINE", engine).replace("TABLE", table)
    for old, new in changed.items():
        text = text.replace(old, new)
    (copy / f"{engine}.yaml").write_text(text, "utf-8")
    return f"{engine}.yaml"


@pytest.mark.parametrize("table", ["people", "mixed", "seen"])
@pytest.mark.parametrize("recoding", ["multidimensional", "full_domain"])
def test_a_search_answers_as_on_duckdb(copy: Path, run: Any, table: str, recoding: str) -> None:
    answers = []
    for engine in ("sqlite", "duckdb"):
        done = run("search", written(copy, engine, table, multidimensional=recoding), "--json", "-q")
        assert done.returncode == 0, done.stderr
        answers.append({name: value for name, value in json.loads(done.stdout).items() if name not in OF_THE_RUN})
    assert answers[0] == answers[1]


def test_a_release_has_the_content_that_it_has_from_duckdb(copy: Path, run: Any) -> None:
    answers = []
    for engine in ("sqlite", "duckdb"):
        done = run("release", written(copy, engine), "--json", "-q")
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout)["digest"])
        assert run("verify", f"{engine}.yaml").returncode == 0
    assert answers[0] == answers[1]


def test_what_cannot_be_is_said(copy: Path, run: Any) -> None:
    done = run("search", written(copy, "sqlite", "peple"))
    assert (done.returncode, "table peple does not exist" in done.stderr, "people" in done.stderr) == (2, True, True)
    done = run("search", written(copy, "sqlite", **{"people.sqlite": "absent.sqlite"}))
    assert (done.returncode, "absent.sqlite does not exist" in done.stderr) == (1, True)
    spec = written(copy, "sqlite", **{'publish: {url: "duckdb:///release_of_sqlite.duckdb"}': ""})
    assert run("search", spec).returncode == 0
    done = run("release", spec)
    assert (done.returncode, "SQLite is only read; publish elsewhere" in done.stderr) == (2, True)


def test_the_page_lists_its_files_and_they_are_short() -> None:
    listed = {name.replace("\\", "") for name in re.findall(r"^\| ([\w\\./-]+\.py) \|", text_of(PAGE), re.M)}
    blocks = BLOCK.findall(text_of(PAGE))
    assert listed == {name for name, _, _ in blocks}
    assert sum(block.count("\n") for _, _, block in blocks) < MOST_LINES
