"""The values of the sensitive attribute that a model's parameters name."""

from __future__ import annotations

import numpy as np

from qblock.blocks import Mask, Reference
from qblock.errors import ParameterError, quoted


def members(model: str, parameter: str, named: tuple[str | None, ...], reference: Reference) -> Mask:
    """bool[V]: which values of the domain are named; raises ParameterError for one that is not in it."""
    result = np.zeros(reference.values, dtype=bool)
    for value in named:
        code = reference.code_of(value)
        if code is None:
            raise ParameterError(
                f"{model}: {parameter} names {quoted(value)}, which is not in the domain of the sensitive attribute"
            )
        result[code] = True
    return result
