"""The compare command: what a person and what a program reads."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from search.whole import load, rows_of, text_of

from qblock.cli.app import run

pytestmark = pytest.mark.either_engine

ASKED = ["k_anonymity: {k: 3}", "distinct_l_diversity: {l: 2, sensitive: s}"]


@pytest.fixture
def spec(warehouse, tmp_path: Path) -> str:
    url = load(warehouse, tmp_path, rows_of(9, 30), ASKED).source.url.url
    (tmp_path / "spec.yaml").write_text(text_of(url, ASKED), "utf-8")
    return str(tmp_path / "spec.yaml")


def test_for_a_person(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", spec, "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    text = " ".join(shown.out.split())
    assert "30 rows; 41 definitions at each of 6 nodes" in text
    assert "Smallest epsilon of s by node (a, b) and adversary (class, stubbornness, prior)" in text
    assert "distinct_l_diversity(l=2) s admits every node that k_anonymity(k=3) admits, and 1 more" in text
    assert "none does" in text


def test_for_a_program(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = tmp_path / "more.yaml"
    more.write_text("privacy:\n  - frequency_l_diversity: {l: 2, sensitive: s}\n", "utf-8")
    options = ["--sensitive", "s", "--definitions", str(more), "--csv", str(tmp_path / "all.csv"), "--json"]
    assert run(["compare", spec, *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [entry["definition"] for entry in answer["asked"]][-1] == "frequency_l_diversity(l=2) s"
    assert answer["sensitive"] == ["s"]
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == answer["nodes_total"] == 6


def test_what_is_wrong_is_said_and_nothing_printed(spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", spec, "--sensitive", "a"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "qblock: --sensitive a: not a sensitive attribute of the spec; valid: s, y\n"
