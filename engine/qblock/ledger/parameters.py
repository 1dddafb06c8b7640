"""The parameters of a model as the ledger keeps them: canonical text that starts with the number of its format and
leaves out what equals a default, as with a spec's digest (spec/digest.py)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

from qblock.canonical import canonical, number_text
from qblock.models import Model, parameters_of
from qblock.spec.digest import DEFAULTS

FORMAT = 1
"""The number that the text starts with. Another default of a parameter takes the next number."""


def parameters_text(models: Sequence[Model]) -> str:
    """All that was asked of a model; a list where the sensitive attributes of a requirement are asked differently."""
    by_model = [
        _short(model.name, {n: parameter_json(value) for n, value in parameters_of(model).items()}) for model in models
    ]
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


def _short(model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    defaults = DEFAULTS.get(model, {})
    same = {name for name in defaults if name in parameters and parameters[name] == parameter_json(defaults[name])}
    return {"format": FORMAT, **{name: value for name, value in parameters.items() if name not in same}}
