"""l-diversity: distinct, frequency, entropy and recursive (LD sections 4.1 and 4.2; CL section II)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Reference
from qblock.models.about import About, Bound, Parameter, at_least, more_than
from qblock.models.base import DIGITS, EQUAL, Exact, Model, Monotone
from qblock.models.ratios import Integers, equality_classes, sign


@dataclass(frozen=True, kw_only=True)
class DistinctLDiversity(Model):
    """Every block has at least l distinct sensitive values (CL II.1)."""

    name = "distinct_l_diversity"
    about = About(
        citation="LD 4; CL II.1",
        condition="m(q) >= l",
        meaning="among people who look the same, {sensitive} has at least {l} different values",
        parameters=(Parameter("l", "whole", at_least(1), 3),),
        bounds=(Bound("l", "larger"),),
        multi_attribute=True,
    )

    l: int  # noqa: E741

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=True, entities=True)

    def _least_rows(self, reference: Reference) -> int:
        return int(self.l)  # n(q) >= m(q)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        return blocks.support, np.ones_like(blocks.support)


@dataclass(frozen=True, kw_only=True)
class FrequencyLDiversity(Model):
    """No sensitive value has more than 1/l of a block: probabilistic l-diversity (CL II.2; DL Def. 1)."""

    name = "frequency_l_diversity"
    about = About(
        citation="CL II.2; DL Def. 1",
        condition="l * max_s n(q,s) <= n(q)",
        meaning="among people who look the same, no value of {sensitive} belongs to more than 1 in {l}",
        parameters=(Parameter("l", "rational", at_least(1), 2),),
        bounds=(Bound("l", "larger"),),
        multi_attribute=True,
    )

    l: int | Fraction  # noqa: E741

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

    def _least_rows(self, reference: Reference) -> int:
        return math.ceil(self.l)  # n(q) >= l * r_1 and r_1 >= 1

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        return blocks.total, blocks.largest


@dataclass(frozen=True, kw_only=True)
class EntropyLDiversity(Model):
    """The entropy of the sensitive values in every block is at least ln l (LD Def. 4.1; CL II.3)."""

    name = "entropy_l_diversity"
    about = About(
        citation="LD Def. 4.1; CL II.3",
        condition="-sum_s p ln p >= ln l, p = n(q,s)/n(q)",
        meaning="in every group, {sensitive} is as varied as {l} equally common values",
        parameters=(Parameter("l", "rational", at_least(1), 2),),
        bounds=(Bound("l", "larger"),),
        multi_attribute=True,
    )

    l: int | Fraction  # noqa: E741

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

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
        for count, times in Counter(block.count.tolist()).items():
            weighted = DIGITS.fma(Decimal(count * times), DIGITS.ln(Decimal(count)), weighted)
        entropy = DIGITS.subtract(DIGITS.ln(Decimal(total)), DIGITS.divide(weighted, Decimal(total)))
        value = DIGITS.exp(entropy)
        nearest = round(value)
        return nearest if abs(DIGITS.subtract(value, Decimal(nearest))) <= EQUAL * nearest else value

    def _equality_classes(self, blocks: Blocks) -> Ints:
        return equality_classes(blocks.start, blocks.descending)  # which value has which count does not matter


@dataclass(frozen=True, kw_only=True)
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
        parameters=(Parameter("c", "rational", more_than(0), 3), Parameter("l", "whole", at_least(1), 2)),
        bounds=(Bound("l", "larger", decides=False), Bound("c", "smaller", attained=False)),
        multi_attribute=True,
    )

    c: int | Fraction
    l: int  # noqa: E741

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

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
