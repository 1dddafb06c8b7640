"""The JSON Schema that editors get: accepts what the loader accepts, and refuses what a file alone can get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from test_spec_load import SPEC
from test_spec_privacy import HEAD, entry_of

from qblock.errors import ParameterError
from qblock.models import BY_NAME, REGISTRY, Model, parameters_of
from qblock.spec import read_spec
from qblock.spec.privacy import required
from qblock.spec.schema import PARAMETERS, json_schema, model_schema


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def valid(validator: jsonschema.Draft202012Validator, text: str) -> bool:
    return bool(validator.is_valid(yaml.safe_load(text)))


def test_the_example_is_valid(validator: jsonschema.Draft202012Validator):
    assert list(validator.iter_errors(yaml.safe_load(SPEC))) == []


def test_the_example_of_the_readme(validator: jsonschema.Draft202012Validator):
    text = (Path(__file__).resolve().parents[2] / "README.md").read_text("utf-8")
    example = "version: 1\n" + text.split("```yaml\nversion: 1\n")[1].split("```")[0]
    assert list(validator.iter_errors(yaml.safe_load(example))) == []
    spec = read_spec(example, "spec.yaml", {"WAREHOUSE_URL": "postgresql://u@h/d"})
    assert [r.model.name for r in spec.privacy] == ["k_anonymity", "entropy_l_diversity", "t_closeness"]
    assert [r.sensitive for r in spec.privacy] == [(), ("condition",), ("condition",)]


def test_it_says_which_draft_it_is():
    assert json_schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "origin" not in json_schema()["properties"]


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_model_has_its_alternative(model: type[Model], validator: jsonschema.Draft202012Validator):
    entry = f"  - {model.name}: {entry_of(model)}\n"
    assert valid(validator, HEAD + entry)
    assert not valid(validator, HEAD + entry.replace("{", "{zeta: 1, ", 1))
    assert not valid(validator, HEAD + f"  - {model.name}: 4\n")
    assert ("sensitive" in model_schema(model)["properties"]) == model.about.uses_sensitive
    assert model_schema(model)["required"] == required(model)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version: 1", "version: 2"),
        ("version: 1\n", ""),
        ("release: inpatients", "release: in-patients"),
        ("search:", "serch:"),
        ("table:", "tabel:"),
        ("insensitive", "insensitve"),
        ("ward:       insensitive", "ward: quasi_identifier"),
        ("ward:       insensitive", "ward: {role: insensitive, hierarchy: suppress}"),
        ("ward:       insensitive", "ward: {role: sensitive, nulls: top}"),
        ("hierarchy: suppress", "hierarchy: supress"),
        ("{digits: 5}", "{digits: 0}"),
        ("{digits: 5}", "{digits: 5, form: left}"),
        ("{digits: 5}", "{ranges: []}"),
        ("{digits: 5}", "{ranges: [0]}"),
        ("{digits: 5}", "{dates: [fortnight]}"),
        ("{digits: 5}", "{cuts: {min_width: 0, low: 1, high: 9}}"),
        ("{digits: 5}", "{cuts: {min_width: 1, low: 1}}"),
        ("{digits: 5}", "{cuts: {min_width: 1, low: x, high: 9}}"),
        ("{digits: 5}", "{cuts: {min_width: 1, low: 1, high: 9, end: 3}}"),
        ("{digits: 5}", "{digits: 5, max: -1}"),
        ("{digits: 5}", "{table: t, levels: [a], max: 1.5}"),
        ("{digits: 5}", "{table: t}"),
        (", hierarchy: suppress", ""),
        ("hierarchy: suppress", "hierarchy: suppress, publish_as: {edges: [1]}"),
        ("hierarchy: suppress", "hierarchy: suppress, unknown: []"),
        ("hierarchy: suppress", "hierarchy: suppress, unknown: 999"),
        ("hierarchy: suppress", "hierarchy: suppress, unknown: [null]"),
        ("hierarchy: suppress", "hierarchy: suppress, same: []"),
        ("hierarchy: suppress", "hierarchy: suppress, same: case"),
        ("hierarchy: suppress", "hierarchy: suppress, same: [caps]"),
        ("hierarchy: suppress", "hierarchy: suppress, same: [case, case]"),
        ("insensitive", "{role: insensitive, unknown: [999]}"),
        ("condition.csv}", "condition.csv}, publish_as: {level: 0}"),
        ("condition.csv}", "condition.csv}, publish_as: suppress"),
        ("condition.csv}", "condition.csv}, publish_as: {digits: 5}"),
        ("{k: 4}", "{k: 0}"),
        ("{k: 4}", "{k: 2.5}"),
        ("{k: 4}", '{k: "4"}'),
        ("{k: 4}", "{}"),
        ("k_anonymity", "k_anonimity"),
        ("0.02", "1.5"),
        ("0.02", "-1"),
        ("0.02", "2%"),
        ("strategy: chains", "strategy: chain"),
        ("strategy: chains", "node: [-1]"),
        ("strategy: chains", "weights: {age: 0}"),
        ("strategy: chains", "weights: {age: x}"),
        ("strategy: chains", "weights: [1]"),
        ("strategy: chains", "memory_limit: 4"),
        ("[analyst]", "analyst"),
        ("[analyst]", "[analyst], lock_timeout: 0"),
        ("[analyst]", "[analyst], lock_timeout: 60.5"),
        ("[analyst]", "[analyst], storage_version: 1.5"),
        ("[analyst]", "[analyst], lock_timeout: soon"),
        ("publish:", "versions: {keep: 0}\npublish:"),
        ("publish:", "origin: {}\npublish:"),
        ("publish:", "report: {threshold: 0}\npublish:"),
        ("publish:", "report: {threshold: 1.5}\npublish:"),
        ("publish:", "report: {threshold: 1/0}\npublish:"),
        ("publish:", "report: {threshold: 9 %}\npublish:"),
        ("publish:", "report: {threshold: 0.09, threshold_on: median}\npublish:"),
        ("publish:", "report: {threshold_because: a policy}\npublish:"),
        ("publish:", "report: {threshold_on: mean}\npublish:"),
        ("publish:", "report: {population: {}}\npublish:"),
        ("publish:", "report: {population: {size: 0}}\npublish:"),
        ("publish:", "report: {population: {fraction: 1.1}}\npublish:"),
        ("publish:", "report: {population: {size: 9, fraction: 0.5}}\npublish:"),
        ("publish:", "report: {context: {release: secret}}\npublish:"),
        ("publish:", "report: {context: {place: here}}\npublish:"),
        ("publish:", "report: {controls: none}\npublish:"),
        ("insensitive", '{role: insensitive, because: ""}'),
        ("insensitive", "{role: insensitive, because: [a]}"),
    ],
)
def test_what_the_schema_refuses_the_loader_refuses(old: str, new: str, validator: jsonschema.Draft202012Validator):
    assert old in SPEC
    text = SPEC.replace(old, new)
    assert not valid(validator, text)
    with pytest.raises(Exception, match=r"spec\.yaml:"):
        read_spec(text, "spec.yaml", {"WAREHOUSE_URL": "duckdb:///a.duckdb"})


@pytest.mark.parametrize(
    "hierarchy",
    [
        "{digits: 5, max: 0}",
        "{table: t, levels: [a, b], max: 1}",
        "{cuts: {start: 0, min_width: 2.5, low: -10, high: 99.5}}",
        '{cuts: {min_width: 30, low: "2000-01-01", high: "2001-01-01"}}',
    ],
)
def test_what_the_loader_accepts_the_schema_accepts(hierarchy: str, validator: jsonschema.Draft202012Validator):
    text = SPEC.replace("{digits: 5}", hierarchy)
    assert valid(validator, text)
    read_spec(text, "spec.yaml", {"WAREHOUSE_URL": "duckdb:///a.duckdb"})


@pytest.mark.parametrize("published", ["{level: 1}", "{edges: [0, 2.5]}", "{ranges: [5], from: 0, to: 20, start: 1}"])
def test_what_may_be_published(published: str, validator: jsonschema.Draft202012Validator):
    text = SPEC.replace("condition.csv}", f"condition.csv}}, publish_as: {published}")
    assert valid(validator, text)
    assert read_spec(text, "spec.yaml", {"WAREHOUSE_URL": "duckdb:///a.duckdb"}).attributes["condition"].publish_as


def test_weights_that_the_loader_accepts(validator: jsonschema.Draft202012Validator):
    text = SPEC.replace("strategy: chains", "weights: {age: 3, gender: 0.5}")
    assert valid(validator, text)
    read_spec(text, "spec.yaml", {"WAREHOUSE_URL": "duckdb:///a.duckdb"})


def sample(model: type[Model]) -> dict[str, Any]:
    """The parameters of this model's example, as its class takes them."""
    text = HEAD + f"  - {model.name}: {entry_of(model)}\n"
    return parameters_of(read_spec(text, "spec.yaml", {}).privacy[0].model)


