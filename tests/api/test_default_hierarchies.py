"""Quasi-identifiers as a list: the hierarchies that `qblock init` writes into a first spec of the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import qblock

K2: list[dict[str, Any]] = [{"k_anonymity": {"k": 2}}]
ROWS = 240


def patients() -> pd.DataFrame:
    """Ages with a few far ones, codes, few numbers, days, amounts, and towns that are not always known."""
    return pd.DataFrame(
        {
            "age": [85 + i // 8 if i % 24 == 0 else 18 + (7 * i) % 60 for i in range(ROWS)],
            "zip": [f"{10000 + i % 30:05d}" for i in range(ROWS)],
            "children": [(i // 3) % 4 for i in range(ROWS)],
            "birth_date": [date(1950 + i % 50, 1 + i % 12, 1) for i in range(ROWS)],
            "income": [round(1000 + 37.5 * ((i * 31) % ROWS), 2) for i in range(ROWS)],
            "town": [[None, "a", "b", "c"][i % 4] for i in range(ROWS)],
            "disease": [["flu", "heart", "cancer"][i % 3] for i in range(ROWS)],
        }
    )


def proposed(frame: pd.DataFrame, folder: Path) -> dict[str, Any]:
    """The entries of the quasi-identifiers in a first spec, where a file to edit is `suppress`."""
    frame.to_parquet(folder / "patients.parquet")
    qblock.propose_spec(str(folder / "patients.parquet"), directory=folder / "spec", sensitive=["none"])
    attributes = yaml.safe_load((folder / "spec" / "release.yaml").read_text())["attributes"]
    entries = {name: dict(entry) for name, entry in attributes.items() if isinstance(entry, dict)}
    for entry in entries.values():
        assert entry.pop("role") == "quasi_identifier"
        if isinstance(entry["hierarchy"], dict) and "file" in entry["hierarchy"]:
            entry["hierarchy"] = "suppress"
    return entries


def test_a_list_takes_what_a_first_spec_proposes(tmp_path: Path) -> None:
    frame = patients()
    expected = proposed(frame.drop(columns=["disease", "income"]), tmp_path)
    made = qblock.anonymize(frame, list(expected), ["disease"], privacy=K2)
    assert made.quasi_identifiers == expected
    assert expected["age"]["hierarchy"].keys() == {"ranges", "to", "labels"}
    assert expected["children"] == {"hierarchy": {"edges": [0, 1], "labels": "half_open"}}
    assert expected["town"] == {"hierarchy": "suppress", "nulls": "top"}


def test_what_was_taken_can_be_pasted_as_the_mapping() -> None:
    frame = patients()
    made = qblock.anonymize(frame, ["age", "town", "birth_date"], ["disease"], privacy=K2)
    pasted = eval(repr(made.quasi_identifiers))
    again = qblock.anonymize(frame, pasted, ["disease"], privacy=K2)
    assert again == made
    assert made.to_dict()["quasi_identifiers"] == pasted


def test_a_mapping_is_said_as_it_was_given() -> None:
    given: dict[str, Any] = {"age": {"ranges": (5, 10)}, "town": {"hierarchy": "suppress", "nulls": "top"}}
    made = qblock.anonymize(patients(), given, ["disease"], privacy=K2)
    assert made.quasi_identifiers == {"age": {"hierarchy": {"ranges": [5, 10]}}, "town": given["town"]}


def test_the_people_of_an_entity_are_counted_where_ranges_end() -> None:
    """Eight rows beyond 70 are of two people, who are too few for a label of their own."""
    frame = pd.DataFrame({"who": range(1000), "age": [20 + i % 50 for i in range(1000)]})
    both = pd.concat([frame, pd.DataFrame({"who": [1000, 1001] * 4, "age": 104})])
    by_rows = qblock.anonymize(both, ["age"], privacy=K2)
    by_people = qblock.anonymize(both, ["age"], privacy=K2, entity="who", count="entities")
    assert by_rows.quasi_identifiers["age"]["hierarchy"]["to"] == 70
    assert by_people.quasi_identifiers["age"]["hierarchy"]["to"] == 65


@settings(max_examples=4, deadline=None, derandomize=True)
@given(order=st.permutations(range(12)))
def test_a_choice_tells_nothing_of_sensitive_values_and_of_the_order(order: Sequence[int]) -> None:
    ages = [21, 22, 25, 27, 31, 32, 38, 39, 44, 47, 52, 58]
    first = pd.DataFrame({"age": ages, "s": list("xyxyxyxyxyxy"), "other": range(12)})
    other = pd.DataFrame({"age": [ages[i] for i in order], "s": ["x" * (1 + i % 5) for i in order], "other": "z"})
    taken = [qblock.anonymize(frame, ["age"], ["s"], privacy=K2).quasi_identifiers for frame in (first, other)]
    assert taken[0] == taken[1]


def test_columns_that_are_not_named_are_not_looked_at() -> None:
    frame = patients().assign(odd=[1, "x"] * (ROWS // 2))
    assert qblock.anonymize(frame, ["age"], ["disease"], privacy=K2).quasi_identifiers.keys() == {"age"}


def test_a_column_without_a_hierarchy_is_said_with_a_mapping_to_paste() -> None:
    frame = pd.DataFrame({"note": [f"text {i}" for i in range(1500)], "sex": list("fm") * 750, "s": "x"})
    with pytest.raises(qblock.InputError, match="the values of note suggest no hierarchy") as caught:
        qblock.anonymize(frame, ["sex", "note"], ["s"], privacy=K2)
    line = str(caught.value).split("in a mapping: ")[1]
    pasted = eval(f"dict({line})")
    made = qblock.anonymize(frame, sensitive=["s"], privacy=K2, **pasted)
    assert made.node == {"sex": 0, "note": 1}
    assert "text 7" not in str(caught.value)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(qblock.Refused, match="empty"):
        qblock.anonymize(patients()[:0], ["age"], ["disease"], privacy=K2)


def test_files_and_numbers_that_are_all_missing(tmp_path: Path) -> None:
    patients().assign(gone=None).to_csv(tmp_path / "a.csv", index=False)
    made = qblock.anonymize(str(tmp_path / "a.csv"), ["age", "gone"], ["disease"], privacy=K2, types={"age": "integer"})
    assert made.quasi_identifiers["gone"] == {"hierarchy": "suppress", "nulls": "top"}
    assert "ranges" in made.quasi_identifiers["age"]["hierarchy"]
