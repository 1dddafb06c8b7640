"""What a spec declares for the report of its release."""

from __future__ import annotations

from fractions import Fraction

import jsonschema
import pytest
import yaml
from test_spec_load import SPEC, problems, read

from qblock.spec.reporting import Context, Population, Reporting, chance_text
from qblock.spec.schema import json_schema


def test_without_a_word_nothing_is_declared() -> None:
    assert read(SPEC).report == Reporting()
    assert all(attribute.because is None for attribute in read(SPEC).attributes.values())


def test_what_is_declared() -> None:
    text = (
        SPEC
        + """\
report:
  threshold: 1/11
  threshold_because: "EMA Policy 0070"
  threshold_on: mean
  population: {fraction: 0.05}
  declared_by: " A.  Weber "
  context: {purpose: research, recipients: two universities, release: controlled, agreement: of 2026}
  controls: [users are registered, 7]
"""
    )
    assert read(text).report == Reporting(
        threshold=Fraction(1, 11),
        threshold_because="EMA Policy 0070",
        threshold_on="mean",
        population=Population(fraction=Fraction(1, 20)),
        declared_by="A. Weber",
        context=Context(purpose="research", recipients="two universities", release="controlled", agreement="of 2026"),
        controls=("users are registered", "7"),
    )
    jsonschema.Draft202012Validator(json_schema()).validate(yaml.safe_load(text))


@pytest.mark.parametrize("role", ["identifying", "insensitive", "sensitive", "quasi_identifier, hierarchy: suppress"])
def test_a_column_of_every_role_has_its_reason(role: str) -> None:
    text = SPEC.replace("ward:       insensitive", f"ward: {{role: {role}, because: '  in the  register '}}")
    assert read(text).attributes["ward"].because == "in the register"
    jsonschema.Draft202012Validator(json_schema()).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("given", "chance", "shown"),
    [
        ("0.09", Fraction(9, 100), "0.09"),
        ("1/11", Fraction(1, 11), "1/11"),
        ("1 / 20", Fraction(1, 20), "0.05"),
        ("1", Fraction(1), "1"),
        ("0.0900", Fraction(9, 100), "0.09"),
        ('"0.2"', None, ""),
        ("true", None, ""),
    ],
)
def test_a_threshold_is_exact(given: str, chance: Fraction | None, shown: str) -> None:
    text = SPEC + f"report: {{threshold: {given}}}\n"
    if chance is None:
        assert "report.threshold: " in problems(text)[0]
        assert "write `threshold: 0.09`, or `threshold: 1/11`" in problems(text)[0]
        return
    assert read(text).report.threshold == chance
    assert chance_text(chance) == shown


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("threshold: 0", "report.threshold: 0 is out of range; valid: a chance above 0, at most 1: `threshold: 0.09`"),
        ("threshold: 12/11", "report.threshold: '12/11' is out of range"),
        ("threshold_because: x", "threshold_because is about a threshold; add `threshold: 0.09`, or leave it out"),
        ("population: {}", "report.population: write one of size and fraction: `population: {size: 120000}`, or"),
        ("population: {size: 2, fraction: 0.5}", "report.population: write one of size and fraction"),
        ("context: {release: publi}", "report.context.release: 'publi' is not valid; did you mean public?"),
        ("controls: none", "report.controls: 'none' is not a list; write the measures in force: controls: [\"users"),
        ("treshold: 0.09", "report.treshold: unknown key; did you mean threshold?"),
    ],
)
def test_what_is_wrong_names_the_key_and_a_line_to_paste(given: str, message: str) -> None:
    (line,) = problems(SPEC + f"report: {{{given}}}\n")
    assert line.startswith("spec.yaml:16: ")
    assert message in line


def test_a_text_has_an_end() -> None:
    reason = "a" * 501
    (line,) = problems(SPEC.replace("ward:       insensitive", f"ward: {{role: insensitive, because: {reason}}}"))
    assert line == "spec.yaml:10: attributes.ward.because: this text has 501 characters; write 1 to 500"
