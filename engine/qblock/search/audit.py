"""Audit of a node, or of a table that somebody else generalized: every model, attacks in sentences, utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from qblock import attacks
from qblock.attacks import (
    Attacks,
    BackgroundKnowledge,
    Certainty,
    Eliminated,
    Homogeneity,
    Proximity,
    Similarity,
    Skewness,
)
from qblock.blocks import Blocks, Reference
from qblock.errors import InputError, choices
from qblock.lattice import Node
from qblock.models import parameters_of
from qblock.search.assessment import (
    Assessment,
    metrics_json,
    requested_json,
    requirements_json,
    tightest_json,
    tightest_of,
    weights_json,
)
from qblock.search.beliefs import NOBODY, Attacker, BayesAdversary, beliefs_at
from qblock.search.boxes.recoded import count_map
from qblock.search.compare import default_settings, question
from qblock.search.nodes import parse_node, pinned_node
from qblock.search.result import refusal
from qblock.search.run import open_task, recoded, run_search
from qblock.search.task import Task
from qblock.search.utility import Metrics
from qblock.source.columns import repeated_people
from qblock.spec import Requirement, Spec, table_as_it_stands

WHO = "Somebody who knows the quasi-identifiers"
MOST = 5
"""Values that are named."""
Blockwise = Homogeneity | BackgroundKnowledge | Certainty | Eliminated | Similarity | Proximity


def audit_spec(
    spec: Spec,
    node: str | None = None,
    *,
    stated: Mapping[str, Any] | None = None,
    adversary: BayesAdversary | None = None,
    attacker: Attacker = NOBODY,
) -> dict[str, Any]:
    """The audit of a node of a spec's source; by default its pinned node, or its recoding map, else the table as it is.

    stated: the map as it is kept; by default the one that a search finds now; adversary: whose beliefs are told, too
    (of a node); attacker: what they know of sensitive attributes. Raises Refused where there is no map.
    """
    of_map = node is None and spec.search.recoding == "multidimensional"
    if of_map and adversary is not None:
        raise InputError("the beliefs of an adversary are of a node, and the spec asks for a recoding map; add a node")
    with open_task(spec, name_values=False) as task:
        if of_map:
            return _of_map(task, stated, attacker)
        if node is not None:
            levels = parse_node(task, node)
        else:
            levels = task.lattice.bottom if spec.pinned is None else pinned_node(task, spec.pinned)
        return audit_node(task, levels, adversary=adversary, attacker=attacker)


def _of_map(task: Task, stated: Mapping[str, Any] | None, attacker: Attacker) -> dict[str, Any]:
    if stated is None:
        result = run_search(task)
        if result.recoded is None:
            raise refusal(result)
        recoding, measured = result.recoded, result.metrics
    else:
        recoding = count_map(task, stated, None)
        measured = recoding.metrics(Metrics(task).names(task.spec.search.choose_by))
    with recoded(task, recoding) as again:
        answer = audit_node(again, again.lattice.bottom, attacker=attacker)
    warnings = list(dict.fromkeys([*task.warnings, *answer["warnings"]]))
    more = {"boxes": len(recoding.boxes), "metrics": metrics_json(measured), "warnings": warnings}
    return {**answer, "node": {}, "levels": None, **more}


def audit_table(
    url: str,
    table: str,
    quasi_identifiers: Sequence[str],
    sensitives: Sequence[str],
    *,
    taxonomies: Mapping[str, str] | None = None,
    adversary: BayesAdversary | None = None,
    attacker: Attacker = NOBODY,
) -> dict[str, Any]:
    """The audit of a table as it stands; NULL counts as a value of its own, apart from a value `*`. taxonomies: the
    CSV file of a sensitive attribute's taxonomy; adversary, attacker: as of `audit_spec`."""
    both = [name for name in quasi_identifiers if name in sensitives]
    if both:
        raise InputError(
            f"--quasi-identifier {both[0]} is also named as --sensitive: a column has one role; name it once"
        )
    read = {}
    for name, file in (taxonomies or {}).items():
        if name not in sensitives:
            raise InputError(f"--taxonomy {name}: not a sensitive attribute; {choices(sensitives, name)}")
        read[name] = {"file": str(Path(file).absolute())}
    spec = table_as_it_stands(url, table, quasi_identifiers, sensitives, taxonomies=read)
    with open_task(spec, name_values=False, published=False) as task:
        return audit_node(task, task.lattice.bottom, requested=False, adversary=adversary, attacker=attacker)


