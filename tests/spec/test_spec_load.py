"""Reading a spec: what it says, and what it says of everything that is wrong in it."""

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


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent\.yaml: cannot be read: No such file"):
        load_spec(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes("release: Bücher".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin.yaml: not UTF-8 \(byte 10\)"):
        load_spec(tmp_path / "latin.yaml")


def test_replace_keeps_the_origin():
    spec = replace(read(SPEC), suppression_limit=3)
    assert (spec.suppression_limit, str(spec.path)) == (3, "spec.yaml")


def test_all_errors_of_a_file_at_once():
    text = changed("release: inpatients", "release: in-patients").replace("k: 4", "k: 0").replace("0.02", "1.5")
    assert problems(text) == [
        "spec.yaml:2: release: 'in-patients' is not a release name; write letters, digits and _, at most 40",
        "spec.yaml:12: privacy[0].k_anonymity.k: k = 0 is out of range; valid: an integer k >= 1",
        "spec.yaml:13: suppression_limit: 1.5 is out of range; valid: 0, a fraction below 1 of the rows, "
        "or a number of rows from 1",
    ]


WRONG = [
    ("version: 1", "version: 2", "1: version: 2 is not a version of the spec format; write `version: 1`"),
    ("version: 1\n", "", "1: version is missing; add `version: ...`"),
    ("table:", "tabel:", "3: source.tabel: unknown key; did you mean table? valid: url, table"),
    (", table: clinic.inpatient", "", "3: source: table is missing; add `table: ...`"),
    ("clinic.inpatient", "clinic..inpatient", "'clinic..inpatient' is not a table; write table, or schema.table (on"),
    ("search:", "serch:", "14: serch: unknown key; did you mean search? valid: version, release, source"),
    ("insensitive", "insensitve", "10: attributes.ward.role: 'insensitve' is not valid; did you mean insensitive?"),
    ("{digits: 5}", "{digits: 0}", "hierarchy.digits: 0 is out of range; valid: a whole number from 1 to 99"),
    ("{digits: 5}", "{digits: 5, form: right}", "hierarchy.form: unknown key; did you mean from? valid: digits, from"),
    ("{digits: 5}", "{digits: 5, from: middle}", "hierarchy.from: 'middle' is not valid; valid: right, left"),
    (
        "{digits: 5}",
        "{digit: 5}",
        "6: attributes.zip_code.hierarchy: {digit: ...} is not a hierarchy; did you mean digits?",
    ),
    (
        "hierarchy: suppress",
        "hierarchy: supress",
        "'supress' is not a hierarchy; did you mean suppress? valid: suppress;",
    ),
    (", hierarchy: suppress", "", "8: attributes.gender: a quasi_identifier needs a hierarchy"),
    ("{digits: 5}", "{ranges: [5, 12]}", "ranges: 12 is not a multiple of 5, so the ranges do not nest"),
    ("{digits: 5}", "{ranges: [5, -10]}", "ranges: the width -10 is out of range; valid: above 0"),
    ("{digits: 5}", "{ranges: [5, x]}", "ranges[1]: 'x' is not a number; write one, without quotes (0.25)"),
    ("{digits: 5}", "{ranges: []}", "ranges: there is no width"),
    ("{digits: 5}", "{ranges: 5}", "ranges: 5 is not a list; write the widths"),
    ("{digits: 5}", "{ranges: [5], from: x}", "hierarchy.from: 'x' is not a number; write one"),
    ("{digits: 5}", "{ranges: [5], from: 20, to: 20}", "from 20 is not below to 20; write from < to"),
    ("{digits: 5}", "{ranges: [5, 100], from: 15, to: 90}", "no range of width 100 begins between from 15 and to 90"),
    ("{digits: 5}", "{dates: [week, month]}", "dates: [week, month] does not nest; write levels of"),
    ("{digits: 5}", "{dates: [year, month]}", "dates: [year, month] does not nest"),
    ("{digits: 5}", "{dates: [fortnight]}", "dates: fortnight is not a unit of dates; valid: day, week"),
    ("{digits: 5}", "{cuts: 5}", "cuts: 5 is not a mapping; valid keys: start, min_width, low, high"),
    ("{digits: 5}", "{cuts: {min_width: 5, low: 0}}", "6: attributes.zip_code.hierarchy.cuts: high is missing; add"),
    ("{digits: 5}", "{cuts: {min_width: 5, lo: 0}}", "cuts.lo: unknown key; did you mean low? valid: start, min_width"),
    ("{digits: 5}", "{cuts: {min_width: 0, low: 0, high: 9}}", "cuts: min_width 0 is out of range; valid: above 0"),
    ("{digits: 5}", "{cuts: {min_width: x, low: 0, high: 9}}", "cuts.min_width: 'x' is not a number; write one"),
    ("{digits: 5}", "{cuts: {min_width: 1, low: 9, high: 9}}", "cuts: low 9 is not below high 9; write low < high"),
    ("{digits: 5}", "{cuts: {min_width: 1, low: 9, high: true}}", "cuts.high: true is neither a number nor a date"),
    ("{digits: 5}", "{cuts: {min_width: 1, low: 0, high: 2000-02-30}}", "'2000-02-30' is neither a number nor a date"),
    ("{digits: 5}", "{cuts: {min_width: 1, low: 0, high: 2000-02-03}}", "start, low and high are numbers and dates"),
    (
        "{digits: 5}",
        "{cuts: {min_width: 0.5, low: 2000-01-01, high: 2000-02-03}}",
        "min_width 0.5 is not a number of days",
    ),
    ("{digits: 5}", "{cuts: {min_width: 9, low: 1, high: 10}}", "cuts: no cut lies between low 1 and high 10; write a"),
    (
        "strategy: chains",
        "weights: {aeg: 3}",
        "14: search.weights.aeg: aeg is not a quasi_identifier; did you mean age?",
    ),
    (
        "strategy: chains",
        "weights: {condition: 3}",
        "weights.condition: condition is not a quasi_identifier; valid: zip",
    ),
    ("strategy: chains", "weights: {age: 0}", "search.weights.age: 0 is out of range; valid: a number above 0"),
    ("strategy: chains", "weights: {age: -1.5}", "search.weights.age: -1.5 is out of range; valid: a number above 0"),
    ("strategy: chains", "weights: {age: much}", "search.weights.age: 'much' is not a number; write one"),
    ("strategy: chains", "weights: [3, 1]", "search.weights: a list is not a mapping; write the weights by quasi_iden"),
    ("{digits: 5}", "{digits: 5, max: -1}", "6: attributes.zip_code.hierarchy.max: -1 is out of range; valid: a whole"),
    ("{digits: 5}", "{digits: 5, max: top}", "hierarchy.max: 'top' is not a whole number; write one"),
    ("condition.csv}", "condition.csv, max: 1}", "9: attributes.condition.taxonomy.max: max is the highest level that"),
    ("{digits: 5}", "{table: d.zip}", "hierarchy: levels is missing; add `levels: ...`"),
    ("{digits: 5}", "{table: d.zip, levels: []}", "levels: the list is empty; write a list of columns, leaf first"),
    ("{digits: 5}", "{table: d.zip, levels: [a, a]}", "levels[1]: 'a' appears twice in the list; remove one"),
    ("{file: hierarchies/condition.csv}}", "suppress, hierarchy: suppress}", "hierarchy belongs to a quasi_identifier"),
    ("identifying", "{role: identifying, nulls: top}", "identifying takes no further key"),
    ("ward:       insensitive", "ward: 3", "10: attributes.ward.role: 3 is not valid; valid: identifying"),
    (
        "ward:       insensitive",
        "ward: [a]",
        "10: attributes.ward: a list is not a mapping; valid keys: role, hierarchy",
    ),
    (
        "condition.csv}}",
        "condition.csv}, nulls: top}",
        "nulls: 'top' is not valid for a sensitive; valid: refuse, value",
    ),
    (
        "{digits: 5}}",
        "{digits: 5}, nulls: value}",
        "nulls: 'value' is not valid for a quasi_identifier; valid: refuse, top",
    ),
    ("condition.csv}}", "condition.csv}, domain: observed}", "keep one of taxonomy and domain"),
    *(
        ("{file: hierarchies/condition.csv}", f"{{file: hierarchies/condition.csv}}, publish_as: {published}", said)
        for published, said in (
            (
                "{ranges: [10]}",
                "9: attributes.condition.publish_as: ranges that are published begin and end where the spec",
            ),
            ("{ranges: [10], from: 0}", "write both: {ranges: [10000], from: 0, to: 200000}"),
            (
                "{ranges: [5, 10], from: 0, to: 20}",
                "values are published in ranges of one width, and these are 2; keep",
            ),
            ("{ranges: [5], from: 9, to: 3}", "publish_as: from 9 is not below to 3; write from < to"),
            (
                "{ranges: [1], from: 0, to: 10000}",
                "these are more than 1,000 ranges; write a larger width",
            ),
            ("{ranges: [5], from: 0, to: 20, max: 1}", "max is of hierarchies, which have levels; values are"),
            ("{edges: [0, 5], finest: 1}", "finest is of hierarchies, which have levels; values are published in"),
            ("{level: 0}", "publish_as.level: 0 is out of range; valid: a whole number from 1 to 99"),
            (
                "{levels: 1}",
                "{levels: ...} is not what may be published; did you mean level? valid: {ranges: [5, 10, 20]}",
            ),
            ("suppress", "publish_as: 'suppress' is not what may be published; valid: {ranges: [5, 10, 20]}"),
        )
    ),
    (
        "{file: hierarchies/condition.csv}",
        "{ranges: [5]}, publish_as: {level: 1}",
        "it is a level of the taxonomy of condition, which a file or table has; add `taxonomy: {file: CSV}`, or write "
        "`publish_as: {ranges: [10000], from: 0, to: 200000}`",
    ),
    (
        "hierarchy: suppress",
        "hierarchy: suppress, publish_as: {edges: [1]}",
        "gender is a quasi_identifier; write `hierarchy` in its place",
    ),
    (
        "insensitive",
        "{role: insensitive, publish_as: {edges: [1]}}",
        "ward is insensitive; remove it, or write",
    ),
    ("identifying", "{role: identifying, publish_as: {edges: [1]}}", "patient_id is identifying; remove it, since"),
    ("identifying", "{role: identifying, unknown: [9]}", "unknown belongs to a quasi_identifier, and the role here is"),
    ("identifying", "{role: identifying, same: [case]}", "same belongs to a quasi_identifier, and the role here is"),
    ("hierarchy: suppress", "hierarchy: suppress, same: []", "is empty; write some of [case, space, unicode]"),
    (
        "hierarchy: suppress",
        "hierarchy: suppress, same: [caps]",
        "'caps' is not what spellings differ by; did you mean",
    ),
    ("hierarchy: suppress", "hierarchy: suppress, unknown: []", "is empty; write the codes for unknown: [999, -1]"),
    ("hierarchy: suppress", "hierarchy: suppress, unknown: [x, x]", "'x' appears twice in the list; remove one"),
    (
        "hierarchy: suppress",
        "hierarchy: suppress, unknown: [x], nulls: refuse",
        "what is unknown is read as NULL, which is * at every level then; leave `nulls` out",
    ),
    (
        "condition.csv}",
        "condition.csv}, unknown: [x]",
        "which condition may not have; add `nulls: value` (it is a value)",
    ),
    (
        "condition.csv}",
        "condition.csv}, nulls: value, unknown: [9], order: [flu, 9]",
        "the order has 9, which is unknown; take it out of one of the two",
    ),
    ("  - k_anonymity: {k: 4}", "  - k_anonimity: {k: 4}", "k_anonimity is not a model; did you mean k_anonymity?"),
    ("  - k_anonymity: {k: 4}", "  - k_anonymity: {l: 4}", "l is not a parameter of k_anonymity; valid: k"),
    (
        "  - k_anonymity: {k: 4}",
        "  - k_anonymity:",
        "privacy[0].k_anonymity: k is missing; write `k_anonymity: {k: ...}`",
    ),
    (
        "  - k_anonymity: {k: 4}",
        "  - k_anonymity: 4",
        "4 is not a mapping of parameters; write `k_anonymity: {k: ...}`",
    ),
    ("{k: 4}", "{k: 4.5}", "12: privacy[0].k_anonymity.k: 4.5 is not a whole number"),
    ("{k: 4}", '{k: "4"}', "12: privacy[0].k_anonymity.k: '4' is not a whole number; write one, without quotes"),
    ("{k: 4}", "{k: true}", "12: privacy[0].k_anonymity.k: true is not a whole number"),
    ("{k: 4}", "{k: 4, sensitive: condition}", "k_anonymity does not use a sensitive attribute"),
    (
        "\n  - k_anonymity: {k: 4}",
        " {k_anonymity: {k: 4}}",
        "privacy: a mapping is not a list of models; write one or more",
    ),
    ("\n  - k_anonymity: {k: 4}", " []", "privacy: a list is not a list of models"),
    ("privacy:\n  - k_anonymity: {k: 4}\n", "", "privacy: there is no privacy model; write a list of models"),
    ("0.02", "-1", "suppression_limit: -1 is out of range"),
    ("0.02", "1.0", "suppression_limit: 1.0 is out of range; valid: 0, a fraction below 1 of the rows, or a number"),
    ("0.02", "2%", "suppression_limit: '2%' is not a number; write a fraction of the rows (2% is 0.02)"),
    (
        "strategy: chains",
        "strategy: chain",
        "strategy: 'chain' is not valid; did you mean chains? valid: chains, incognito",
    ),
    ("strategy: chains", "memory_limit: 4", "memory_limit: 4 is not an amount of memory; write one with its unit"),
    ("strategy: chains", "node: [1, 2]", "search.node: 2 levels given; write one for each of zip_code, age, gender"),
    ("strategy: chains", "node: {zip_code: 1, ag: 2}", "ag is not a quasi_identifier; did you mean age?"),
    ("strategy: chains", "node: {zip_code: 1}", "search.node: no level for age, gender"),
    ("strategy: chains", "node: 3", "search.node: 3 is not a node; write a level per quasi-identifier"),
    ("[analyst]", "[analyst], lock_timeout: 0", "publish.lock_timeout: 0 is out of range; valid: a number of seconds"),
    (
        "[analyst]",
        "[analyst], lock_timeout: 61",
        "lock_timeout: 61 is out of range; valid: a number of seconds",
    ),
    ("[analyst]", "[analyst], storage_version: 1.5.0", "publish.storage_version: '1.5.0' is not a version of DuckDB"),
    ("[analyst]", "[analyst], lock_timeout: 1s", "publish.lock_timeout: '1s' is not a number; write one"),
    ("[analyst]", "analyst", "publish.readers: 'analyst' is not a list; write a list of names"),
    ("publish:", "entity: age\npublish:", "entity: 'age' says who a row is about, and its role is quasi_identifier"),
    ("publish:", "entity: ward\npublish:", "entity: 'ward' says who a row is about, and its role is insensitive; make"),
    ("publish:", "count: entities\npublish:", "count: entities cannot be counted without `entity: COLUMN`"),
    (
        "publish:",
        "versions: {row_counts: known}\npublish:",
        "rows of a person are told apart with `count: entities`",
    ),
    ("publish:", "versions: {keep: 0}\npublish:", "versions.keep: 0 is out of range; valid: a whole number >= 1"),
    (
        "publish:",
        "versions: {stale_after: 3 months}\npublish:",
        "stale_after: '3 months' is not an age; write a number",
    ),
    ("publish:", "versions: {audience: [inpatients]}\npublish:", "audience: inpatients is this release"),
    ("publish:", "versions: {confirm: 4b825dc6}\npublish:", "confirm: '4b825dc6' is not a source digest; write the 64"),
    ("publish:", "origin: {path: x}\npublish:", "origin: unknown key; valid: version"),
    (
        "  ward:       insensitive",
        "  WARD: sensitive\n  ward: sensitive\n  ward: insensitive",
        "column ward has two roles",
    ),
    (
        "publish:",
        "release: twice\npublish:",
        "15: release: the key release appears twice (first on line 2); remove one",
    ),
    ("release: inpatients", "release: [", "not YAML: "),
    ("release: inpatients", "release: !!python/name:os.system inpatients", "is not supported; write plain YAML"),
    ("ward:       insensitive", "? [a]\n  : insensitive", "10: attributes: a key must be a plain text"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG, ids=[f"{new!r}" for _, new, _ in WRONG])
def test_what_is_wrong(old: str, new: str, message: str):
    lines = problems(changed(old, new))
    assert all(line.startswith("spec.yaml:") for line in lines)
    assert message in "\n".join(lines)


def test_a_column_with_two_roles_names_both_lines():
    text = changed("  ward:       insensitive", "  age: sensitive")
    assert problems(text) == [
        "spec.yaml:10: attributes.age: column age has two roles (quasi_identifier on line 7, sensitive here); remove "
        "one"
    ]


def test_columns_that_differ_in_case_are_two_columns():
    assert read(changed("ward: ", "Age: ")).insensitives == ("Age",)


def test_one_column_must_be_a_quasi_identifier():
    text = "\n".join(line for line in SPEC.splitlines() if "quasi_identifier" not in line)
    assert problems(text) == ["spec.yaml:4: attributes: no column is a quasi_identifier; at least one must be"]


def test_entity_may_be_identifying_or_unlisted():
    assert read(SPEC + "entity: patient_id\ncount: entities\n").count == "entities"
    assert read(SPEC + "entity: person\n").entity == "person"


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "word"])
def test_no_spec_at_all(text: str):
    assert "`version: 1`" in problems(text)[0]


def test_an_alias_of_itself_is_refused():
    assert any("refers to itself" in line for line in problems("&a\nversion: *a\n"))


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
