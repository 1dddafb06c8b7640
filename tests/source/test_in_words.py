"""What readers see of a level, in words: by the form of the hierarchy, and how many labels there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hierarchy.test_forms import COLUMNS
from integration.sources import spec_text

from qblock.hierarchy import from_csv
from qblock.source.in_words import SUPPRESSED, levels_in_words, named, node_in_words
from qblock.spec import Spec, read_spec
from qblock.spec.sources import FORMS, build

TREE = "town,region,all\nA,north,*\nB,north,*\nC,south,*\n"
NUMBERED = "town,town_1,town_2\nA,x,*\nB,y,*\n"


def spec_with(hierarchy: Any, folder: Path) -> Spec:
    text = spec_text("t", {"town": {"role": "quasi_identifier", "hierarchy": hierarchy}}, [{"k_anonymity": {"k": 1}}])
    return read_spec(text, folder / "release.yaml", {"URL": "duckdb:///x.duckdb"})


@pytest.mark.parametrize(
    ("hierarchy", "values", "kind", "words"),
    [
        ("suppress", ["f", "m"], "text", ["as it is (2 values)", SUPPRESSED]),
        (
            {"digits": 3},
            ["101", "112"],
            "text",
            [
                "as it is (2 values)",
                "by the first 2 of 3 digits (2 values)",
                "by the first of 3 digits (1 value)",
                SUPPRESSED,
            ],
        ),
        (
            {"digits": 2, "from": "left"},
            ["10"],
            "text",
            ["as it is (1 value)", "by the last of 2 digits (1 value)", SUPPRESSED],
        ),
        (
            {"ranges": [5, 10]},
            ["1", "7"],
            "integer",
            ["as it is (2 values)", "in ranges of 5 (2 values)", "in ranges of 10 (1 value)", SUPPRESSED],
        ),
        (
            {"ranges": [5, 10, 20], "from": 15, "to": 90},
            ["1", "17", "95"],
            "integer",
            [
                "as it is (3 values)",
                "in ranges of 5 from 15 to 90 (3 values)",
                "in ranges of 10 from 20 to 90 (2 values)",
                "in ranges of 20 from 20 to 80 (2 values)",
                SUPPRESSED,
            ],
        ),
        (
            {"ranges": [5], "from": 15},
            ["1"],
            "integer",
            ["as it is (1 value)", "in ranges of 5 from 15 on (1 value)", SUPPRESSED],
        ),
        (
            {"ranges": [10], "from": 5, "to": 15},
            ["1"],
            "integer",
            ["as it is (1 value)", "in ranges of 10, below 10 or from there on (1 value)", SUPPRESSED],
        ),
        ({"dates": ["iso_year"]}, ["2026-01-05"], "date", ["as it is (1 value)", "by ISO year (1 value)", SUPPRESSED]),
        (
            {"cuts": {"min_width": 10, "low": 0, "high": 20}},
            ["1", "15"],
            "integer",
            ["as it is (2 values)", "in ranges of 10 (2 values)", SUPPRESSED],
        ),
    ],
)
def test_builders(hierarchy: Any, values: list[str], kind: Any, words: list[str], tmp_path: Path) -> None:
    spec = spec_with(hierarchy, tmp_path)
    made = build(spec.attributes["town"].hierarchy, "town", values, kind)
    assert list(levels_in_words(spec, [made])["town"]) == words
    plain = [node_in_words(spec, {"town": level})[0][1] for level in range(made.height + 1)]
    assert plain == [text.partition(" (")[0] for text in words]


def test_every_form_has_words() -> None:
    """A new form of hierarchy says its levels, or has names of levels."""
    for form in FORMS:
        if form.form in COLUMNS:
            kind, values = COLUMNS[form.form]
            source = form(**_keys(form.example))
            made = build(source, "x", values, kind)
            said = [named(source, level, ()) for level in range(made.height + 1)]
            assert (said[0], said[-1]) == ("as it is", SUPPRESSED)
            assert len(set(said)) == len(said)


def _keys(example: str) -> dict[str, Any]:
    import yaml

    found = yaml.safe_load(example)
    return found if isinstance(found, dict) else {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TREE, ["as it is (3 values)", "by region (2 values)", SUPPRESSED]),
        (NUMBERED, ["as it is (2 values)", "at level 1 (2 values)", SUPPRESSED]),
    ],
)
def test_files_name_their_levels(text: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text(text)
    spec = spec_with({"file": "town.csv"}, tmp_path)
    assert list(levels_in_words(spec, [from_csv(tmp_path / "town.csv", attribute="town")])["town"]) == words
    assert node_in_words(spec, {"town": 1}) == (("town", words[1].partition(" (")[0]),)
    assert node_in_words(spec, {"town": 1}, {"town": 1}) == (("town", words[1].partition(" (")[0] + " (1 value)"),)
    assert node_in_words(spec, {"town": 1}, {"town": 0}) == (("town", SUPPRESSED),)


def test_a_file_that_is_gone_costs_no_more_than_the_name(tmp_path: Path) -> None:
    spec = spec_with({"file": "town.csv"}, tmp_path)
    assert node_in_words(spec, {"town": 1, "gone": 0}) == (("town", "level 1"), ("gone", "as it is"))