def audit_node(
    task: Task,
    node: Node,
    *,
    requested: bool = True,
    adversary: BayesAdversary | None = None,
    attacker: Attacker = NOBODY,
) -> dict[str, Any]:
    """Tightest values, attacks and metrics of a node as JSON.

    requested: whether somebody asked for the spec's requirements; else `holds` and `satisfied` are null. adversary:
    whose beliefs are told, too; attacker: what they know of sensitive attributes.
    """
    attacker.check({name: values.reference for name, values in task.source.sensitives.items()})
    beliefs = {} if adversary is None else {"beliefs": beliefs_at(task, node, adversary)}
    assessment = task.assess(node)
    requirements = task.spec.privacy if requested else ()
    usual, missing = default_settings(task.source, task.source.sensitives, lambda setting: setting.audited)
    usual = [requirement for requirement in usual if not any(_covered(requirement, other) for other in requirements)]
    tightest = requirements_json(requirements, assessment.tightest) if requested else []
    attacked = []
    for i, (name, values) in enumerate(task.source.sensitives.items()):
        blocks = task.source.frequency_sets.blocks(node, [i])[0]
        sentences = Sentences.about(name, blocks, values.reference, people=task.spec.entity is not None)
        computed = attacks.attacks(blocks, values.reference, **attacker.about(name, values.reference))
        attacked.append({"sensitive": name, **sentences.added_to(computed)})
    return {
        "release": task.spec.release,
        "rows": task.source.rows,
        "node": dict(zip(task.spec.quasi_identifiers, node, strict=True)),
        "levels": list(node),
        "satisfied": assessment.satisfied if requested else None,
        "suppressed": assessment.suppressed,
        "tightest": tightest + _reached(task, node, usual),
        "not_computed": [entry.to_json() for entry in missing],
        "attacks": attacked,
        **beliefs,
        "metrics": metrics_json(Metrics(task).of(assessment)),
        "weights": weights_json(task.spec),
        "warnings": [
            *task.warnings,
            *_of_one_group(task, assessment),
            *repeated_people(task.spec, task.source.session),
        ],
    }


def _of_one_group(task: Task, assessment: Assessment) -> list[str]:
    """What to say where everybody in a block is of one household or other group: counts alone."""
    if task.source.groups is None:
        return []
    keys = assessment.counts.keys[assessment.kept]
    alone = int(np.count_nonzero(task.groups(assessment.node, keys) == 1))
    if not alone:
        return []
    blocks = f"{alone:,} of {len(keys):,} blocks {'is' if alone == 1 else 'are'}"
    return [
        f"{blocks} of one group each (one value of {task.spec.groups}): people who know the group know that each row "
        "of the block is of it. Write `k_anonymity: {k: 2}` or more, and publish what a search then finds"
    ]


def _covered(usual: Requirement, required: Requirement) -> bool:
    """Whether the spec asks the same question, whatever the numbers that it asks for."""
    model, required_model = usual.model, required.model
    tightened = {bound.parameter for bound in model.about.bounds}
    mine, theirs = parameters_of(model), parameters_of(required_model)
    same = type(model) is type(required_model) and usual.sensitive == required.sensitive
    return same and all(mine[key] == theirs[key] for key in mine if key not in tightened)


def _reached(task: Task, node: Node, requirements: Sequence[Requirement]) -> list[dict[str, Any]]:
    """The tightest values of a node, all of its blocks published, without a verdict: nothing was asked."""
    if not requirements:
        return []
    counts = task.with_privacy(requirements).counts(node)
    everything = np.ones(len(counts.rows), dtype=bool)
    tightest = [tightest_of(parts, everything) for parts in counts.parts]
    return [
        {
            **entry,
            "holds": None,
            "sensitive": list(requirement.sensitive),
            "asked": {
                key: requested_json(value) for key, value in question(requirement.model).items() if value is not None
            },
        }
        for requirement, entry in zip(requirements, tightest_json(tightest), strict=True)
    ]


