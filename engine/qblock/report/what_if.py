"""What another question would give: from the verdicts of every node of a lattice that was counted once, or, where rows
may be suppressed, by a search of its own for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from qblock.errors import ParameterError
from qblock.models import BY_NAME
from qblock.results.base import Guarantee
from qblock.results.report import WhatIf
from qblock.results.search import SearchedNode
from qblock.search.maps import AS_ASKED, changed
from qblock.search.run import run_search
from qblock.search.task import Task
from qblock.spec import Requirement

STEP = 0.1
"""How much weaker or stronger a parameter is made that is no whole number."""
MOST_SEARCHED = 500
"""Nodes of a lattice that is searched again for each question."""
MOST_QUESTIONS = 24


@dataclass(frozen=True)
class Candidates:
    """Nodes with the metric that they are chosen by. chosen: the levels that the search took."""

    nodes: Sequence[SearchedNode]
    names: Sequence[str]
    words: Sequence[Sequence[str]]
    metric: str
    more_is_better: bool
    chosen: tuple[int, ...] | None

    def best(self, change: str, passes: Callable[[SearchedNode], bool]) -> WhatIf:
        """The best of the nodes that pass, by the metric; among equals the first."""
        passing = [node for node in self.nodes if passes(node)]
        measured = [node for node in passing if measure_of(node.metrics, self.metric) is not None]
        sign = -1 if self.more_is_better else 1
        if not measured:
            levels = passing[0].levels if passing else None
            return WhatIf(change=change, satisfying=len(passing), levels=levels, measure=None)
        best = min(measured, key=lambda node: (sign * (measure_of(node.metrics, self.metric) or 0), node.levels))
        measure = measure_of(best.metrics, self.metric)
        return WhatIf(change=change, satisfying=len(passing), levels=best.levels, measure=measure)


def measure_of(metrics: Mapping[str, Any], metric: str) -> float | None:
    value = metrics.get(metric)
    return float(value) if isinstance(value, int | float) else None


def what_if(lattice: Candidates) -> Iterator[WhatIf]:
    """Each requirement dropped, one step weaker and stronger; each column of the chosen node one level finer and
    coarser. Of a lattice in which no row is suppressed: a tightest value holds for the whole table there."""
    yield lattice.best(AS_ASKED, lambda node: all(entry.holds for entry in node.tightest))
    entries = lattice.nodes[0].tightest
    for i, entry in enumerate(entries):
        named = model_of(entry)
        if len(entries) > 1:
            yield lattice.best(f"without {named}", partial(_passes, but=i))
        for other in steps(entry):
            yield lattice.best(in_words(entry, other), partial(_passes, but=i, requested=other))
    if lattice.chosen is not None:
        yield from neighbours(lattice, lattice.chosen)


def model_of(entry: Guarantee) -> str:
    """A model of an answer, with what it is about."""
    return entry.model + (f" of {', '.join(entry.sensitive)}" if entry.sensitive else "")


def in_words(entry: Guarantee, other: float) -> str:
    """Another value of the parameter that is compared."""
    name = deciding(entry)
    return f"{model_of(entry)}: {name} = {other:g} instead of {entry.asked[name]:g}"


def neighbours(lattice: Candidates, chosen: tuple[int, ...]) -> Iterator[WhatIf]:
    """Each column of the chosen node one level finer and coarser."""
    by_levels = {node.levels: node for node in lattice.nodes}
    for i, name in enumerate(lattice.names):
        for step in (-1, 1):
            levels = (*chosen[:i], chosen[i] + step, *chosen[i + 1 :])
            node = by_levels.get(levels)
            if node is not None:
                finer = "finer" if step < 0 else "coarser"
                change = f"{name} one level {finer}: {lattice.words[i][levels[i]]}"
                fails = ", ".join(entry.model for entry in node.tightest if not entry.holds)
                said = change if node.satisfied else f"{change} (fails {fails})"
                measure = measure_of(node.metrics, lattice.metric)
                yield WhatIf(change=said, satisfying=int(node.satisfied), levels=levels, measure=measure)


def _passes(node: SearchedNode, *, but: int, requested: float | None = None) -> bool:
    """Whether all requirements hold but one, and that one for another parameter, if one is given."""
    rest_holds = all(entry.holds for i, entry in enumerate(node.tightest) if i != but)
    return rest_holds and (requested is None or _admits(node, but, requested))


def deciding(entry: Guarantee) -> str:
    """The parameter that the check compares."""
    return next(bound.parameter for bound in BY_NAME[entry.model].about.bounds if bound.decides)


def steps(entry: Guarantee) -> Iterator[float]:
    """A step to either side of what was asked."""
    requested = entry.asked.get(deciding(entry))
    if isinstance(requested, bool) or not isinstance(requested, int | float):
        return
    size = 1 if isinstance(requested, int) else requested * STEP
    for other in (requested - size, requested + size):
        if other > 0:
            yield round(other, 9)


def _admits(node: SearchedNode, i: int, requested: float) -> bool:
    entry = node.tightest[i]
    name = deciding(entry)
    bound = next(bound for bound in BY_NAME[entry.model].about.bounds if bound.parameter == name)
    value = next(figure.value for figure in entry.values if figure.parameter == name)
    if value is None:
        return False
    satisfied = float(value)
    if bound.stricter == "larger":
        return satisfied >= requested if bound.attained else satisfied > requested
    return satisfied <= requested if bound.attained else satisfied < requested


def searched(task: Task, lattice: Candidates) -> Iterator[WhatIf]:
    """The questions of `what_if`. With suppressed rows a tightest value holds for what is left alone, which another
    question leaves otherwise, so that each one is searched for; of all requirements, the first MOST_QUESTIONS."""
    entries = lattice.nodes[0].tightest
    for change, privacy in list(changes(task.spec.privacy, entries))[:MOST_QUESTIONS]:
        yield _answered(task, change, privacy, lattice.metric)
    if lattice.chosen is not None:
        yield from neighbours(lattice, lattice.chosen)


def changes(
    privacy: Sequence[Requirement], entries: Sequence[Guarantee]
) -> Iterator[tuple[str, tuple[Requirement, ...]]]:
    """The requirements of a spec, then with each of them dropped, one step weaker and one stronger; in words. entries:
    of an answer, in that order."""
    yield AS_ASKED, tuple(privacy)
    for i, entry in enumerate(entries):
        if len(entries) > 1:
            yield f"without {model_of(entry)}", (*privacy[:i], *privacy[i + 1 :])
        for other in steps(entry):
            value = {deciding(entry): other if isinstance(other, int) else Fraction(str(other))}
            try:
                yield in_words(entry, other), changed(privacy, i, **value)
            except ParameterError:
                continue  # no such model: entropy l-diversity of less than 1, say


def _answered(task: Task, change: str, privacy: tuple[Requirement, ...], metric: str) -> WhatIf:
    variant = task.with_privacy(privacy)
    said = run_search(variant, recoding="full_domain").to_json()
    chosen = said["chosen"]
    if chosen is None:
        return WhatIf(change=change, satisfying=said["satisfying"], levels=None, measure=None)
    measure, levels = measure_of(chosen["metrics"], metric), tuple(chosen["levels"])
    return WhatIf(change=change, satisfying=said["satisfying"], levels=levels, measure=measure)
