"""Variables of the environment and secrets: expanded where the file says so, and shown nowhere."""

from __future__ import annotations

import dataclasses
import json
import traceback

import pytest

from qblock.errors import InputError, values_shown
from qblock.spec import SecretUrl, Spec, read_spec, spec_digest
from qblock.spec.digest import canonical

SECRET = "postgresql://loader:hunter22@db/clinic"
HIDDEN = " / ".join(["hunter" + "22", "is secret"])
SPEC = """\
version: 1
release: clinic
source: {url: "${URL}", table: "${TABLE}"}
attributes:
  age: {role: quasi_identifier, hierarchy: suppress}
privacy:
  - k_anonymity: {k: 2}
publish: {url: "duckdb:///${FOLDER}/$$out.duckdb"}
"""
ENVIRONMENT = {"URL": SECRET, "TABLE": "people", "FOLDER": "/srv/vault9"}


def read(text: str = SPEC, **environment: str) -> Spec:
    return read_spec(text, "spec.yaml", ENVIRONMENT | environment)


def error(text: str, **environment: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text, **environment)
    return str(caught.value)


def test_variables_are_expanded_and_dollars_escaped():
    spec = read()
    assert spec.source.url.url == SECRET
    assert spec.source.table == "people"
    assert spec.publish.url is not None
    assert spec.publish.url.url == "duckdb:////srv/vault9/$out.duckdb"


def test_no_form_of_the_spec_shows_a_url():
    spec = read()
    for text in (repr(spec), str(spec), repr(spec.source), str(spec.source.url), f"{spec.publish}", canonical(spec)):
        assert "hunter22" not in text
        assert "vault9" not in text


def test_the_secret_survives_a_copy():
    spec = dataclasses.replace(read(), release="other")
    assert spec.source.url == SecretUrl(SECRET)
    assert "hunter22" not in repr(spec)


def test_the_digest_does_not_depend_on_secrets():
    assert spec_digest(read()) == spec_digest(read(URL="postgresql://loader:changed@db/clinic", FOLDER="/x"))
    assert spec_digest(read()) != spec_digest(read(TABLE="other"))


def test_an_unset_variable_is_named_with_its_line():
    text = SPEC.replace("${TABLE}", "${TABEL}")
    assert error(text) == (
        "spec.yaml:3: source.table: the environment variable TABEL is not set; set it, or write $$ for a dollar sign"
    )


def test_what_is_no_variable_name():
    assert "${a b} does not name a variable; write ${NAME}" in error(SPEC.replace("${TABLE}", "${a b}"))


@pytest.mark.parametrize("text", ["$NAME", "a$", "{NAME}", "$"])
def test_other_dollar_signs_stay(text: str):
    assert read(SPEC.replace('table: "${TABLE}"', f"table: '{text}'")).source.table == text


def test_a_variable_is_not_expanded_twice_and_never_as_yaml():
    spec = read(TABLE="${URL}: [x]")
    assert spec.source.table == "${URL}: [x]"


def test_a_set_variable_may_be_no_number():
    assert "'${COUNT}' is not a whole number" in error(SPEC.replace("k: 2", "k: '${COUNT}'"), COUNT="31415")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("release: clinic", "release: ${SECRET}"),
        ("hierarchy: suppress", "hierarchy: '${SECRET}'"),
        ("role: quasi_identifier", "role: '${SECRET}'"),
        ("{k: 2}", "{k: '${SECRET}'}"),
        ('url: "${URL}"', "url: '${SECRET}'"),
        ("publish:", "search: {memory_limit: '${SECRET}'}\npublish:"),
        ("publish:", "count: '${SECRET}'\npublish:"),
        ("publish:", "entity: '${SECRET}'\nversions: {audience: ['${SECRET}', '${SECRET}']}\npublish:"),
        ("k_anonymity: {k: 2}", "k_map: {k: 2, population: '${SECRET}.${SECRET}.a.b'}"),
        ("age: {", "ill: sensitive\n  age: {taxonomy: '${SECRET}', "),
    ],
)
def test_no_error_prints_the_value_of_a_variable(old: str, new: str):
    assert old in SPEC
    with pytest.raises(InputError) as caught:
        read(SPEC.replace(old, new), SECRET=HIDDEN)
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter22" not in shown
    assert "${SECRET}" in shown or "SQLAlchemy URL" in shown


def test_a_value_of_the_source_is_named_at_a_terminal_alone():
    text = SPEC.replace("age: {", "ill: {role: sensitive, domain: [flu, flu]}\n  age: {")
    with values_shown(True):
        assert "domain[1]: 'flu' appears twice" in error(text)
    with values_shown(False):
        assert "domain[1]: a value of this list appears twice" in error(text)


def test_a_value_that_is_no_word_of_a_model_is_not_printed():
    text = SPEC.replace("age: {", "ill: sensitive\n  age: {").replace(
        "k_anonymity: {k: 2}", "t_closeness: {t: 0.1, distance: '${X}'}"
    )
    message = error(text, X=HIDDEN)
    words = "equal, ordered, hierarchical, kernel_js"
    assert message == f"spec.yaml:8: privacy[0].t_closeness.distance: '${{X}}' is not valid; valid: {words}"


def test_a_variable_in_a_flow_mapping_needs_quotes():
    message = error(SPEC.replace("k: 2", "k: ${COUNT}"))
    assert message.startswith("spec.yaml:7: not YAML: ")
    assert 'inside { } and [ ] a variable needs quotes: "${NAME}"' in message


def test_a_short_value_is_hidden_as_a_word_only():
    message = error(
        SPEC.replace("k_anonymity: {k: 2}", "t_closeness: {t: 0.1, sensitive: age, distance: '${X}'}"), X="t"
    )
    assert "t_closeness" in message


def test_a_url_is_refused_without_printing_it():
    message = error(SPEC, URL="hunter22")
    assert message.startswith("spec.yaml:3: source.url: this is not a SQLAlchemy URL")
    assert "hunter22" not in message


def test_a_password_in_the_file_is_warned_of():
    spec = read(SPEC.replace("${URL}", "postgresql://loader:hunter22@db/clinic"))
    assert spec.warnings == (
        "spec.yaml:3: source.url: the password is written in the file; take it from the environment: ${NAME}",
    )
    assert read().warnings == ()
    assert read(SPEC.replace("${URL}", "postgresql://loader:${TABLE}@db/clinic")).warnings == ()


@pytest.mark.parametrize(
    ("publish", "warned"),
    [
        ("{url: 'duckdb:///out/published.duckdb'}", True),
        ("{url: 'duckdb:///Clinic.v2.db?a=b', schema: clinic}", True),
        ("{url: 'duckdb:///main.duckdb', schema: main}", False),
        ("{url: 'duckdb:///other.duckdb'}", False),
    ],
)
def test_a_schema_that_is_called_like_its_file_is_warned_of(publish: str, warned: bool):
    text = SPEC.partition("publish:")[0].replace("${URL}", "duckdb:///clinic.duckdb") + f"publish: {publish}\n"
    found = [line for line in read(text).warnings if "DuckDB calls a database like its file" in line]
    assert len(found) == warned
    assert all(line.endswith("Give the file or the schema another name") for line in found)


def test_a_spec_cannot_be_written_out_with_its_secret():
    with pytest.raises(TypeError):
        json.dumps(dataclasses.asdict(read()))
