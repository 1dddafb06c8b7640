"""What every privacy model is: a frozen class whose check is one comparison with the tightest value it computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Mask, Reference
from qblock.models.about import About, Bound
from qblock.models.ratios import NEAR, Integers, double, equality_classes, extreme, quotient, sign

DIGITS = Context(prec=60)
EQUAL = Decimal("1e-45")

Exact = Fraction | Decimal | float
"""A Fraction; a Decimal of 60 digits where logarithms are involved; or math.inf (never another float)."""


@dataclass(frozen=True)
class Monotone:
    """Whether passing survives merging blocks (`generalization`), and still does when failing blocks are dropped.

    entities: whether both are so with `count: entities` too, as of models that need no shares (models.md section 12).
    """

    generalization: bool
    suppression: bool
    entities: bool = False

    @property
    def for_entities(self) -> Monotone:
        """The flags with `count: entities`."""
        return self if self.entities else Monotone(generalization=False, suppression=False)


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


def compare(value: Exact | int, required: Fraction | int, bound: Bound) -> bool:
    """Whether a block (or table) with this tightest value satisfies what is asked. The only comparison."""
    if isinstance(value, float):
        difference: Any = value
    elif isinstance(value, Decimal):
        exact = decimal(required)
        difference = DIGITS.subtract(value, exact)
        if abs(difference) <= EQUAL * max(Decimal(1), abs(exact)):
            difference = Decimal(0)
    else:
        difference = value - required
    if difference == 0:
        return bound.attained
    return bool(difference > 0) if bound.stricter == "larger" else bool(difference < 0)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A privacy model with the parameters asked for, in which it is a frozen dataclass.

    A subclass gives `name`, `about`, a field for each parameter, `monotone`, and either `_ratio` (integers, vectorised
    over blocks) or `_measure` (doubles, vectorised) with `_exact` (one block, exactly; an integer needs none).
    A rule that a paper sets "by decree" belongs in each of them. What it does not give errs on the safe side.
    """

    name: ClassVar[str]
    about: ClassVar[About]

    def __post_init__(self) -> None:
        optional = {f.name for f in fields(self) if f.default is None}
        for parameter in self.about.parameters:
            value = getattr(self, parameter.name)
            if value is not None or parameter.name not in optional:
                parameter.check(self.name, value)

    @property
    def needs(self) -> frozenset[str]:
        """What is needed beside the blocks' counts, with these parameters: About.needs, "prior" and "guards"."""
        return self.about.needs

    @property
    def monotone(self) -> Monotone:
        """Flags under generalization without and with suppression (models.md section 10)."""
        raise NotImplementedError

    def validate(self, reference: Reference) -> list[str]:
        """Check parameters that depend on the table; returns warnings. Raises ParameterError."""
        return []

    def least_block_size(self, reference: Reference, *, entities: bool = False) -> int:
        """The smallest n(q) that a passing block can have; entities: with `count: entities`."""
        return self._least_entities() if entities else self._least_rows(reference)

    def _least_rows(self, reference: Reference) -> int:
        return 1

    def _least_entities(self) -> int:
        return 1  # a block of one entity can have any number of sensitive values

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        """Each block's tightest value of one parameter as numerators and denominators [B]; None where irrational.

        Integers of at least 0 (int64, or Python integers where int64 could overflow); a denominator of 0 is infinity.
        """
        return None

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        """float64[B]: each block's tightest value of one parameter, to about 1e-12; inf where there is none."""
        pair = self._ratio(parameter, blocks, reference)
        if pair is None:
            raise NotImplementedError(f"{self.name}: {parameter}")
        return quotient(*pair)

    def _exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        """The same for a single block, exactly."""
        pair = self._ratio(parameter, block, reference)
        if pair is not None:
            return _whole(extreme(*pair, largest=True), parameter in self.about.whole)
        if parameter not in self.about.whole:
            raise NotImplementedError(f"{self.name}: {parameter}")
        value = float(self._measure(parameter, block, reference)[0])
        return value if math.isinf(value) else round(value)

    def _equality_classes(self, blocks: Blocks) -> Ints:
        """int64[B]: equal numbers only for blocks that certainly have the same exact values (computed once for all)."""
        if blocks.containing or blocks.population is not None:
            return np.arange(len(blocks), dtype=np.int64)
        return equality_classes(blocks.start, blocks.value, blocks.count, np.repeat(blocks.rows, blocks.support))

    def passes(self, blocks: Blocks, reference: Reference) -> Mask:
        """bool[B]: which blocks satisfy the model."""
        result = np.ones(len(blocks), dtype=bool)
        for bound in self.about.bounds:
            if bound.decides and len(blocks):
                result &= self._compare(bound, blocks, reference)
        return result

    def tightest(self, blocks: Blocks, reference: Reference) -> Tightest:
        """The tightest value of every parameter over all blocks, and the verdict that follows from it."""
        values = tuple(self._tightest_value(bound, blocks, reference) for bound in self.about.bounds)
        holds = all(
            value.value is None or compare(value.value, getattr(self, bound.parameter), bound)
            for bound, value in zip(self.about.bounds, values, strict=True)
            if bound.decides
        )
        return Tightest(self.name, holds, values)

    def _compare(self, bound: Bound, blocks: Blocks, reference: Reference) -> Mask:
        required = getattr(self, bound.parameter)
        pair = self._ratio(bound.parameter, blocks, reference)
        if pair is not None:
            side = sign(*pair, required) * (1 if bound.stricter == "larger" else -1)
            return side >= 0 if bound.attained else side > 0
        values = self._measure(bound.parameter, blocks, reference)
        target = double(required)
        result = values > target if bound.stricter == "larger" else values < target
        near = np.flatnonzero(np.abs(values - target) <= NEAR * max(1.0, abs(target)))
        for index, value in self._exactly(bound.parameter, near, blocks, reference):
            result[index] = compare(value, required, bound)
        return result

    def _tightest_value(self, bound: Bound, blocks: Blocks, reference: Reference) -> Value:
        if not len(blocks):
            return Value(bound.parameter, None, bound.attained)
        largest = bound.stricter == "smaller"
        pair = self._ratio(bound.parameter, blocks, reference)
        if pair is not None:
            return Value(
                bound.parameter, _whole(extreme(*pair, largest), bound.parameter in self.about.whole), bound.attained
            )
        values = self._measure(bound.parameter, blocks, reference)
        tightest = float(values.max() if largest else values.min())
        if math.isinf(tightest):
            return Value(bound.parameter, tightest, bound.attained)
        if bound.parameter in self.about.whole:
            return Value(bound.parameter, round(tightest), bound.attained)
        near = np.flatnonzero(np.abs(values - tightest) <= NEAR * max(1.0, abs(tightest)))
        pick: Callable[..., Any] = max if largest else min
        exact = pick(value for _, value in self._exactly(bound.parameter, near, blocks, reference))
        return Value(bound.parameter, exact, bound.attained)

    def _exactly(self, parameter: str, near: Ints, blocks: Blocks, reference: Reference) -> list[tuple[Ints, Exact]]:
        """The exact value of the blocks named, once for each group of blocks that are alike."""
        if not len(near):
            return []
        label = self._equality_classes(blocks.select(near))
        order = np.argsort(label, kind="stable")
        groups = np.split(near[order], np.flatnonzero(np.diff(label[order])) + 1)
        return [(group, self._exact(parameter, blocks.select(group[:1]), reference)) for group in groups]


def _whole(value: Fraction | float, is_whole: bool) -> Exact | int:
    return int(value) if is_whole and isinstance(value, Fraction) else value


def parameters_of(model: Model) -> dict[str, Any]:
    """The parameters of a model as asked, by name, in the order in which they are declared."""
    return {f.name: getattr(model, f.name) for f in fields(model)}


def measured(model: Model, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
    """float64[B]: each block's tightest value of one parameter, to about 1e-12; inf where there is none."""
    return model._measure(parameter, blocks, reference)
