"""The JSON Schema of the spec, for editors: the sections from their classes, the models from the registry."""

from __future__ import annotations

import json
import re
import types
import typing
from fractions import Fraction
from typing import Any, Literal, Union, get_args, get_origin

from qblock.models import REGISTRY, Model, Range
from qblock.models.about import Kind, Parameter
from qblock.spec.checks import NULLS, ONLY
from qblock.spec.column_types import ALSO, WORDS
from qblock.spec.descriptions import PARAMETERS, SECTIONS
from qblock.spec.fields import TEXTS
from qblock.spec.guards import KEYS
from qblock.spec.load import ADAPTER
from qblock.spec.model import ROLES
from qblock.spec.privacy import parameters

Schema = dict[str, Any]

WEIGHTS: Schema = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number", "minimum": 0}}
TABLE: Schema = {"type": "string", "minLength": 1}
PRIOR: Schema = {
    "anyOf": [
        {"enum": ["uniform", "table"]},
        {
            "type": "object",
            "properties": {"values": WEIGHTS},
            "required": ["values"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "from_table": TABLE,
                "column": TABLE,
                "where": {"type": "object", "additionalProperties": {"type": [*TEXTS["type"], "null"]}},
            },
            "required": ["from_table", "column"],
            "additionalProperties": False,
        },
    ]
}
POPULATION: Schema = {
    "anyOf": [
        TABLE,
        {"type": "object", "properties": {"table": TABLE}, "required": ["table"], "additionalProperties": False},
    ]
}
PREDICATES: Schema = {
    "anyOf": [
        {"enum": ["singletons", "taxonomy", "negative"]},
        {"type": "array", "minItems": 1, "items": {"type": "array", "items": {"type": [*TEXTS["type"], "null"]}}},
        {
            "type": "object",
            "properties": dict.fromkeys(KEYS, TABLE),
            "required": list(KEYS[:3]),
            "additionalProperties": False,
        },
    ]
}

SPECIAL: dict[Kind, Schema] = {"prior": PRIOR, "population": POPULATION, "predicates": PREDICATES}
"""The kinds of parameters that a spec writes in forms of its own."""


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
    schema["properties"]["privacy"] = {
        "type": "array",
        "minItems": 1,
        "description": "Privacy models; all must hold.",
        "items": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": {model.name: model_schema(model) for model in REGISTRY},
        },
    }
    schema = json.loads(json.dumps(schema))  # parts are shared, and each is described where it is
    _describe(schema, "Spec")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "qblock release spec",
        "description": "What is published, from which table, under which privacy models.",
    }


def _describe(node: Any, section: str) -> None:
    """Give each key its description and examples. section: the class, or the key, that the node is the value of."""
    if isinstance(node, list):
        for one in node:
            _describe(one, section)
    if not isinstance(node, dict):
        return
    for key, value in node.get("properties", {}).items():
        told = SECTIONS.get(section, {}).get(key)
        if told is not None and isinstance(value, dict):  # False in a rule says that there is no such key
            value |= {"description": told[0], "examples": list(told[1])}
        _describe(value, key)
    for name, value in node.get("$defs", {}).items():
        _describe(value, name)
    for word in ("anyOf", "oneOf", "items", "additionalProperties"):
        _describe(node.get(word), section)


