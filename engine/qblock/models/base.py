"""What every privacy model is: a frozen class that says what it asks; its check compares that with its tightest value.

Whatever else lists models or their parameters (spec checks, the JSON schema, the documentation, the demo, `audit` and
`compare`) is derived from `About`, so that a model is one file and its line in the registry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Mask, Reference
from qblock.errors import ParameterError, quoted
from qblock.models.ratios import (
    NEAR,
    Integers,
    double,
    equality_classes,
    extreme,
    extremes,
    near_extremes,
    quotient,
    sign,
)

Kind = Literal["whole", "rational", "flag", "choice", "values", "population", "prior", "predicates"]
"""In this order: an integer; an int or a Fraction; true or false; one of a few words; values of the sensitive
attribute; the name of a population table; an adversary's prior; an adversary's predicates."""
DIGITS = Context(prec=60)
EQUAL = Decimal("1e-45")

Exact = Fraction | Decimal | float
"""A Fraction; a Decimal of 60 digits where logarithms are involved; or math.inf (never another float)."""


@dataclass(frozen=True)
class Range:
    """The numbers that a parameter may take. open_least, open_most: whether that end itself is excluded; unit: shown.

    >>> Range(0, 100, open_most=True, unit="percent").text("c2")
    '0 <= c2 < 100 (percent)'
    """

    least: int | Fraction
    most: int | Fraction | None = None
    open_least: bool = False
    open_most: bool = False
    unit: str = ""

    def __contains__(self, value: int | Fraction) -> bool:
        if value < self.least or (self.open_least and value == self.least):
            return False
        return self.most is None or value < self.most or (not self.open_most and value == self.most)

    def text(self, name: str) -> str:
        """The range in one line, for messages: `k >= 1`, `0 <= t <= 1`."""
        if self.most is None:
            text = f"{name} {'>' if self.open_least else '>='} {self.least}"
        else:
            signs = ("<" if self.open_least else "<=", "<" if self.open_most else "<=")
            text = f"{self.least} {signs[0]} {name} {signs[1]} {self.most}"
        return text + (f" ({self.unit})" if self.unit else "")


def at_least(least: int | Fraction) -> Range:
    """All numbers from this one on."""
    return Range(least)


def more_than(least: int | Fraction) -> Range:
    """All numbers greater than this one."""
    return Range(least, open_least=True)


def between(least: int | Fraction, most: int | Fraction) -> Range:
    """All numbers from one to the other, both included."""
    return Range(least, most)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a model, named as its field.

    valid: the range of a number, the words of a choice, else None; a model may check more that depends on its other
    parameters or on the table. example: a valid value. per_attribute: whether the multi-attribute form may give each
    sensitive attribute a value of its own.
    """

    name: str
    kind: Kind
    valid: Range | tuple[str, ...] | None = None
    example: Any = None
    per_attribute: bool = False

    def check(self, model: str, value: object) -> None:
        """Raise ParameterError, naming what is valid, for a number out of range and for another word."""
        if isinstance(self.valid, Range):
            typed = whole(value) if self.kind == "whole" else rational(value)
            text = self.valid.text(self.name)
            valid = typed and value in self.valid  # type: ignore[operator]
            require(model, self.name, value, valid, f"an integer {text}" if self.kind == "whole" else text)
        elif self.valid is not None:
            require(model, self.name, value, value in self.valid, words(self.valid))


def parameter(
    kind: Kind,
    valid: Range | tuple[str, ...] | None = None,
    example: Any = None,
    *,
    per_attribute: bool = False,
    default: Any = MISSING,
) -> Any:
    """A field of a model that is one of its parameters; without a default it is required. See `Parameter`."""
    declared = {"kind": kind, "valid": valid, "example": example, "per_attribute": per_attribute}
    return field(default=default, metadata=declared)


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
class Setting:
    """Parameters with which `audit` and `compare` compute a model that nobody asked for.

    A value may be a function of the sensitive attribute's Reference. Required parameters that are not named here take
    the value of their example. audited, compared: which of the two commands computes it.
    """

    parameters: Mapping[str, Any | Callable[[Reference], Any]] = field(default_factory=dict)
    audited: bool = True
    compared: bool = True


