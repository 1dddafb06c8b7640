"""The table of models as Markdown, from the registry (docs/privacy-models.md has it, and a test compares the two)."""

from __future__ import annotations

from dataclasses import MISSING, fields

from qblock.models import REGISTRY
from qblock.models.about import Bound
from qblock.models.examples import example


def markdown() -> str:
    """One row for each model of the registry."""
    lines = [
        "| model | parameters | a block passes when | source | coarser stays safe | ... with suppression | tightest |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in REGISTRY:
        instance = example(model)
        flags = instance.monotone
        names = ", ".join(f.name if f.default is MISSING else f"[{f.name}]" for f in fields(model))
        cells = [
            f"`{model.name}`",
            names,
            model.about.condition.replace("|", "\\|"),
            model.about.citation,
            _yes(flags.generalization),
            _yes(flags.suppression),
            ", ".join(_bound(bound) for bound in model.about.bounds),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _bound(bound: Bound) -> str:
    side = "least" if bound.stricter == "larger" else "greatest"
    return f"{side} {bound.parameter}" + ("" if bound.attained else " (not reached)")
