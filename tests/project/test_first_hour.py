"""The pages of the first hour and of the quickstart: their commands run in turn, and print what the pages say."""

from __future__ import annotations

import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = "first-hour"
PAGE = (ROOT / "docs" / "how-to" / f"{NAME}.md").read_text("utf-8")
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text("utf-8")
FILES = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.M | re.S)
SHOWN = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
QBLOCK = "import sys; from qblock.cli.app import run; sys.exit(run(sys.argv[1:]))"


def commands(page: str) -> list[tuple[str, list[str]]]:
    """Each command of a page, with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in "".join(SHOWN.findall(page)).splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def pattern(line: str) -> re.Pattern[str]:
    """A line of the page, wherever lines of what is printed end; `...` is anything."""
    parts = (r"\s+".join(map(re.escape, part.split())) for part in line.split("..."))
    return re.compile(r"[\s\S]*?".join(parts))


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which `python` and `qblock` are those of this test."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, words in {"python": [sys.executable], "qblock": [sys.executable, "-c", QBLOCK]}.items():
        tool = tools / name
        tool.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', "utf-8")
        tool.chmod(0o755)
    path = os.pathsep.join([str(ROOT / "engine"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path, "COLUMNS": "120"}


def follow(said: list[tuple[str, list[str]]], folder: Path, shell: dict[str, str]) -> None:
    """Run the commands in a folder and hold what they print against the page."""
    for command, lines in said:
        ran = subprocess.run(
            ["/bin/sh", "-c", command], cwd=folder, env=shell, capture_output=True, text=True, timeout=300, check=False
        )
        assert ran.returncode == 0, f"{command}: {ran.stderr}"
        for line in lines:
            assert pattern(line).search(ran.stdout), f"{command}: {line!r} is not in\n{ran.stdout}"


def patients() -> str:
    """The file that a reader of the quickstart has: 2,000 invented patients."""
    draw = random.Random(7)
    towns, illnesses = ["Aden", "Bern", "Cork", "Derby"], ["flu", "cold", "asthma", "gout", "burn"]
    lines = ["person,age,sex,town,illness"]
    for number in range(2000):
        age = int(draw.triangular(20, 90, 40))
        lines.append(f"p{number:05},{age},{draw.choice('fm')},{draw.choice(towns)},{draw.choice(illnesses)}")
    return "\n".join(lines) + "\n"


def test_the_commands_print_what_the_page_says(tmp_path: Path, shell: dict[str, str]) -> None:
    folder = tmp_path / "bank"
    folder.mkdir()
    for name, text in FILES.findall(PAGE):
        (folder / name).write_text(text, "utf-8")
    said = commands(PAGE)
    assert [command.split()[1] for command, _ in said if command.startswith("qblock release")] == ["release"] * 2
    follow(said, folder, shell)
    spec = (folder / "loans" / "release.yaml").read_text("utf-8")
    assert "???" not in spec
    with duckdb.connect(str(folder / "loans" / "loans_published.duckdb"), read_only=True) as published:
        columns = {name for (name,) in published.execute("SELECT column_name FROM duckdb_columns()").fetchall()}
        shown = {label for (label,) in published.execute("SELECT DISTINCT wiek FROM published.loans").fetchall()}
    assert not columns & {"borrower_no", "e_mail", "konto", "note", "rate", "branch", "kod_pocztowy"}
    assert shown == {"<40", "[40, 60)", ">=60"}


def test_the_quickstart_fits_a_screen_and_prints_what_it_says(tmp_path: Path, shell: dict[str, str]) -> None:
    (tmp_path / "patients.csv").write_text(patients(), "utf-8")
    said = commands(QUICKSTART)
    assert [command.split()[1] for command, _ in said] == ["init", "search", "release", "verify", "report", "history"]
    follow(said, tmp_path, shell)
    assert (tmp_path / "report.html").stat().st_size > 0
    assert len(QUICKSTART.splitlines()) <= 45
