"""The digest of a spec follows its meaning."""

from __future__ import annotations

import pytest

from qblock.spec import read_spec, spec_digest

SPEC = """\
version: 1
release: clinic
source: {url: "duckdb:///a.duckdb", table: people}
attributes:
  age: {role: quasi_identifier, hierarchy: {ranges: [5, 10]}}
  zip: {role: quasi_identifier, hierarchy: suppress}
  ill: sensitive
privacy:
  - entropy_l_diversity: {l: 2.8}
search: {node: {age: 1, zip: 0}}
"""


def digest(text: str) -> str:
    return spec_digest(read_spec(text, "spec.yaml", {}))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("release:", "# a comment\nrelease:"),
        ("{l: 2.8}", "{l: 2.80, sensitive: ill}"),
        ("ill: sensitive", "ill: {role: sensitive, nulls: refuse}"),
        ("[5, 10]}", "[5, 10], start: 0}"),
        ("privacy:", "suppression_limit: 0\nprivacy:"),
        ("node: {age: 1, zip: 0}", "node: [1, 0], strategy: chains"),
        ("node: {age: 1, zip: 0}", "node: [1, 0], weights: {age: 1, zip: 1.0}"),
        ("privacy:", "publish: {view: clinic, schema: published}\nprivacy:"),
        ("a.duckdb", "b.duckdb"),
        ("privacy:", "versions: {confirm: " + "0a" * 32 + "}\nprivacy:"),
    ],
)
def test_layout_defaults_and_urls_make_no_difference(old: str, new: str):
    assert old in SPEC
    assert digest(SPEC.replace(old, new)) == digest(SPEC)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("release: clinic", "release: other"),
        ("table: people", "table: persons"),
        ("[5, 10]", "[5, 20]"),
        ("hierarchy: suppress", "hierarchy: {digits: 5}"),
        ("{ranges: [5, 10]}", "{table: five, levels: [a]}"),
        ("{ranges: [5, 10]}", "{ranges: [5, 10], max: 1}"),
        ("{ranges: [5, 10]}", "{cuts: {min_width: 5, low: 0, high: 99}}"),
        ("2.8", "2.9"),
        ("entropy_l", "frequency_l"),
        ("age: 1", "age: 2"),
        ("node: {age: 1, zip: 0}", "node: [1, 0], weights: {age: 0.5}"),
        ("ill: sensitive", "ill: sensitive\n  pay: insensitive"),
        ("ill: sensitive", "ill: {role: sensitive, nulls: value}"),
        ("privacy:", "suppression_limit: 0.01\nprivacy:"),
        ("privacy:", "publish: {readers: [analyst]}\nprivacy:"),
        ("privacy:", "versions: {stale_after: 36h}\nprivacy:"),
    ],
)
def test_what_is_published_makes_a_difference(old: str, new: str):
    assert old in SPEC
    assert digest(SPEC.replace(old, new)) != digest(SPEC)


def test_cuts_in_the_canonical_form():
    def of(cuts: str) -> str:
        return digest(SPEC.replace("{ranges: [5, 10]}", f"{{cuts: {cuts}}}"))

    one = of("{min_width: 5, low: 0, high: 99}")
    assert of("{start: 0, min_width: 5.0, low: 0, high: 99}") == one
    assert len({one, of("{start: 1, min_width: 5, low: 0, high: 99}"), of("{min_width: 5, low: 0, high: 98}")}) == 3
    dates = of("{min_width: 5, low: 2000-01-01, high: 2001-01-01}")
    assert of('{start: "2000-01-01", min_width: 5, low: 2000-01-01, high: 2001-01-01}') == dates != one


def test_the_order_of_the_columns_is_that_of_the_levels():
    lines = SPEC.splitlines(keepends=True)
    swapped = "".join([*lines[:4], lines[5], lines[4], *lines[6:]])
    assert digest(swapped) != digest(SPEC)


def test_priors_take_part():
    def entry(prior: str) -> str:
        return SPEC.replace(
            "entropy_l_diversity: {l: 2.8}",
            f"epsilon_privacy: {{epsilon: 2, adversary: I, stubbornness: 10, prior: {prior}}}",
        )

    priors = ["uniform", "{values: {a: 1}}", "{values: {a: 2}}", "{from_table: t, column: c}"]
    assert len({digest(entry(prior)) for prior in priors}) == 4


def test_top_and_bottom_coding_are_part_of_a_digest_and_none_is_none():
    def of(form: str) -> str:
        return digest(SPEC.replace("{ranges: [5, 10]}", form))

    assert of("{ranges: [5, 10], from: null, to: null}") == digest(SPEC)
    others = [of(f"{{ranges: [5, 10], {ends}}}") for ends in ("from: 15", "to: 90", "from: 15, to: 90", "from: 20")]
    assert len({digest(SPEC), *others}) == 5
