"""Which rules a spec's models get, with the reason (docs/steady-job.md section 6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Reference
from qblock.models import (
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    KAnonymity,
    KMap,
    Model,
    RecursiveCLDiversity,
    TCloseness,
)

SIZES: tuple[type[Model], ...] = (KAnonymity, KMap)
"""Models that do not look at the sensitive attribute."""
SYMMETRIC: tuple[type[Model], ...] = (
    DistinctLDiversity,
    FrequencyLDiversity,
    EntropyLDiversity,
    RecursiveCLDiversity,
)
"""Models that fail every one-valued cell, whichever value it is, where l is greater than 1."""
SIMULATED: tuple[type[Model], ...] = (*SIZES, *SYMMETRIC, TCloseness)
"""Models whose leavers and changed values were simulated, in `python -m tests.steady.attack`."""


@dataclass(frozen=True)
class Rules:
    """What a run may do.

    cells: also let leavers go and show changed values in batches (else the safe core: newcomers in batches, whole cells
    out, values as first shown). k: the least people of a batch and of those it leaves; l: the
    values that must each be held by as many people. sure: whether models are sizes and distinct values alone, so that a
    batch may also go where it cannot fail. coin: whether newcomers need the coin. withdraw: whether leavers go at once
    with their whole cells. reason: why no more is done, for people; empty with all rules.
    """

    cells: bool
    k: int
    l: int  # noqa: E741
    sure: bool = False
    coin: bool = False
    withdraw: bool = False
    reason: str = ""


def rules_for(
    models: Sequence[Model],
    *,
    sensitives: int = 1,
    suppression: bool = False,
    moving: bool = False,
    withdraw: bool = False,
) -> Rules:
    """The rules that a spec gets.

    models: of all requirements; sensitives: sensitive attributes; suppression: whether a suppression limit is asked
    for; moving: whether quantities of the whole table (P_s) are those of each version instead of the first one's.
    """
    k = max((_least_rows(model) for model in models), default=1)
    least = max([2, *(_l(model) for model in models)])
    symmetric = any(fails_one_valued(model) for model in models)
    by_sizes = all(isinstance(model, SIZES) for model in models)
    coin = not symmetric and not by_sizes
    reasons = []
    if by_sizes:
        reasons.append(
            "models of sizes alone promise nothing about values, so that a part of a cell may have a single one"
        )
    if sensitives > 1:
        reasons.append("several sensitive attributes were not simulated")
    if withdraw:
        reasons.append("people who take their joint cells along were not simulated beside other batches of these")
    if suppression:
        reasons.append("a suppression limit was not simulated")
    if coin:
        names = " and ".join(sorted({model.name for model in models if not isinstance(model, SIZES)}))
        reasons.append(
            f"failing {names} tells which value a batch holds; ask for distinct_l_diversity {{l: 2}} as well"
        )
    others = sorted({model.name for model in models if not isinstance(model, SIMULATED)})
    if others and not coin:
        reasons.append(f"{' and '.join(others)} with leavers and changed values was not simulated")
    if moving and any(model.needs - {"population"} for model in models):
        reasons.append("quantities of the whole table that move from version to version were not simulated")
    distinct = all(isinstance(model, (*SIZES, DistinctLDiversity)) for model in models)
    return Rules(
        cells=not reasons,
        k=max(k, 1),
        l=least,
        sure=distinct,
        coin=coin,
        withdraw=withdraw,
        reason="; ".join(reasons),
    )


def fails_one_valued(model: Model) -> bool:
    """Whether a model fails every cell with a single value, whichever it is."""
    return isinstance(model, SYMMETRIC) and _l(model) > 1


def _l(model: Model) -> int:
    """The least l that a model implies; 1 for one without."""
    asked: int = math.ceil(getattr(model, "l", 1)) if isinstance(model, SYMMETRIC) else 1
    return asked


def _least_rows(model: Model) -> int:
    """The rows that every cell must have by the model's parameters alone."""
    if isinstance(model, KMap):
        return int(model.k)
    if model.needs:
        return 1
    return model.least_block_size(Reference(0, (), np.zeros(0, dtype=np.int64)))
