"""CITATION.cff has the keys that its format requires, and says what the project and its documents say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from qblock import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def test_the_required_keys_are_there(citation: dict[str, Any]) -> None:
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    for entry in (citation, *citation["references"]):
        assert {"type", "title", "authors"} <= set(entry)
        assert entry["authors"]
        assert all(set(author) & {"name", "family-names"} for author in entry["authors"])


def test_it_says_what_the_project_says(citation: dict[str, Any]) -> None:
    assert citation["title"] == PROJECT["name"]
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"] == PROJECT["description"]
    assert citation["version"] == __version__


def test_the_papers_are_those_of_the_documents(citation: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "papers.md").read_text("utf-8")
    head = " ".join(text.split("\n## ")[0].split())
    papers = {paper["abbreviation"]: paper for paper in citation["references"]}
    parts = re.split(r"\*\*([A-Z]{2})\*\*", head)
    said = dict(zip(parts[1::2], (part.split(";")[0] for part in parts[2::2]), strict=True))
    assert list(papers) == list(said)
    for short, paper in papers.items():
        assert paper["title"].removeprefix("A ") in said[short]
        assert str(paper.get("year", "")) in said[short]
