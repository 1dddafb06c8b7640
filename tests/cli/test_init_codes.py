"""`qblock init` and codes: known by the form of most of their values, with the others hidden."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qblock.spec import load_spec

pytestmark = pytest.mark.either_engine
CODES = [f"{10115 + 2 * (i % 9)}" for i in range(57)] + ["D-10115", "1011", "10115 ", *[None] * 3]


def proposed(qblock: Any, warehouse: Any, folder: Path, codes: list[Any], monkeypatch: Any) -> Any:
    url = warehouse("people", {"plz": codes, "age": [20 + i % 40 for i in range(len(codes))]})
    monkeypatch.setenv("WAREHOUSE_URL", url)
    ran = qblock("init", url, "people", "--directory", folder, "--sensitive", "none", "--json")
    assert ran.status == 0, ran.err
    return ran, load_spec(folder / "release.yaml")


def test_what_most_values_are_decides_and_the_others_are_hidden(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, spec = proposed(qblock, warehouse, tmp_path / "made", CODES, monkeypatch)
    assert spec.attributes["plz"].hierarchy.form == "digits"  # type: ignore[union-attr]
    assert (spec.attributes["plz"].uncovered, spec.attributes["plz"].nulls) == ("top", "top")
    reason = next(column["reason"] for column in ran.json["columns"] if column["name"] == "plz")
    assert "3 rows are not 5 digits and become *" in reason
    assert qblock("search", spec.path).status == 0


def test_codes_that_are_too_mixed_have_a_file(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = ["10115", "W1A 1AA", "75008", "1012 AB"] * 15
    _, spec = proposed(qblock, warehouse, tmp_path / "made", mixed, monkeypatch)
    assert spec.attributes["plz"].hierarchy.form == "file"  # type: ignore[union-attr]


def test_codes_of_one_form_hide_nothing(
    qblock: Any, warehouse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, spec = proposed(qblock, warehouse, tmp_path / "made", CODES[:57], monkeypatch)
    assert (spec.attributes["plz"].uncovered, spec.attributes["plz"].nulls) == ("refuse", "refuse")
