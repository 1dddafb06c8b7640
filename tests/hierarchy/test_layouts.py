"""Hierarchy files as other tools write them: semicolons, and no header."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.errors import InputError
from qblock.hierarchy import HierarchyError, from_csv, from_rows, write_csv

LABELS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r\ufeff"), min_size=1, max_size=8)


@given(groups=st.dictionaries(LABELS, LABELS, min_size=1, max_size=6), layout=st.sampled_from(("header", "semicolons")))
def test_what_is_written_reads_back(
    groups: dict[str, str], layout: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = from_rows(("x", "group", "all"), [(leaf, group, "*") for leaf, group in groups.items()], attribute="x")
    path = tmp_path_factory.mktemp("layout") / "x.csv"
    write_csv(made, path, layout)  # type: ignore[arg-type]
    found = from_csv(path, "x", layout)  # type: ignore[arg-type]
    assert found.labels == made.labels
    assert found.level_names == (made.level_names if layout == "header" else ("x", "x_1", "x_2"))


def test_a_file_of_another_tool(tmp_path: Path) -> None:
    path = tmp_path / "age.csv"
    path.write_text("34;30-39;<50\n45;40-49;<50\n66;60-69;>=50\n", "utf-8")
    found = from_csv(path, "age", "semicolons")
    assert found.level_names == ("age", "age_1", "age_2", "age_any")
    assert [list(level) for level in found.labels[:2]] == [["34", "45", "66"], ["30-39", "40-49", "60-69"]]
    assert set(found.labels[3]) == {"*"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("34;30-39\n45\n", r"age.csv:2: 1 columns where the first line has 2"),
        ("34;30-39;a\n35;30-39;b\n", r"age.csv:2: .*"),
        ("", r"the file is empty; write a line for each value, leaf first"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "age.csv").write_text(text, "utf-8")
    with pytest.raises((InputError, HierarchyError), match=message):
        from_csv(tmp_path / "age.csv", "age", "semicolons")
