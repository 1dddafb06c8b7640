"""The kinds of a model: what its parameters choose besides numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

from qblock.errors import ParameterError
from qblock.models import BY_NAME, REGISTRY, Model
from qblock.models.examples import required

CHOICES: dict[str, list[Any]] = {
    "reading": ["window", "literal"],
    "variant": ["basic", "enhanced", "lattice", "own_or_top"],
    "relative": [False, True],
    "absent": ["violation", "skip"],
    "distance": ["equal", "ordered", "hierarchical", "kernel_js"],
    "adversary": ["I", "II", "III", "IV"],
    "at_most": [False, True],
    "predicates": ["singletons", "guarded"],
}
"""A choice or flag that is not listed takes every word that is valid."""
for _parameter in (parameter for model in REGISTRY for parameter in model.about.parameters):
    if _parameter.kind in ("choice", "flag"):
        CHOICES.setdefault(_parameter.name, list(_parameter.valid or (False, True)))  # type: ignore[arg-type]
USUAL: dict[str, Any] = {"k": 2, "l": 2, "c": 2, "c1": 2, "c2": 10, "alpha": 1, "m": 2, "t": 0, "n": 5, "beta": 1}
USUAL |= {"delta": 1, "min": 0, "max": 1, "epsilon": 1}


DEFAULTS = {"relative": False, "at_most": True, "predicates": "singletons"}


def variant(name: str, params: dict[str, Any]) -> tuple[str, ...]:
    """What kind of model the parameters ask for, without the numbers."""
    fields = [field for field in CHOICES if field in BY_NAME[name].__dataclass_fields__]
    if params.get("adversary", "I") != "I":
        fields.remove("at_most")
    return tuple(f"{field}={params.get(field, DEFAULTS.get(field))}" for field in fields)


def variants(name: str) -> dict[tuple[str, ...], Model]:
    """Every kind of a registered model."""
    fields = [field for field in BY_NAME[name].__dataclass_fields__ if field in CHOICES]
    found = {}
    for values in itertools.product(*(CHOICES[field] for field in fields)):
        examples = {p.name: p.example for p in BY_NAME[name].about.parameters if p.name in required(BY_NAME[name])}
        params: dict[str, Any] = examples | {f: USUAL[f] for f in BY_NAME[name].__dataclass_fields__ if f in USUAL}
        params |= dict(zip(fields, values, strict=True))
        if params.get("distance") == "kernel_js":
            params["bandwidth"] = Fraction(1, 2)
        if params.get("adversary") in ("I", "II"):
            params["stubbornness"] = 10
        try:
            found[variant(name, params)] = BY_NAME[name](**params)
        except ParameterError:
            continue
    return found
