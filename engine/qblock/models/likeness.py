"""Models that bound how far a value's share in a block may be from that in the table (models.md section 12)."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from qblock.blocks import Blocks, Floats, Mask, Reference
from qblock.models.base import (
    DIGITS,
    About,
    Bound,
    Exact,
    Model,
    Monotone,
    Setting,
    at_least,
    between,
    decimal,
    members,
    more_than,
    parameter,
    privacy_model,
)
from qblock.models.ratios import NEAR, Integers, greatest, quotient, times


@privacy_model
class AlphaKAnonymity(Model):
    """k-anonymity, and no sensitive value has more than a share alpha of a block (Wong et al. 2006).

    values: the sensitive values that alpha limits; all of them where it is not given.
    """

    name = "alpha_k_anonymity"
    about = About(
        citation="Wong et al. 2006",
        condition="n(q,s) <= alpha n(q) for every (listed) s, and n(q) >= k",
        meaning="everybody is hidden among at least {k} people who look the same, and no value of {sensitive} "
        "belongs to more than a share of {alpha} of them",
        bounds=(Bound("alpha", "smaller"), Bound("k", "larger")),
        settings=(Setting({"alpha": 1, "k": 1}),),
    )
    monotone = Monotone(generalization=True, suppression=False)

    alpha: int | Fraction = parameter("rational", between(0, 1), Fraction(1, 2))
    k: int = parameter("whole", at_least(1), 2)
    values: tuple[str | None, ...] | None = parameter("values", example=("a",), default=None)

    def validate(self, reference: Reference) -> list[str]:
        self._limited(reference)
        return []

    def _least_rows(self, reference: Reference) -> int:
        # 1/n(q) <= r_1/n(q) <= alpha where alpha limits every value (with alpha = 0 nothing passes).
        return max(int(self.k), math.ceil(1 / Fraction(self.alpha)) if self.alpha and self.values is None else 1)

    def _least_entities(self) -> int:
        return int(self.k)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        if parameter == "k":
            return blocks.rows, np.ones_like(blocks.rows)
        limited = self._limited(reference)
        if limited is None:
            return blocks.largest, blocks.total
        return blocks.max(np.where(limited[blocks.value], blocks.count, 0)), blocks.total

    def _limited(self, reference: Reference) -> Mask | None:
        return None if self.values is None else members(self.name, "values", self.values, reference)


@privacy_model
class BetaLikeness(Model):
    """A sensitive value's share grows by at most the factor 1 + beta (Cao and Karras 2012).

    variant "enhanced": the relative gain is also at most -ln P_s, so that no value can become certain.
    """

    name = "beta_likeness"
    about = About(
        citation="Cao and Karras 2012",
        condition="(p - P)/P <= beta wherever p > P; enhanced: <= min(beta, -ln P)",
        meaning="among people who look the same, no value of {sensitive} is more frequent than in the whole "
        "table by more than the factor 1 + {beta}",
        bounds=(Bound("beta", "smaller"),),
        needs=frozenset({"distribution"}),
    )
    monotone = Monotone(generalization=True, suppression=False)

    beta: int | Fraction = parameter("rational", at_least(0), 1)
    variant: Literal["basic", "enhanced"] = parameter("choice", ("basic", "enhanced"), "basic", default="basic")

    def _least_rows(self, reference: Reference) -> int:
        # A value that occurs has 1/n(q) <= p <= (1 + beta) P_s, also where p <= P_s.
        top, total = int(reference.totals.max(initial=0)), int(reference.totals.sum())
        return max(1, math.ceil(total / ((1 + Fraction(self.beta)) * top))) if top else 1

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        """The largest relative gain, p/P - 1 (at least 0: the shares of a block and of the table both add up to 1)."""
        pick = greatest(blocks, blocks.count, reference.totals[blocks.value])
        mass = int(reference.totals.sum())
        expected = times(blocks.total, reference.totals[blocks.value[pick]])
        gain = times(blocks.count[pick], mass) - expected
        if self.variant == "basic":
            return gain, expected
        excessive = self._excessive(blocks, reference)
        return np.where(excessive, 1, gain), np.where(excessive, 0, expected)

    def _excessive(self, blocks: Blocks, reference: Reference) -> Mask:
        """bool[B]: whether some gain exceeds its value's own -ln P_s, in which case no beta will do."""
        n, own, mass = blocks.total[blocks.owner], reference.totals[blocks.value], int(reference.totals.sum())
        with np.errstate(divide="ignore"):
            limit = -np.log(own / mass) if mass else np.full(len(n), np.inf)
        gain = quotient(times(blocks.count, mass), times(n, own)) - 1
        over: Mask = gain > limit
        close = np.abs(gain - limit) <= NEAR * np.maximum(1.0, np.abs(limit))
        for pair in np.flatnonzero(close & (own < mass)).tolist():  # the share 1 cannot grow
            over[pair] = _exceeds(int(blocks.count[pair]), int(n[pair]), int(own[pair]), mass)
        return blocks.max(over) if len(blocks) else over


@lru_cache(maxsize=1024)
def _exceeds(count: int, n: int, own: int, mass: int) -> bool:
    share = Fraction(own, mass)
    return decimal(Fraction(count, n) / share - 1) > DIGITS.minus(DIGITS.ln(decimal(share)))


@privacy_model
class DeltaDisclosure(Model):
    """|ln(p/P)| < delta for every sensitive value of the table (Brickell and Shmatikov 2008). Strict.

    absent: what a value of the table that a block lacks means: "violation" (as defined) or "skip" (not monotone).
    """

    name = "delta_disclosure"
    about = About(
        citation="Brickell and Shmatikov 2008",
        condition="|ln(p/P)| < delta for every s of the table, strict; absent values: violation or skipped",
        meaning="among people who look the same, the share of each value of {sensitive} differs from that in the "
        "whole table by less than the factor e to the {delta}",
        bounds=(Bound("delta", "smaller", attained=False),),
        needs=frozenset({"distribution"}),
    )

    delta: int | Fraction = parameter("rational", more_than(0), 1)
    absent: Literal["violation", "skip"] = parameter("choice", ("violation", "skip"), "violation", default="violation")

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=self.absent == "violation", suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        if self.absent == "violation":
            return []
        return [f"{self.name}: sensitive values that a block lacks are skipped, as asked; the definition forbids them"]

    def _least_rows(self, reference: Reference) -> int:
        return max(1, int((reference.totals > 0).sum())) if self.absent == "violation" else 1

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        mass = float(reference.totals.sum())
        expected = blocks.total[blocks.owner] * (reference.totals[blocks.value] / max(mass, 1.0))
        with np.errstate(divide="ignore"):
            result: Floats = blocks.max(np.abs(np.log(blocks.count / expected)))
        if self.absent == "violation":
            result[blocks.support < (reference.totals > 0).sum()] = math.inf
        return result

    def _exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        mass, total = int(reference.totals.sum()), int(block.total[0])
        if self.absent == "violation" and len(block.value) < (reference.totals > 0).sum():
            return math.inf
        furthest = Fraction(1)
        for value, count in block.histogram(0).items():
            if not reference.totals[value]:
                return math.inf
            change = Fraction(count * mass, total * int(reference.totals[value]))
            furthest = max(furthest, change, 1 / change)
        numerator, denominator = furthest.as_integer_ratio()
        return DIGITS.subtract(DIGITS.ln(Decimal(numerator)), DIGITS.ln(Decimal(denominator)))
