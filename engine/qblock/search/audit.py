"""Audit of a node, or of a table that somebody else generalized: every model, attacks and utility."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import yaml

from qblock import attacks
from qblock.blocks import Blocks, Reference
from qblock.errors import InputError, ParameterError
from qblock.lattice import Node
from qblock.models import BY_NAME, KAnonymity, Model
from qblock.search.answer import metrics_json, number_json, requirements_json, tightest_json
from qblock.search.attack_sentences import Sentences
from qblock.search.nodes import parse_node
from qblock.search.run import open_task
from qblock.search.task import Task
from qblock.search.utility.measure import Metrics
from qblock.source.repeats import repeated_people
from qblock.spec import Spec, read_spec

URL_VARIABLE = "QBLOCK_AUDIT_URL"

STANDARD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("distinct_l_diversity", {"l": 1}),
    ("frequency_l_diversity", {"l": 1}),
    ("entropy_l_diversity", {"l": 1}),
    ("recursive_cl_diversity", {"c": 3, "l": 2}),
    ("alpha_k_anonymity", {"alpha": 1, "k": 1}),
    ("t_closeness", {"t": 1}),
    ("t_closeness", {"t": 1, "distance": "ordered"}),
    ("t_closeness", {"t": 1, "distance": "hierarchical"}),
    ("beta_likeness", {"beta": 1}),
    ("delta_disclosure", {"delta": 1}),
    ("epsilon_privacy", {"epsilon": 1, "adversary": "I", "stubbornness": 1000, "prior": "table"}),
    ("epsilon_privacy", {"epsilon": 1, "adversary": "II", "stubbornness": 1000}),
    ("epsilon_privacy", {"epsilon": 1, "adversary": "III", "prior": "uniform"}),
    ("epsilon_privacy", {"epsilon": 1, "adversary": "III", "prior": "table"}),
)
"""What an audit computes for each sensitive attribute beside what the spec asks; only tightest values are reported."""


def audit_spec(spec: Spec, node: str | None = None) -> dict[str, Any]:
    """The audit of a node of a spec's source; by default its pinned node, else the table as it is."""
    with open_task(spec, name_values=False) as task:
        levels = parse_node(task, node) if node is not None else spec.pinned or task.lattice.bottom
        return audit_node(task, levels)


def audit_table(url: str, table: str, quasi_identifiers: Sequence[str], sensitives: Sequence[str]) -> dict[str, Any]:
    """The audit of a table as it stands; NULL counts as a value of its own, apart from a value `*`."""
    both = [name for name in quasi_identifiers if name in sensitives]
    if both:
        raise InputError(
            f"--quasi-identifier {both[0]} is named as --sensitive too: a column has one role; name it once"
        )
    attributes: dict[str, Any] = {
        name: {"role": "quasi_identifier", "hierarchy": "suppress", "nulls": "top"} for name in quasi_identifiers
    }
    attributes |= {name: {"role": "sensitive", "nulls": "value"} for name in sensitives}
    document = {
        "version": 1,
        "release": "audit",
        "source": {"url": f"${{{URL_VARIABLE}}}", "table": table.replace("$", "$$")},
        "attributes": attributes,
        "privacy": [{"k_anonymity": {"k": 1}}],
    }
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    with open_task(read_spec(text, "command line", {URL_VARIABLE: url}), name_values=False, published=False) as task:
        return audit_node(task, task.lattice.bottom, asked=False)


def audit_node(task: Task, node: Node, *, asked: bool = True) -> dict[str, Any]:
    """Tightest values, attacks and metrics of a node as JSON.

    asked: whether somebody asked for the spec's requirements; else `holds` and `satisfied` are null.
    """
    assessment = task.assess(node)
    requirements = task.spec.privacy if asked else ()
    tightest = requirements_json(requirements, assessment.tightest) if asked else []
    found_attacks = []
    named = {(q.model.name, *q.sensitive) for q in requirements}
    if ("k_anonymity",) not in named:
        sizes = task.source.frequency_sets.blocks(node, ())[0]
        tightest.append(_reported(KAnonymity(k=1), None, sizes, Reference.of(sizes)))
    for name, values in task.source.sensitives.items():
        blocks = task.source.frequency_sets.blocks(node, [list(task.source.sensitives).index(name)])[0]
        for model in standard_models(values.reference):
            if (model.name, name) in named and model.name != "epsilon_privacy":
                continue
            tightest.append(_reported(model, name, blocks, values.reference))
        told = Sentences.about(name, blocks, values.reference, people=task.spec.entity is not None)
        found_attacks.append({"sensitive": name, **told.added_to(attacks.attacks(blocks, values.reference))})
    return {
        "release": task.spec.release,
        "rows": task.source.rows,
        "node": dict(zip(task.spec.quasi_identifiers, node, strict=True)),
        "levels": list(node),
        "satisfied": assessment.satisfied if asked else None,
        "suppressed": assessment.suppressed,
        "tightest": tightest,
        "attacks": found_attacks,
        "metrics": metrics_json(Metrics(task).of(assessment)),
        "warnings": [*task.warnings, *repeated_people(task.spec, task.source.session)],
    }


def standard_models(reference: Reference) -> list[Model]:
    """The models of STANDARD that a sensitive attribute admits."""
    made = []
    for name, parameters in STANDARD:
        if name not in BY_NAME:
            continue
        if parameters.get("adversary") in ("I", "II"):
            parameters = {**parameters, "stubbornness": max(parameters["stubbornness"], reference.values)}
        model = BY_NAME[name](**{k: Fraction(v) if _real(k) else v for k, v in parameters.items()})
        if "order" in model.needs and not reference.ordered:
            continue
        if "taxonomy" in model.needs and reference.taxonomy is None:
            continue
        try:
            model.validate(reference)
        except ParameterError:
            continue
        made.append(model)
    return made


def _real(parameter: str) -> bool:
    return parameter in ("alpha", "beta", "delta", "t", "epsilon", "c", "stubbornness")


def _reported(model: Model, sensitive: str | None, blocks: Blocks, reference: Reference) -> dict[str, Any]:
    """The tightest values without a verdict: nothing was asked."""
    tightened = {bound.parameter for bound in model.bounds}
    entry = tightest_json([model.tightest(blocks, reference)])[0]
    given = {
        key: number_json(value) if not isinstance(value, str | bool | tuple) else value
        for key, value in model.asked().items()
        if (key not in tightened or model.name == "recursive_cl_diversity") and value is not None
    }
    return {**entry, "holds": None, "sensitive": [] if sensitive is None else [sensitive], "asked": given}
