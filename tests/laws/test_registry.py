"""Every model says who it is, and refuses parameters that are out of range."""

from __future__ import annotations

import dataclasses
import re
from fractions import Fraction
from typing import Any

import pytest

from laws.cases import plain_case
from laws.rules import RULES
from qblock.errors import ParameterError
from qblock.models import BY_NAME, REGISTRY, Model

NEEDS = {"distribution", "domain", "prior", "order", "numbers", "taxonomy", "population", "containing"}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(REGISTRY)
    assert [BY_NAME[model.name] for model in REGISTRY] == list(REGISTRY)


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_attributes(model: type[Model]) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", model.name)
    assert model.citation
    assert model.condition
    assert "\n" not in model.condition
    assert model.__doc__
    assert dataclasses.is_dataclass(model)
    assert model.__dataclass_params__.frozen  # type: ignore[attr-defined]
    fields = {field.name for field in dataclasses.fields(model)}
    parameters = [bound.parameter for bound in model.bounds]
    assert parameters
    assert set(parameters) <= fields
    assert len(set(parameters)) == len(parameters)
    assert any(bound.decides for bound in model.bounds)
    assert {bound.stricter for bound in model.bounds} <= {"larger", "smaller"}
    assert model.whole <= set(parameters)
    assert model.needs <= NEEDS


BOUNDS: dict[str, dict[str, str]] = {
    "k_anonymity": {"k": "larger"},
    "distinct_l_diversity": {"l": "larger"},
    "frequency_l_diversity": {"l": "larger"},
    "entropy_l_diversity": {"l": "larger"},
    "recursive_cl_diversity": {"l": "larger", "c": "smaller, strict"},
    "pd_recursive_cl_diversity": {"l": "larger", "c": "smaller, strict"},
    "npd_recursive_cl_diversity": {"l": "larger", "c1": "smaller, strict", "c2": "larger"},
    "alpha_k_anonymity": {"alpha": "smaller", "k": "larger"},
    "epsilon_m_anonymity": {"m": "larger"},
    "delta_l_diversity": {"l": "larger", "delta": "larger, strict"},
    "t_closeness": {"t": "smaller"},
    "nt_closeness": {"t": "smaller", "n": "larger"},
    "epsilon_privacy": {"epsilon": "smaller"},
    "beta_likeness": {"beta": "smaller"},
    "delta_disclosure": {"delta": "smaller, strict"},
    "k_map": {"k": "larger"},
    "delta_presence": {"min": "larger", "max": "smaller"},
}
"""Which way each parameter is stricter, and whether its tightest value fails; the parameter in the name first."""


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_bounds(model: type[Model]) -> None:
    declared = {b.parameter: b.stricter + ("" if b.attained else ", strict") for b in model.bounds}
    assert list(declared.items()) == list(BOUNDS[model.name].items())


INVALID: dict[str, list[dict[str, Any]]] = {
    "k_anonymity": [{"k": 0}, {"k": Fraction(3, 2)}, {"k": True}],
    "distinct_l_diversity": [{"l": 0}, {"l": Fraction(3, 2)}],
    "frequency_l_diversity": [{"l": Fraction(99, 100)}, {"l": 1.5}],
    "entropy_l_diversity": [{"l": Fraction(99, 100)}, {"l": 2.8}],
    "recursive_cl_diversity": [{"c": 0, "l": 2}, {"c": 1, "l": 0}, {"c": 1, "l": Fraction(3, 2)}, {"c": 0.5, "l": 2}],
    "pd_recursive_cl_diversity": [{"c": 0, "l": 2}, {"c": 1, "l": 0}, {"c": 1, "l": 2, "allowed": ("unknown",)}],
    "npd_recursive_cl_diversity": [
        {"c1": 0, "c2": 0, "l": 2},
        {"c1": 1, "c2": -1, "l": 2},
        {"c1": 1, "c2": 100, "l": 2},
        {"c1": 1, "c2": 0, "l": 0},
        {"c1": 1, "c2": 0, "l": 2, "protected": ("unknown",)},
    ],
    "alpha_k_anonymity": [{"alpha": -1, "k": 1}, {"alpha": 2, "k": 1}, {"alpha": 1, "k": 0}],
    "epsilon_m_anonymity": [
        {"epsilon": -1, "m": 2},
        {"epsilon": 1, "m": Fraction(1, 2)},
        {"epsilon": Fraction(3, 2), "m": 2, "relative": True},
    ],
    "delta_l_diversity": [
        {"delta": -1, "l": 2},
        {"delta": 1, "l": Fraction(1, 2)},
        {"delta": 1, "l": 2, "reading": "loose"},
    ],
    "t_closeness": [
        {"t": Fraction(-1, 10)},
        {"t": Fraction(11, 10)},
        {"t": 0.5},
        {"t": Fraction(694, 1000), "distance": "kernel_js", "bandwidth": 1},
        {"t": 0, "distance": "kernel_js"},
        {"t": 0, "distance": "kernel_js", "bandwidth": 0},
        {"t": 0, "distance": "euclidean"},
    ],
    "nt_closeness": [{"n": 0, "t": 0}, {"n": 14, "t": 0}, {"n": 1, "t": 2}, {"n": 1, "t": 0, "variant": "any"}],
    "beta_likeness": [{"beta": -1}, {"beta": 1, "variant": "plain"}],
    "delta_disclosure": [{"delta": 0}, {"delta": 1, "absent": "ignore"}],
    "epsilon_privacy": [
        {"epsilon": Fraction(99, 100), "adversary": "III"},
        {"epsilon": 2, "adversary": "V"},
        {"epsilon": 2, "adversary": "I"},
        {"epsilon": 2, "adversary": "I", "stubbornness": Fraction(1, 2)},
        {"epsilon": 2, "adversary": "II", "stubbornness": 1},
        {"epsilon": 2, "adversary": "III", "known": -1},
        {"epsilon": 2, "adversary": "III", "known": Fraction(1, 2)},
        {"epsilon": 2, "adversary": "III", "predicates": (("0", "1"),)},
        {"epsilon": 2, "adversary": "III", "predicates": ((),)},
        {"epsilon": 2, "adversary": "III", "prior": "guess"},
    ],
    "k_map": [{"k": 0}, {"k": Fraction(3, 2)}],
    "delta_presence": [{"min": -1, "max": 1}, {"min": 0, "max": 2}, {"min": Fraction(1, 2), "max": 0}],
}
"""For a table of 13 rows with two values."""


@pytest.mark.parametrize("name", BY_NAME)
def test_parameters_out_of_range_are_refused(name: str) -> None:
    assert name in RULES
    _, reference = plain_case([{0: 5, 1: 5}, {0: 3}]).engine
    assert INVALID[name]
    for params in INVALID[name]:
        with pytest.raises(ParameterError, match=r"valid|not in the domain|predicates"):
            BY_NAME[name](**params).validate(reference)
