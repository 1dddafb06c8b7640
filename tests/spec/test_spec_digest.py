"""The digest of a spec follows its meaning: golden ones, and no key whose default is forgotten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qblock.models import BY_NAME
from qblock.spec import Spec, accepted, model, privacy, read_spec, sections, sources, spec_digest, workload
from qblock.spec.digest import FORMAT, LEFT_OUT, canonical, defaults_of

FILES = sorted((Path(__file__).parent / "formats").glob("*.yaml"))
GOLDEN = {
    "drawn": "dab25ae1e4bb2b74d929bf849838ed5ddcda3f6bdeac612c94a4ff62324bcabc",
    "every_key": "3959abea88b335744594da2d29066ac53f14f7e1dcfbafc87c0d5242b0446a87",
    "plain": "4099f37ce6fa2dd85d8aede9658d048d63c7bda5193279ee36f631e8e9194e44",
}
CLASSES: list[type] = [
    *(
        accepted.Accepted,
        model.Spec,
        sections.Attribute,
        sections.Source,
        sections.Search,
        sections.Box,
        sections.Publish,
        sections.Newcomers,
        sections.Versions,
        model.Requirement,
    ),
    *(sources.Suppress, sources.Digits, sources.Ranges, sources.Dates, sources.CsvFile, sources.DimensionTable),
    *(sources.Cuts, sources.Cutting, sources.Edges),
    *(workload.DrawnWorkload, workload.WrittenWorkload, workload.Between),
    *(privacy.PriorValues, privacy.PriorTable, privacy.GuardTable),
    *BY_NAME.values(),
]

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
        ("{node: {age: 1, zip: 0}}", "{recoding: multidimensional}"),
        ("{node: {age: 1, zip: 0}}", "{recoding: multidimensional, box: {least: 30}}"),
        ("ill: sensitive", "ill: sensitive\n  pay: insensitive"),
        ("ill: sensitive", "ill: {role: sensitive, nulls: value}"),
        ("ill: sensitive", "ill: {role: sensitive, publish_as: {edges: [1]}}"),
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


def read(path: Path) -> Spec:
    return read_spec(path.read_text("utf-8"), path.name, {})


def test_a_digest_never_moves():
    assert {path.stem: spec_digest(read(path)) for path in FILES} == GOLDEN


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_form_starts_with_its_number(path: Path):
    text = canonical(read(path))
    assert text.startswith(f'{{"format":{FORMAT},')
    assert json.loads(text)["format"] == FORMAT


def key_of(owner: type) -> str:
    return getattr(owner, "name", None) or owner.__name__


def test_another_default_takes_another_format():
    """defaults.json has those of FORMAT: a spec that leaves a key out would mean something else by another one."""
    now = {}
    for owner in CLASSES:
        left_out = {"models", *LEFT_OUT.get(owner, ())}  # a requirement's models are filled in from its model
        defaults = {name: value for name, value in defaults_of(owner).items() if name not in left_out}
        now[key_of(owner)] = {name: value for name, value in defaults.items() if is_json(value)}
    frozen = json.loads((FILES[0].parent / "defaults.json").read_text("utf-8"))
    assert {owner: defaults for owner, defaults in now.items() if defaults} == frozen
    assert FORMAT == 2


def is_json(value: Any) -> bool:
    """Whether it is a default: the markers of fields that must be given are not."""
    return value is None or isinstance(value, str | int | list | dict)


@pytest.mark.parametrize(
    "key",
    [
        "search: {strategy: incognito}",
        "search: {answer: best}",
        "search: {roll_up: local}",
        "search: {roll_up: warehouse, memory_limit: 2GB}",
        "search: {strategy: exhaustive, roll_up: local}",
        "publish: {lock_timeout: 0.25}",
        "publish: {storage_version: v1.2.0}",
        "report: {threshold: 0.09, threshold_because: a policy, declared_by: I, population: {size: 9}, controls: [a]}",
    ],
)
def test_what_cannot_change_the_publication_takes_no_part(key: str):
    node = "node: {age: 1, zip: 0}"
    text = FILES[-1].read_text("utf-8")
    assert f"search: {{{node}}}" in text
    if key.startswith("search"):
        text = text.replace(f"search: {{{node}}}", key.replace("}", f", {node}}}"))
    else:
        text += key + "\n"
    changed = read_spec(text, "plain.yaml", {})
    assert changed != read(FILES[-1])
    assert spec_digest(changed) == GOLDEN["plain"]


def test_what_is_published_coarser_makes_a_difference():
    forms = (
        "{edges: [0]}",
        "{ranges: [5], from: 0, to: 9}",
        "{ranges: [5], from: 0, to: 10}",
        "{ranges: [5], from: 5, to: 10}",
    )
    said = {digest(SPEC.replace("ill: sensitive", f"ill: {{role: sensitive, publish_as: {form}}}")) for form in forms}
    assert len(said) == 4
