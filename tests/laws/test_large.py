"""Counts far beyond what the slow reference can spell out as rows, where products no longer fit into 64 bits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import adversary

from laws.cases import Case, cases, plain_case, quick
from laws.draws import models, nearby, same, worst
from qblock.models import BY_NAME

BY_SHARES = (
    "frequency_l_diversity",
    "entropy_l_diversity",
    "recursive_cl_diversity",
    "pd_recursive_cl_diversity",
    "npd_recursive_cl_diversity",
    "t_closeness",
    "beta_likeness",
    "delta_disclosure",
    "delta_presence",
)
"""Models that see shares alone."""
FACTORS = (10**6 + 3, 10**9 + 7, 10**12 + 39)


def scaled(case: Case, factor: int) -> Case:
    return replace(
        case,
        histograms=tuple({v: n * factor for v, n in h.items()} for h in case.histograms),
        population=tuple(n * factor for n in case.population),
        counts=tuple(n * factor for n in case.totals),
    )


def agree(name: str, model: Any, case: Case, large: Case) -> None:
    assert model.passes(*large.engine).tolist() == model.passes(*case.engine).tolist(), name
    for x, y in zip(model.tightest(*case.engine).values, model.tightest(*large.engine).values, strict=True):
        assert y.value is not None
        assert same(x.value, y.value)


@pytest.mark.parametrize("name", [name for name in BY_SHARES if name in BY_NAME])
@settings(quick, max_examples=40)
@given(data=st.data())
def test_every_count_times_a_large_number(name: str, data: st.DataObject) -> None:
    case = data.draw(cases())
    model, _ = data.draw(models(name, case))
    agree(name, model, case, scaled(case, data.draw(st.sampled_from(FACTORS))))


@pytest.mark.parametrize("name", [name for name in ("epsilon_m_anonymity", "delta_l_diversity") if name in BY_NAME])
@settings(quick, max_examples=40)
@given(data=st.data())
def test_every_count_and_every_number_times_a_large_number(name: str, data: st.DataObject) -> None:
    """Distances are scaled with the numbers, so that their integer positions leave 64 bits, too."""
    case = data.draw(cases())
    model, _ = data.draw(models(name, case))
    large = scaled(case, 1009)
    factor = data.draw(st.sampled_from([1, 10**9, 10**25]))
    far = replace(large, numbers=tuple(x * factor for x in case.numbers))
    moved = model
    if not getattr(model, "relative", False):
        field = "delta" if name == "delta_l_diversity" else "epsilon"
        moved = replace(model, **{field: getattr(model, field) * factor})
    assert moved.passes(*far.engine).tolist() == model.passes(*case.engine).tolist()
    one, two = model.tightest(*case.engine).values, moved.tightest(*far.engine).values
    assert one[0].value == two[0].value
    if name == "delta_l_diversity":
        assert one[1].value is not None
        assert two[1].value == one[1].value * factor


blocks = st.lists(st.lists(st.integers(1, 3_000_000), min_size=2, max_size=4), min_size=1, max_size=3)


@pytest.mark.parametrize("kind", ["I", "up to I", "II", "III"])
@settings(quick, max_examples=40)
@given(
    found=blocks,
    sigma=st.sampled_from([Fraction(7), Fraction(1_000_000), Fraction(10**6 + 1, 3), Fraction(10**12)]),
    b=st.sampled_from([0, 1, 1000]),
    weights=st.lists(st.integers(1, 10**6), min_size=4, max_size=4),
    data=st.data(),
)
def test_epsilon_of_millions(
    kind: str, found: list[list[int]], sigma: Fraction, b: int, weights: list[int], data: st.DataObject
) -> None:
    case = plain_case([dict(enumerate(h)) for h in found], values=4, prior=tuple(map(Fraction, weights)))
    shape = [Fraction(w, sum(weights)) for w in weights]
    least = 1 / min(shape)
    levels = [sigma] if kind != "up to I" or least >= sigma else [sigma, least]
    values = []
    for counts in found:
        n = sum(counts)
        each = [Fraction(1)]
        for x, p in zip(counts, shape, strict=False):
            if kind == "III":
                each.append(adversary.closed_form_stubborn(n, x, b, p))
            elif kind == "II":
                each.append(adversary.closed_form(n, x, b, sigma, Fraction(1)))
            else:
                each += [adversary.closed_form(n, x, b, level, level * p) for level in levels]
        values.append(worst(each, "smaller") if n > b else float("inf"))
    params: dict[str, Any] = {"adversary": kind[-3:].strip() if kind != "up to I" else "I", "known": b}
    params |= {"stubbornness": sigma} if kind != "III" else {}
    params |= {"prior": "values"} if kind != "II" else {}
    params |= {"at_most": False} if kind == "I" else {}
    asked = data.draw(st.sampled_from([x for value in values for x in nearby(value, False) if x >= 1] or [Fraction(2)]))
    model = BY_NAME["epsilon_privacy"](epsilon=asked, **params)
    assert model.passes(*case.engine).tolist() == [value <= asked for value in values]
    assert model.tightest(*case.engine).values[0].value == worst(values, "smaller")


@pytest.mark.parametrize("name", BY_NAME)
@settings(quick, max_examples=20)
@given(data=st.data())
def test_blocks_are_taken_in_parts(name: str, data: st.DataObject) -> None:
    """How many blocks or cells are worked on at a time makes no difference."""
    case = data.draw(cases(least_blocks=3))
    model, _ = data.draw(models(name, case))
    verdicts, tightest = model.passes(*case.engine).tolist(), model.tightest(*case.engine)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("qblock.blocks.PAIRS", data.draw(st.integers(1, 4)))
        patch.setattr("qblock.blocks.CELLS", data.draw(st.integers(1, 12)))
        assert model.passes(*case.engine).tolist() == verdicts
        assert model.tightest(*case.engine) == tightest


LONG = Fraction(1, 10**25)


@pytest.mark.parametrize(
    ("name", "params", "verdict"),
    [
        ("recursive_cl_diversity", {"c": 1 / LONG, "l": 3}, False),
        ("pd_recursive_cl_diversity", {"c": 1 / LONG, "l": 3}, False),
        ("npd_recursive_cl_diversity", {"c1": 1, "c2": LONG, "l": 1, "protected": ("2",)}, False),
        ("alpha_k_anonymity", {"alpha": LONG, "k": 1, "values": ("2",)}, True),
        ("frequency_l_diversity", {"l": 2 + LONG}, False),
        ("entropy_l_diversity", {"l": 2 - LONG}, True),
        ("t_closeness", {"t": LONG}, True),
        ("nt_closeness", {"n": 2, "t": LONG}, True),
        ("beta_likeness", {"beta": LONG}, True),
        ("delta_disclosure", {"delta": LONG, "absent": "violation"}, True),
        ("epsilon_m_anonymity", {"epsilon": LONG, "m": 2, "relative": True}, True),
        ("epsilon_m_anonymity", {"epsilon": 1 / LONG, "m": 2}, False),
        ("delta_l_diversity", {"delta": 1 / LONG, "l": 1}, True),
        ("epsilon_privacy", {"epsilon": 1 / LONG, "adversary": "III", "prior": "table"}, True),
        ("k_anonymity", {"k": 10**25}, False),
        ("k_map", {"k": 10**25}, False),
        ("delta_presence", {"min": LONG, "max": 1}, True),
    ],
)
def test_thresholds_of_many_digits(name: str, params: dict[str, Any], verdict: bool) -> None:
    """A parameter that does not fit 64 bits meets counts, distances and tails that are 0."""
    case = plain_case([{0: 1, 1: 1}], values=3)
    model = BY_NAME[name](**params)
    assert bool(model.passes(*case.engine).all()) is verdict
    assert model.tightest(*case.engine).holds is verdict
