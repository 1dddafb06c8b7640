"""Reads what nodes and requirements give in the terms of epsilon-privacy (EP 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from qblock.blocks import Reference
from qblock.errors import ParameterError
from qblock.lattice import Node
from qblock.models import EpsilonPrivacy
from qblock.models.ratios import double
from qblock.report.data import CurveShown, EpsilonShown, GrantShown
from qblock.search.assessment import number_json
from qblock.search.compare import Comparison, Definition, adversary_of, compare, tightest
from qblock.search.compare_results import epsilons, granted
from qblock.search.task import Task
from qblock.spec import Requirement

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


def read_epsilon(task: Task, nodes: Sequence[Node]) -> tuple[tuple[EpsilonShown, ...], tuple[GrantShown, ...]]:
    """The smallest epsilon of each of these nodes, and what each requirement of the spec grants."""
    if not nodes or not task.source.sensitives:
        return (), ()
    comparison = compare(task, nodes=nodes)
    return tuple(_smallest(comparison)), tuple(_grants(comparison))


def read_curves(task: Task, node: Node | None) -> Iterator[CurveShown]:
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
    counts = every.counts(node)
    curves: dict[tuple[str, str], list[tuple[str, float | None]]] = {}
    for (name, adversary, text, definition), parts in zip(questions, counts.parts, strict=True):
        value = tightest(definition, parts, counts, every.budget)[0]
        curves.setdefault((name, adversary), []).append((text, _finite(value.value)))
    for (name, adversary), points in curves.items():
        texts, values = zip(*points, strict=True)
        yield CurveShown(name, node, adversary, texts, values)


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
                values=tuple(tuple(_figure(row.values[i][0].value) for i, _ in adversaries) for row in comparison.rows),
            )


def _grants(comparison: Comparison) -> Iterator[GrantShown]:
    for grant in granted(comparison):
        none = grant.implied.epsilon is None or grant.implied.epsilon == math.inf
        yield GrantShown(
            requirement=grant.definition,
            sensitive=grant.sensitive,
            adversary=grant.adversary,
            epsilon=None if none else _figure(grant.implied.epsilon),
            why=grant.implied.why,
            reached=None if grant.reached is None else _figure(grant.reached),
        )


def _figure(value: Any) -> str:
    number = number_json(value)
    if number is None or isinstance(number, str):
        return number or "-"
    return f"{number:.4g}" if number < LARGE else f"{number:,.0f}"
