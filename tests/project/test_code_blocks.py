"""Every code block of the documents is run by a test, checked against the program, or says why it is not run."""

from __future__ import annotations

import pytest
from project.code_blocks import RUN, Block, blocks, main, wrong

FOLLOWED = dict.fromkeys(("add-a-hierarchy-form", "add-a-metric", "add-a-model"), "add-a-")
"""Pages whose test makes up their names."""
FOUND = list(blocks())


@pytest.mark.parametrize("page", sorted({block.page for block in FOUND}))
def test_something_vouches_for_every_block(page: str) -> None:
    left = [block for block in FOUND if block.page == page and block.how is None]
    assert [(block.line, block.language, list(wrong(block.text))) for block in left] == []


@pytest.mark.parametrize(("page", "language"), [one for one in RUN if "test_pages" not in RUN[one]])
def test_the_test_that_runs_a_page_names_it(page: str, language: str) -> None:
    from project.code_blocks import ROOT

    text = (ROOT / RUN[page, language]).read_text("utf-8")
    name = page.rpartition("/")[2]
    stem = name.removesuffix(".md")
    assert any(word in text for word in (name, f'"{stem}"', FOLLOWED.get(stem, name)))
    assert any(block.page == page and block.language == language for block in FOUND)


def test_the_pages_that_one_test_runs_are_those_of_the_table() -> None:
    from examples.test_pages import PAGES
    from project.code_blocks import ROOT

    listed = {page for (page, _), test in RUN.items() if "test_pages" in test}
    assert {path.relative_to(ROOT).as_posix() for path in PAGES} == listed


@pytest.mark.parametrize(
    ("commands", "named"),
    [
        ("    qblock release release.yaml --force   # again\n", []),
        ("    qblock ledger upgrade release.yaml      brings it up to date\n", []),
        ("    qblock relese release.yaml\n", ["relese"]),
        ("    qblock ledger upgrde release.yaml\n", ["upgrde"]),
        ("    qblock search release.yaml --nodez all\n", ["--nodez"]),
        ("    make tset\n", ["tset"]),
        ("    python -m benchmarks.nothing\n", ["benchmarks.nothing"]),
        ("    .venv/bin/python tests/none.py\n", ["tests/none.py"]),
        ("    .venv/bin/pip install --editable '.[dev,nothing]'\n", ["nothing"]),
        ("    rm -rf /\n", ["rm"]),
    ],
)
def test_a_command_that_does_not_exist_is_found(commands: str, named: list[str]) -> None:
    assert list(wrong(commands)) == named


def test_a_block_that_nothing_runs_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert Block("nowhere", 1, "python", "1 / 0\n", None).how is None
    assert Block("nowhere", 1, "python", "1 / 0\n", "it fails").how == "marked"
    assert main() == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"{len(FOUND)} code blocks: ")
