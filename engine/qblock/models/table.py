"""The table of models as Markdown, from the registry (the README holds it, and a test holds the README to it)."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any

from qblock.models import REGISTRY
from qblock.models.base import Bound, Model

EXAMPLE: dict[str, Any] = {
    "k": 2,
    "l": 2,
    "c": 3,
    "c1": 3,
    "c2": 10,
    "allowed": (),
    "protected": (),
    "alpha": Fraction(1, 2),
    "beta": 1,
    "delta": 1,
    "epsilon": 1,
    "m": 2,
    "t": Fraction(1, 5),
    "n": 10,
    "adversary": "III",
    "min": 0,
    "max": 1,
}
"""Parameters to make one model of each class with; only its flags are read."""


def example(model: type[Model]) -> Model:
    """A model of this class with valid parameters."""
    needed = [f.name for f in fields(model) if f.default is MISSING and f.default_factory is MISSING]
    return model(**{name: EXAMPLE[name] for name in needed})


def markdown() -> str:
    """One row for each model of the registry."""
    lines = [
        "| model | parameters | a block passes when | source | coarser stays safe | ... with suppression | tightest |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in REGISTRY:
        made = example(model)
        flags = made.monotone
        names = ", ".join(f.name if f.default is MISSING else f"[{f.name}]" for f in fields(model))
        cells = [
            f"`{model.name}`",
            names,
            model.condition.replace("|", "\\|"),
            model.citation,
            _yes(flags.generalization),
            _yes(flags.suppression),
            ", ".join(_bound(bound) for bound in model.bounds),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def summary(model: type[Model]) -> str:
    """The first sentence of a model's documentation."""
    return (inspect.getdoc(model) or "").split("\n", maxsplit=1)[0]


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _bound(bound: Bound) -> str:
    side = "least" if bound.stricter == "larger" else "greatest"
    return f"{side} {bound.parameter}" + ("" if bound.attained else " (not reached)")
