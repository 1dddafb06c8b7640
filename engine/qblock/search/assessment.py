"""What the models say of one node, and how values, metrics and verdicts read as JSON (docs/json.md)."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from qblock.blocks import Blocks, Ints, Mask, Reference, concatenated
from qblock.lattice import Node
from qblock.models import Bound, Model, Tightest, parameters_of, tightest_of_runs
from qblock.spec import Requirement, Spec

HELD_BY_ALL = "a value that everybody holds"
"""What fails a block of people with several rows beside the models: distinct values do not exclude it."""
GREATEST = Fraction(sys.float_info.max)


@dataclass(frozen=True, eq=False)
class Part:
    """One model applied to one sensitive attribute at a node.

    owner: int64[len(blocks)], the q*-block of each of these blocks where they are finer (the multi-attribute form).
    """

    model: Model
    blocks: Blocks
    reference: Reference
    owner: Ints | None = None

    @property
    def plain(self) -> bool:
        """Whether the counts of its blocks are all that the model looks at."""
        blocks = self.blocks
        of_node = (self.owner, blocks.population, blocks.population_only, blocks.guards)
        return not blocks.containing and all(of is None for of in of_node)

    def failing(self, total: int) -> Mask:
        """bool[total]: the q*-blocks that fail the model."""
        bad = ~self.model.passes(self.blocks, self.reference)
        if self.owner is None:
            return bad
        result = np.zeros(total, dtype=bool)
        result[self.owner[bad]] = True
        return result

    def tightest(self, kept: Mask) -> Tightest:
        """The tightest values over the q*-blocks that are kept."""
        mask = kept if self.owner is None else kept[self.owner]
        blocks = self.blocks if mask.all() else self.blocks.select(mask)
        return self.model.tightest(blocks, self.reference)


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """Everything that the models and metrics see of a node.

    keys: int64[B, Q] the codes of each block; rows: int64[B], rows (never entities); parts: for each requirement of
    the spec, the models to apply; held_by_all: bool[B], blocks in which everybody holds some value, where that fails
    them (`Task.forbids_held_by_all`); small: bool[B], blocks of fewer than `search.box.least`.
    """

    node: Node
    keys: Ints
    rows: Ints
    parts: tuple[tuple[Part, ...], ...]
    held_by_all: Mask | None = None
    small: Mask | None = None

    def select(self, mask: Mask) -> NodeCounts:
        """Of these blocks alone. mask: bool[B]."""
        place = np.cumsum(mask) - 1

        def selected(part: Part) -> Part:
            if part.owner is None:
                return replace(part, blocks=part.blocks.select(mask))
            inside = mask[part.owner]
            return replace(part, blocks=part.blocks.select(inside), owner=place[part.owner[inside]])

        parts = tuple(tuple(map(selected, of)) for of in self.parts)
        common, small = (None if of is None else of[mask] for of in (self.held_by_all, self.small))
        return NodeCounts(self.node, self.keys[mask], self.rows[mask], parts, common, small)

    @property
    def people(self) -> Ints | None:
        """int64[B]: what the models count in each block: its rows, or its people (`count: entities`). None where every
        requirement is about several sensitive attributes."""
        return next((p.blocks.rows for parts in self.parts for p in parts if p.owner is None), None)

    @cached_property
    def failing(self) -> Mask:
        """bool[B]: blocks that fail any requirement, in which everybody holds a value that is not to be certain, or
        that are too small a box."""
        result = np.zeros(len(self.rows), dtype=bool)
        for mask in (self.held_by_all, self.small):
            if mask is not None:
                result |= mask
        for parts in self.parts:
            for part in parts:
                result |= part.failing(len(self.rows))
        return result

    @cached_property
    def failing_rows(self) -> int:
        return int(self.rows[self.failing].sum())


@dataclass(frozen=True, eq=False)
class Assessment:
    """A node's verdict in full. kept: bool[B], the blocks that would be published (all of them where it fails)."""

    counts: NodeCounts
    satisfied: bool
    kept: Mask
    suppressed: int
    tightest: tuple[Tightest, ...]

    @property
    def node(self) -> Node:
        return self.counts.node

    @property
    def has_value_of_all(self) -> bool:
        """Whether it fails for a block in which everybody holds some value."""
        common = self.counts.held_by_all
        return common is not None and bool((common & self.kept).any())

    @property
    def has_small_box(self) -> bool:
        """Whether it fails for a box of fewer than `search.box.least`."""
        small = self.counts.small
        return small is not None and bool((small & self.kept).any())


def held_by_all(attributes: Sequence[Blocks]) -> Mask:
    """bool[B]: where everybody holds some value of one of these sensitive attributes; counts are of entities."""
    common: Mask = np.any([blocks.largest == blocks.rows for blocks in attributes], axis=0)
    return common


def tightest_of(parts: Sequence[Part], kept: Mask) -> Tightest:
    """The tightest values of one requirement over the q*-blocks that are kept."""
    return combine([part.tightest(kept) for part in parts], parts[0].model)


