"""The privacy entries: built through the model classes, with exact parameters and the attributes they are about."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from qblock.errors import InputError
from qblock.models import BY_NAME, REGISTRY, Model, parameters_of
from qblock.models.base import Kind, Parameter
from qblock.models.examples import example
from qblock.spec import PriorTable, PriorValues, Requirement, Spec, read_spec
from qblock.spec.document import Scalar
from qblock.spec.privacy import parameters, read_parameter, required

HEAD = """\
version: 1
release: clinic
source: {url: "duckdb:///a.duckdb", table: people}
attributes:
  age: {role: quasi_identifier, hierarchy: suppress}
  ill: {role: sensitive, taxonomy: {file: ill.csv}}
privacy:
"""
SECOND = "  pay: sensitive\nprivacy:\n"

ENTRIES = {
    "k_anonymity": "{k: 4}",
    "distinct_l_diversity": "{l: 3}",
    "frequency_l_diversity": "{l: 2.5}",
    "entropy_l_diversity": "{l: 2.8}",
    "recursive_cl_diversity": "{c: 1.5, l: 3}",
    "pd_recursive_cl_diversity": "{c: 1.5, l: 3, allowed: [flu, 1.0]}",
    "npd_recursive_cl_diversity": "{c1: 1.5, c2: 3, l: 2, allowed: [flu], protected: [cancer]}",
    "alpha_k_anonymity": "{alpha: 0.5, k: 2}",
    "epsilon_m_anonymity": "{epsilon: 0.1, m: 2, relative: true}",
    "delta_l_diversity": "{delta: 7.5, l: 2, reading: literal}",
    "t_closeness": "{t: 0.3, distance: hierarchical}",
    "nt_closeness": "{n: 40, t: 0.25, distance: ordered, variant: own_or_top}",
    "beta_likeness": "{beta: 1.5, variant: enhanced}",
    "delta_disclosure": "{delta: 0.7, absent: skip}",
    "epsilon_privacy": "{epsilon: 5, adversary: I, stubbornness: 1000, at_most: false, prior: table, known: 1}",
    "k_map": "{k: 5, population: {table: register.people}}",
    "delta_presence": "{min: 0, max: 0.5, population: register.people}",
}
"""Every way of writing a parameter; a model that is not listed is written with its examples."""


def entry_of(model: type[Model]) -> str:
    needed = required(model)
    examples = {parameter.name: parameter.example for parameter in model.about.parameters}
    return ENTRIES.get(model.name, "{" + ", ".join(f"{name}: {examples[name]}" for name in needed) + "}")


def read(entries: str, head: str = HEAD) -> Spec:
    return read_spec(head + "".join(f"  - {line}\n" for line in entries.splitlines()), "spec.yaml", {})


def requirement(entry: str, head: str = HEAD) -> Requirement:
    (only,) = read(entry, head).privacy
    return only


def error(entry: str, head: str = HEAD) -> str:
    with pytest.raises(InputError) as caught:
        read(entry, head)
    return str(caught.value)


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_model_can_be_asked_for(model: type[Model]):
    found = requirement(f"{model.name}: {entry_of(model)}")
    assert type(found.model) is model
    assert found.sensitive == (("ill",) if model.about.uses_sensitive else ())
    for value in parameters_of(found.model).values():
        assert not isinstance(value, float)


@pytest.mark.parametrize("model", REGISTRY, ids=lambda model: model.name)
def test_every_model_says_what_it_lacks_and_what_it_does_not_know(model: type):
    needed = required(model)
    message = error(f"{model.name}: {{xyz: 1}}")
    assert f"xyz is not a parameter of {model.name}; valid: {', '.join(parameters(model))}" in message
    if needed:
        line = re.search(rf"{', '.join(needed)} (?:is|are) missing; write `({model.name}: .*?)`", message)[1]
        written, examples = (parameters_of(of) for of in (requirement(line).model, example(model)))
        # Of the population the model itself knows nothing.
        assert written == {**examples, **{name: written[name] for name in needed if name == "population"}}


@pytest.mark.parametrize(
    ("entity", "meaning"),
    [("", "rows that look the same"), ("entity: person\n", "people who look the same")],
)
def test_a_model_speaks_of_rows_where_nobody_knows_whose_they_are(entity: str, meaning: str):
    attributes = HEAD.replace("attributes:\n", "attributes:\n  person: identifying\n")
    (of_k, of_l) = read_spec(
        entity + attributes + "  - k_anonymity: {k: 4}\n  - distinct_l_diversity: {l: 2}\n", "spec.yaml", {}
    ).privacy
    assert of_k.meaning.endswith(f"at least 4 {meaning}")
    assert of_l.meaning == f"among {meaning}, ill has at least 2 different values"


def test_numbers_are_exact():
    assert parameters_of(requirement("entropy_l_diversity: {l: 2.8}").model)["l"] == Fraction(14, 5)
    assert parameters_of(requirement("t_closeness: {t: 3e-1}").model)["t"] == Fraction(3, 10)
    assert parameters_of(requirement("t_closeness: {t: .1}").model)["t"] == Fraction(1, 10)


def test_order_and_lines_are_those_of_the_file():
    spec = read("k_anonymity: {k: 4}\nk_anonymity: {k: 2}\ndistinct_l_diversity: {l: 2}")
    assert [(r.model.name, r.index, r.line) for r in spec.privacy] == [
        ("k_anonymity", 0, 8),
        ("k_anonymity", 1, 9),
        ("distinct_l_diversity", 2, 10),
    ]


def test_a_range_error_has_the_line_of_its_parameter():
    head = HEAD + "  - recursive_cl_diversity:\n      c: 1.5\n      l: 0\n"
    assert error("k_anonymity: {k: 0}", head).splitlines() == [
        "spec.yaml:10: privacy[0].recursive_cl_diversity.l: l = 0 is out of range; valid: an integer l >= 1",
        "spec.yaml:11: privacy[1].k_anonymity.k: k = 0 is out of range; valid: an integer k >= 1",
    ]


def test_the_only_sensitive_attribute_is_the_default():
    assert requirement("distinct_l_diversity: {l: 2}").sensitive == ("ill",)


def test_several_sensitive_attributes_must_be_named():
    head = HEAD.replace("privacy:\n", SECOND)
    assert "there are several sensitive attributes; add `sensitive: NAME`; valid: ill, pay" in error(
        "distinct_l_diversity: {l: 2}", head
    )
    assert requirement("distinct_l_diversity: {l: 2, sensitive: pay}", head).sensitive == ("pay",)


def test_an_attribute_that_is_not_sensitive():
    assert "'age' is not a sensitive attribute; valid: ill" in error("distinct_l_diversity: {l: 2, sensitive: age}")
    assert "did you mean ill?" in error("distinct_l_diversity: {l: 2, sensitive: il}")


def test_no_sensitive_attribute_at_all():
    head = HEAD.replace("role: sensitive, taxonomy: {file: ill.csv}", "role: insensitive")
    assert "no column is sensitive; give a column that role" in error("distinct_l_diversity: {l: 2}", head)


def test_multi_attribute_form():
    head = HEAD.replace("privacy:\n", SECOND)
    found = requirement("distinct_l_diversity: {l: 2, sensitive: [pay, ill]}", head)
    assert found.sensitive == ("pay", "ill")
    assert found.models == (BY_NAME["distinct_l_diversity"](l=2),) * 2


def test_multi_attribute_form_with_values_for_each():
    head = HEAD.replace("privacy:\n", SECOND)
    entry = "pd_recursive_cl_diversity: {c: 2, l: 2, sensitive: [pay, ill], allowed: {ill: [flu]}}"
    assert [parameters_of(model)["allowed"] for model in requirement(entry, head).models] == [(), ("flu",)]
    assert "wage is not one of the attributes named here; valid: pay, ill" in error(
        entry.replace("{ill:", "{wage:"), head
    )


def test_multi_attribute_form_is_refused_where_there_is_none():
    head = HEAD.replace("privacy:\n", SECOND)
    assert "has no multi-attribute form; valid bases: " in error("t_closeness: {t: 0.1, sensitive: [ill, pay]}", head)
    literal = "delta_l_diversity: {delta: 1, l: 2, reading: literal, sensitive: [ill, pay]}"
    assert "literal has no multi-attribute form; valid: window" in error(literal, head)
    assert "of two names or more" in error("distinct_l_diversity: {l: 2, sensitive: [ill]}", head)
    assert "'ill' appears twice" in error("distinct_l_diversity: {l: 2, sensitive: [ill, ill]}", head)


def test_values_of_the_sensitive_attribute_are_texts():
    found = requirement("pd_recursive_cl_diversity: {c: 2, l: 2, allowed: [1.0, 007, true, flu]}")
    assert parameters_of(found.model)["allowed"] == ("1.0", "007", "true", "flu")


def test_a_taxonomy_is_needed_where_it_is_used():
    head = HEAD.replace("taxonomy: {file: ill.csv}", "nulls: value")
    wanted = "needs a taxonomy of ill; add `taxonomy: {file: CSV}` to attributes.ill"
    message = error("t_closeness: {t: 0.1, distance: hierarchical}", head)
    assert message == f"spec.yaml:8: privacy[0].t_closeness.distance: hierarchical {wanted}"
    entry = "epsilon_privacy: {epsilon: 2, adversary: III, predicates: taxonomy}"
    assert wanted in error(entry, head)
    assert parameters_of(requirement(entry).model)["predicates"] == "taxonomy"


def test_population():
    assert parameters_of(requirement("k_map: {k: 5, population: {table: register.people}}").model)["population"] == (
        "register.people"
    )
    assert "population is missing" in error("k_map: {k: 5}")
    assert "does not name a table; write {table: schema.table}" in error("k_map: {k: 5, population: {tabel: a}}")
    assert "is not a table" in error("k_map: {k: 5, population: {table: a..b}}")


EPSILON = "epsilon_privacy: {{epsilon: 5, adversary: I, stubbornness: 10, prior: {}}}"


def test_prior_with_weights():
    found = requirement(EPSILON.format("{values: {flu: 0.7, cancer: 3}}"))
    assert found.prior == PriorValues((("flu", Fraction(7, 10)), ("cancer", 3)))
    assert parameters_of(found.model)["prior"] == "values"


def test_prior_from_a_table():
    found = requirement(EPSILON.format("{from_table: old.people, column: ill, where: {year: 2024, ward: null}}"))
    assert found.prior == PriorTable("old.people", "ill", (("year", "2024"), ("ward", None)))
    assert found.prior.parts == ("old", "people")
    assert parameters_of(found.model)["prior"] == "from_table"


@pytest.mark.parametrize("name", ["uniform", "table"])
def test_prior_by_name(name: str):
    found = requirement(EPSILON.format(name))
    assert (found.prior, parameters_of(found.model)["prior"]) == (None, name)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ("values", "'values' is not a prior; valid: uniform, table, {values:"),
        ("{values: {}}", "`values` is not a mapping; write a weight for each value"),
        ("{values: {flu: x}}", "the weight of flu is not a number"),
        ("{values: {flu: -1, cold: 2}}", "the weights are out of range"),
        ("{values: {flu: 0}}", "one of them above 0"),
        ("{from_table: t}", "a mapping is not a prior"),
        ("{from_table: t, colunm: c}", "colunm is not a key of a prior; did you mean column?"),
        ("{from_table: t, column: c, where: year}", "`where` is not a mapping"),
        ("{value: {flu: 1}}", "value is not a key of a prior; did you mean values?"),
    ],
)
def test_priors_that_are_wrong(prior: str, message: str):
    assert message in error(EPSILON.format(prior))


def test_predicates_as_lists():
    entry = "epsilon_privacy: {epsilon: 5, adversary: III, predicates: [[flu, 1], [null]]}"
    assert parameters_of(requirement(entry).model)["predicates"] == (("flu", "1"), (None,))


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("whole", Scalar("4.0", Fraction(4)), 4),
        ("rational", Scalar("4", 4), 4),
        ("rational", Scalar("2.5", Fraction(5, 2)), Fraction(5, 2)),
        ("flag", Scalar("true", True), True),
        ("choice", "II", "II"),
        ("choice", Scalar("1", 1), "1"),
        ("values", ["a", Scalar("1.50", Fraction(3, 2)), None], ("a", "1.50", None)),
        ("predicates", "negative", "negative"),
        ("predicates", [["a"], [Scalar("1", 1), None]], (("a",), ("1", None))),
    ],
    ids=str,
)
def test_a_parameter_is_read_as_its_kind(kind: Kind, raw: Any, value: Any):
    answer = read_parameter(Parameter("p", kind, ("I", "II", "1") if kind == "choice" else None), raw)
    assert answer == value
    assert type(answer) is type(value)


@pytest.mark.parametrize(
    ("kind", "raw", "message"),
    [
        ("whole", Scalar("true", True), "not a whole number"),
        ("whole", "4", "not a whole number"),
        ("rational", "x", "not a number"),
        ("rational", None, "not a number"),
        ("flag", Scalar("1", 1), "neither true nor false"),
        ("choice", "V", "valid: I, II"),
        ("choice", None, "valid: I, II"),
        ("choice", ["I"], "valid: I, II"),
        ("values", "a", "not a list"),
        ("values", [["a"]], "not a text"),
        ("predicates", ["a"], "not a list"),
        ("population", {"tabel": "t"}, "does not name a table"),
    ],
    ids=str,
)
def test_what_is_not_of_the_kind_is_refused(kind: Kind, raw: Any, message: str):
    with pytest.raises(ValueError, match=message):
        read_parameter(Parameter("p", kind, ("I", "II") if kind == "choice" else None), raw)


def test_a_parameter_may_be_null_where_that_is_its_default():
    assert parameters_of(requirement("t_closeness: {t: 0.5, bandwidth: null}").model)["bandwidth"] is None
    assert "k: 'null' is not a whole number" in error("k_anonymity: {k: null}")
    assert "population: 'null' is not a text" in error("k_map: {k: 2, population: null}")


def test_what_has_no_default_is_required_and_so_is_a_population():
    assert required(BY_NAME["t_closeness"]) == ["t"]
    assert list(parameters(BY_NAME["t_closeness"])) == ["t", "distance", "bandwidth"]
    assert required(BY_NAME["k_map"]) == ["k", "population"]
