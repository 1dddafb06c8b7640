"""What was kept with a version, beside which a spec of today is held: counts and quantities of the whole table.

Models that need a population, entities with several rows, households, personalized predicates or coarser nodes are
verified against kept counts later: what readers see is not enough.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from qblock.blocks import Blocks, Containing, Guards, Ints, Mask, Reference
from qblock.ledger.events import Guarantee, parameters_text
from qblock.ledger.kept import Kept
from qblock.models import Tightest
from qblock.publish.recheck import needs_more
from qblock.search.assessment import Part, combine
from qblock.spec import Requirement, Spec

LIMIT = 4_000_000
"""The most numbers kept for one requirement: a model over many coarser nodes may need more, and is then not
verified."""
_ARRAYS = ("start", "value", "count", "rows", "population", "population_only", "groups")
Plain = dict[str, Any]


def plain_parts(parts: Sequence[Part], kept: Mask) -> list[Plain] | None:
    """The blocks of a requirement that are published, for JSON: one entry for each of its sensitive attributes."""
    chosen = [part.blocks.select(kept if part.owner is None else kept[part.owner]) for part in parts]
    if sum(map(_numbers, chosen)) > LIMIT:
        return None
    return [_plain(blocks) for blocks in chosen]


def verdict(requirement: Requirement, parts: Sequence[Plain], references: Sequence[Reference]) -> Tightest:
    """What a requirement satisfies on counts that were kept."""
    blocks = [_blocks(plain) for plain in parts]
    models = requirement.models
    satisfied = [m.tightest(b, r) for m, b, r in zip(models, blocks, references, strict=True)]
    return combine(satisfied, models[0])


def sizes(parts: Sequence[Plain]) -> Ints:
    """int64[B], ascending: the sizes of the blocks, in rows (or in entities, where these are counted)."""
    return np.sort(_array(parts[0]["rows"]))


def _numbers(blocks: Blocks) -> int:
    own = sum(array.size for name in _ARRAYS if (array := getattr(blocks, name)) is not None)
    return own + sum(_numbers(c.blocks) + c.index.size for c in blocks.containing)


def _plain(blocks: Blocks) -> Plain:
    plain: Plain = {name: _text(array) for name in _ARRAYS if (array := getattr(blocks, name)) is not None}
    if blocks.containing:
        plain["containing"] = [{"blocks": _plain(c.blocks), "index": _text(c.index)} for c in blocks.containing]
    if blocks.guards is not None:
        plain["guards"] = {"start": _text(blocks.guards.start), "predicate": _text(blocks.guards.predicate)}
    return plain


def _blocks(plain: Plain) -> Blocks:
    guards = plain.get("guards")
    return Blocks(
        **{name: _array(plain[name]) for name in _ARRAYS if name in plain},
        containing=tuple(Containing(_blocks(c["blocks"]), _array(c["index"])) for c in plain.get("containing", ())),
        guards=None if guards is None else Guards(_array(guards["start"]), _array(guards["predicate"])),
    )


def _text(array: Ints) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array, dtype="<i8").tobytes())).decode("ascii")


def _array(text: str) -> Ints:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").astype(np.int64)


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
            if own is None or not (same_spec or (requirement.guards is None and not requirement.groups)):
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
