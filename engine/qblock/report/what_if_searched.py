"""What another question would give where rows may be suppressed: by a search of its own for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from qblock.errors import ParameterError
from qblock.report.data import WhatIf
from qblock.report.what_if import Lattice, deciding, in_words, model_of, neighbours, steps
from qblock.search.run import run_search
from qblock.search.task import Task
from qblock.spec import Requirement

MOST_SEARCHED = 500
"""Nodes of a lattice that is searched again for each question."""
MOST_QUESTIONS = 24


def searched(task: Task, lattice: Lattice) -> Iterator[WhatIf]:
    """The questions of `what_if`. With suppressed rows a tightest value holds for what is left alone, which another
    question leaves otherwise, so that each one is searched for; of all requirements, the first MOST_QUESTIONS."""
    entries = lattice.nodes[0]["tightest"]
    for change, privacy in list(_changes(task.spec.privacy, entries))[:MOST_QUESTIONS]:
        yield _answered(task, change, privacy, lattice.metric)
    if lattice.chosen is not None:
        yield from neighbours(lattice, lattice.chosen)


def _changes(
    privacy: Sequence[Requirement], entries: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, tuple[Requirement, ...]]]:
    yield "as the spec asks", tuple(privacy)
    for i, entry in enumerate(entries):
        before, own, after = tuple(privacy[:i]), privacy[i], tuple(privacy[i + 1 :])
        if len(entries) > 1:
            yield f"without {model_of(entry)}", (*before, *after)
        for other in steps(entry):
            value = {deciding(entry): other if isinstance(other, int) else Fraction(str(other))}
            try:
                models = tuple(replace(model, **value) for model in own.models)
                changed = replace(own, model=replace(own.model, **value), models=models)
            except ParameterError:
                continue  # no such model: entropy l-diversity of less than 1, say
            yield in_words(entry, other), (*before, changed, *after)


def _answered(task: Task, change: str, privacy: tuple[Requirement, ...], metric: str) -> WhatIf:
    variant = Task(replace(task.source, spec=replace(task.spec, privacy=privacy)))
    said = run_search(variant, recoding="full_domain").to_json()
    chosen = said["chosen"]
    if chosen is None:
        return WhatIf(change, said["satisfying"], None, None)
    measure = chosen["metrics"].get(metric)
    number = float(measure) if isinstance(measure, int | float) else None
    return WhatIf(change, said["satisfying"], tuple(chosen["levels"]), number)
