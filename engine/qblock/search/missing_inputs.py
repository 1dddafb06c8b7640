"""What a model needs of a sensitive attribute that the attribute does not have."""

from __future__ import annotations

from qblock.blocks import Reference
from qblock.models import Model


def missing_inputs(model: Model, reference: Reference) -> list[str]:
    """Of "order", "numbers" and "taxonomy", what the model needs and the attribute has not."""
    has = {
        "order": reference.ordered,
        "numbers": reference.numbers is not None,
        "taxonomy": reference.taxonomy is not None,
    }
    return [need for need, there in has.items() if need in model.needs and not there]


def how_to_give(need: str, reference: Reference) -> str:
    """What a spec has to say for it."""
    ascending = "" if reference.kind in (None, "text") else "`order: ascending` or "
    return {
        "order": f"an order: write {ascending}a list of its values, `order: [...]`",
        "numbers": "numbers: its column must be numeric and without NULL",
        "taxonomy": "a taxonomy: write `taxonomy: {file: ...}`",
    }[need]
