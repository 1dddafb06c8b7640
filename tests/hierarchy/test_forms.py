"""Every form in which a spec gives a hierarchy: its example is one, builds what nests, and is documented."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from qblock.cli.app import run
from qblock.errors import InputError
from qblock.hierarchy import TOP, Hierarchy, HierarchyError
from qblock.spec import read_spec, sources
from qblock.spec.schema import json_schema
from qblock.spec.sources import FORMS, Form, HierarchySource, build

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


def spec_of(form: Form) -> HierarchySource:
    text = SPEC.format(url="a.duckdb", hierarchy=form.example)
    jsonschema.validate(yaml.safe_load(text), json_schema())
    found = read_spec(text, "spec.yaml", {}).attributes["a"].hierarchy
    assert found is not None
    return found


def test_tags_tell_the_forms_apart() -> None:
    assert len({form.tag for form in FORMS}) == len({form.source for form in FORMS}) == len(FORMS)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.tag)
def test_the_example_of_a_form_is_read_as_that_form(form: Form) -> None:
    assert type(spec_of(form)) is form.source
    assert form.word == (form.example == form.tag)
    assert (f"`{form.tag}`" if form.word else f"{{{form.tag}:") in DOCUMENTED


@pytest.mark.parametrize("form", [form for form in FORMS if form.builder], ids=lambda form: form.tag)
def test_the_example_of_a_form_builds_what_nests(form: Form) -> None:
    made = build(spec_of(form), "a", form.values, form.kind)
    assert made.check() == []
    assert sorted(made.leaves, key=str) == sorted(form.values)
    assert made.height >= 1
    assert set(made.labels[-1]) == {TOP}
    assert build(spec_of(form), "a", [], form.kind).leaves == ()


def broken(*labels: tuple[str, ...]) -> Callable[..., Hierarchy]:
    return lambda form, name, values, kind: Hierarchy(name, tuple(f"level_{i}" for i in range(len(labels))), labels)


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
    forms = tuple(
        dataclasses.replace(form, builder=broken(*WRONG[request.param])) if form.tag == "ranges" else form
        for form in FORMS
    )
    monkeypatch.setattr(sources, "FORMS", forms)
    (form,) = (form for form in forms if form.tag == "ranges")
    return spec_of(form)


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
    (suppress,) = (form for form in FORMS if form.word)
    assert build(spec_of(suppress), "a", ["", "x"], "text").leaves == ("", "x")


@pytest.mark.parametrize("form", [form for form in FORMS if not form.builder], ids=lambda form: form.tag)
def test_what_is_read_is_not_built(form: Form) -> None:
    with pytest.raises(TypeError, match=f"a hierarchy from a {form.tag} is read, not built"):
        build(spec_of(form), "a", [], "text")


def test_the_message_names_every_form() -> None:
    with pytest.raises(InputError) as caught:
        read_spec(SPEC.format(url="a.duckdb", hierarchy="{digit: 5}"), "spec.yaml", {})
    assert str(caught.value).endswith(
        "{digit: ...} is not a hierarchy; did you mean digits? valid: " + "; ".join(form.example for form in FORMS)
    )
