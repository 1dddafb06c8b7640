"""Every command that docs/papers.md gives for an example of a paper, run: it prints what the page says.

That of the experiments is run by test_experiments.py.
"""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from pathlib import Path

import pytest

from qblock.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)


def commands() -> list[tuple[str, tuple[str, ...]]]:
    """Each command of the page with what it prints, among other things."""
    found: list[tuple[str, list[str]]] = []
    text = (ROOT / "docs" / "papers.md").read_text("utf-8").split("\n## Experiments of the papers\n")[0]
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("#> "):
                found[-1][1].append(line.removeprefix("#> "))
            else:
                found.append((line, []))
    return [(line, tuple(said)) for line, said in found]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    runpy.run_path(str(ROOT / "examples" / "papers" / "make.py"))["main"](folder)
    return folder


@pytest.fixture
def papers(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "papers"
    shutil.copytree(made, folder)
    monkeypatch.chdir(folder)
    return folder


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_page_has_commands_for_every_paper() -> None:
    text = (ROOT / "docs" / "papers.md").read_text("utf-8")
    for paper in ("LD", "CL", "DL", "TH", "EP"):
        section = text[text.index(f"### {paper}: ") :]
        assert BLOCK.search(section.split("\n## ")[0].split("\n### ")[0]), paper
    assert all(said for _, said in commands())


@pytest.mark.parametrize(("line", "said"), commands(), ids=[line[:60] for line, _ in commands()])
def test_a_command_prints_what_the_page_says(
    papers: Path, line: str, said: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    program, *arguments = shlex.split(line)
    assert program == "qblock"
    capfd.readouterr()
    status = run(arguments)
    out, err = capfd.readouterr()
    assert (status, "error" in err) == (0, False), err
    assert [one for one in said if flat(one) not in flat(out)] == []