def deciding(model: Model) -> list[Bound]:
    """The parameters that a check compares."""
    return [bound for bound in model.about.bounds if bound.decides]


def deciding_values(
    nodes: Sequence[NodeCounts], i: int, requirement: Requirement, together: dict[tuple[int, ...], Blocks]
) -> list[tuple[Any, ...]]:
    """Of each node the tightest value of each bound of its i-th requirement that decides, over all of its blocks.

    together: the blocks of all nodes by those of each, which requirements about one sensitive attribute share.
    """
    bounds = deciding(requirement.model)
    parts = [counts.parts[i] for counts in nodes]
    if not all(len(of) == 1 and of[0].plain for of in parts):
        of_nodes = [tightest_of(counts.parts[i], np.ones(len(counts.rows), dtype=bool)) for counts in nodes]
        decide = {bound.parameter for bound in bounds}
        return [tuple(value.value for value in of.values if value.parameter in decide) for of in of_nodes]
    blocks, first = [of[0].blocks for of in parts], parts[0][0]
    key = tuple(map(id, blocks))
    if key not in together:
        together[key] = concatenated(blocks)
    start = np.cumsum([0, *map(len, blocks)])
    values = (tightest_of_runs(first.model, bound, together[key], first.reference, start) for bound in bounds)
    return list(zip(*values, strict=True))


def combine(parts: Sequence[Tightest], model: Model) -> Tightest:
    """The worst of several verdicts of one model (the multi-attribute form reports its worst attribute)."""
    if len(parts) == 1:
        return parts[0]
    values = []
    for i, bound in enumerate(model.about.bounds):
        candidates = [p.values[i] for p in parts if p.values[i].value is not None] or [parts[0].values[i]]
        pick = min if bound.stricter == "larger" else max
        values.append(pick(candidates, key=lambda v: float("-inf") if v.value is None else v.value))
    return Tightest(parts[0].model, all(p.holds for p in parts), tuple(values))


def same(first: Tightest, second: Tightest) -> bool:
    """Whether two verdicts agree; logarithms of equal counts may differ in the last of their 60 digits."""
    if (first.model, first.holds, len(first.values)) != (second.model, second.holds, len(second.values)):
        return False
    return all(
        a.parameter == b.parameter and a.attained == b.attained and close(a.value, b.value)
        for a, b in zip(first.values, second.values, strict=True)
    )


def close(first: Any, second: Any) -> bool:
    """Equal, or two long decimals that differ by rounding alone."""
    if isinstance(first, Decimal) and isinstance(second, Decimal):
        return abs(first - second) <= Decimal("1e-24") * max(abs(first), abs(second))
    return bool(first == second)


def number_json(value: Fraction | Decimal | float | int | None) -> Any:
    """A number as JSON, whole numbers exactly; infinity is the text "inf", None is null."""
    if value is None:
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 or abs(value) > GREATEST else float(value)
    as_float = float(value)
    if math.isinf(as_float):
        return "inf" if as_float > 0 else "-inf"
    return as_float


def tightest_json(tightest: Iterable[Tightest]) -> list[dict[str, Any]]:
    """One {model, holds, values} for each requirement; `exact` is given where a value is a fraction."""
    return [
        {
            "model": verdict.model,
            "holds": verdict.holds,
            "values": [
                {
                    "parameter": value.parameter,
                    "value": number_json(value.value),
                    "attained": value.attained,
                    **_exact(value.value),
                }
                for value in verdict.values
            ],
        }
        for verdict in tightest
    ]


def _exact(value: Any) -> dict[str, str]:
    return {"exact": str(value)} if isinstance(value, Fraction) and value.denominator != 1 else {}


def metrics_json(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: number_json(value) for name, value in metrics.items()}


def weights_json(spec: Spec) -> dict[str, Any] | None:
    """The weight of each quasi-identifier in the metrics; None where they count alike."""
    if len(set(spec.weights)) < 2:
        return None
    return {name: number_json(weight) for name, weight in zip(spec.quasi_identifiers, spec.weights, strict=True)}


def requirements_json(requirements: Iterable[Requirement], tightest: Iterable[Tightest]) -> list[dict[str, Any]]:
    """tightest_json with what was asked of each requirement, of which sensitive attributes, and what that means."""
    return [
        {
            **entry,
            "sensitive": list(requirement.sensitive),
            "asked": {k: requested_json(v) for k, v in parameters_of(requirement.model).items() if v is not None}
            | ({"groups": True} if requirement.groups else {}),
            "meaning": requirement.meaning,
        }
        for requirement, entry in zip(requirements, tightest_json(tightest), strict=True)
    ]


def requested_json(value: Any) -> Any:
    """A parameter of a model as JSON."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, tuple | list):
        return [requested_json(item) for item in value]
    return number_json(value) if isinstance(value, Fraction | Decimal | float | int) else str(value)
