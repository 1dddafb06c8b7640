"""What a privacy model says of itself; whatever else lists models or their parameters is derived from this.

Spec checks, the JSON schema, the table in the documentation, the demo, `audit` and `compare` read it and nothing else,
so that a model is one file and its line in the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import Any, Literal

from qblock.blocks import Reference
from qblock.errors import ParameterError

Kind = Literal["whole", "rational", "flag", "choice", "values", "population", "prior", "predicates"]
"""In this order: an integer; an int or a Fraction; true or false; one of a few words; values of the sensitive
attribute; the name of a population table; an adversary's prior; an adversary's predicates."""


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
    holds for people, in plain words, with `{parameter}` and `{sensitive}` for what was asked. parameters: one for each
    field, in that order. bounds: the one that the model is named for first. needs: whatever the parameters are, of
    "distribution", "domain", "order", "numbers", "taxonomy", "population" and "containing" (Model.needs has the rest).
    multi_attribute: whether it may be the base of the form for several sensitive attributes (models/multi.py).
    """

    citation: str
    condition: str
    meaning: str
    parameters: tuple[Parameter, ...]
    bounds: tuple[Bound, ...]
    needs: frozenset[str] = frozenset()
    uses_sensitive: bool = True
    multi_attribute: bool = False
    settings: tuple[Setting, ...] = (Setting(),)

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
