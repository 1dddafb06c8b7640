"""l-diversity: distinct, frequency, entropy and recursive, also with values that may be, or may not be, disclosed.

Sources: LD sections 4.1 to 4.4; CL section II. The last two come down to one formula. Let r_y be the largest count of a
value outside `allowed`, and top_j the sum of the j largest counts of the block. The l-2 largest counts among the others
than that value sum up to min(top_(l-2), top_(l-1) - r_y), whichever of equal counts is taken out; hence
tail = n - min(top_(l-2) + r_y, top_(l-1)).
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Mask, Reference
from qblock.models.base import (
    DIGITS,
    EQUAL,
    About,
    Bound,
    Exact,
    Model,
    Monotone,
    Range,
    Setting,
    at_least,
    members,
    more_than,
    parameter,
    privacy_model,
)
from qblock.models.ratios import Integers, equality_classes, sign, times

Names = tuple[str | None, ...]


@privacy_model
class DistinctLDiversity(Model):
    """Every block has at least l distinct sensitive values (CL II.1)."""

    name = "distinct_l_diversity"
    about = About(
        citation="LD 4; CL II.1",
        condition="m(q) >= l",
        meaning="among people who look the same, {sensitive} has at least {l} different values",
        bounds=(Bound("l", "larger"),),
        multi_attribute=True,
        steady="symmetric",
    )
    monotone = Monotone(generalization=True, suppression=True, entities=True)

    l: int = parameter("whole", at_least(1), 3)  # noqa: E741

    def _least_rows(self, reference: Reference) -> int:
        return int(self.l)  # n(q) >= m(q)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        return blocks.support, np.ones_like(blocks.support)


@privacy_model
class FrequencyLDiversity(Model):
    """No sensitive value has more than 1/l of a block: probabilistic l-diversity (CL II.2; DL Def. 1)."""

    name = "frequency_l_diversity"
    about = About(
        citation="CL II.2; DL Def. 1",
        condition="l * max_s n(q,s) <= n(q)",
        meaning="among people who look the same, no value of {sensitive} belongs to more than 1 in {l}",
        bounds=(Bound("l", "larger"),),
        multi_attribute=True,
        steady="symmetric",
    )
    monotone = Monotone(generalization=True, suppression=False)

    l: int | Fraction = parameter("rational", at_least(1), 2)  # noqa: E741

    def _least_rows(self, reference: Reference) -> int:
        return math.ceil(self.l)  # n(q) >= l * r_1 and r_1 >= 1

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        return blocks.total, blocks.largest


@privacy_model
class EntropyLDiversity(Model):
    """The entropy of the sensitive values in every block is at least ln l (LD Def. 4.1; CL II.3)."""

    name = "entropy_l_diversity"
    about = About(
        citation="LD Def. 4.1; CL II.3",
        condition="-sum_s p ln p >= ln l, p = n(q,s)/n(q)",
        meaning="in every group, {sensitive} is as varied as {l} equally common values",
        bounds=(Bound("l", "larger"),),
        multi_attribute=True,
        steady="symmetric",
    )
    monotone = Monotone(generalization=True, suppression=False)

    l: int | Fraction = parameter("rational", at_least(1), 2)  # noqa: E741

    def _least_rows(self, reference: Reference) -> int:
        return math.ceil(self.l)  # entropy is at most ln m(q), so n(q) >= m(q) >= l

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        share = blocks.count / blocks.total[blocks.owner]
        entropy = blocks.sum(-share * np.log(share))
        result: Floats = np.clip(np.exp(entropy), 1.0, blocks.support)
        equal = blocks.largest * blocks.support == blocks.total
        result[equal] = blocks.support[equal]
        return result

    def _exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        """exp(H) in 60 digits; a whole number where it is one (counts that are equal, or (4,1,1,1,1))."""
        total, support = int(block.total[0]), int(block.support[0])
        if int(block.largest[0]) * support == total:
            return support
        weighted = Decimal(0)
        for count, values in Counter(block.count.tolist()).items():
            weighted = DIGITS.fma(Decimal(count * values), DIGITS.ln(Decimal(count)), weighted)
        entropy = DIGITS.subtract(DIGITS.ln(Decimal(total)), DIGITS.divide(weighted, Decimal(total)))
        value = DIGITS.exp(entropy)
        nearest = round(value)
        return nearest if abs(DIGITS.subtract(value, Decimal(nearest))) <= EQUAL * nearest else value

    def _equality_classes(self, blocks: Blocks) -> Ints:
        return equality_classes(blocks.start, blocks.descending)  # which value has which count does not matter


@privacy_model
class RecursiveCLDiversity(Model):
    """The most frequent value of every block is not too frequent: r_1 < c * (r_l + ... + r_m) (LD Def. 4.2; CL II.4).

    By decree every block is recursive (c,1)-diverse.
    """

    name = "recursive_cl_diversity"
    about = About(
        citation="LD Def. 4.2; CL II.4",
        condition="r_1 < c * (r_l + ... + r_m), strict; l = 1 always",
        meaning="among people who look the same, the most frequent value of {sensitive} occurs less than {c} "
        "times as often as the value of rank {l} and all rarer ones together",
        bounds=(Bound("l", "larger", decides=False), Bound("c", "smaller", attained=False)),
        multi_attribute=True,
        steady="symmetric",
    )
    monotone = Monotone(generalization=True, suppression=False)

    c: int | Fraction = parameter("rational", more_than(0), 3)
    l: int = parameter("whole", at_least(1), 2)  # noqa: E741

    def _least_rows(self, reference: Reference) -> int:
        return int(self.l)  # r_l > 0, so n(q) >= m(q) >= l

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        """The infimum of c at the l asked: r_1 / tail_l."""
        if parameter != "c":
            return None
        if self.l == 1:
            return np.zeros_like(blocks.total), np.ones_like(blocks.total)
        return blocks.largest, blocks.total - head(blocks, int(self.l) - 1)

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        if parameter != "l":
            return super()._measure(parameter, blocks, reference)
        # The tail falls with l, so that the ranks at which the condition holds are 2..l without a gap.
        tail = blocks.total[blocks.owner] - above(blocks)
        holds = sign(blocks.largest[blocks.owner], tail, self.c) < 0
        holds[blocks.start[:-1]] = True
        return blocks.sum(holds.astype(np.float64))


def above(blocks: Blocks) -> Ints:
    """int64[P]: for the count at rank l of a block, in descending order: r_1 + ... + r_(l-1)."""
    running = np.cumsum(blocks.descending) - blocks.descending
    return running - running[blocks.start[:-1]][blocks.owner]


def head(blocks: Blocks, size: int) -> Ints:
    """int64[B]: the sum of the `size` largest counts of each block, r_1 + ... + r_size."""
    size = min(size, len(blocks.count))  # what is asked may be more than any array holds
    if size <= 1:
        return blocks.largest if size else np.zeros_like(blocks.total)
    running = np.concatenate(([0], np.cumsum(blocks.descending)))
    first = blocks.start[:-1]
    result: Ints = running[np.minimum(first + size, blocks.start[1:])] - running[first]
    return result


@privacy_model
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
        bounds=(Bound("l", "larger", decides=False), Bound("c", "smaller", attained=False)),
        multi_attribute=True,
        settings=(Setting(compared=False),),  # with no value allowed it is recursive (c,l)-diversity
    )
    monotone = Monotone(generalization=True, suppression=False)

    c: int | Fraction = parameter("rational", more_than(0), 3)
    l: int = parameter("whole", at_least(1), 2)  # noqa: E741
    allowed: Names = parameter("values", example=("a",), per_attribute=True, default=())

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


@privacy_model
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
        bounds=(Bound("l", "larger", decides=False), Bound("c1", "smaller", attained=False), Bound("c2", "larger")),
        multi_attribute=True,
        settings=(Setting(compared=False),),  # as above
    )
    monotone = Monotone(generalization=True, suppression=False)

    c1: int | Fraction = parameter("rational", more_than(0), 3)
    c2: int | Fraction = parameter("rational", Range(0, 100, open_most=True, unit="percent"), 10)
    l: int = parameter("whole", at_least(1), 2)  # noqa: E741
    allowed: Names = parameter("values", example=("a",), per_attribute=True, default=())
    protected: Names = parameter("values", example=("b",), per_attribute=True, default=())

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
