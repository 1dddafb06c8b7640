"""What every privacy model is: a frozen class whose check is one comparison with the tightest value it computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, ClassVar, Literal

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Mask, Reference
from qblock.errors import ParameterError
from qblock.models.ratios import NEAR as NEAR
from qblock.models.ratios import Integers, alike, double, extreme, quotient, sign

DIGITS = Context(prec=60)
EQUAL = Decimal("1e-45")

Exact = Fraction | Decimal | float
"""A Fraction; a Decimal of 60 digits where logarithms are involved; or math.inf (never another float)."""


@dataclass(frozen=True)
class Monotone:
    """Whether passing survives merging blocks (`generalization`), and still does when failing blocks are dropped."""

    generalization: bool
    suppression: bool


@dataclass(frozen=True)
class Bound:
    """One parameter that can be tightened with the others as asked.

    stricter: "larger" means that the table's value is the least over its blocks and must be at least what is asked;
    "smaller" that it is the greatest and must be at most what is asked. attained: False where the comparison is strict.
    decides: whether the check compares this parameter (recursive (c,l)-diversity is decided by c, and reports l too).
    """

    parameter: str
    stricter: Literal["larger", "smaller"]
    attained: bool = True
    decides: bool = True


@dataclass(frozen=True)
class Value:
    """The tightest value of one parameter; value is None for a table without blocks."""

    parameter: str
    value: Exact | int | None
    attained: bool


@dataclass(frozen=True)
class Tightest:
    """A model's verdict over some blocks, with the tightest value of each parameter that can be tightened."""

    model: str
    holds: bool
    values: tuple[Value, ...]


def decimal(value: Fraction | int) -> Decimal:
    """A fraction in 60 digits."""
    numerator, denominator = Fraction(value).as_integer_ratio()
    return DIGITS.divide(Decimal(numerator), Decimal(denominator))