@dataclass(frozen=True, kw_only=True)
class About:
    """What a model declares.

    citation: the paper, with the definition's place in it; condition: on a block, in one line of signs; meaning: what
    holds for people, in plain words, with `{parameter}` and `{sensitive}` for what was asked. bounds: the one that the
    model is named for first. parameters: its fields (`privacy_model` puts them here). needs: whatever the parameters
    are, of "distribution", "domain", "order", "numbers", "taxonomy", "population" and "containing" (Model.needs has the
    rest). multi_attribute: whether it may be the base of the form for several sensitive attributes (models/multi.py).
    steady: what of versions that are shown in batches may rest on it (docs/steady-job.md section 6): `symmetric` where
    it fails every one-valued cell, whichever the value is, with l above 1; `sizes` where it does not look at sensitive
    values; `simulated` where leavers and changed values were simulated with it (python -m tests.steady.attack), as with
    these two; else the safe `core`.
    """

    citation: str
    condition: str
    meaning: str
    bounds: tuple[Bound, ...]
    parameters: tuple[Parameter, ...] = ()
    needs: frozenset[str] = frozenset()
    uses_sensitive: bool = True
    multi_attribute: bool = False
    settings: tuple[Setting, ...] = (Setting(),)
    steady: Literal["sizes", "symmetric", "simulated", "core"] = "core"

    @property
    def whole(self) -> frozenset[str]:
        """The names of the parameters that are integers."""
        return frozenset(parameter.name for parameter in self.parameters if parameter.kind == "whole")


def words(valid: tuple[str, ...]) -> str:
    """Words as a sentence has them: a, b or c."""
    return " or ".join([", ".join(valid[:-1]), valid[-1]] if len(valid) > 1 else valid)


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

    A subclass, a `privacy_model`, gives `name`, `about`, `monotone` (a property where it depends on parameters), a
    field for each `parameter`, and either `_ratio` (integers, vectorised over blocks) or `_measure` (doubles,
    vectorised) with `_exact` (one block, exactly; an integer needs none). A rule that a paper sets "by decree" belongs
    in each of them. What it does not give errs on the safe side.
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
        (value,) = tightest_of_runs(self, bound, blocks, reference, np.array([0, len(blocks)]))
        return Value(bound.parameter, value, bound.attained)

    def _exactly(self, parameter: str, near: Ints, blocks: Blocks, reference: Reference) -> list[tuple[Ints, Exact]]:
        """The exact value of the blocks named, once for each group of blocks that are alike."""
        if not len(near):
            return []
        label = self._equality_classes(blocks.select(near))
        order = np.argsort(label, kind="stable")
        groups = np.split(near[order], np.flatnonzero(np.diff(label[order])) + 1)
        return [(group, self._exact(parameter, blocks.select(group[:1]), reference)) for group in groups]


ModelType = TypeVar("ModelType", bound=Model)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(parameter,))
def privacy_model(cls: type[ModelType]) -> type[ModelType]:
    """Make a class a frozen dataclass of its parameters, which `about` has from then on."""
    cls = dataclass(frozen=True, kw_only=True)(cls)
    cls.about = replace(cls.about, parameters=tuple(Parameter(f.name, **f.metadata) for f in fields(cls)))
    return cls


def _whole(value: Fraction | float, is_whole: bool) -> Exact | int:
    return int(value) if is_whole and isinstance(value, Fraction) else value


def parameters_of(model: Model) -> dict[str, Any]:
    """The parameters of a model as asked, by name, in the order in which they are declared."""
    return {f.name: getattr(model, f.name) for f in fields(model)}


def tightest_of_runs(
    model: Model, bound: Bound, blocks: Blocks, reference: Reference, start: Ints
) -> list[Exact | int]:
    """The tightest value of a parameter over each run start[i]:start[i+1] of blocks, of which each has at least one."""
    largest, whole = bound.stricter == "smaller", bound.parameter in model.about.whole
    pair = model._ratio(bound.parameter, blocks, reference)
    if pair is not None:
        return [_whole(value, whole) for value in extremes(*pair, start, largest)]
    best, run, near = near_extremes(model._measure(bound.parameter, blocks, reference), start, largest)
    result: list[Any] = best.tolist()
    if whole:
        return [value if math.isinf(value) else round(value) for value in result]
    exact: list[list[Exact]] = [[] for _ in result]
    run_of = dict(zip(near.tolist(), run.tolist(), strict=True))
    for members, value in model._exactly(bound.parameter, near, blocks, reference):
        for i in {run_of[block] for block in members.tolist()}:
            exact[i].append(value)
    pick: Callable[..., Any] = max if largest else min
    return [pick(values) if values else value for values, value in zip(exact, result, strict=True)]


def measured(model: Model, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
    """float64[B]: each block's tightest value of one parameter, to about 1e-12; inf where there is none."""
    return model._measure(parameter, blocks, reference)
