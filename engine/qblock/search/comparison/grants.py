"""What each definition that asks for something grants as epsilon-privacy, beside what tables reach that have it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from qblock.lattice import Node
from qblock.models import EpsilonPrivacy
from qblock.models.implied import Implied, implied_epsilon
from qblock.search.answer import number_json
from qblock.search.comparison.compare import Comparison
from qblock.search.definitions import Definition, adversary_of


@dataclass(frozen=True)
class Granted:
    """What a definition grants about one sensitive attribute against one adversary.

    reached: the largest epsilon of the nodes that satisfy the definition, within the suppression limit, and one of
    them; None where none does.
    """

    definition: str
    sensitive: str
    adversary: str
    implied: Implied
    reached: Any
    node: Node | None

    def to_json(self) -> dict[str, Any]:
        return {
            "definition": self.definition,
            "sensitive": self.sensitive,
            "adversary": self.adversary,
            "epsilon": number_json(self.implied.epsilon),
            "why": self.implied.why,
            "reached": number_json(self.reached),
            "levels": None if self.node is None else list(self.node),
        }


def epsilons(comparison: Comparison) -> Iterator[tuple[str, list[tuple[int, Definition]]]]:
    """For each sensitive attribute its adversaries of epsilon-privacy, with their number among all definitions."""
    for name in comparison.sensitives:
        adversaries: dict[Any, tuple[int, Definition]] = {}
        for i, definition in enumerate(comparison.definitions):
            model, requirement = definition.model, definition.requirement
            if isinstance(model, EpsilonPrivacy) and requirement.sensitive == (name,):
                # Which epsilon is asked for does not matter to the smallest one.
                adversaries.setdefault(
                    (replace(model, epsilon=1), requirement.prior, requirement.guards), (i, definition)
                )
        yield name, list(adversaries.values())


def granted(comparison: Comparison) -> list[Granted]:
    """For each definition that asks for something, and each adversary against an attribute that it is about."""
    return [
        _granted(comparison, definition, name, number, adversary)
        for definition in comparison.requested
        for name, adversaries in epsilons(comparison)
        if not definition.requirement.sensitive or name in definition.requirement.sensitive
        for number, adversary in adversaries
    ]


def _granted(comparison: Comparison, definition: Definition, name: str, number: int, adversary: Definition) -> Granted:
    requirement, other = definition.requirement, adversary.model
    assert isinstance(other, EpsilonPrivacy)
    place = requirement.sensitive.index(name) if requirement.sensitive else 0
    own, weighed = comparison.references[definition.name, name], comparison.references[adversary.name, name]
    same = (requirement.prior, requirement.guards) == (adversary.requirement.prior, adversary.requirement.guards)
    implied = implied_epsilon(requirement.models[place], own, other, weighed, same_prior=same)
    nodes = [row for row in comparison.rows if row.verdicts[definition.name].satisfied]
    worst = max(nodes, key=lambda row: _epsilon(row.values[number]), default=None)
    value = None if worst is None else worst.values[number][0].value
    return Granted(definition.name, name, adversary_of(other), implied, value, None if worst is None else worst.node)


def _epsilon(values: Sequence[Any]) -> Any:
    """A value that may be beyond any double; below every epsilon where there is none."""
    return -1 if values[0].value is None else values[0].value
