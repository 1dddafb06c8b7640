"""Reads what nodes and requirements give in the terms of epsilon-privacy (EP 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from qblock.lattice import Node
from qblock.report.data import EpsilonShown, GrantShown
from qblock.search.answer import number_json
from qblock.search.comparison.compare import Comparison, compare
from qblock.search.comparison.grants import epsilons, granted
from qblock.search.definitions import adversary_of
from qblock.search.task import Task

LARGE = 1000
"""From here on figures have no decimals."""


def read_epsilon(task: Task, nodes: Sequence[Node]) -> tuple[tuple[EpsilonShown, ...], tuple[GrantShown, ...]]:
    """The smallest epsilon of each of these nodes, and what each requirement of the spec grants."""
    if not nodes or not task.source.sensitives:
        return (), ()
    found = compare(task, nodes=nodes)
    return tuple(_smallest(found)), tuple(_grants(found))


def _smallest(found: Comparison) -> Iterator[EpsilonShown]:
    for name, adversaries in epsilons(found):
        if adversaries:
            yield EpsilonShown(
                sensitive=name,
                adversaries=tuple(adversary_of(definition.model) for _, definition in adversaries),  # type: ignore[arg-type]
                levels=tuple(row.node for row in found.rows),
                values=tuple(tuple(_figure(row.values[i][0].value) for i, _ in adversaries) for row in found.rows),
            )


def _grants(found: Comparison) -> Iterator[GrantShown]:
    for one in granted(found):
        none = one.implied.epsilon is None or one.implied.epsilon == math.inf
        yield GrantShown(
            requirement=one.definition,
            sensitive=one.sensitive,
            adversary=one.adversary,
            epsilon=None if none else _figure(one.implied.epsilon),
            why=one.implied.why,
            reached=None if one.reached is None else _figure(one.reached),
        )


def _figure(value: Any) -> str:
    number = number_json(value)
    if number is None or isinstance(number, str):
        return number or "-"
    return f"{number:.4g}" if number < LARGE else f"{number:,.0f}"