def model_schema(model: type[Model]) -> Schema:
    """The parameters of one model."""
    about = model.about
    known = parameters(model)
    properties = {name: _parameter(model, name, hint) for name, (hint, _) in known.items()}
    if about.uses_sensitive:
        properties["sensitive"] = {
            "anyOf": [TABLE, {"type": "array", "minItems": 2, "uniqueItems": True, "items": TABLE}],
            "description": "The sensitive attribute; a list asks for the multi-attribute form.",
            "examples": ["diagnosis", ["diagnosis", "income"]],
        }
    required = [name for name, (_, needed) in known.items() if needed]
    return {
        "type": "object" if required else ["object", "null"],
        "examples": [{name: properties[name]["examples"][0] for name in required}],
        "description": f"{re.sub('[{}]', '', about.meaning)}: {about.condition} ({about.citation})",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _parameter(model: type[Model], name: str, hint: Any) -> Schema:
    (declared,) = (parameter for parameter in model.about.parameters if parameter.name == name)
    known = PARAMETERS.get(name, f"a parameter of {model.name}")
    valid = f": {declared.valid.text(name)}" if isinstance(declared.valid, Range) else ""
    told: Schema = {"description": f"{known[0].upper()}{known[1:]}{valid}."}
    example = _example(declared)
    return {**_values_of(declared, hint), **told, "examples": [example]}


def _example(declared: Parameter) -> Any:
    """A valid value as a spec has it."""
    if declared.kind in SPECIAL:
        return {"prior": "uniform", "population": {"table": "census.people"}, "predicates": "singletons"}[declared.kind]
    value = declared.example
    if isinstance(declared.valid, tuple):
        return value if value in declared.valid else declared.valid[0]
    if isinstance(value, tuple | list):
        return [str(one) for one in value]
    if isinstance(value, Fraction):
        return _number(value)
    return value


def _values_of(declared: Parameter, hint: Any) -> Schema:
    """What a parameter may be."""
    if declared.kind in SPECIAL:
        return SPECIAL[declared.kind]
    schema = {"enum": list(declared.valid)} if isinstance(declared.valid, tuple) else _type(hint)
    if isinstance(declared.valid, Range):
        schema |= _limits(declared.valid)
    if declared.per_attribute:
        return {"anyOf": [schema, {"type": "object", "additionalProperties": schema}]}
    return schema


def _limits(valid: Range) -> Schema:
    found: Schema = {"exclusiveMinimum" if valid.open_least else "minimum": _number(valid.least)}
    if valid.most is not None:
        found["exclusiveMaximum" if valid.open_most else "maximum"] = _number(valid.most)
    return found


def _number(limit: int | Fraction) -> int | float:
    return int(limit) if limit.denominator == 1 else float(limit)


def _type(hint: Any) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        members = [member for member in args if member is not type(None)]
        if set(members) == {int, Fraction}:
            return {"type": "number"}
        inner = _type(members[0]) if len(members) == 1 else {"anyOf": [_type(member) for member in members]}
        if isinstance(inner.get("type"), list) and len(members) < len(args):
            return {"type": [*inner["type"], "null"]}
        return inner
    if origin is Literal:
        return {"enum": list(args)}
    if hint in (int, Fraction, bool):
        return {"type": {int: "integer", Fraction: "number", bool: "boolean"}[hint]}
    if hint is str:
        return dict(TEXTS)
    if origin in (tuple, frozenset):
        return {"type": "array", "items": _type(args[0]) if args else {}}
    return {}


def _two_sources(source: Schema) -> None:
    """A database with a table, or files; only those of CSV have types in the spec."""
    source.pop("required")
    source["properties"]["file"] = {"type": "string", "pattern": r"\.([pP][aA][rR][qQ][uU][eE][tT]|[cC][sS][vV])$"}
    source["properties"]["types"]["additionalProperties"] = {"type": "string", "pattern": _types()}
    csv = {"properties": {"file": {"pattern": r"\.[cC][sS][vV]$"}}, "required": ["file"]}
    source["oneOf"] = [
        {"required": ["url", "table"], "properties": {"file": False, "types": False}},
        {"required": ["file"], "properties": {"url": False, "table": False}},
    ]
    source["dependentSchemas"] = {"types": csv}


def _types() -> str:
    """The names of types, in lower case or capitals."""
    words = "|".join(f"{word}|{word.upper()}" for word in (*WORDS, *ALSO))
    return rf"^({words}|(decimal|numeric|DECIMAL|NUMERIC) *\( *[0-9]+ *(, *[0-9]+ *)?\))$"


def _rule(role: str, keys: typing.Iterable[str]) -> Schema:
    then: Schema = {"properties": {key: False for key in keys if key != "role" and key not in ONLY[role]}}
    if role in NULLS:
        then["properties"]["nulls"] = {"enum": list(NULLS[role])}
    if role == "quasi_identifier":
        then["required"] = ["hierarchy"]
    return {"if": {"properties": {"role": {"const": role}}, "required": ["role"]}, "then": then}
