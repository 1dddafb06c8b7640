"""Digests of specs outlive upgrades: golden ones of every format, and no key that a format forgets."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from qblock.models import BY_NAME
from qblock.spec import Spec, guards, model, prior, read_spec, same_spec, sources, spec_digest, workload
from qblock.spec.digest import LEFT_OUT, _plain, canonical
from qblock.spec.formats import DEFAULTS, FORMAT_0, NEWEST, NO_PART, NotExpressible

SPECS = sorted((Path(__file__).parent / "formats").glob("*.yaml"))
GOLDEN = {
    # Format 0: as the program wrote them before formats had numbers.
    ("drawn", 0): "653cb19c7ea337541a04b148aca0219c469f4a9f8d2737b3c8ed00080eaad919",
    ("every_key", 0): "ef43fb937e42aff58414f611474c369ebb39138e410902a422b012601fd68254",
    ("plain", 0): "c656981eac38cd6d7bbc44dce956d752ff4773771eba3bb4f271e8d8eff8294b",
    ("drawn", 1): "04018a025850bbb9ad3da007f13ccb5ad4870933e8f6db49dadf276a8252b5d9",
    ("every_key", 1): "99134fc83d69df64fecceb789149c7f34bf6be7ae9765dc4b5dbfe4dc18e42b9",
    ("plain", 1): "e20af11d387bfc8470915662489175def9c6359cc694929801c2b5fd2825aaf5",
    ("drawn", 2): "dab25ae1e4bb2b74d929bf849838ed5ddcda3f6bdeac612c94a4ff62324bcabc",
    ("every_key", 2): "8edfedab48767787e524f4bbdc1e9785c040df1d171022ed55e58c0677a139b4",
    ("plain", 2): "4099f37ce6fa2dd85d8aede9658d048d63c7bda5193279ee36f631e8e9194e44",
}
CLASSES: list[type] = [
    *(model.Spec, model.Attribute, model.Source, model.Search, model.Publish, model.Versions, model.Requirement),
    *(sources.Suppress, sources.Digits, sources.Ranges, sources.Dates, sources.CsvFile, sources.DimensionTable),
    *(sources.Cuts, sources.Cutting),
    *(workload.DrawnWorkload, workload.WrittenWorkload, workload.Between),
    *(prior.PriorValues, prior.PriorTable, guards.GuardTable),
    *BY_NAME.values(),
]


def read(path: Path) -> Spec:
    return read_spec(path.read_text("utf-8"), path.name, {})


@pytest.mark.parametrize(("name", "format_"), GOLDEN)
def test_a_digest_never_moves(name: str, format_: int):
    spec = read(next(path for path in SPECS if path.stem == name))
    assert spec_digest(spec, format_) == GOLDEN[name, format_]
    assert same_spec(spec, GOLDEN[name, format_])
    others = {digest for (other, _), digest in GOLDEN.items() if other != name}
    assert not any(same_spec(spec, digest) for digest in others)


def test_every_spec_has_a_golden_digest_of_every_format():
    assert {(path.stem, format_) for path in SPECS for format_ in range(NEWEST + 1)} == set(GOLDEN)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_the_form_starts_with_its_number(path: Path):
    text = canonical(read(path))
    assert text.startswith(f'{{"format":{NEWEST},')
    assert json.loads(text)["format"] == NEWEST


def key_of(owner: type) -> str:
    return getattr(owner, "name", None) or owner.__name__


@pytest.mark.parametrize("owner", CLASSES, ids=key_of)
def test_the_newest_format_knows_the_default_of_every_key(owner: Any):
    defaults, without = DEFAULTS[NEWEST].get(key_of(owner), {}), NO_PART.get(key_of(owner), ())
    for field in dataclasses.fields(owner):
        name = field.name
        if name in LEFT_OUT.get(owner, ()) or name in without or name == "form" or not field.init:
            assert name not in defaults
            continue
        given: Any = field.default
        if field.default_factory is not dataclasses.MISSING:
            given = field.default_factory()
        if hasattr(given, "default"):  # pydantic's own
            given = given.default if given.default_factory is None else given.default_factory()
        # A requirement's models are filled in from its model.
        if given is dataclasses.MISSING or type(given).__name__ == "PydanticUndefinedType" or name == "models":
            assert name not in defaults, f"{name} has no default"
        else:
            assert name in defaults, f"{name} has a default that the newest format does not name"
            assert defaults[name] == _plain(given, NEWEST), f"another default of {name} needs another format"


def test_a_new_key_changes_no_digest_of_a_spec_that_does_not_use_it(monkeypatch: pytest.MonkeyPatch):
    spec = read(SPECS[-1])
    before = [spec_digest(spec, format_) for format_ in range(NEWEST + 1)]

    @dataclasses.dataclass(frozen=True)
    class Versions(model.Versions):
        lag: int = 0

    monkeypatch.setitem(DEFAULTS[NEWEST], "Versions", DEFAULTS[NEWEST]["Versions"] | {"lag": 0})

    def with_lag(lag: int) -> Spec:
        versions = object.__new__(Versions)
        for field in dataclasses.fields(Versions):
            object.__setattr__(versions, field.name, lag if field.name == "lag" else getattr(spec.versions, field.name))
        copied = dataclasses.replace(spec)
        object.__setattr__(copied, "versions", versions)
        return copied

    assert [spec_digest(with_lag(0), format_) for format_ in range(NEWEST + 1)] == before
    used = with_lag(7)
    assert spec_digest(used) != before[-1]
    assert not any(same_spec(used, digest) for digest in before)
    with pytest.raises(NotExpressible):
        spec_digest(used, 0)


def test_the_highest_level_is_a_key_of_the_newest_format():
    text = SPECS[-1].read_text("utf-8")
    assert "{ranges: [5, 10]}" in text
    spec = read_spec(text.replace("{ranges: [5, 10]}", "{ranges: [5, 10], max: 1}"), "plain.yaml", {})
    assert spec_digest(spec) != GOLDEN["plain", NEWEST]
    for format_ in range(NEWEST):
        with pytest.raises(NotExpressible):
            spec_digest(spec, format_)


def test_weights_are_a_key_of_the_newest_format():
    text = SPECS[-1].read_text("utf-8")
    spec = read_spec(text.replace("search: {", "search: {weights: {age: 3}, "), "plain.yaml", {})
    assert spec_digest(spec) != GOLDEN["plain", NEWEST]
    for format_ in range(NEWEST):
        with pytest.raises(NotExpressible):
            spec_digest(spec, format_)


def test_how_much_is_answered_takes_no_part():
    text = SPECS[-1].read_text("utf-8")
    changed = read_spec(text.replace("search: {", "search: {answer: best, "), "plain.yaml", {})
    assert changed.search.answer == "best"
    for number in range(NEWEST + 1):
        assert spec_digest(changed, number) == spec_digest(read(SPECS[-1]), number)


@pytest.mark.parametrize(
    "key", ["strategy: incognito", "roll_up: local", "memory_limit: 2GB", "strategy: exhaustive, roll_up: local"]
)
def test_what_cannot_change_the_publication_takes_no_part(key: str):
    text = SPECS[-1].read_text("utf-8")
    assert "search: {" in text
    changed = read_spec(text.replace("search: {", f"search: {{{key}, "), "plain.yaml", {})
    assert spec_digest(changed) == spec_digest(read(SPECS[-1]))
    assert spec_digest(changed, 0) != spec_digest(read(SPECS[-1]), 0)


def test_a_default_of_where_nodes_are_counted_takes_no_part():
    """It was `warehouse` when format 0 wrote it out; specs that leave it out, or state that, are what they were."""
    text = SPECS[-1].read_text("utf-8")
    for key in ("", "roll_up: warehouse, ", "roll_up: auto, "):
        spec = read_spec(text.replace("search: {", f"search: {{{key}"), "plain.yaml", {})
        assert spec.search.roll_up == (key.split()[1].rstrip(",") if key else "auto")
        for format_ in range(NEWEST + 1):
            assert spec_digest(spec, format_) == GOLDEN["plain", format_]


def test_how_long_readers_may_wait_takes_no_part():
    text = SPECS[-1].read_text("utf-8")
    spec = read_spec(text + "publish: {lock_timeout: 0.25}\n", "plain.yaml", {})
    assert spec.publish.lock_timeout == Fraction(1, 4)
    for format_ in range(NEWEST + 1):
        assert spec_digest(spec, format_) == GOLDEN["plain", format_]


def test_who_can_read_the_file_takes_no_part():
    text = SPECS[-1].read_text("utf-8")
    spec = read_spec(text + "publish: {storage_version: v1.2.0}\n", "plain.yaml", {})
    assert spec.publish.storage_version == "v1.2.0"
    for format_ in range(NEWEST + 1):
        assert spec_digest(spec, format_) == GOLDEN["plain", format_]


def test_nothing_recorded_is_no_digest_of_a_spec():
    spec = read(SPECS[-1])
    assert not same_spec(spec, None)
    assert not same_spec(spec, "")


def test_format_0_is_what_it_was():
    text = json.dumps(FORMAT_0, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest() == (
        "c92ca48c45fa566fb3e2c41d54cae578abbc7da0701bfc9c5a611e85494170c5"
    )
