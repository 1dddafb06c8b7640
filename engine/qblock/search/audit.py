"""Audit of a node, or of a table that somebody else generalized: every model, attacks and utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qblock import attacks
from qblock.errors import InputError, choices
from qblock.lattice import Node
from qblock.models import parameters_of
from qblock.search.answer import metrics_json, requested_json, requirements_json, tightest_json, weights_json
from qblock.search.assessment import combine
from qblock.search.attack_sentences import Sentences
from qblock.search.attackers import NOBODY, Attacker
from qblock.search.beliefs import BayesAdversary, beliefs_at
from qblock.search.default_settings import default_settings, question
from qblock.search.nodes import parse_node, pinned_node
from qblock.search.recoding import named
from qblock.search.run import open_task, recoded, refusal, run_search
from qblock.search.task import Task
from qblock.search.utility.measure import Metrics
from qblock.source.columns import repeated_people
from qblock.spec import Requirement, Spec, table_as_it_stands


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
        recoding = named(task, stated, None)
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
        "warnings": [*task.warnings, *repeated_people(task.spec, task.source.session)],
    }


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
    counts = Task(replace(task.source, spec=replace(task.spec, privacy=tuple(requirements)))).counts(node)
    everything = np.ones(len(counts.rows), dtype=bool)
    tightest = [
        combine([part.tightest(everything) for part in parts], q.model)
        for q, parts in zip(requirements, counts.parts, strict=True)
    ]
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