def compare(value: Exact | int, asked: Fraction | int, bound: Bound) -> bool:
    """Whether a block (or table) with this tightest value satisfies what is asked. The one comparison there is."""
    if isinstance(value, float):
        difference: Any = value
    elif isinstance(value, Decimal):
        exact = decimal(asked)
        difference = DIGITS.subtract(value, exact)
        if abs(difference) <= EQUAL * max(Decimal(1), abs(exact)):
            difference = Decimal(0)
    else:
        difference = value - asked
    if difference == 0:
        return bound.attained
    return bool(difference > 0) if bound.stricter == "larger" else bool(difference < 0)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A privacy model with the parameters asked for.

    A subclass declares `name`, `citation` and `bounds`, and gives either `ratio` (integers, vectorised over blocks) or
    `measure` (doubles, vectorised) with `exact` (one block, exactly; a parameter that is `whole` needs none). A rule
    that a paper sets "by decree" belongs in each of them.
    """

    name: ClassVar[str]
    citation: ClassVar[str]
    condition: ClassVar[str]
    """The condition on a block in one line of text, for the table of models."""
    bounds: ClassVar[tuple[Bound, ...]]
    needs: ClassVar[frozenset[str]] = frozenset()
    """Of: "distribution", "domain", "prior", "order", "numbers", "taxonomy", "population", "containing"."""
    whole: ClassVar[frozenset[str]] = frozenset()
    """Integer parameters: without a ratio, their measure is a whole number of values, which doubles hold exactly."""
    uses_sensitive: ClassVar[bool] = True

    @property
    def monotone(self) -> Monotone:
        """Flags under generalization without and with suppression (models.md section 10)."""
        raise NotImplementedError

    @property
    def monotone_for_entities(self) -> Monotone:
        """The flags with `count: entities`; only models that need no shares keep theirs (models.md section 12)."""
        return Monotone(generalization=False, suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        """Check parameters that depend on the table; returns warnings. Raises ParameterError."""
        return []

    def least_block_size(self, reference: Reference) -> int:
        """The smallest n(q) that a passing block can have."""
        return 1

    def least_block_entities(self, reference: Reference) -> int:
        """The same with `count: entities`, where a block of one entity can have any number of sensitive values."""
        return 1

    def ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        """Each block's tightest value of one parameter as numerators and denominators [B]; None where irrational.

        Integers of at least 0 (int64, or Python integers where int64 could overflow); a denominator of 0 is infinity.
        """
        return None

    def measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        """float64[B]: each block's tightest value of one parameter, to about 1e-12; inf where there is none."""
        pair = self.ratio(parameter, blocks, reference)
        if pair is None:
            raise NotImplementedError(f"{self.name}: {parameter}")
        return quotient(*pair)

    def exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        """The same for a single block, exactly."""
        pair = self.ratio(parameter, block, reference)
        if pair is not None:
            return _whole(extreme(*pair, largest=True), parameter in self.whole)
        if parameter not in self.whole:
            raise NotImplementedError(f"{self.name}: {parameter}")
        value = float(self.measure(parameter, block, reference)[0])
        return value if math.isinf(value) else round(value)

    def alike(self, blocks: Blocks) -> Ints:
        """int64[B]: equal numbers only for blocks that certainly have the same exact values (computed once for all)."""
        if blocks.containing or blocks.population is not None:
            return np.arange(len(blocks), dtype=np.int64)
        return alike(blocks.start, blocks.value, blocks.count, np.repeat(blocks.rows, blocks.support))

    def asked(self) -> dict[str, Any]:
        """The parameters as asked, by name, in the order in which they are declared."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def passes(self, blocks: Blocks, reference: Reference) -> Mask:
        """bool[B]: which blocks satisfy the model."""
        result = np.ones(len(blocks), dtype=bool)
        for bound in self.bounds:
            if bound.decides and len(blocks):
                result &= self._compare(bound, blocks, reference)
        return result

    def holds(self, blocks: Blocks, reference: Reference) -> bool:
        """Whether all blocks satisfy the model; a table without blocks does."""
        return bool(self.passes(blocks, reference).all())

    def tightest(self, blocks: Blocks, reference: Reference) -> Tightest:
        """The tightest value of every parameter over all blocks, and the verdict that follows from it."""
        values = tuple(self._worst(bound, blocks, reference) for bound in self.bounds)
        holds = all(
            value.value is None or compare(value.value, getattr(self, bound.parameter), bound)
            for bound, value in zip(self.bounds, values, strict=True)
            if bound.decides
        )
        return Tightest(self.name, holds, values)

    def _compare(self, bound: Bound, blocks: Blocks, reference: Reference) -> Mask:
        asked = getattr(self, bound.parameter)
        pair = self.ratio(bound.parameter, blocks, reference)
        if pair is not None:
            side = sign(*pair, asked) * (1 if bound.stricter == "larger" else -1)
            return side >= 0 if bound.attained else side > 0
        values = self.measure(bound.parameter, blocks, reference)
        target = double(asked)
        result = values > target if bound.stricter == "larger" else values < target
        if bound.parameter in self.whole:
            return result | (values == target) if bound.attained else result
        near = np.flatnonzero(np.abs(values - target) <= NEAR * max(1.0, abs(target)))
        for index, value in self._exactly(bound.parameter, near, blocks, reference):
            result[index] = compare(value, asked, bound)
        return result

    def _worst(self, bound: Bound, blocks: Blocks, reference: Reference) -> Value:
        if not len(blocks):
            return Value(bound.parameter, None, bound.attained)
        largest = bound.stricter == "smaller"
        pair = self.ratio(bound.parameter, blocks, reference)
        if pair is not None:
            return Value(
                bound.parameter, _whole(extreme(*pair, largest), bound.parameter in self.whole), bound.attained
            )
        values = self.measure(bound.parameter, blocks, reference)
        worst = float(values.max() if largest else values.min())
        if math.isinf(worst):
            return Value(bound.parameter, worst, bound.attained)
        if bound.parameter in self.whole:
            return Value(bound.parameter, round(worst), bound.attained)
        near = np.flatnonzero(np.abs(values - worst) <= NEAR * max(1.0, abs(worst)))
        pick: Callable[..., Any] = max if largest else min
        found = pick(value for _, value in self._exactly(bound.parameter, near, blocks, reference))
        return Value(bound.parameter, found, bound.attained)

    def _exactly(self, parameter: str, near: Ints, blocks: Blocks, reference: Reference) -> list[tuple[Ints, Exact]]:
        """The exact value of the blocks named, once for each group of blocks that are alike."""
        if not len(near):
            return []
        label = self.alike(blocks.select(near))
        order = np.argsort(label, kind="stable")
        groups = np.split(near[order], np.flatnonzero(np.diff(label[order])) + 1)
        return [(group, self.exact(parameter, blocks.select(group[:1]), reference)) for group in groups]


def _whole(value: Fraction | float, is_whole: bool) -> Exact | int:
    return int(value) if is_whole and isinstance(value, Fraction) else value


def whole(value: object) -> bool:
    """Whether a parameter is a whole number (an int, or a Fraction that is one)."""
    return isinstance(value, Rational) and value.denominator == 1 and not isinstance(value, bool)


def rational(value: object) -> bool:
    """Whether a parameter is an int or Fraction; a float is refused, since it is not what the spec's text says."""
    return isinstance(value, Rational) and not isinstance(value, bool)


def require(model: str, parameter: str, value: object, valid: bool, valid_range: str) -> None:
    """Raise ParameterError naming the valid range unless `valid`."""
    if not valid:
        raise ParameterError(f"{model}: {parameter} = {value} is out of range; valid: {valid_range}")
