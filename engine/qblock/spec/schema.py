"""The JSON Schema of the spec, for editors: the sections from their classes, the models from the registry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from qblock.models import REGISTRY, Model, Range
from qblock.models.base import Parameter
from qblock.spec.checks import NULLS, OF_THRESHOLD, ONLY
from qblock.spec.fields import closed_object, described, limits
from qblock.spec.load import ADAPTER
from qblock.spec.privacy import KINDS, TABLE, example_of, parameters, required
from qblock.spec.sections import ROLES
from qblock.spec.source_file import ALSO, WORDS

Schema = dict[str, Any]

PARAMETERS: dict[str, str] = {
    "k": "how many people look the same",
    "l": "how diverse the sensitive values of people who look the same are",
    "c": "how frequent the most frequent value may be, as a multiple of the rarer ones together",
    "c1": "how frequent the most frequent value may be, as a multiple of the rarer ones together",
    "c2": "how frequent the protected values may be, in percent",
    "allowed": "sensitive values that may be found out",
    "protected": "sensitive values that must stay rare",
    "epsilon": "how much may be learned: in epsilon_privacy a factor, in epsilon_m_anonymity how close is similar",
    "m": "how many values there are for each that lies close",
    "relative": "whether closeness is a share of the value",
    "delta": "how close values are similar, or how far a block may differ from the table",
    "reading": "which of two readings of the paper is meant",
    "t": "how far sensitive values of people who look the same may be from those of the table",
    "distance": "how far two distributions are apart",
    "bandwidth": "of the kernel of the distance kernel_js",
    "n": "how many people a group to compare with has at least",
    "variant": "which form of the definition is meant",
    "adversary": "the class of the attacker",
    "stubbornness": "how much weight the attacker gives to what they believed before",
    "at_most": "whether attackers of less stubbornness count too",
    "prior": "what the attacker believes before",
    "known": "of how many other people the attacker knows the values",
    "predicates": "which statements about somebody must not be believed much more than before",
    "alpha": "the share that a sensitive value may have among people who look the same",
    "values": "the sensitive values that this is about",
    "beta": "how much more frequent a value may be than in the table",
    "absent": "what a value is that people who look the same do not have",
    "population": "the table of the whole population",
    "min": "the least probability of being in the table",
    "max": "the greatest probability of being in the table",
}
"""Parameters of the models: what each is, in a few words."""


def json_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a spec as it is written. Checks between entries are left to `load_spec`."""
    schema = ADAPTER.json_schema(by_alias=True)
    schema["properties"].pop("origin")
    attribute = schema["$defs"]["Attribute"]
    attribute["allOf"] = [_rule(role, attribute["properties"]) for role in ROLES]
    schema["properties"]["attributes"]["additionalProperties"] = {
        "anyOf": [{"enum": [role for role in ROLES if role != "quasi_identifier"]}, {"$ref": "#/$defs/Attribute"}]
    }
    schema["properties"]["attributes"]["minProperties"] = 1
    _two_sources(schema["$defs"]["Source"])
    schema["$defs"]["Population"]["oneOf"] = [{"required": [name]} for name in ("size", "fraction")]
    schema["$defs"]["Reporting"]["dependentRequired"] = {name: ["threshold"] for name in OF_THRESHOLD}
    models = {model.name: model_schema(model) for model in REGISTRY}
    one_model = closed_object(**models) | {"minProperties": 1, "maxProperties": 1}
    schema["properties"]["privacy"] |= {"minItems": 1, "items": one_model}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "qblock release spec",
        "description": "What is published, from which table, under which privacy models.",
    }


def model_schema(model: type[Model]) -> Schema:
    """The parameters of one model."""
    about = model.about
    properties = {name: _parameter(declared) for name, declared in parameters(model).items()}
    if about.uses_sensitive:
        properties["sensitive"] = described(
            {"anyOf": [TABLE, {"type": "array", "minItems": 2, "uniqueItems": True, "items": TABLE}]},
            "The sensitive attribute; a list asks for the multi-attribute form.",
            *("diagnosis", ["diagnosis", "income"]),
        )
    needed = required(model)
    return {
        "type": "object" if needed else ["object", "null"],
        "examples": [{name: properties[name]["examples"][0] for name in needed}],
        "description": f"{re.sub('[{}]', '', about.meaning)}: {about.condition} ({about.citation})",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _parameter(declared: Parameter) -> Schema:
    known = PARAMETERS.get(declared.name, f"the parameter {declared.name}")
    valid = f": {declared.valid.text(declared.name)}" if isinstance(declared.valid, Range) else ""
    return described(_values_of(declared), f"{known[0].upper()}{known[1:]}{valid}.", example_of(declared))


def _values_of(declared: Parameter) -> Schema:
    """What a parameter may be."""
    if isinstance(declared.valid, tuple):
        return {"enum": list(declared.valid)}
    schema = KINDS[declared.kind].schema
    if isinstance(declared.valid, Range):
        schema = schema | limits(declared.valid)
    if declared.per_attribute:
        return {"anyOf": [schema, {"type": "object", "additionalProperties": schema}]}
    return schema


def _two_sources(source: Schema) -> None:
    """A database with a table, or files; only those of CSV have types in the spec."""
    source.pop("required")
    for word in ("anyOf", "default"):
        source["properties"]["file"].pop(word)
    source["properties"]["file"] |= {"type": "string", "pattern": r"\.([pP][aA][rR][qQ][uU][eE][tT]|[cC][sS][vV])$"}
    # The names of types, in lower case or capitals.
    words = "|".join(f"{word}|{word.upper()}" for word in (*WORDS, *ALSO))
    types = rf"^({words}|(decimal|numeric|DECIMAL|NUMERIC) *\( *[0-9]+ *(, *[0-9]+ *)?\))$"
    source["properties"]["types"]["additionalProperties"] = {"type": "string", "pattern": types}
    csv = {"properties": {"file": {"pattern": r"\.[cC][sS][vV]$"}}, "required": ["file"]}
    source["oneOf"] = [
        {"required": ["url", "table"], "properties": {"file": False, "types": False}},
        {"required": ["file"], "properties": {"url": False, "table": False}},
    ]
    source["dependentSchemas"] = {"types": csv}


def _rule(role: str, keys: Iterable[str]) -> Schema:
    then: Schema = {"properties": {key: False for key in keys if key not in ("role", "because", *ONLY[role])}}
    if role in NULLS:
        then["properties"]["nulls"] = {"enum": list(NULLS[role])}
    if role == "quasi_identifier":
        then["required"] = ["hierarchy"]
    return {"if": {"properties": {"role": {"const": role}}, "required": ["role"]}, "then": then}