@dataclass(frozen=True)
class Sentences:
    """What is said about the attacks on one sensitive attribute. values: the size of its domain; of, blocks: all people
    (or rows) and q*-blocks; people: whether people are counted, once in each block in which they have rows.
    """

    name: str
    values: int
    of: int
    blocks: int
    people: bool

    @classmethod
    def about(cls, name: str, blocks: Blocks, reference: Reference, *, people: bool) -> Sentences:
        return cls(name, reference.values, int(blocks.rows.sum()), len(blocks), people)

    def added_to(self, attacks: Attacks) -> dict[str, Any]:
        """The attacks as JSON, each with its sentence."""
        result = attacks.to_json()
        for name, figures in result.items():
            attack = getattr(attacks, name)
            if isinstance(figures, list):
                for element, entry in zip(attack, figures, strict=True):
                    entry["sentence"] = self.of_attack(element)
            else:
                figures["sentence"] = self.of_attack(attack)
        return result

    def of_attack(self, attack: Any) -> str:
        """One attack; where nobody is found with certainty, how sure the attacker is at worst."""
        if self.values == 1:
            return f"{self.name} has only one value, so nothing about it can be found out."
        match attack:
            case Homogeneity():
                otherwise = "every block holds at least 2 values of it"
                return f"{WHO} finds {self.name} with certainty for {self._how_many(attack, otherwise)}."
            case BackgroundKnowledge():
                ruled = "1 value" if attack.eliminated == 1 else f"{attack.eliminated} values"
                who = f"{WHO} and can rule out {ruled} of {self.name} finds it with certainty for"
                return f"{who} {self._how_many(attack, f'they are at most {_percent(attack.posterior)} sure')}."
            case Certainty():
                return self._certainty(attack)
            case Eliminated():
                who = (
                    f"{WHO} and rules out {len(attack.values)} given values of {self.name} finds it with certainty for"
                )
                return f"{who} {self._how_many(attack, f'they are at most {_percent(attack.posterior)} sure')}."
            case Skewness():
                return self._skewness(attack)
            case Similarity():
                otherwise = f"one label makes up at most {_percent(attack.share)} of a block"
                what = f"the label of {self.name} at level {attack.level} of its taxonomy"
                return f"{WHO} finds {what} with certainty for {self._how_many(attack, otherwise)}."
            case Proximity():
                near = f"{float(attack.epsilon):.6g}"
                otherwise = f"at most {_percent(attack.share)} of a block are within {near} of one of its values"
                return f"{WHO} finds {self.name} to within {near} for {self._how_many(attack, otherwise)}."
        raise TypeError(f"no sentence for {attack!r}")

    def _skewness(self, attack: Skewness) -> str:
        if attack.gain is None or attack.gain <= 1:
            return f"No value of {self.name} is more frequent in a block than in the whole table."
        value = "NULL" if attack.value is None else attack.value
        times = f"{float(attack.gain):.3g} times as frequent in a block as in the whole table"
        return f"{WHO} finds a value of {self.name} ({value}) up to {times}."

    def _certainty(self, attack: Certainty) -> str:
        n = attack.eliminated
        if not n:
            who = self._how_many(attack, "nobody has a row")
            return f"{WHO} has to rule out no value of {self.name} to find it with certainty for {who}."
        least = f"at least {n} {'value' if n == 1 else 'values'} of {self.name}"
        named = ", ".join("NULL" if value is None else value for value in attack.values[:MOST])
        such = f"{named} and {n - MOST} more" if n > MOST else named
        return f"{WHO} has to rule out {least} ({such}) to find it with certainty for {self._how_many(attack, '')}."

    def _how_many(self, attack: Blockwise, none: str) -> str:
        noun, nouns = ("person", "people") if self.people else ("row", "rows")
        everybody = f"{self.of:,} {noun if self.of == 1 else nouns}"
        if not attack.blocks:
            return f"none of {everybody}: {none}"
        least = "up to " if isinstance(attack, BackgroundKnowledge) else ""
        where = f"{attack.blocks:,} of {self.blocks:,} {'block' if self.blocks == 1 else 'blocks'}"
        return f"{least}{attack.rows:,} of {everybody}, in {where}"


def _percent(share: Fraction | None) -> str:
    """A share below 1, rounded up, but never to certainty."""
    if share is None:
        return "0%"
    percent = 100 * share
    for digits in range(3, 18):
        up = Context(prec=digits, rounding=ROUND_CEILING)
        rounded = up.divide(Decimal(percent.numerator), Decimal(percent.denominator))
        if rounded < 100:
            return f"{rounded.normalize():f}%"
    return "nearly 100%"
