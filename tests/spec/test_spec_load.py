"""Reading a spec: what it says."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from qblock.errors import InputError
from qblock.hierarchy import Grid
from qblock.models import BY_NAME
from qblock.spec import (
    CsvFile,
    Cuts,
    Dates,
    Digits,
    DimensionTable,
    Ranges,
    Spec,
    Suppress,
    load_spec,
    read_spec,
    suppressed_rows_allowed,
)

SPEC = """\
version: 1
release: inpatients
source: {url: "${WAREHOUSE_URL}", table: clinic.inpatient}
attributes:
  patient_id: identifying
  zip_code:   {role: quasi_identifier, hierarchy: {digits: 5}}
  age:        {role: quasi_identifier, hierarchy: {file: hierarchies/age.csv}}
  gender:     {role: quasi_identifier, hierarchy: suppress}
  condition:  {role: sensitive, taxonomy: {file: hierarchies/condition.csv}}
  ward:       insensitive
privacy:
  - k_anonymity: {k: 4}
suppression_limit: 0.02
search: {strategy: chains, choose_by: discernibility}
publish: {schema: published, view: inpatients, readers: [analyst]}
"""
SECRET = "postgresql://loader:hunter22@db/clinic"
ENVIRONMENT = {"WAREHOUSE_URL": SECRET}


def read(text: str, **environment: str) -> Spec:
    return read_spec(text, "spec.yaml", ENVIRONMENT | environment)


def problems(text: str, **environment: str) -> list[str]:
    """The lines of the error that a text gives."""
    with pytest.raises(InputError) as caught:
        read(text, **environment)
    return str(caught.value).splitlines()


def changed(old: str, new: str) -> str:
    assert old in SPEC
    return SPEC.replace(old, new)


def test_reads_the_example():
    spec = read(SPEC)
    assert spec.release == "inpatients"
    assert spec.source.url.url == SECRET
    assert spec.source.parts == ("clinic", "inpatient")
    assert spec.quasi_identifiers == ("zip_code", "age", "gender")
    assert (spec.names("identifying"), spec.sensitives, spec.insensitives) == (
        ("patient_id",),
        ("condition",),
        ("ward",),
    )
    assert spec.attributes["zip_code"].hierarchy == Digits(digits=5)
    assert spec.attributes["age"].hierarchy == CsvFile(file="hierarchies/age.csv")
    assert spec.attributes["gender"].hierarchy == Suppress()
    assert spec.privacy[0].model == BY_NAME["k_anonymity"](k=4)
    assert (spec.privacy[0].sensitive, spec.privacy[0].line) == ((), 12)
    assert spec.suppression_limit == Fraction(1, 50)
    assert (spec.publish.schema, spec.view, spec.publish.readers) == ("published", "inpatients", ("analyst",))


def test_defaults():
    spec = read(SPEC.split("suppression_limit")[0])
    assert spec.suppression_limit == 0
    assert (spec.count, spec.entity) == ("rows", None)
    assert (spec.search.strategy, spec.search.choose_from, spec.search.choose_by) == (
        "chains",
        "minimal",
        "discernibility",
    )
    assert (spec.search.roll_up, spec.search.memory_limit, spec.pinned) == ("auto", None, None)
    assert (spec.publish.schema, spec.publish.view, spec.publish.readers) == ("published", "inpatients", ())
    assert (spec.versions.joint, spec.on_refusal, spec.versions.keep) == ("episodes", "refuse", 3)
    assert spec.attributes["age"].nulls == spec.attributes["age"].uncovered == "refuse"


def test_file_is_read_relative_to_itself(tmp_path: Path):
    path = tmp_path / "clinic" / "spec.yaml"
    path.parent.mkdir()
    path.write_text("\ufeff" + SPEC, encoding="utf-8")
    spec = load_spec(path, ENVIRONMENT)
    assert spec.path == path
    assert spec.directory == tmp_path / "clinic"
    source = spec.attributes["age"].hierarchy
    assert source is not None
    assert spec.file(source) == tmp_path / "clinic" / "hierarchies" / "age.csv"
    assert spec.at("attributes", "age", "hierarchy") == f"{path}:7"
    assert spec.at("attributes", "weight") == f"{path}:4"


def test_replace_keeps_the_origin():
    spec = replace(read(SPEC), suppression_limit=3)
    assert (spec.suppression_limit, str(spec.path)) == (3, "spec.yaml")


def test_columns_that_differ_in_case_are_two_columns():
    assert read(changed("ward: ", "Age: ")).insensitives == ("Age",)


def test_entity_may_be_identifying_or_unlisted():
    assert read(SPEC + "entity: patient_id\ncount: entities\n").count == "entities"
    assert read(SPEC + "entity: person\n").entity == "person"


def test_hierarchy_forms():
    text = changed("{digits: 5}", "{ranges: [2.5, 5], start: -1}").replace(
        "{file: hierarchies/age.csv}", '{table: "dim.age", levels: [age, age_10]}'
    )
    spec = read(text.replace("hierarchy: suppress", "hierarchy: {dates: [month, year]}"))
    assert spec.attributes["zip_code"].hierarchy == Ranges(ranges=(Fraction(5, 2), 5), start=-1)
    assert spec.attributes["age"].hierarchy == DimensionTable(table="dim.age", levels=("age", "age_10"))
    assert spec.attributes["gender"].hierarchy == Dates(dates=("month", "year"))


def test_cuts_start_at_the_lower_bound_unless_they_say_where():
    def grid(cuts: str) -> Grid:
        hierarchy = read(changed("{digits: 5}", f"{{cuts: {cuts}}}")).attributes["zip_code"].hierarchy
        assert isinstance(hierarchy, Cuts)
        return hierarchy.cuts.grid

    assert grid("{min_width: 0.1, low: 2, high: 9}") == Grid(2, Fraction(1, 10), 2, 9)
    assert grid("{start: -0.5, min_width: 5, low: 2, high: 9.5}") == Grid(Fraction(-1, 2), 5, 2, Fraction(19, 2))
    days = (date(2000, 1, 1), date(2001, 1, 1))
    for quote in ("", '"'):
        low, high = (f"{quote}{day}{quote}" for day in days)
        assert grid(f"{{min_width: 30, low: {low}, high: {high}}}") == Grid(days[0], 30, *days)


def test_weights_are_exact_and_in_the_order_of_the_quasi_identifiers():
    assert read(SPEC).quasi_identifiers == ("zip_code", "age", "gender")
    assert read(SPEC).weights == (1, 1, 1)
    spec = read(changed("strategy: chains", "weights: {gender: 0.1, zip_code: 3e2}"))
    assert spec.weights == (300, 1, Fraction(1, 10))
    assert all(isinstance(weight, Fraction) for weight in spec.weights)


@pytest.mark.parametrize(
    "form",
    [
        "digits: 5",
        "ranges: [5]",
        "dates: [month]",
        "cuts: {min_width: 5, low: 0, high: 9}",
        "file: a.csv",
        "table: t, levels: [a]",
    ],
)
def test_the_highest_level_of_every_form_with_keys(form: str):
    for written, highest in (("", None), (", max: 0", 0), (", max: 2", 2)):
        spec = read(changed("{digits: 5}", f"{{{form}{written}}}"))
        assert spec.attributes["zip_code"].highest == highest
    assert spec.attributes["gender"].highest is None
    assert spec.attributes["condition"].highest is None


def test_texts_of_unquoted_numbers_stay_as_written():
    text = changed("taxonomy: {file: hierarchies/condition.csv}", "domain: [1.50, 007, true, x, 1e3]")
    assert read(text).attributes["condition"].domain == ("1.50", "007", "true", "x", "1e3")


def test_null_in_the_domain_needs_its_rule():
    text = changed("taxonomy: {file: hierarchies/condition.csv}", "domain: [a, null]")
    assert "add `nulls: value`" in problems(text)[0]
    spec = read(text.replace("domain:", "nulls: value, domain:"))
    assert spec.attributes["condition"].domain == ("a", None)


def test_order_and_domain_hold_the_same_values():
    text = changed("taxonomy: {file: hierarchies/condition.csv}", "domain: [a, b], order: [b, a]")
    assert read(text).attributes["condition"].order == ("b", "a")
    assert "one lacks c" in problems(text.replace("[b, a]", "[b, a, c]"))[0]


def test_pinned_node_by_name_and_by_position():
    assert read(changed("strategy: chains", "node: {gender: 1, age: 2, zip_code: 3}")).pinned == (3, 2, 1)
    assert read(changed("strategy: chains", "node: [3, 2, 1]")).pinned == (3, 2, 1)


def test_a_confirmed_source_is_a_text_whatever_yaml_makes_of_its_digits():
    for text in ("0a" * 32, "1" * 64, "1e" + "2" * 62, "AB" * 32):
        assert read(SPEC + f"versions: {{confirm: {text}}}\n").versions.confirm == text.lower()


@pytest.mark.parametrize(
    ("text", "age"),
    [("30m", timedelta(minutes=30)), ("36h", timedelta(hours=36)), ("2 days", timedelta(2)), ("1w", timedelta(7))],
)
def test_stale_after(text: str, age: timedelta):
    assert read(SPEC + f"versions: {{stale_after: {text}}}\n").versions.stale_after == age


@pytest.mark.parametrize(
    ("table", "parts"),
    [("t", ("t",)), ("s.t", ("s", "t")), ("'\"a.b\".t'", ("a.b", "t")), ('\'"a""b"\'', ('a"b',))],
)
def test_table_names(table: str, parts: tuple[str, ...]):
    assert read(changed("clinic.inpatient", table)).source.parts == parts


@pytest.mark.parametrize(
    ("limit", "rows", "allowed"),
    [
        (0, 100, 0),
        (Fraction(1, 50), 100, 2),
        (Fraction(1, 50), 99, 1),
        (Fraction(999, 1000), 10, 9),
        (5, 100, 5),
        (5, 5, 4),
        (5, 1, 0),
        (5, 0, 0),
        (Fraction(1, 2), 0, 0),
    ],
)
def test_suppressed_rows_allowed(limit: int | Fraction, rows: int, allowed: int):
    assert suppressed_rows_allowed(limit, rows) == allowed


def test_a_decimal_fraction_is_exact():
    """0.07 of 100 rows is 7; as a double it is 7.000000000000001, and 0.29 of 100 would be 28."""
    assert read(changed("0.02", "0.29")).suppressed_rows_allowed(100) == 29
