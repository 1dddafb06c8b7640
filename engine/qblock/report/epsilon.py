"""Nodes or a recoding map in the terms of epsilon-privacy: what adversaries of each class may learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from qblock.blocks import Ints, Reference, number_keys
from qblock.errors import ParameterError
from qblock.lattice import Node
from qblock.models import EpsilonPrivacy
from qblock.models.ratios import double
from qblock.results.report import CurveShown, EpsilonShown, GrantShown, LatticeShown
from qblock.search.assessment import NodeCounts, number_json
from qblock.search.boxes.recoded import Recoded
from qblock.search.compare import Comparison, Definition, adversary_of, compare, tightest
from qblock.search.compare_results import epsilons, granted
from qblock.search.run import recoded
from qblock.search.task import Task
from qblock.spec import Requirement

MOST_WEIGHED = 20
"""Nodes whose epsilon is looked for."""
LARGE = 1000
"""From here on figures have no decimals."""
POWERS = range(2, 9)
"""Stubbornness 1e2 to 1e8, as in EP, Figure 2a."""
CURVES: tuple[tuple[str, str, dict[str, Any], dict[str, Any] | None], ...] = (
    ("A_d", "uniform prior", {"adversary": "I", "prior": "uniform", "at_most": False}, {"prior": "uniform"}),
    ("A_c", "table's prior", {"adversary": "I", "prior": "table", "at_most": False}, {"prior": "table"}),
    ("A_-", "any prior", {"adversary": "II"}, None),
)
"""The adversaries of that figure: their name there, what they know, and as one of finite and of infinite
stubbornness."""


@dataclass(frozen=True)
class Weighed:
    """In the terms of epsilon-privacy: nodes, or a map."""

    epsilon: tuple[EpsilonShown, ...]
    granted: tuple[GrantShown, ...]
    curves: tuple[CurveShown, ...]


@dataclass(frozen=True, eq=False)
class Passing:
    """Picks blocks out of the counts of a node. keys: int64[B, Q], theirs."""

    keys: Ints

    def __call__(self, counts: NodeCounts) -> NodeCounts:
        number, _ = number_keys(np.concatenate([self.keys, counts.keys]))
        return counts.select(np.isin(number[len(self.keys) :], number[: len(self.keys)]))


def weighed(task: Task, lattice: LatticeShown, of_map: Recoded | None) -> Weighed:
    """Of a map its blocks that satisfy the spec now, which are those that a run would publish. Nothing can be asked of
    the task afterwards then: the source is read as the map shows it."""
    if of_map is None:
        epsilon, granted = read_epsilon(task, _marked(lattice))
        return Weighed(epsilon, granted, tuple(read_curves(task, lattice.published or lattice.chosen)))
    with recoded(task, of_map) as shown:
        bottom = shown.lattice.bottom
        counts = shown.counts(bottom)
        if counts.failing.all():
            return Weighed((), (), ())
        whole = shown.asking(replace(shown.spec, suppression_limit=Fraction(0)))
        passing = Passing(counts.keys[~counts.failing])
        epsilon, granted = read_epsilon(whole, [bottom], passing)
        curves = tuple(curve.model_copy(update={"levels": None}) for curve in read_curves(whole, bottom, passing))
    return Weighed(tuple(of.model_copy(update={"levels": (None,)}) for of in epsilon), granted, curves)


def _marked(lattice: LatticeShown) -> list[tuple[int, ...]]:
    """The node that a search takes, the published one, and minimal ones, of which the first so many."""
    first = [levels for levels in (lattice.chosen, lattice.published) if levels is not None]
    return list(dict.fromkeys([*first, *lattice.minimal]))[:MOST_WEIGHED]


def _every(counts: NodeCounts) -> NodeCounts:
    return counts


def read_epsilon(
    task: Task, nodes: Sequence[Node], of: Callable[[NodeCounts], NodeCounts] = _every
) -> tuple[tuple[EpsilonShown, ...], tuple[GrantShown, ...]]:
    """The smallest epsilon of each of these nodes, and what each requirement of the spec grants. of: what is
    looked at of their counts."""
    if not nodes or not task.source.sensitives:
        return (), ()
    comparison = compare(task, nodes=nodes, of=of)
    return tuple(_smallest(comparison)), tuple(_grants_shown(comparison))


def read_curves(task: Task, node: Node | None, of: Callable[[NodeCounts], NodeCounts] = _every) -> Iterator[CurveShown]:
    """The smallest epsilon at a node against adversaries of growing stubbornness, from its exact counts. A class that
    cannot have a stubbornness (II: less than a row for each value) has no point there."""
    if node is None:
        return
    questions = [
        (name, f"{curve}, {knows}", text, Definition(f"{curve} {text} {name}", Requirement(model, (name,)), "battery"))
        for name, values in task.source.sensitives.items()
        for curve, knows, finite, infinite in CURVES
        for text, model in _adversaries(finite, infinite)
        if _fits(model, values.reference)
    ]
    if not questions:
        return
    every = task.with_privacy(definition.requirement for *_, definition in questions)
    counts = of(every.counts(node))
    curves: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
    for (name, adversary, text, definition), parts in zip(questions, counts.parts, strict=True):
        value = tightest(definition, parts, counts, every.budget)[0]
        curves.setdefault((name, adversary), []).append((text, _finite(value.value)))
    for (name, adversary), points in curves.items():
        texts, values = zip(*points, strict=True)
        yield CurveShown(sensitive=name, levels=node, adversary=adversary, stubbornness=texts, values=values)


def _adversaries(finite: dict[str, Any], infinite: dict[str, Any] | None) -> Iterator[tuple[str, EpsilonPrivacy]]:
    for power in POWERS:
        yield f"1e{power}", EpsilonPrivacy(epsilon=1, stubbornness=10**power, **finite)
    if infinite is not None:
        yield "inf", EpsilonPrivacy(epsilon=1, adversary="III", **infinite)


def _fits(model: EpsilonPrivacy, reference: Reference) -> bool:
    try:
        model.validate(reference)
    except ParameterError:
        return False
    return True


def _finite(value: Any) -> float | None:
    if value is None or value == math.inf:
        return None
    number = double(value)
    return None if math.isinf(number) else number


def _smallest(comparison: Comparison) -> Iterator[EpsilonShown]:
    for name, adversaries in epsilons(comparison):
        if adversaries:
            yield EpsilonShown(
                sensitive=name,
                adversaries=tuple(adversary_of(definition.model) for _, definition in adversaries),  # type: ignore[arg-type]
                levels=tuple(row.node for row in comparison.rows),
                values=tuple(
                    tuple(_epsilon_text(row.values[i][0].value) for i, _ in adversaries) for row in comparison.rows
                ),
            )


def _grants_shown(comparison: Comparison) -> Iterator[GrantShown]:
    for grant in granted(comparison):
        none = grant.implied.epsilon is None or grant.implied.epsilon == math.inf
        yield GrantShown(
            requirement=grant.definition,
            sensitive=grant.sensitive,
            adversary=grant.adversary,
            epsilon=None if none else _epsilon_text(grant.implied.epsilon),
            why=grant.implied.why,
            satisfied=None if grant.satisfied is None else _epsilon_text(grant.satisfied),
        )


def _epsilon_text(value: Any) -> str:
    number = number_json(value)
    if number is None or isinstance(number, str):
        return number or "-"
    return f"{number:.4g}" if number < LARGE else f"{number:,.0f}"
