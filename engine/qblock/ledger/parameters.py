"""The parameters of a model as the ledger keeps them: canonical text that a later program reads as the same ones.

As with a spec's digest (spec/formats.py): the text starts with the number of its format and leaves out what equals that
format's defaults. A text without a number is of format 0, which wrote every parameter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qblock.canonical import canonical, number_text
from qblock.models import BY_NAME, Model
from qblock.models import asked as asked_of
from qblock.spec.formats import DEFAULTS

FORMAT = 1
"""The number of the newest format of parameters: the one of specs since which no model has other defaults."""


def parameters_text(models: Sequence[Model]) -> str:
    """All that was asked of a model; a list where the sensitive attributes of a requirement are asked differently."""
    asked = [_short(model.name, {n: parameter_json(value) for n, value in asked_of(model).items()}) for model in models]
    return canonical(asked[0] if all(one == asked[0] for one in asked) else asked)


def newest(model: str, text: str) -> str:
    """A text of any format that this program knows, in the newest one; another text as it is."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    known = model in BY_NAME and isinstance(found, dict | list)
    parts = found if isinstance(found, list) else [found]
    if not known or not all(isinstance(part, dict) and "format" not in part for part in parts):
        return text
    short = [_short(model, part) for part in parts]
    return canonical(short if isinstance(found, list) else short[0])


def parameter_json(value: Any) -> Any:
    """A parameter as it is recorded; of a collection, which may name values of the source, number and digest only."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Fraction | Decimal):
        return number_text(value)
    items = [repr(item) for item in (value.items() if isinstance(value, Mapping) else value)]
    if isinstance(value, Mapping | Set):
        items.sort()
    return {"items": len(items), "digest": hashlib.sha256(canonical(items).encode()).hexdigest()}


def _short(model: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    defaults = DEFAULTS[FORMAT].get(model, {})
    same = {name for name in defaults if name in asked and asked[name] == parameter_json(defaults[name])}
    return {"format": FORMAT, **{name: value for name, value in asked.items() if name not in same}}
