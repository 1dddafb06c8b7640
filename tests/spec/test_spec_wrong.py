"""Reading a spec: what is said of everything that is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_spec_load import SPEC, changed, problems

from qblock.errors import InputError
from qblock.spec import load_spec


def test_files_that_cannot_be_read(tmp_path: Path):
    with pytest.raises(InputError, match=r"absent\.yaml: cannot be read: No such file"):
        load_spec(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes("release: Bücher".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin.yaml: not UTF-8 \(byte 10\)"):
        load_spec(tmp_path / "latin.yaml")


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
    ("version: 1\n", "", "1: version is missing; add `version: 1`"),
    ("table:", "tabel:", "3: source.tabel: unknown key; did you mean table? valid: url, table"),
    (", table: clinic.inpatient", "", "3: source: table is missing; add `table: clinic.inpatient`"),
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
    (
        "{digits: 5}",
        "{cuts: {min_width: 5, low: 0}}",
        "6: attributes.zip_code.hierarchy.cuts: high is missing; add `high: 120`",
    ),
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
    ("{digits: 5}", "{table: d.zip}", "hierarchy: levels is missing; add `levels: [town, county, country]`"),
    ("search:", "accept: [{check: skew}]\nsearch:", "14: accept[0]: because is missing; add `because: "),
    (
        "search:",
        "accept: [{chek: skew}]\nsearch:",
        "accept[0].chek: unknown key; did you mean check? valid: check, col",
    ),
    ("{digits: 5}", "{table: d.zip, levels: []}", "levels: the list is empty; write a list of columns, leaf first"),
    ("{digits: 5}", "{table: d.zip, levels: [a, a]}", "levels[1]: 'a' appears twice in the list; remove one"),
    ("{file: hierarchies/condition.csv}}", "suppress, hierarchy: suppress}", "hierarchy is for quasi_identifier, and"),
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
    (
        "identifying",
        "{role: identifying, unknown: [9]}",
        "for quasi_identifier or sensitive, and the role here is identifying; remove it",
    ),
    (
        "identifying",
        "{role: identifying, same: [case]}",
        "same is for quasi_identifier or sensitive, and the role here is",
    ),
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
        "privacy[0].k_anonymity: k is missing; write `k_anonymity: {k: 4}`",
    ),
    (
        "  - k_anonymity: {k: 4}",
        "  - k_anonymity: 4",
        "4 is not a mapping of parameters; write `k_anonymity: {k: 4}`",
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


def test_one_column_must_be_a_quasi_identifier():
    text = "\n".join(line for line in SPEC.splitlines() if "quasi_identifier" not in line)
    assert problems(text) == ["spec.yaml:4: attributes: no column is a quasi_identifier; at least one must be"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "- a\n", "word"])
def test_no_spec_at_all(text: str):
    assert "`version: 1`" in problems(text)[0]


def test_an_alias_of_itself_is_refused():
    assert any("refers to itself" in line for line in problems("&a\nversion: *a\n"))
