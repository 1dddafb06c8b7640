"""Recursive diversity that allows some positive disclosure, or also limits negative disclosure (LD 4.3, 4.4).

Both come down to one formula. Let r_y be the largest count of a value outside `allowed`, and top_j the sum of the j
largest counts of the block. The l-2 largest counts among the others than that value sum up to min(top_(l-2),
top_(l-1) - r_y), whichever of equal counts is taken out; hence tail = n - min(top_(l-2) + r_y, top_(l-1)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Mask, Reference
from qblock.models.about import About, Bound, Parameter, Range, Setting, at_least, more_than
from qblock.models.base import Model, Monotone
from qblock.models.diversity import above, head
from qblock.models.ratios import Integers, sign, times
from qblock.models.values import members

Names = tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class PdRecursiveCLDiversity(Model):
    """r_y < c * tail for the most frequent value whose disclosure is not allowed (LD section 4.3).

    allowed: values of the sensitive attribute that may be disclosed. By decree (c,1) always holds, and so does a block
    of allowed values alone.
    """

    name = "pd_recursive_cl_diversity"
    about = About(
        citation="LD 4.3",
        condition="r_y < c * ((n - r_y) - the l-2 largest other counts), strict; l = 1 or r_y = 0 always",
        meaning="among people who look the same, the most frequent value of {sensitive} that nobody may learn "
        "occurs less than {c} times as often as the value of rank {l} and all rarer ones together",
        parameters=(
            Parameter("c", "rational", more_than(0), 3),
            Parameter("l", "whole", at_least(1), 2),
            Parameter("allowed", "values", example=("a",), per_attribute=True),
        ),
        bounds=(Bound("l", "larger", decides=False), Bound("c", "smaller", attained=False)),
        multi_attribute=True,
        settings=(Setting(compared=False),),  # with no value allowed it is recursive (c,l)-diversity
    )

    c: int | Fraction
    l: int  # noqa: E741
    allowed: Names = ()

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        members(self.name, "allowed", self.allowed, reference)
        return []

    def _least_rows(self, reference: Reference) -> int:
        # Without allowed values r_y = r_1 > 0, so tail > 0 and m(q) >= l. With them one row with such a value passes.
        return 1 if self.allowed else int(self.l)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        """The infimum of c at the l asked: r_y / tail."""
        return None if parameter != "c" else _infimum(blocks, self._allowed(reference), int(self.l))

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        if parameter != "l":
            return super()._measure(parameter, blocks, reference)
        return _largest_l(blocks, self._allowed(reference), self.c)

    def _allowed(self, reference: Reference) -> Mask:
        return members(self.name, "allowed", self.allowed, reference)


@dataclass(frozen=True, kw_only=True)
class NpdRecursiveCLDiversity(Model):
    """pd-recursive (c1,l)-diversity, and no protected value is rarer than c2 percent of any block (LD section 4.4).

    protected: values whose absence from a block must not be disclosed; c2 in percent.
    """

    name = "npd_recursive_cl_diversity"
    about = About(
        citation="LD 4.4",
        condition="pd-recursive (c1,l), and 100 n(q,w) >= c2 n(q) for every protected w",
        meaning="among people who look the same, the most frequent value of {sensitive} that nobody may learn "
        "occurs less than {c1} times as often as the value of rank {l} and all rarer ones together, "
        "and no protected value belongs to less than {c2} percent",
        parameters=(
            Parameter("c1", "rational", more_than(0), 3),
            Parameter("c2", "rational", Range(0, 100, open_most=True, unit="percent"), 10),
            Parameter("l", "whole", at_least(1), 2),
            Parameter("allowed", "values", example=("a",), per_attribute=True),
            Parameter("protected", "values", example=("b",), per_attribute=True),
        ),
        bounds=(Bound("l", "larger", decides=False), Bound("c1", "smaller", attained=False), Bound("c2", "larger")),
        multi_attribute=True,
        settings=(Setting(compared=False),),  # as above
    )

    c1: int | Fraction
    c2: int | Fraction
    l: int  # noqa: E741
    allowed: Names = ()
    protected: Names = ()

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        members(self.name, "allowed", self.allowed, reference)
        protected = members(self.name, "protected", self.protected, reference)
        total = int(reference.totals.sum())
        if not protected.any() or not total:
            return []
        rarest = Fraction(100 * int(reference.totals[protected].min()), total)
        if self.c2 <= rarest:
            return []
        # The share in the whole table lies between the shares in its blocks.
        return [
            f"{self.name}: c2 = {self.c2} cannot hold at any node without suppression: "
            f"the rarest protected value makes up {float(rarest):.4g} percent of the table"
        ]

    def _least_rows(self, reference: Reference) -> int:
        # With c2 > 0 each protected value occurs; if one of them is not allowed, then r_y > 0 and m(q) >= l.
        protected = members(self.name, "protected", self.protected if self.c2 > 0 else (), reference)
        allowed = members(self.name, "allowed", self.allowed, reference)
        plain = not self.allowed or bool((protected & ~allowed).any())
        return max(1, int(protected.sum()), int(self.l) if plain else 1)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        if parameter == "c1":
            return _infimum(blocks, members(self.name, "allowed", self.allowed, reference), int(self.l))
        if parameter != "c2":
            return None
        protected = members(self.name, "protected", self.protected, reference)
        if not protected.any():
            return np.ones_like(blocks.total), np.zeros_like(blocks.total)
        inside = protected[blocks.value]
        present = blocks.sum(inside.astype(np.int64))
        rarest = blocks.min(np.where(inside, blocks.count, np.iinfo(np.int64).max))
        return times(np.where(present == int(protected.sum()), rarest, 0), 100), blocks.total

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        if parameter == "l":
            return _largest_l(blocks, members(self.name, "allowed", self.allowed, reference), self.c1)
        return super()._measure(parameter, blocks, reference)


def _unprotected(blocks: Blocks, allowed: Mask) -> Ints:
    """int64[B]: r_y, the largest count of a value that is not allowed; 0 where there is none."""
    if not allowed.any():
        return blocks.largest
    result: Ints = blocks.max(np.where(allowed[blocks.value], 0, blocks.count))
    return result


def _infimum(blocks: Blocks, allowed: Mask, l: int) -> tuple[Integers, Integers]:  # noqa: E741
    if l == 1:
        return np.zeros_like(blocks.total), np.ones_like(blocks.total)
    most = _unprotected(blocks, allowed)
    tail = blocks.total - np.minimum(head(blocks, l - 2) + most, head(blocks, l - 1))
    return most, np.where(most == 0, 1, tail)


def _largest_l(blocks: Blocks, allowed: Mask, c: int | Fraction) -> Floats:
    """The largest l: the tail falls with l and is 0 at l = m(q) + 1 unless r_y = 0, when every l holds."""
    most, owner = _unprotected(blocks, allowed), blocks.owner
    first = blocks.start[:-1]
    upto = above(blocks)  # top_(l-1) at rank l
    below = np.concatenate((upto[:1], upto[:-1]))  # top_(l-2), at ranks from 2 on
    tail = blocks.total[owner] - np.minimum(below + most[owner], upto)
    holds = sign(most[owner], tail, c) < 0
    holds[first] = True
    result: Floats = blocks.sum(holds.astype(np.float64))
    result[most == 0] = math.inf
    return result
