"""Tightest values, metrics and nodes as the JSON that docs/json.md describes."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import Any

from qblock.models import Tightest, parameters_of
from qblock.models.examples import in_words
from qblock.spec import Requirement, Spec

GREATEST = Fraction(sys.float_info.max)


def number_json(value: Fraction | Decimal | float | int | None) -> Any:
    """A number as JSON, whole numbers exactly; infinity is the text "inf", None is null."""
    if value is None:
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 or abs(value) > GREATEST else float(value)
    as_float = float(value)
    if math.isinf(as_float):
        return "inf" if as_float > 0 else "-inf"
    return as_float


def tightest_json(tightest: Iterable[Tightest]) -> list[dict[str, Any]]:
    """One {model, holds, values} for each requirement; `exact` is given where a value is a fraction."""
    return [
        {
            "model": verdict.model,
            "holds": verdict.holds,
            "values": [
                {
                    "parameter": value.parameter,
                    "value": number_json(value.value),
                    "attained": value.attained,
                    **_exact(value.value),
                }
                for value in verdict.values
            ],
        }
        for verdict in tightest
    ]


def _exact(value: Any) -> dict[str, str]:
    return {"exact": str(value)} if isinstance(value, Fraction) and value.denominator != 1 else {}


def metrics_json(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: number_json(value) for name, value in metrics.items()}


def weights_json(spec: Spec) -> dict[str, Any] | None:
    """The weight of each quasi-identifier in the metrics; None where they count alike."""
    if len(set(spec.weights)) < 2:
        return None
    return {name: number_json(weight) for name, weight in zip(spec.quasi_identifiers, spec.weights, strict=True)}


def requirements_json(requirements: Iterable[Requirement], tightest: Iterable[Tightest]) -> list[dict[str, Any]]:
    """tightest_json with what was asked of each requirement, of which sensitive attributes, and what that means."""
    return [
        {
            **entry,
            "sensitive": list(requirement.sensitive),
            "asked": {k: requested_json(v) for k, v in parameters_of(requirement.model).items() if v is not None},
            "meaning": in_words(requirement.model, requirement.sensitive),
        }
        for requirement, entry in zip(requirements, tightest_json(tightest), strict=True)
    ]


def requested_json(value: Any) -> Any:
    """A parameter of a model as JSON."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, tuple | list):
        return [requested_json(item) for item in value]
    return number_json(value) if isinstance(value, Fraction | Decimal | float | int) else str(value)