def bounded() -> list[tuple[type[Model], str, str, Any]]:
    cases = []
    for model in REGISTRY:
        for name, schema in model_schema(model)["properties"].items():
            cases += [
                (model, name, word, limit) for word, limit in schema.items() if "inimum" in word or "aximum" in word
            ]
    return cases


@pytest.mark.parametrize(("model", "name", "word", "limit"), bounded(), ids=str)
def test_ranges_are_those_of_the_classes(model: type[Model], name: str, word: str, limit: int):
    """At an inclusive limit a class accepts the value, at an exclusive one and just beyond it refuses."""
    step = 1 if model_schema(model)["properties"][name]["type"] == "integer" else Fraction(1, 1000)
    beyond = limit - step if "inimum" in word else limit + step
    others = sample(model) | ({"min": 0, "max": 1} if model.name == "delta_presence" else {})
    if name == "bandwidth":
        others["distance"] = "kernel_js"
    if word.startswith("exclusive"):
        with pytest.raises(ParameterError):
            model(**others | {name: limit})
    else:
        model(**others | {name: limit})
    with pytest.raises(ParameterError):
        model(**others | {name: beyond})


def test_every_number_has_a_range():
    for model in REGISTRY:
        for name, schema in model_schema(model)["properties"].items():
            if schema.get("type") in ("number", "integer"):
                assert {"minimum", "exclusiveMinimum"} & schema.keys(), (model.name, name)


