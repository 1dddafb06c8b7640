"""Valid models for a case, with thresholds that are often exactly what some block attains; and comparing values."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from hypothesis import strategies as st
from reference.exact import CONTEXT, Exact, decimal_of, magnitude

from laws.cases import Case
from laws.rules import RULES, Params
from qblock.errors import ParameterError
from qblock.models import BY_NAME, Model

SMALL = Fraction(1, 10**12)


def nearby(value: Exact, whole: bool) -> list[int | Fraction]:
    """A tightest value (where it is rational) and the values just beside it."""
    if isinstance(value, float):
        return []
    if isinstance(value, Decimal):
        return [Fraction(value) - SMALL, Fraction(value) + SMALL]
    step = 1 if whole else SMALL
    return [value, value, value - step, value + step]


def valid(name: str, params: Params, case: Case) -> Model | None:
    """The model, unless its parameters are out of range."""
    try:
        model = BY_NAME[name](**params)
        model.validate(case.engine[1])
    except ParameterError:
        return None
    return model


@st.composite
def models(draw: st.DrawFn, name: str, case: Case) -> tuple[Model, Params]:
    """A model that is valid for the case; its thresholds are often exactly what some block attains."""
    rule = RULES[name]
    params = rule.params(draw, case)
    model = valid(name, params, case)
    assert model is not None, f"the strategy of {name} draws what the model refuses: {params}"
    for parameter in rule.asked:
        block = draw(st.sampled_from([*case.slow[1], None]))
        if block is None:
            continue
        choices = nearby(rule.tightest(block, params, case)[parameter], isinstance(params[parameter], int))
        found = [m for m in (valid(name, {**params, parameter: x}, case) for x in choices) if m is not None]
        if found:
            model = draw(st.sampled_from(found))
            params = {**params, parameter: getattr(model, parameter)}
    return model, params


def worst(values: Sequence[Exact], stricter: str) -> Exact:
    """The table's value: the least of what should be large, the greatest of what should be small."""
    return (min if stricter == "larger" else max)(values, key=decimal_of)


def same(found: Exact | None, expected: Exact) -> bool:
    """Equal; where logarithms are involved, in 45 digits."""
    if found is None or isinstance(found, float) or isinstance(expected, float):
        return found == expected
    if isinstance(found, Decimal) or isinstance(expected, Decimal):
        one, two = decimal_of(found), decimal_of(expected)
        return magnitude(CONTEXT.subtract(one, two)) < CONTEXT.multiply(
            Decimal("1e-45"), max(Decimal(1), magnitude(two))
        )
    return found == expected
