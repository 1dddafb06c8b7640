"""Every form in which a spec gives a hierarchy: its example is one, builds what nests, and is documented."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from qblock.cli.app import run
from qblock.comparison import Kind
from qblock.errors import InputError
from qblock.hierarchy import TOP, Hierarchy, HierarchyError
from qblock.spec import read_spec
from qblock.spec.schema import json_schema
from qblock.spec.sources import FORMS, HierarchySource, Ranges, Suppress, build

DOCUMENTED = (Path(__file__).resolve().parents[2] / "docs" / "spec.md").read_text("utf-8")
SPEC = """\
version: 1
release: forms
source: {{url: "duckdb:///{url}", table: people}}
attributes:
  a: {{role: quasi_identifier, hierarchy: {hierarchy}}}
privacy:
  - k_anonymity: {{k: 1}}
"""


COLUMNS: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "suppress": ("text", ("f", "m")),
    "digits": ("text", ("13053", "13068", "14850")),
    "ranges": ("integer", ("0", "7", "31", "32")),
    "edges": ("integer", ("0", "3", "7", "31")),
    "dates": ("date", ("2025-12-31", "2026-01-01", "2026-01-02")),
    "cuts": ("integer", ("0", "7", "31", "120")),
}
"""A column that the example of each form fits; the other forms are read, not built."""
Form = type[HierarchySource]


def spec_of(form: Form) -> HierarchySource:
    text = SPEC.format(url="a.duckdb", hierarchy=form.example)
    jsonschema.validate(yaml.safe_load(text), json_schema())
    found = read_spec(text, "spec.yaml", {}).attributes["a"].hierarchy
    assert found is not None
    return found


def test_tags_tell_the_forms_apart() -> None:
    assert len({form.form for form in FORMS}) == len(FORMS)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.form)
def test_the_example_of_a_form_is_read_as_that_form(form: Form) -> None:
    assert type(spec_of(form)) is form
    assert form.is_word() == (form.example == form.form)
    assert (f"`{form.form}`" if form.is_word() else f"{{{form.form}:") in DOCUMENTED


@pytest.mark.parametrize("form", [form for form in FORMS if form.form in COLUMNS], ids=lambda form: form.form)
def test_the_example_of_a_form_builds_what_nests(form: Form) -> None:
    kind, values = COLUMNS[form.form]
    made = build(spec_of(form), "a", values, kind)
    assert made.check() == []
    assert sorted(made.leaves, key=str) == sorted(values)
    assert made.height >= 1
    assert set(made.labels[-1]) == {TOP}
    assert build(spec_of(form), "a", [], kind).leaves == ()


def broken(*labels: tuple[str, ...]) -> Callable[..., Hierarchy]:
    return lambda source, name, values, kind: Hierarchy(name, tuple(f"level_{i}" for i in range(len(labels))), labels)


WRONG = {
    "not nested": (("1", "2"), ("x", "x"), ("y", "z"), ("*", "*")),
    "no top": (("1", "2"), ("x", "x")),
    "a leaf twice": (("1", "1"), ("*", "*")),
    "an empty label": (("1", "2"), ("", ""), ("*", "*")),
    "nothing at all": (),
}


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> HierarchySource:
    """The builder of ranges makes something that is no hierarchy."""
    monkeypatch.setattr(Ranges, "hierarchy_of", broken(*WRONG[request.param]))
    return spec_of(Ranges)


@pytest.mark.parametrize("wrong", WRONG, indirect=True)
def test_what_a_builder_makes_is_looked_at(wrong: HierarchySource) -> None:
    with pytest.raises(HierarchyError, match="hierarchy of a"):
        build(wrong, "a", ["1", "2"], "integer")


@pytest.mark.parametrize("wrong", ["not nested"], indirect=True)
def test_hierarchy_check_refuses_what_a_builder_did_not_nest(
    wrong: HierarchySource, tmp_path: Path, warehouse: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    url = warehouse("people", {"a": [1, 2]}, {"a": "INTEGER"})
    file = tmp_path / "spec.yaml"
    text = SPEC.format(url="", hierarchy="{ranges: [5]}").replace('"duckdb:///"', json.dumps(url))
    file.write_text(text, "utf-8")
    for command in (["hierarchy", "check", str(file)], ["search", str(file), "--quiet"]):
        assert run(command) == 2
        shown = capsys.readouterr()
        assert "nested" not in shown.out
        assert "label 'x' of level_1 is under 'y'" in " ".join(shown.err.split())


def test_values_that_are_empty_or_none_are_values() -> None:
    """A column may hold an empty text, and a source whose every value is NULL has none."""
    assert build(spec_of(Suppress), "a", ["", "x"], "text").leaves == ("", "x")


@pytest.mark.parametrize("form", [form for form in FORMS if form.form not in COLUMNS], ids=lambda form: form.form)
def test_what_is_read_is_not_built(form: Form) -> None:
    with pytest.raises(TypeError, match=f"a hierarchy from a {form.form} is read, not built"):
        build(spec_of(form), "a", [], "text")


def test_the_message_names_every_form() -> None:
    with pytest.raises(InputError) as caught:
        read_spec(SPEC.format(url="a.duckdb", hierarchy="{digit: 5}"), "spec.yaml", {})
    assert str(caught.value).endswith(
        "{digit: ...} is not a hierarchy; did you mean digits? valid: " + "; ".join(form.example for form in FORMS)
    )