def test_an_editor_shows_what_a_model_means_in_words():
    assert model_schema(BY_NAME["k_anonymity"])["description"] == (
        "everybody is hidden among at least k people who look the same: n(q) >= k (Sweeney 2002; LD 2.2)"
    )


def keys_of(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every key that a spec may have, with its schema; not the rules between keys (if, then, dependentSchemas)."""
    if isinstance(node, list):
        for number, one in enumerate(node):
            yield from keys_of(one, (*path, str(number)))
    if not isinstance(node, dict):
        return
    for key, value in node.get("properties", {}).items():
        if value is not False:
            yield (*path, key), value
        yield from keys_of(value, (*path, key))
    for name, value in node.get("$defs", {}).items():
        yield from keys_of(value, (name,))
    for word in ("anyOf", "oneOf", "items", "additionalProperties"):
        yield from keys_of(node.get(word), path)


def test_every_key_has_a_description_and_examples_that_are_valid() -> None:
    whole = json_schema()
    found = list(keys_of(whole))
    assert len(found) > 120
    names = {".".join(path) for path, _ in found}
    assert names >= {"attributes", "Ranges.ranges", "privacy.k_anonymity.k", "Search.node", "Search.workload.0.queries"}
    for path, schema in found:
        assert schema.get("description"), path
        assert schema.get("examples"), path
        rules = {"$defs": whole["$defs"], **schema}
        for example in schema["examples"]:
            jsonschema.Draft202012Validator(rules).validate(example)


def test_what_is_described_is_a_parameter() -> None:
    """A description of a parameter that is no more would never be shown."""
    shown = {schema["description"] for _, schema in keys_of(json_schema())}
    named = {known: f"{known[0].upper()}{known[1:]}" for known in PARAMETERS.values()}
    assert [known for known, text in named.items() if not any(said.startswith(text) for said in shown)] == []
