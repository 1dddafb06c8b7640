"""What l is at least, and at most, of blocks without some of their values: sums over what is left tell it."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from qblock.blocks import Floats
from qblock.models.base import Model
from qblock.models.diversity import (
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    RecursiveCLDiversity,
    head,
)
from qblock.models.left import Left
from qblock.models.ratios import NEAR, double

Bounds = tuple[Floats, Floats]


@singledispatch
def bounds_of_l(model: Model, left: Left) -> Bounds | None:
    """What l is of each case, at least and at most, where a case passes if and only if it is as much as asked.

    Both are on the safe side of what they bound, so that what they decide needs no exact evaluation. None where nothing
    is known without one.
    """
    return None


@bounds_of_l.register
def _(model: DistinctLDiversity, left: Left) -> Bounds | None:
    return left.support, left.support


@bounds_of_l.register
def _(model: FrequencyLDiversity, left: Left) -> Bounds | None:
    """The largest count that is left is at most that of the block, and at least the mean of what is left."""
    return left.total / left.blocks.largest[left.block] * (1 - NEAR), left.support


@bounds_of_l.register
def _(model: EntropyLDiversity, left: Left) -> Bounds | None:
    """exp(H) with H = ln n - (sum_s n_s ln n_s) / n, of which the sums are known."""
    count = left.blocks.count
    measure = np.exp(np.log(left.total) - left.sum(count * np.log(count)) / left.total)
    return measure * (1 - NEAR), measure * (1 + NEAR)


@bounds_of_l.register
def _(model: RecursiveCLDiversity, left: Left) -> Bounds | None:
    """The largest counts are no larger without some values: r_1 < c * (n - the l-1 largest of the block) is enough.
    The tail falls with l, so that l holds if and only if it is at most the largest that does."""
    blocks, least = left.blocks, double(model.l)
    tail = left.total - head(blocks, int(model.l) - 1)[left.block]
    with np.errstate(over="ignore"):  # then it is enough
        enough = blocks.largest[left.block] < tail * (double(model.c) * (1 - NEAR))
    return np.where(enough, least, 1.0), left.support
