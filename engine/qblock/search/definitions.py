"""The privacy definitions that a comparison evaluates: the usual battery, the spec's own, and those of another file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from qblock.errors import InputError
from qblock.files import read_input
from qblock.models import Bound, Model, parameters_of
from qblock.models.ratios import double
from qblock.search.default_settings import NotComputed, default_settings
from qblock.source import SourceTable
from qblock.spec import Requirement, Spec
from qblock.spec.document import parse
from qblock.spec.privacy import requirements

Origin = Literal["battery", "spec", "definitions"]


@dataclass(frozen=True, eq=False)
class Definition:
    """One privacy definition. name: unique within a comparison; requested: whether its parameters ask for something.

    bounds: the parameters whose tightest values are reported; columns: a name for each of them.
    """

    name: str
    requirement: Requirement
    origin: Origin

    @property
    def model(self) -> Model:
        return self.requirement.model

    @property
    def requested(self) -> bool:
        return self.origin != "battery"

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return self.model.about.bounds if self.requested else self.model.about.bounds[:1]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {bound.parameter}" for bound in self.bounds)


def collect(
    source: SourceTable, sensitives: Iterable[str], further: Iterable[Requirement] = ()
) -> tuple[list[Definition], list[NotComputed]]:
    """The usual battery for each of these sensitive attributes, and what the spec and `others` ask of them."""
    chosen = tuple(sensitives)
    usual, missing = default_settings(source, chosen, lambda setting: setting.compared)
    with_origins: list[tuple[Requirement, Origin]] = [(q, "battery") for q in usual]
    with_origins += [(q, "spec") for q in source.spec.privacy if set(q.sensitive) <= set(chosen)]
    with_origins += [(q, "definitions") for q in further if set(q.sensitive) <= set(chosen)]
    used: dict[str, int] = {}
    result = []
    for requirement, origin in with_origins:
        name = described(requirement, requested=origin != "battery")
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name} #{used[name]}"
        result.append(Definition(unique, requirement, origin))
    return result, missing


def read_definitions(file: str | Path, spec: Spec) -> tuple[Requirement, ...]:
    """The entries of a YAML file with a `privacy` list as a spec has it. Raises InputError with the lines."""
    document = parse(read_input(file), str(file), os.environ)
    entries = requirements(document, list(spec.sensitives)) if isinstance(document.data, dict) else ()
    if document.problems:
        raise InputError(document.report())
    return entries


def described(requirement: Requirement, *, requested: bool) -> str:
    """A definition in one line: its parameters without defaults, and where nothing is asked, without the one
    reported."""
    model = requirement.model
    defaults = {field.name: field.default for field in fields(model)}
    left_out = () if requested else (model.about.bounds[0].parameter,)
    shown = [
        f"{key}={_text(value)}"
        for key, value in parameters_of(model).items()
        if key not in left_out and value is not None and value != defaults[key]
    ]
    return model.name + (f"({', '.join(shown)})" if shown else "") + "".join(f" {s}" for s in requirement.sensitive)


def adversary_of(model: Model) -> str:
    """The adversary of an epsilon-privacy model in a few words, for the heading of a column."""
    settings = parameters_of(model)
    defaults = {field.name: field.default for field in fields(model)}
    words = [str(settings["adversary"])]
    if settings["stubbornness"] is not None:
        words.append(_text(settings["stubbornness"]))
    if settings["adversary"] in ("I", "III"):
        words.append(str(settings["prior"]))
    words += [
        f"{key}={_text(settings[key])}" for key in ("at_most", "known", "predicates") if settings[key] != defaults[key]
    ]
    return " ".join(words)


def with_definitions(source: SourceTable, definitions: Iterable[Definition]) -> SourceTable:
    """The same source, with these definitions as what its spec asks."""
    privacy = tuple(definition.requirement for definition in definitions)
    return replace(source, spec=replace(source.spec, privacy=privacy))


def _text(value: Any) -> str:
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return str(int(value))
        decimal = str(double(value))
        return decimal if "e" not in decimal and Fraction(decimal) == value else str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    return str(value)
