"""The parameters of a model as the ledger keeps them: canonical text that starts with the number of its format and
leaves out what equals a default, as with a spec's digest (spec/digest.py)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qblock.canonical import canonical, number_text
from qblock.models import Model, parameters_of

FORMAT = 1
"""The number that the text starts with. Another default of a parameter takes the next number."""


def parameters_text(models: Sequence[Model]) -> str:
    """All that was asked of a model; a list where the sensitive attributes of a requirement are asked differently."""
    by_model = [_without_defaults(model) for model in models]
    return canonical(by_model[0] if all(parameters == by_model[0] for parameters in by_model) else by_model)


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


def _without_defaults(model: Model) -> dict[str, Any]:
    defaults = {field.name: field.default for field in fields(model)}
    given = {name: value for name, value in parameters_of(model).items() if value != defaults[name]}
    return {"format": FORMAT, **{name: parameter_json(value) for name, value in given.items()}}
