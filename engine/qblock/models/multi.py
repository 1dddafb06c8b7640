"""Multi-attribute l-diversity (LD section 4.5): every sensitive attribute is diverse even where all others are known.

For each sensitive attribute the rows of a q*-block are split by the values of all the other sensitive attributes, and
the base model must hold in every part. Only models that are themselves diversity may be the base (models.md 2.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qblock.blocks import Blocks, Ints, Mask, Reference, number_keys
from qblock.errors import ParameterError
from qblock.models import REGISTRY, DeltaLDiversity
from qblock.models.base import Model, Monotone, Tightest, Value

BASES = tuple(model for model in REGISTRY if model.about.multi_attribute)


@dataclass(frozen=True, eq=False)
class Attribute:
    """One of the sensitive attributes: its base model (values allowed or protected are its own) and its parts.

    blocks: keyed by (q*-block, values of the other attributes); owner: int64[len(blocks)], the q*-block of each part.
    """

    model: Model
    blocks: Blocks
    reference: Reference
    owner: Ints


def check_base(model: Model) -> None:
    """Raise ParameterError unless the model may be the base of the multi-attribute form."""
    if type(model) not in BASES:
        raise ParameterError(
            f"{model.name}: has no multi-attribute form; valid bases: {', '.join(base.name for base in BASES)}"
        )
    if isinstance(model, DeltaLDiversity) and model.reading != "window":
        raise ParameterError(f"{model.name}: reading = {model.reading} has no multi-attribute form; valid: window")


def monotone(models: Sequence[Model], *, entities: bool) -> Monotone:
    """The flags of a requirement. models: of each sensitive attribute; entities: with `count: entities`."""
    flags = [model.monotone.for_entities if entities else model.monotone for model in models]
    generalization = all(flag.generalization for flag in flags)
    # A value of another attribute that only a failing block has makes a part of its own in the union, which fails.
    suppression = len(models) == 1 and all(flag.suppression for flag in flags)
    return Monotone(generalization=generalization, suppression=suppression)


def split(block: Ints, values: Ints, count: Ints) -> list[tuple[Blocks, Ints]]:
    """The parts and their owners, one pair for each attribute.

    block: int64[R], the q*-block of a row or of a group of rows; values: int64[R, M], its value of each attribute;
    count: int64[R].
    """
    result = []
    for i in range(values.shape[1]):
        part, first = number_keys(np.column_stack([block, np.delete(values, i, axis=1)]))
        result.append((Blocks.from_pairs(part, values[:, i], count), block[first]))
    return result


def passes(attributes: Sequence[Attribute], blocks: int) -> Mask:
    """bool[blocks]: the q*-blocks that pass, all of whose parts do so for every attribute."""
    result = np.ones(blocks, dtype=bool)
    for attribute in attributes:
        result[attribute.owner[~attribute.model.passes(attribute.blocks, attribute.reference)]] = False
    return result


def tightest(attributes: Sequence[Attribute]) -> Tightest:
    """The worst of the attributes' tightest values, parameter by parameter."""
    verdicts = [a.model.tightest(a.blocks, a.reference) for a in attributes]
    values = []
    for column, bound in zip(
        zip(*(v.values for v in verdicts), strict=True), attributes[0].model.about.bounds, strict=True
    ):
        known = [value.value for value in column if value.value is not None]
        pick = min if bound.stricter == "larger" else max
        values.append(Value(bound.parameter, pick(known) if known else None, bound.attained))
    return Tightest(attributes[0].model.name, all(v.holds for v in verdicts), tuple(values))
