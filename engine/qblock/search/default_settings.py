"""Every model in the settings that it declares, as far as a source has what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from qblock.blocks import Reference
from qblock.errors import ParameterError
from qblock.models import REGISTRY, Model, Setting, parameters_of
from qblock.models.examples import in_setting
from qblock.search.missing_inputs import how_to_give, missing_inputs
from qblock.source import SourceTable
from qblock.spec import Requirement

POPULATION = "needs a population table, which `privacy` names for one of its models: `population: {table: ...}`"


@dataclass(frozen=True)
class NotComputed:
    """A model in one of its settings that a source cannot be measured by. sensitive: None where it looks at none."""

    model: Model
    sensitive: str | None
    why: str

    @property
    def of(self) -> str:
        """What is not computed, in a few words: its parameters but defaults and those that it would tighten."""
        defaults = {field.name: field.default for field in fields(self.model)}
        what = [] if self.sensitive is None else [self.sensitive]
        what += [f"{k}={v}" for k, v in question(self.model).items() if v is not None and v != defaults[k]]
        return self.model.name + (f" ({', '.join(what)})" if what else "")

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model.name,
            "sensitive": [] if self.sensitive is None else [self.sensitive],
            "what": self.of,
            "why": self.why,
        }


def default_settings(
    source: SourceTable, sensitives: Iterable[str], wanted: Callable[[Setting], bool]
) -> tuple[list[Requirement], list[NotComputed]]:
    """The wanted settings of every model: those that look at no sensitive attribute, then for each attribute.

    A model that needs a population is computed with each one that the spec names for any of its models.
    """
    nobody = Reference(source.rows, (), np.zeros(0, dtype=np.int64))
    requirements: dict[Requirement, None] = {}
    missing: list[NotComputed] = []
    for name in (None, *sensitives):
        reference = nobody if name is None else source.sensitives[name].reference
        for model in _settings(name is not None, reference, wanted):
            needed = missing_inputs(model, reference)
            if needed:
                missing.append(NotComputed(model, name, f"needs {how_to_give(needed[0], reference)}"))
                continue
            populations = _with_populations(model, source)
            for variant in populations:
                try:
                    variant.validate(reference)
                except ParameterError as error:
                    missing.append(NotComputed(variant, name, str(error).removeprefix(f"{variant.name}: ")))
                else:
                    requirements[Requirement(variant, () if name is None else (name,))] = None
            if not populations:
                missing.append(NotComputed(model, name, POPULATION))
    return list(requirements), missing


def question(model: Model) -> dict[str, Any]:
    """The parameters of a model that its tightest values depend on: all but those that can be tightened.

    Where a tightest value depends on what is asked of another parameter, all of them.
    """
    tightened = {bound.parameter for bound in model.about.bounds}
    depends = not all(bound.decides for bound in model.about.bounds)
    return {key: value for key, value in parameters_of(model).items() if depends or key not in tightened}


def _settings(sensitive: bool, reference: Reference, wanted: Callable[[Setting], bool]) -> Iterator[Model]:
    for model in REGISTRY:
        if model.about.uses_sensitive is sensitive:
            for setting in model.about.settings:
                if wanted(setting):
                    yield in_setting(model, setting, reference)


def _with_populations(model: Model, source: SourceTable) -> list[Model]:
    if "population" not in model.needs:
        return [model]
    named = [q.model for q in source.spec.privacy if "population" in q.model.needs]
    tables = dict.fromkeys(parameters_of(other)["population"] for other in named)
    return [replace(model, **{"population": table}) for table in tables]
