"""What the JSON Schemas of answers are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
REAL: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
FIGURE: Schema = {"anyOf": [{"type": ["number", "null"]}, {"enum": ["inf", "-inf"]}]}
"""A figure; infinity is a text, and what is unknown is null."""


def many(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def named(of: Schema) -> Schema:
    """An object whose keys are names of columns, metrics and the like."""
    return {"type": "object", "additionalProperties": of}


def maybe(of: Schema) -> Schema:
    return {"anyOf": [of, {"type": "null"}]}


def keys(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


TEXTS, LEVELS, NODE = many(TEXT), many(WHOLE), named(WHOLE)
VALUE = keys({"parameter": TEXT, "value": FIGURE, "attained": FLAG}, {"exact": TEXT})
TIGHTEST = many(
    keys(
        {
            "model": TEXT,
            "holds": maybe(FLAG),
            "values": many(VALUE),
            "sensitive": TEXTS,
            "asked": {"type": "object"},
        },
        {"meaning": TEXT},
    )
)
METRICS = named(FIGURE)
LABELS = keys(
    {"level": WHOLE, "name": TEXT, "form": {"enum": ["plain", "range", "rest"]}, "share": REAL}, {"like": TEXT}
)
SHARES = many(keys({"attribute": TEXT, "hidden": REAL, "labels": many(LABELS), "words": TEXT}))
NOT_COMPUTED = many(keys({"model": TEXT, "sensitive": TEXTS, "what": TEXT, "why": TEXT}))
