"""`source: {file: ...}`, and a spec that is a mapping."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
import yaml

from qblock.errors import InputError
from qblock.spec import Spec, read_spec, spec_digest, spec_of
from qblock.spec.schema import json_schema
from qblock.spec.source_file import ALSO, WORDS, column_type

REST = """
version: 1
release: stays
attributes:
  age: {role: quasi_identifier, hierarchy: {ranges: [5, 10]}}
  disease: sensitive
privacy:
  - k_anonymity: {k: 2}
"""


def read(source: str) -> Spec:
    return read_spec(f"source: {source}{REST}", "spec.yaml", {})


def refused(source: str) -> str:
    with pytest.raises(InputError) as caught:
        read(source)
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["stays.parquet", "stays-*.csv", "a b/'; DROP.CSV", 'say "hi".csv', "100%.csv", "a?.csv"]
)
def test_a_file_is_a_source(name: str) -> None:
    spec = spec_of({**yaml.safe_load(REST), "source": {"file": name}})
    assert (spec.source.file, spec.source.parts) == (name, (name,))
    written = read(f"{{file: {yaml.safe_dump(name, default_style=chr(34)).strip()}}}")
    assert (written.source, spec_digest(written)) == (spec.source, spec_digest(spec))


def test_types_are_read_and_have_one_name() -> None:
    spec = read(
        '{file: stays.csv, types: {age: INT, a: "Decimal(10, 2)", b: double precision, c: varchar, d: "numeric(3)"}}'
    )
    assert spec.source.types == {"age": "integer", "a": "decimal(10,2)", "b": "float", "c": "text", "d": "decimal(3,0)"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("{file: s3://bucket/a.csv}", "source.file: this URL is not a path"),
        ("{file: https://u:p@host/a.parquet}", "source.file: this URL is not a path"),
        ("{file: stays.xlsx}", "source.file: 'stays.xlsx' does not end in .parquet or .csv"),
        ("{file: stays}", "does not end in .parquet or .csv"),
        ("{file: [a.csv]}", "source.file: a list is not a path"),
        ('{file: ""}', "is not a path"),
        ("{file:}", "is not a path"),
        ("{file: a.csv, table: t}", "source.table: a source is files, or a database with a table"),
        ('{file: a.csv, url: "duckdb:///x"}', "source.url: a source is files, or a database with a table"),
        ("{file: a.parquet, types: {age: integer}}", "source.types: a Parquet file has types of its own"),
        (
            '{url: "duckdb:///x", table: t, types: {age: integer}}',
            "source.types: types are those of the columns of",
        ),
        ("{file: a.csv, types: {age: intger}}", "source.types.age: intger is not a type"),
        ("{file: a.csv, types: {age: decimal}}", "source.types.age: 'decimal' needs its digits"),
        ("{file: a.csv, types: [age]}", "source.types"),
        ("{fil: a.csv}", "source.fil: unknown key; did you mean file?"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(source: str, said: str) -> None:
    found = refused(source)
    assert found.startswith("spec.yaml:1: source")
    assert said.replace("intger is", "'intger' is") in found
    assert "u:p" not in found


def test_the_schema_says_the_same() -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    for source in (
        "{file: a.parquet}",
        "{file: a.CSV, types: {age: INTEGER, b: 'decimal(10, 2)'}}",
        '{url: "duckdb:///x", table: t}',
    ):
        assert validator.is_valid(yaml.safe_load(f"source: {source}{REST}")), source
        read(source)
    for source in (
        "{file: a.txt}",
        "{file: a.csv, table: t}",
        "{file: a.parquet, types: {a: integer}}",
        '{url: "duckdb:///x", table: t, types: {a: integer}}',
        "{file: a.csv, types: {a: whole}}",
        "{table: t}",
        "{}",
    ):
        assert not validator.is_valid(yaml.safe_load(f"source: {source}{REST}")), source
        refused(source)
    for word in (*WORDS, *ALSO):
        assert validator.is_valid(yaml.safe_load(f"source: {{file: a.csv, types: {{a: {word}}}}}{REST}"))
        assert column_type(word).word in WORDS


def test_the_digest_knows_file_and_types_and_no_other_name_of_a_type() -> None:
    digests = [
        spec_digest(read(source))
        for source in (
            "{file: a.csv}",
            "{file: b.csv}",
            "{file: a.csv, types: {age: integer}}",
            "{file: a.csv, types: {}}",
        )
    ]
    assert len(set(digests)) == 3
    assert digests[0] == digests[3]
    one, other = (spec_digest(read(f"{{file: a.csv, types: {{age: {word}}}}}")) for word in ("int", "INTEGER"))
    assert one == other


PLAIN: dict[str, Any] = {**yaml.safe_load(REST), "source": {"url": "duckdb:///a.duckdb", "table": "t"}}


def test_a_mapping_says_what_a_file_says() -> None:
    privacy = [{"entropy_l_diversity": {"l": 2.8}}, {"k_anonymity": {"k": 4}}]
    text = yaml.safe_dump({**PLAIN, "privacy": privacy, "suppression_limit": 0.02}, sort_keys=False)
    expected = read_spec(text, "spec")
    for least, limit in ((2.8, 0.02), (Decimal("2.8"), Fraction(1, 50)), (Fraction(14, 5), np.float64(0.02))):
        given = {**PLAIN, "privacy": [{"entropy_l_diversity": {"l": least}}, {"k_anonymity": {"k": np.int64(4)}}]}
        spec = spec_of({**given, "suppression_limit": limit}, "spec")
        assert spec_digest(spec) == spec_digest(expected)
        assert spec.privacy[0].model.l == Fraction(14, 5)  # type: ignore[attr-defined]


def test_messages_of_a_mapping_name_the_key_and_no_line() -> None:
    given = {**PLAIN, "privacy": [{"k_anonymity": {"k": 0}}, {"k_anonimity": {}}], "relase": "x"}
    with pytest.raises(InputError) as caught:
        spec_of(given, "release()")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("release(): privacy[0].k_anonymity")
    assert all(line.startswith("release(): ") for line in lines)
    assert set(caught.value.suggestions) == {"k_anonymity", "release"}
    spec = spec_of(PLAIN, "release()")
    assert spec.at("attributes", "age", "hierarchy") == "release(): attributes.age.hierarchy"
    assert spec.at_requirement(spec.privacy[0]) == "release(): privacy[0].k_anonymity"


def test_nothing_in_a_mapping_is_a_variable_or_yaml() -> None:
    names = ["${HOME}", "$$", "a: b", "- x", "&a", "null", "\N{SNOWMAN}", " ", "1"]
    attributes = {name: {"role": "quasi_identifier", "hierarchy": "suppress"} for name in names}
    spec = spec_of({**PLAIN, "attributes": attributes})
    assert spec.quasi_identifiers == tuple(names)


def looped() -> dict[str, Any]:
    found = dict(PLAIN)
    found["search"] = found
    return found


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "a spec is a mapping, and not a list"),
        ({**PLAIN, "release": object()}, "release: a text, a number, a list or a mapping is wanted, and not a object"),
        ({**PLAIN, "suppression_limit": float("nan")}, "suppression_limit: a text, a number"),
        ({**PLAIN, "attributes": {0: "sensitive"}}, "attributes: a key must be a text, and not a int"),
        ({**PLAIN, "attributes": {None: "sensitive"}}, "attributes: a key must be a text"),
        ({**PLAIN, "release": "\ud800"}, "release: a text that is not Unicode"),
        ({**PLAIN, "origin": {}}, "origin: unknown key"),
        (looped(), "values lie within each other more than 50 deep, or one holds itself"),
    ],
)
def test_what_has_no_place_in_a_spec(given: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        spec_of(given)
    assert said in str(caught.value)


def test_keys_that_are_values_of_a_column_may_be_numbers_and_none() -> None:
    prior = {"values": {None: 2, 1: 1, "a": 1}}
    model = {"epsilon_privacy": {"epsilon": 3, "adversary": "III", "prior": prior}}
    spec = spec_of({**PLAIN, "privacy": [model]})
    assert [value for value, _ in spec.privacy[0].prior.weights] == [None, "1", "a"]  # type: ignore[union-attr]


def test_paths_start_at_the_folder_of_the_path(tmp_path: Path) -> None:
    assert spec_of(PLAIN, tmp_path / "spec").directory == tmp_path
