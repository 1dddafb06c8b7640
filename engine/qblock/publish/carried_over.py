"""The requirements of today's spec against the quantities that were kept with an older version."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from qblock.blocks import Reference
from qblock.ledger.events import Guarantee
from qblock.ledger.kept import Kept
from qblock.ledger.parameters import parameters_text
from qblock.publish.recheck import needs_more
from qblock.spec import Requirement, Spec


@dataclass(frozen=True)
class Rematched:
    """references: for each requirement, what it is evaluated with. accepted: for each requirement that the published
    rows do not suffice for, the guarantees of the version itself. problems: why it cannot be checked, one sentence
    each.
    """

    references: tuple[tuple[Reference, ...], ...]
    accepted: dict[int, list[Guarantee]]
    problems: list[str]


def rematch(spec: Spec, kept: Kept, recorded: Sequence[Guarantee], *, same_spec: bool) -> Rematched:
    """What an older version is checked with.

    recorded: the guarantees of the event that published the version first, in order. same_spec: whether the spec is the
    one that it was published under; otherwise each requirement finds its quantities by sensitive attribute.
    """
    groups = [list(group) for _, group in groupby(recorded, lambda g: (g.model, g.sensitive, g.parameters))]
    nothing = Reference(kept.references[0][0].rows, (), np.zeros(0, dtype=np.int64))
    of_attribute: dict[str, Reference] = {}
    if len(groups) == len(kept.references):
        for group, references in zip(groups, kept.references, strict=True):
            for name, reference in zip(attributes(group[0]), references, strict=False):
                of_attribute.setdefault(name, replace(reference, prior=None))
    by_requirement: list[tuple[Reference, ...]] = []
    accepted: dict[int, list[Guarantee]] = {}
    problems: list[str] = []
    for index, requirement in enumerate(spec.privacy):
        model = requirement.model.name
        references = (nothing,) if not requirement.sensitive else ()
        if same_spec:
            references = tuple(
                _in_order(spec, name, reference)
                for name, reference in zip(requirement.sensitive or (None,), kept.references[index], strict=True)
            )
        elif all(name in of_attribute for name in requirement.sensitive):
            references = references or tuple(
                _in_order(spec, name, of_attribute[name]) for name in requirement.sensitive
            )
        else:
            problems.append(f"{model} asks about an attribute of which nothing was kept with the version")
        if spec.count == "entities" or needs_more(spec, requirement):
            own = _recorded(requirement, groups)
            if own is None or not (same_spec or requirement.guards is None):
                problems.append(f"{model} needs more than the published rows, and the version was not checked for it")
            else:
                accepted[index] = own
        elif not same_spec and requirement.prior is not None:
            problems.append(f"{model} takes its prior from elsewhere, and the spec has changed since the version")
        elif references and _lacking(requirement, references):
            problems.append(f"{model} needs something about its sensitive attribute that was not kept with the version")
        by_requirement.append(references or (nothing,) * max(1, len(requirement.sensitive)))
    return Rematched(tuple(by_requirement), accepted, problems)


def _in_order(spec: Spec, name: str | None, reference: Reference) -> Reference:
    """Quantities kept before only `order` ordered have numbers in the order in which the domain was written."""
    listed = name is not None and isinstance(spec.attributes[name].order, tuple)
    return reference if listed else reference.ascending()


def attributes(guarantee: Guarantee) -> list[str]:
    """The sensitive attributes that a guarantee is about."""
    if guarantee.sensitive is None:
        return []
    try:
        names = json.loads(guarantee.sensitive)
    except ValueError:
        return [guarantee.sensitive]
    return names if isinstance(names, list) else [guarantee.sensitive]


def _recorded(requirement: Requirement, groups: Sequence[list[Guarantee]]) -> list[Guarantee] | None:
    """The guarantees that were recorded for exactly the same requirement."""
    wanted = parameters_text(requirement.models)
    for group in groups:
        first = group[0]
        if (first.model, attributes(first), first.parameters) == (
            requirement.model.name,
            list(requirement.sensitive),
            wanted,
        ) and all(g.holds for g in group):
            return group
    return None


def _lacking(requirement: Requirement, references: Sequence[Reference]) -> bool:
    needs = requirement.model.needs
    return any(
        ("order" in needs and not r.ordered)
        or ("numbers" in needs and r.numbers is None)
        or ("taxonomy" in needs and r.taxonomy is None)
        for r in references
    )
