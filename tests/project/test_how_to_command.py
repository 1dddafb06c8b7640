"""The page that says how to add a command, followed on a copy of the code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_how_to import BLOCK, ROOT, follow, text_of

SPEC = """version: 1
release: followed
source: {url: "duckdb:///a.duckdb", table: t}
attributes:
  code: {role: quasi_identifier, hierarchy: suppress}
privacy:
  - k_anonymity: {k: 2}
publish: {url: "duckdb:///b.duckdb", readers: [ann, ben]}
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    shutil.copytree(ROOT / "engine", folder / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    follow("add-a-command", folder)
    (folder / "spec.yaml").write_text(SPEC, "utf-8")
    return folder


def test_the_new_command_answers(copy: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(copy / "engine")}
    for more, expected in ((["--json"], {"readers": ["ann", "ben"]}), ([], "ann, ben\n")):
        command = [sys.executable, "-c", "from qblock.cli import main; main()", "readers", "spec.yaml", *more]
        done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (json.loads(done.stdout) if more else done.stdout) == expected
    command = [sys.executable, "-c", "from qblock.cli import main; main()", "readers", "--help"]
    told = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, check=False).stdout
    assert told.rstrip().endswith("qblock readers release.yaml")


def test_the_page_names_files_that_are_there_or_made() -> None:
    made = {name for name, _, _ in BLOCK.findall(text_of("add-a-command"))}
    for name in ("engine/qblock/cli/app.py", "engine/qblock/releases.py", "engine/qblock/cli/ending.py"):
        assert (ROOT / name).is_file()
    files = ("readers", "app")
    assert made == {f"engine/qblock/cli/{name}.py" for name in files}
