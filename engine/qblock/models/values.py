"""The values of the sensitive attribute that a model's parameters name."""

from __future__ import annotations

import numpy as np

from qblock.blocks import Mask, Reference
from qblock.errors import ParameterError


def members(model: str, parameter: str, named: tuple[str | None, ...], reference: Reference) -> Mask:
    """bool[V]: which values of the domain are named; raises ParameterError for one that is not in it."""
    known = set(reference.domain)
    for value in named:
        if value not in known:
            raise ParameterError(
                f"{model}: {parameter} names {'NULL' if value is None else repr(value)}, "
                "which is not in the domain of the sensitive attribute"
            )
    wanted = set(named)
    return np.fromiter((value in wanted for value in reference.domain), dtype=bool, count=reference.values)
