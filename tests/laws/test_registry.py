"""Every model declares all that is derived from it, and refuses parameters that are out of range."""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from laws.cases import plain_case
from laws.rules import RULES
from laws.worked import WORKED
from qblock.errors import ParameterError
from qblock.models import BY_NAME, REGISTRY, Model, Range, parameters_of
from qblock.models.examples import example, in_setting, in_words

MODELS = (Path(__file__).resolve().parents[2] / "docs" / "privacy-models.md").read_text("utf-8")

NEEDS = {"distribution", "domain", "prior", "order", "numbers", "taxonomy", "population", "containing"}


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(REGISTRY)
    assert [BY_NAME[model.name] for model in REGISTRY] == list(REGISTRY)


def names_of(owner: type) -> set[str]:
    names = {name for base in owner.__mro__ for name in [*vars(base), *inspect.get_annotations(base)]}
    return {name for name in names if not name.startswith("_")}


def test_the_base_class_has_few_public_members() -> None:
    assert len(names_of(Model)) <= 8, sorted(names_of(Model))


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_attributes(model: type[Model]) -> None:
    about = model.about
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", model.name)
    assert about.citation
    assert about.condition
    assert "\n" not in about.condition
    assert model.__doc__
    assert dataclasses.is_dataclass(model)
    assert model.__dataclass_params__.frozen  # type: ignore[attr-defined]
    fields = [field.name for field in dataclasses.fields(model)]
    assert [parameter.name for parameter in about.parameters] == fields
    assert names_of(model) - names_of(Model) == set(fields)
    parameters = [bound.parameter for bound in about.bounds]
    assert parameters
    assert set(parameters) <= set(fields)
    assert len(set(parameters)) == len(parameters)
    assert any(bound.decides for bound in about.bounds)
    assert {bound.stricter for bound in about.bounds} <= {"larger", "smaller"}
    assert about.needs <= NEEDS


TYPES = {
    "whole": (int, int | None),
    "rational": (int | Fraction, int | Fraction | None),
    "flag": (bool,),
    "population": (str | None,),
    "prior": (str,),
    "values": (tuple[str | None, ...], tuple[str | None, ...] | None),
}
"""The types of the fields of each kind of parameter; a choice is a text or some literals."""


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_parameter_has_kind_range_and_example(model: type[Model]) -> None:
    hints = typing.get_type_hints(model)
    for parameter in model.about.parameters:
        at = (model.name, parameter.name)
        assert hints[parameter.name] in TYPES.get(parameter.kind, (hints[parameter.name],)), at
        assert isinstance(parameter.valid, Range) == (parameter.kind in ("whole", "rational")), at
        assert isinstance(parameter.valid, tuple) == (parameter.kind == "choice"), at
        assert parameter.example is not None, at
        parameter.check(model.name, parameter.example)
        if parameter.kind in ("population", "prior", "predicates"):
            assert parameter.name == parameter.kind, "the spec writes it in a form of its own"
        if parameter.kind == "choice" and typing.get_origin(hints[parameter.name]) is typing.Literal:
            assert typing.get_args(hints[parameter.name]) == parameter.valid, at
    assert parameters_of(example(model))


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_model_says_in_words_what_it_means(model: type[Model]) -> None:
    meaning = model.about.meaning
    named = {field for _, field, _, _ in Formatter().parse(meaning) if field is not None}
    assert {bound.parameter for bound in model.about.bounds if bound.decides} <= named
    assert named <= {field.name for field in dataclasses.fields(model)} | {"sensitive"}
    assert ("sensitive" in named) == model.about.uses_sensitive
    made = in_words(example(model), ["illness"])
    assert ("illness" in made) == model.about.uses_sensitive
    assert "{" not in made
    assert meaning[0].islower()
    assert meaning[-1] != "."


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_model_says_what_it_means_of_rows_where_nobody_knows_whose_they_are(model: type[Model]) -> None:
    of_rows = in_words(example(model), ["people who look the same"], rows=True)
    assert of_rows.count("people who look the same") == int(model.about.uses_sensitive)  # the name of a column stays
    assert not of_rows.startswith("everybody")
    if model.name == "k_anonymity":
        assert of_rows == "each row is hidden among at least 4 rows that look the same"


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_model_is_audited_with_what_a_table_of_numbers_has(model: type[Model]) -> None:
    case = plain_case([{0: 5, 1: 5}, {0: 3}])
    _, reference = case.engine
    assert any(setting.audited for setting in model.about.settings)
    for setting in model.about.settings:
        made = in_setting(model, setting, reference)
        assert isinstance(made.validate(reference), list)
        assert made.tightest(*case.engine).values


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_model_has_a_slow_reference_an_example_by_hand_and_its_place_in_the_documents(model: type[Model]) -> None:
    assert model.name in RULES
    assert set(RULES[model.name].asked) <= {bound.parameter for bound in model.about.bounds}
    assert f"| `{model.name}` |" in MODELS
    worked = WORKED[model.name]
    found = model(**worked.asked).tightest(*worked.case.engine)
    assert found.holds is worked.holds
    values = {v.parameter: float(v.value) if isinstance(v.value, Decimal) else v.value for v in found.values}
    assert values == pytest.approx(worked.tightest, rel=1e-15)


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


@pytest.mark.parametrize("model", [BY_NAME[name] for name in BOUNDS], ids=lambda model: model.name)
def test_bounds(model: type[Model]) -> None:
    declared = {b.parameter: b.stricter + ("" if b.attained else ", strict") for b in model.about.bounds}
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


def out_of_range(model: type[Model]) -> Iterator[dict[str, Any]]:
    """Each number just beyond its range, as a double, and as a truth value; each choice as a word that is none."""
    whole = parameters_of(example(model))
    for parameter in model.about.parameters:
        if isinstance(parameter.valid, Range):
            valid, step = parameter.valid, 1 if parameter.kind == "whole" else Fraction(1, 1000)
            wrong: list[Any] = [valid.least if valid.open_least else valid.least - step, float(valid.least + 1), True]
            if valid.most is not None:
                wrong.append(valid.most if valid.open_most else valid.most + step)
            wrong += [valid.least + Fraction(1, 2)] if parameter.kind == "whole" else []
            yield from ({**whole, parameter.name: value} for value in wrong)
        elif parameter.valid is not None:
            yield {**whole, parameter.name: "none of them"}


@pytest.mark.parametrize("name", BY_NAME)
def test_parameters_out_of_range_are_refused(name: str) -> None:
    _, reference = plain_case([{0: 5, 1: 5}, {0: 3}]).engine
    wrong = [*INVALID.get(name, []), *out_of_range(BY_NAME[name])]
    assert wrong
    for params in wrong:
        with pytest.raises(ParameterError, match=r"valid|not in the domain|predicates"):
            BY_NAME[name](**params).validate(reference)
