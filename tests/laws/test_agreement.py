"""The engine against the slow reference, and every check against the tightest value reported for it."""

from __future__ import annotations

import dataclasses
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.cases import KINDS, Case, cases, plain_case, quick
from laws.draws import SMALL, models, same, valid, worst
from laws.rules import RULES, Params
from qblock.blocks import concatenated
from qblock.models import BY_NAME, REGISTRY, Model, tightest_of_runs

NAMES = [model.name for model in REGISTRY]


@pytest.mark.parametrize("name", NAMES)
def test_every_registered_model_has_a_rule(name: str) -> None:
    assert name in RULES


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_reference(name: str) -> None:
    @settings(quick, max_examples=KINDS.get(name, 60))
    @given(data=st.data())
    def agrees(data: st.DataObject) -> None:
        case = data.draw(cases())
        model, params = data.draw(models(name, case))
        agree(case, model, params)

    agrees()


def agree(case: Case, model: Model, params: Params) -> None:
    """Verdicts, tightest values and the least size."""
    rule, slow = RULES[model.name], case.slow[1]
    verdicts = [rule.passes(block, params, case) for block in slow]
    assert model.passes(*case.engine).tolist() == verdicts
    assert bool(model.passes(*case.engine).all()) is all(verdicts)
    least = model.least_block_size(case.engine[1])
    assert all(block.size() >= least for block, verdict in zip(slow, verdicts, strict=True) if verdict)
    tightest = model.tightest(*case.engine)
    assert tightest.holds is all(verdicts)
    expected = [rule.tightest(block, params, case) for block in slow]
    for bound, value in zip(model.about.bounds, tightest.values, strict=True):
        assert (value.parameter, value.attained) == (bound.parameter, bound.attained)
        assert same(value.value, worst([found[bound.parameter] for found in expected], bound.stricter)), bound


@pytest.mark.parametrize("name", NAMES)
@quick
@given(data=st.data())
def test_runs_of_blocks_are_as_if_each_were_alone(name: str, data: st.DataObject) -> None:
    """Of nodes, say, that lie one behind the other."""
    case = data.draw(cases())
    model, params = data.draw(models(name, case))
    blocks, reference = case.engine
    inner = data.draw(st.sets(st.integers(1, len(blocks)).filter(lambda end: end < len(blocks))))
    start = np.array([0, *sorted(inner), len(blocks)])
    expected = [RULES[name].tightest(block, params, case) for block in case.slow[1]]
    for bound in model.about.bounds:
        found = tightest_of_runs(model, bound, blocks, reference, start)
        for value, first, last in zip(found, start[:-1], start[1:], strict=True):
            assert same(value, worst([of[bound.parameter] for of in expected[first:last]], bound.stricter)), bound


@quick
@given(data=st.data())
def test_nodes_one_behind_the_other_have_their_counts(data: st.DataObject) -> None:
    nodes = [data.draw(cases()).engine[0] for _ in range(data.draw(st.integers(1, 4)))]
    blocks = concatenated(nodes)
    assert [blocks.histogram(i) for i in range(len(blocks))] == [
        of.histogram(i) for of in nodes for i in range(len(of))
    ]
    assert blocks.rows.tolist() == [rows for of in nodes for rows in of.rows.tolist()]


def _given(model: Model) -> dict[str, Any]:
    return {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}


@pytest.mark.parametrize("name", NAMES)
@quick
@given(data=st.data())
def test_the_tightest_value_is_the_limit_of_what_holds(name: str, data: st.DataObject) -> None:
    case = data.draw(cases())
    drawn, _ = data.draw(models(name, case))
    for bound in drawn.about.bounds:
        lenient = RULES[name].lenient.get(bound.parameter, {})
        model = dataclasses.replace(drawn, **lenient)
        value = next(v.value for v in model.tightest(*case.engine).values if v.parameter == bound.parameter)
        assert value is not None
        step = 1 if bound.parameter in model.about.whole else SMALL
        sign = 1 if bound.stricter == "larger" else -1

        def verdict(x: Any, model: Model = model, parameter: str = bound.parameter) -> bool | None:
            changed = valid(model.name, {**_given(model), parameter: x}, case)
            return None if changed is None else bool(changed.passes(*case.engine).all())

        if value == math.inf:
            assert verdict(10**6) in (bound.stricter == "larger", None)
            continue
        exact = Fraction(value) if isinstance(value, Decimal) else value
        if not isinstance(value, Decimal):
            assert verdict(exact) in (bound.attained, None)
        assert verdict(exact + sign * step) in (False, None)
        assert verdict(exact - sign * step) in (True, None)


@pytest.mark.parametrize("name", NAMES)
@settings(quick, max_examples=10)
@given(data=st.data())
def test_a_table_without_blocks_holds_and_has_no_tightest_value(name: str, data: st.DataObject) -> None:
    case = data.draw(cases())
    model, _ = data.draw(models(name, case))
    blocks, reference = case.only([]).engine
    assert model.passes(blocks, reference).all()
    tightest = model.tightest(blocks, reference)
    assert tightest.holds
    assert {value.value for value in tightest.values} == {None}


@pytest.mark.parametrize("factor", [1, 3, 10**6])
def test_entropy_at_a_whole_number(factor: int) -> None:
    """Half of the rows and four eighths are as diverse as four equal values; one row more or less is not the same."""
    counts = [4 * factor, *[factor] * 4]
    for change, verdict in ((0, True), (1, False)):
        case = plain_case([{v: n + change * (v == 0) for v, n in enumerate(counts)}])
        assert bool(BY_NAME["entropy_l_diversity"](l=4).passes(*case.engine).all()) is verdict
    assert (
        BY_NAME["entropy_l_diversity"](l=1).tightest(*plain_case([dict(enumerate(counts))]).engine).values[0].value == 4
    )
