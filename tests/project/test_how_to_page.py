"""The page that says how to add a page to the report, followed on a copy of the code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_how_to import BLOCK, ROOT, follow, text_of

ASK = """
from report import reports, test_render

from qblock.report import rendered
from qblock.report.pages import PAGES

test_render.test_each_page_is_listed()
test_render.test_pictures_and_tables_have_names_and_headings_follow_each_other()
for label in reports.HOSTILE:
    test_render.test_a_label_is_a_text_whatever_it_says(label)
print(PAGES[0].title)
print(rendered(reports.report(), "md"))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(ROOT / "engine", folder / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    follow("add-a-report-page", folder)
    return folder


def test_the_new_page_is_in_the_report(copy: Path) -> None:
    environment = os.environ | {"PYTHONPATH": f"{copy / 'engine'}{os.pathsep}{ROOT / 'tests'}"}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("As it is\n")
    assert "## As it is\n\n### Columns as they are\n" in done.stdout
    assert "| disease | sensitive attribute | 3 |" in done.stdout


def test_the_page_names_files_that_are_there_or_made() -> None:
    made = {name for name, _, _ in BLOCK.findall(text_of("add-a-report-page"))}
    assert made == {f"engine/qblock/report/pages/{name}.py" for name in ("places", "__init__")}
    for name in ("engine/qblock/report/read.py", "engine/qblock/results/report.py"):
        assert (ROOT / name).is_file()
