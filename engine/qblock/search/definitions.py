"""The privacy definitions that a comparison evaluates: the usual battery, the spec's own, and those of another file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from qblock.blocks import Reference
from qblock.errors import InputError, ParameterError
from qblock.files import read_input
from qblock.models import BY_NAME, KAnonymity, Model
from qblock.models.base import Bound
from qblock.models.ratios import double
from qblock.source import SourceTable
from qblock.spec import Requirement, Spec
from qblock.spec.document import parse
from qblock.spec.privacy import requirements

Origin = Literal["battery", "spec", "definitions"]
Parameters = dict[str, Any]

SIGMAS = (1_000, 1_000_000)
PRIORS = ("uniform", "table")

BATTERY: tuple[tuple[str, Parameters], ...] = (
    ("distinct_l_diversity", {"l": 1}),
    ("frequency_l_diversity", {"l": 1}),
    ("entropy_l_diversity", {"l": 1}),
    ("recursive_cl_diversity", {"c": 3, "l": 1}),
    ("t_closeness", {"t": 1}),
    ("t_closeness", {"t": 1, "distance": "ordered"}),
    ("t_closeness", {"t": 1, "distance": "hierarchical"}),
    ("beta_likeness", {"beta": 1}),
    ("delta_disclosure", {"delta": 1}),
    ("alpha_k_anonymity", {"alpha": 1, "k": 1}),
    *(
        ("epsilon_privacy", {"epsilon": 1, "adversary": "I", "stubbornness": sigma, "prior": prior})
        for sigma in SIGMAS
        for prior in PRIORS
    ),
    *(("epsilon_privacy", {"epsilon": 1, "adversary": "II", "stubbornness": sigma}) for sigma in SIGMAS),
    *(("epsilon_privacy", {"epsilon": 1, "adversary": "III", "prior": prior}) for prior in PRIORS),
)
"""What is computed for every sensitive attribute; only the tightest value of the model's first bound is of interest."""


@dataclass(frozen=True, eq=False)
class Definition:
    """One privacy definition. name: unique within a comparison; asked: whether its parameters are a question.

    bounds: the parameters whose tightest values are reported; columns: a name for each of them.
    """

    name: str
    requirement: Requirement
    origin: Origin

    @property
    def model(self) -> Model:
        return self.requirement.model

    @property
    def asked(self) -> bool:
        return self.origin != "battery"

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return self.model.bounds if self.asked else self.model.bounds[:1]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {bound.parameter}" for bound in self.bounds)


def collect(source: SourceTable, sensitives: Iterable[str], others: Iterable[Requirement] = ()) -> list[Definition]:
    """k, the battery of each of these sensitive attributes, and what the spec and `others` ask of them."""
    chosen = tuple(sensitives)
    found: list[tuple[Requirement, Origin]] = [(Requirement(KAnonymity(k=1)), "battery")]
    for name in chosen:
        found += [(q, "battery") for q in battery(name, source.sensitives[name].reference)]
    found += [(q, "spec") for q in source.spec.privacy if set(q.sensitive) <= set(chosen)]
    found += [(q, "definitions") for q in others if set(q.sensitive) <= set(chosen)]
    used: dict[str, int] = {}
    result = []
    for requirement, origin in found:
        name = described(requirement, asked=origin != "battery")
        used[name] = used.get(name, 0) + 1
        unique = name if used[name] == 1 else f"{name} #{used[name]}"
        result.append(Definition(unique, requirement, origin))
    return result


def battery(name: str, reference: Reference) -> list[Requirement]:
    """The definitions of BATTERY that a sensitive attribute admits: its order, taxonomy and domain decide."""
    made: dict[Requirement, None] = {}
    for model_name, given in BATTERY:
        parameters = {key: Fraction(value) if isinstance(value, int) else value for key, value in given.items()}
        if given.get("adversary") == "II":
            parameters["stubbornness"] = max(parameters["stubbornness"], Fraction(reference.values))
        whole = {key: int(value) for key, value in parameters.items() if key in BY_NAME[model_name].whole}
        model = BY_NAME[model_name](**{**parameters, **whole})
        lacking = ("order" in model.needs and not reference.ordered) or (
            "taxonomy" in model.needs and reference.taxonomy is None
        )
        if lacking:
            continue
        try:
            model.validate(reference)
        except ParameterError:
            continue
        made[Requirement(model, (name,))] = None
    return list(made)


def read_definitions(file: str | Path, spec: Spec) -> tuple[Requirement, ...]:
    """The entries of a YAML file with a `privacy` list as a spec has it. Raises InputError with the lines."""
    document = parse(read_input(file), str(file), os.environ)
    found = requirements(document, list(spec.sensitives)) if isinstance(document.data, dict) else ()
    if document.problems:
        raise InputError(document.report())
    return found


def described(requirement: Requirement, *, asked: bool) -> str:
    """A definition in one line: its parameters but defaults, and where nothing is asked, not the one reported."""
    model = requirement.model
    defaults = {field.name: field.default for field in fields(model)}
    left_out = () if asked else (model.bounds[0].parameter,)
    shown = [
        f"{key}={_text(value)}"
        for key, value in model.asked().items()
        if key not in left_out and value is not None and value != defaults[key]
    ]
    return model.name + (f"({', '.join(shown)})" if shown else "") + "".join(f" {s}" for s in requirement.sensitive)


def adversary_of(model: Model) -> str:
    """The adversary of an epsilon-privacy model in a few words, for the heading of a column."""
    asked = model.asked()
    defaults = {field.name: field.default for field in fields(model)}
    words = [str(asked["adversary"])]
    if asked["stubbornness"] is not None:
        words.append(_text(asked["stubbornness"]))
    if asked["adversary"] in ("I", "III"):
        words.append(str(asked["prior"]))
    words += [f"{key}={_text(asked[key])}" for key in ("at_most", "known", "predicates") if asked[key] != defaults[key]]
    return " ".join(words)


def with_definitions(source: SourceTable, found: Iterable[Definition]) -> SourceTable:
    """The same source, with these definitions as what its spec asks."""
    privacy = tuple(definition.requirement for definition in found)
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
