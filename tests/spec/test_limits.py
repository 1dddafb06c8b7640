"""What a line of a spec may ask of memory, and what no file may be named: refused with the line, before anything is
read."""

from __future__ import annotations

from pathlib import Path

import pytest

from qblock.errors import InputError
from qblock.hierarchy import digits, from_csv
from qblock.spec import load_spec
from qblock.spec.load import spec_of

SPEC = """\
version: 1
release: r
source: {url: "duckdb:///w.duckdb", table: t}
attributes:
  age: {role: quasi_identifier, hierarchy: FORM}
  s: sensitive
privacy: [{k_anonymity: {k: 2}}]
search: SEARCH
publish: {schema: main, view: v, url: "duckdb:///PLACE"}
"""


def said(tmp_path: Path, form: str = "suppress", search: str = "{}", place: str = "out.duckdb") -> str:
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC.replace("FORM", form).replace("SEARCH", search).replace("PLACE", place), "utf-8")
    with pytest.raises(InputError) as raised:
        load_spec(path)
    return str(raised.value).replace(f"{path}:", "")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (
            "{digits: 1000000}",
            "5: attributes.age.hierarchy.digits: 1000000 is out of range; valid: a whole number from",
        ),
        (f"{{ranges: {[2**i for i in range(99)]}}}", "a hierarchy of 101 levels is too large; valid: at most 100"),
        (f"{{table: t, levels: {[f'l{i}' for i in range(100)]}}}", "a hierarchy of 101 levels is too large"),
        (f"{{edges: {list(range(10_001))}}}", "the list has 10,001 edges; valid: at most 10,000"),
        ("{cuts: {min_width: 0.1, low: 0, high: 1.0e+200}}", "levels is too large; valid: at most 100. Write a larger"),
        ('{file: "a\\0b.csv"}', "is not a name; write one"),
        ('{table: "a\\0b", levels: [a]}', "is not a table"),
        ("[" * 100_000, "5: lists and mappings lie within each other more than 50 deep; close the brackets"),
        ("[" * 60 + "]" * 60, "5: lists and mappings lie within each other more than 50 deep; close the brackets"),
    ],
)
def test_a_hierarchy_has_its_limits(tmp_path: Path, form: str, message: str) -> None:
    assert message in said(tmp_path, form)


def test_other_keys_have_their_limits(tmp_path: Path) -> None:
    assert "8: search.memory_limit: '1KB' is too little memory; valid: 16MB or more" in said(
        tmp_path, search="{memory_limit: 1KB}"
    )
    for place in ("a\\0b.duckdb", "a%00b.duckdb"):
        assert "9: publish.url: the database URL has a NUL character; remove it" in said(tmp_path, place=place)


def test_a_long_file_is_not_said_to_have_aliases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qblock.spec.document.MOST_NODES", 100)
    assert "5: the file has more than 100 values; write long lists to files" in said(tmp_path, str(list(range(100))))
    bomb = "{file: &a [x, x, x], layout: &b [*a, *a, *a], b: &c [*b, *b, *b], c: &d [*c, *c, *c], d: [*d, *d]}"
    assert said(tmp_path, bomb).count("aliases repeat more than 100 values; write the values out") == 1
    assert "5: attributes.age.hierarchy[0]: an alias that refers to itself" in said(tmp_path, "&a [*a]")
    values = {"version": 1, "attributes": {f"a{i}": "sensitive" for i in range(100)}}
    with pytest.raises(InputError, match="there are more than 100 values; write long lists to files"):
        spec_of(values)


def test_a_file_of_too_many_levels_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "levels.csv"
    file.write_text(",".join(["age", *(f"l{i}" for i in range(100))]) + "\n1" + ",*" * 100 + "\n", "utf-8")
    for layout in ("header", "semicolons"):
        with pytest.raises(InputError, match=r"levels.csv:1: a hierarchy of 101 levels is too large"):
            from_csv(file, "age", layout)  # type: ignore[arg-type]
        file.write_text(file.read_text("utf-8").replace(",", ";"), "utf-8")


def test_labels_are_counted_before_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    values = ["1" * 20, "2" * 20]
    for most, message in (
        ("MOST_LABELS", "21 levels of 2 leaves, 42 labels; valid: at most 41"),
        ("MOST_CHARACTERS", "21 levels of 2 leaves, each label of 20 characters; valid: at most 41 characters in all"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(f"qblock.hierarchy.core.{most}", 41)
            with pytest.raises(InputError, match=message):
                digits("age", values, 20)
    assert digits("age", values, 20).height == 20
