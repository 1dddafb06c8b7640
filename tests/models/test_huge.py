"""Parameters that no count reaches, and counts that no double holds: decided exactly, or refused as out of range."""

from __future__ import annotations

import dataclasses
import itertools
import json
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from laws.cases import Case, plain_case
from laws.draws import same, worst
from laws.kinds import variants
from laws.rules import RULES

from qblock.blocks import Blocks, Reference
from qblock.errors import ParameterError
from qblock.models import BY_NAME, REGISTRY, Model, parameters_of
from qblock.search.assessment import number_json, tightest_json

HUGE = [10**19, 10**30, 10**308, 10**400, Fraction(10**400 + 1, 3)]
TINY = [Fraction(1, 10**19), Fraction(1, 10**308), Fraction(1, 10**400), 1 + Fraction(1, 10**400)]
NUMBERS = {p.name for model in REGISTRY for p in model.about.parameters if p.kind in ("whole", "rational")}
CASES = [
    plain_case([{0: 2, 1: 2, 2: 1}, {0: 1, 1: 1, 2: 1}]),
    plain_case([{0: 4, 1: 1}, {2: 1}], prior=(Fraction(1, 10**400), Fraction(1), Fraction(10**30))),
]


def models() -> list[tuple[Model, str]]:
    found = []
    for name in BY_NAME:
        for model in variants(name).values():
            fields = [f.name for f in dataclasses.fields(model) if f.name in NUMBERS]
            found += [(model, field) for field in fields if getattr(model, field) is not None]
    for prior, at_most in itertools.product(("uniform", "table", "values", "from_table"), (True, False)):
        epsilon: dict[str, Any] = {"epsilon": 2, "adversary": "I", "stubbornness": 9}
        one = BY_NAME["epsilon_privacy"](**epsilon, prior=prior, at_most=at_most)
        found += [(one, field) for field in ("epsilon", "stubbornness", "known")]
    return found


def slow(model: Model) -> dict[str, Any]:
    return {"values": None, "allowed": (), "protected": (), **parameters_of(model)}


def checked(model: Model, case: Case) -> bool:
    """Whether the parameters are valid; then verdicts and tightest values are the reference's."""
    try:
        model.validate(case.engine[1])
    except ParameterError:
        return False
    rule, params = RULES[model.name], slow(model)
    verdicts = [rule.passes(block, params, case) for block in case.slow[1]]
    assert model.passes(*case.engine).tolist() == verdicts
    least = model.least_block_size(case.engine[1])
    assert all(b.size() >= least for b, v in zip(case.slow[1], verdicts, strict=True) if v)
    assert np.count_nonzero(case.engine[0].rows < least) >= 0
    tightest = model.tightest(*case.engine)
    assert tightest.holds is all(verdicts)
    for bound, value in zip(model.about.bounds, tightest.values, strict=True):
        each = [rule.tightest(block, params, case)[bound.parameter] for block in case.slow[1]]
        if any(isinstance(x, Decimal) for x in each):
            expected = worst(each, bound.stricter)
        else:  # exactly: eighty digits do not tell these values apart
            expected = (min if bound.stricter == "larger" else max)(each)
        assert same(value.value, expected), (model, bound.parameter)
    json.dumps(tightest_json([tightest]), allow_nan=False)
    json.dumps(
        [number_json(v) for v in parameters_of(model).values() if isinstance(v, int | Fraction)], allow_nan=False
    )
    return True


@pytest.mark.parametrize("case", CASES, ids=["plain", "far prior"])
@pytest.mark.parametrize("value", [*HUGE, *TINY], ids=lambda v: f"{'huge' if v > 9 else 'tiny'}")
def test_a_parameter_beyond_all_counts(case: Case, value: int | Fraction) -> None:
    tried = 0
    for model, field in models():
        if field == "bandwidth":
            continue
        try:
            changed = dataclasses.replace(model, **{field: value})
        except ParameterError:
            continue
        tried += checked(changed, case)
    assert tried > 10


@pytest.mark.parametrize("value", [*HUGE, *TINY], ids=lambda v: f"{'huge' if v > 9 else 'tiny'}")
def test_a_bandwidth_beyond_all_digits_is_out_of_range(value: int | Fraction) -> None:
    for name in ("t_closeness", "nt_closeness"):
        more = {"n": 3} if name == "nt_closeness" else {}
        model = BY_NAME[name](t=0, distance="kernel_js", bandwidth=value, **more)
        with pytest.raises(ParameterError, match="too many digits"):
            model.validate(CASES[0].engine[1])


def test_whole_numbers_beyond_doubles_are_exact() -> None:
    size = 2**53 + 1
    blocks = Blocks.of([{0: size - 3, 1: 3}, {0: size, 1: 3}])
    blocks = dataclasses.replace(blocks, population=blocks.rows + 2)
    reference = Reference.of(blocks)
    assert reference.totals.tolist() == [2 * size - 3, 6]
    asked: dict[str, dict[str, Any]] = {"k_anonymity": {"k": size}, "alpha_k_anonymity": {"alpha": 1, "k": size}}
    asked |= {"k_map": {"k": size + 2}, "nt_closeness": {"n": size, "t": 0, "variant": "own_or_top"}}
    for name, parameters in asked.items():
        model = BY_NAME[name](**parameters)
        parameter = "n" if "n" in parameters else "k"
        found = next(v.value for v in model.tightest(blocks, reference).values if v.parameter == parameter)
        assert (found, type(found)) == (parameters[parameter], int)
        assert number_json(found) == parameters[parameter]
        assert model.passes(blocks, reference).all()
        if parameter == "k":
            assert not dataclasses.replace(model, k=parameters["k"] + 1).passes(blocks, reference).all()
    assert number_json(np.int64(size)) == size
    assert number_json(Fraction(size)) == size


def test_rows_are_not_spread_into_an_array() -> None:
    """10^15 rows of two values: an array of them would not fit any memory."""
    blocks = Blocks.of([{0: 10**15, 1: 10**15 - 1}, {0: 5, 1: 10**15}])
    reference = Reference.of(blocks, numbers=(Fraction(0), Fraction(3)))
    tracemalloc.start()
    try:
        for reading in ("window", "literal"):
            model = BY_NAME["delta_l_diversity"](delta=1, l=Fraction(3, 2), reading=reading)
            values = {v.parameter: v.value for v in model.tightest(blocks, reference).values}
            assert values == {"l": Fraction(10**15 + 5, 10**15), "delta": 0}
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_every_number_of_every_model_is_tried() -> None:
    """A parameter that is a number and is declared as something else would not be tried."""
    for model in REGISTRY:
        for field in dataclasses.fields(model):
            if "int" in str(field.type) or "Fraction" in str(field.type):
                assert field.name in NUMBERS
