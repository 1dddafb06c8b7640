"""docs/python.md: every example is run, and prints what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import qblock

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"


def test_the_examples_print_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, encoding="utf-8"
    )
    assert (ran.failed, ran.attempted > 20) == (0, True)


def test_the_page_names_every_function_and_is_found() -> None:
    text = PAGE.read_text("utf-8")
    for name in ("audit", "anonymize", "profile"):
        assert f"qblock.{name}(" in text
        assert name in qblock.__all__
    assert "(docs/python.md)" in (ROOT / "README.md").read_text("utf-8")


def test_the_page_names_every_method_of_a_release() -> None:
    text = PAGE.read_text("utf-8")
    methods = {name for name, value in vars(qblock.Release).items() if callable(value) and not name.startswith("_")}
    unnamed = {name for name in methods if f"`{name}(" not in text}
    assert unnamed == {"comparison", "own_files"}  # for the command line, which prints and protects with them
