"""pandas is an extra: every command works without it, and what needs it says how to have it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BLOCKED = """\
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
PEOPLE = "".join(f"p{n},{20 + n % 40},{['flu', 'cold', 'asthma'][n % 3]}\n" for n in range(120))
SPEC = """\
version: 1
release: people
source: {file: people.csv, types: {age: integer}}
attributes:
  age: {role: quasi_identifier, hierarchy: {ranges: [10, 20]}}
  disease: sensitive
privacy:
  - k_anonymity: {k: 5}
publish: {url: "duckdb:///shown.duckdb", schema: main}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(f"person,age,disease\n{PEOPLE}", "utf-8")
    (tmp_path / "release.yaml").write_text(SPEC, "utf-8")
    return tmp_path


def ran(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED + code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_every_step_from_a_file_to_a_report_works(folder: Path) -> None:
    commands = [
        ["init", "people.csv", "--entity", "person", "--sensitive", "disease", "--directory", "first"],
        ["search", "release.yaml"],
        ["audit", "release.yaml", "--all"],
        ["compare", "release.yaml"],
        ["release", "release.yaml"],
        ["verify", "release.yaml"],
        ["report", "release.yaml", "--output", "report.html"],
        ["history", "release.yaml"],
    ]
    code = f"from qblock.cli.app import run\nfor command in {commands!r}:\n    assert run(command) == 0, command\n"
    done = ran(code, folder)
    assert done.returncode == 0, done.stderr


def test_arrow_needs_no_other_library(folder: Path) -> None:
    code = """
import pyarrow.csv, qblock
table = pyarrow.csv.read_csv("people.csv")
made = qblock.anonymize(table, quasi_identifiers={"age": {"ranges": [10, 20]}}, sensitive=["disease"],
                        privacy=[{"k_anonymity": {"k": 5}}])
assert made.frame.num_rows == 120
"""
    done = ran(code, folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", ["result.to_frame()", "made.frame"])
def test_a_frame_says_what_to_install(what: str, folder: Path) -> None:
    code = f"""
import qblock
result = qblock.Release("release.yaml").search()
made = qblock.anonymize("people.csv", types={{"age": "integer"}},
                        quasi_identifiers={{"age": {{"ranges": [10, 20]}}}}, sensitive=["disease"],
                        privacy=[{{"k_anonymity": {{"k": 5}}}}])
{what}
"""
    done = ran(code, folder)
    assert done.returncode == 1
    assert 'a data frame needs pandas, which is not installed: pip install "qblock[frames]"' in done.stderr
