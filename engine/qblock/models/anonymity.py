"""Models that bound the sizes of blocks: k-anonymity, k-map and delta-presence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Ints, Reference, number_keys
from qblock.errors import ParameterError, choices
from qblock.models.base import (
    About,
    Bound,
    Model,
    Monotone,
    at_least,
    between,
    parameter,
    privacy_model,
    require,
)
from qblock.models.ratios import Integers

MOST_PROJECTIONS = 1_000
"""Choices of quasi-identifiers that are counted at each node."""


@privacy_model
class KAnonymity(Model):
    """Every block has at least k rows (Sweeney 2002; LD section 2.2). Ignores the sensitive attribute.

    of, any: every block of these quasi-identifiers alone, or of every choice of so many of them, has; as for an
    attacker who knows no others (k^m-anonymity of Terrovitis, Mamoulis, Kalnis, VLDB 2008, section 2, of a table). The
    blocks then say what the smallest of these has (`projected`). Where blocks say how many households or other groups
    they have (`Blocks.groups`), each has at least k of these, too: as (X,Y)-anonymity with Y the group (Wang, Fung, KDD
    2006) beside Y the person.
    """

    name = "k_anonymity"
    about = About(
        citation="Sweeney 2002; LD 2.2",
        condition="n(q) >= k",
        meaning="everybody is hidden among at least {k} people who look the same",
        bounds=(Bound("k", "larger"),),
        uses_sensitive=False,
        multi_attribute=True,
        steady="sizes",
    )

    k: int = parameter("whole", at_least(1), 4)
    of: tuple[str | None, ...] | None = parameter("values", example=("age", "sex"), default=None)
    any: int | None = parameter("whole", at_least(1), 2, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.name, "of", self.of, self.of is None or len(self.of) > 0, "one quasi_identifier or more")
        require(self.name, "any", self.any, self.of is None or self.any is None, "without `of`; write one of the two")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset() if self.of is None and self.any is None else frozenset({"projections"})

    @property
    def monotone(self) -> Monotone:
        # A block that is left out is missing in the projections of others, too.
        whole = not self.needs
        return Monotone(generalization=True, suppression=whole, entities=whole)

    def _least_rows(self, reference: Reference) -> int:
        return 1 if self.needs else int(self.k)

    def _least_entities(self) -> int:
        return 1 if self.needs else int(self.k)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        if blocks.groups is not None:
            blocks = replace(blocks, rows=np.minimum(blocks.rows, blocks.groups))
        return blocks.rows, np.ones_like(blocks.rows)


def why_no_projections(model: Model, quasi_identifiers: Sequence[str]) -> str | None:
    """What is wrong with `of` or `any` beside these quasi-identifiers; None where nothing is."""
    if not isinstance(model, KAnonymity) or not model.needs:
        return None
    for name in model.of or ():
        if name not in quasi_identifiers:
            return f"of names {name}, which is not a quasi_identifier; {choices(quasi_identifiers, name)}"
    size = len(quasi_identifiers)
    if model.any is not None and model.any > size:
        return f"any = {model.any} is more than the {size} quasi_identifiers; write `any: {size}` or less"
    if model.any is not None and math.comb(size, model.any) > MOST_PROJECTIONS:
        return (
            f"any = {model.any} of {size} quasi_identifiers are {math.comb(size, model.any):,} choices, and at most "
            f"{MOST_PROJECTIONS:,} are counted; name those that matter, `of: [{quasi_identifiers[0]}, ...]`"
        )
    return None


def projected(model: Model, blocks: Blocks, quasi_identifiers: Sequence[str]) -> Blocks:
    """The blocks with the rows of the smallest block of a projection that each of them is part of. blocks: all of a
    table's, with their keys."""
    assert isinstance(model, KAnonymity)
    assert blocks.keys is not None
    if model.any is None:
        chosen = [[quasi_identifiers.index(name) for name in quasi_identifiers if name in (model.of or ())]]
    else:
        chosen = [list(columns) for columns in itertools.combinations(range(len(quasi_identifiers)), model.any)]
    least = np.full_like(blocks.rows, np.iinfo(np.int64).max)
    for columns in chosen if len(blocks) else ():
        number, first = number_keys(blocks.keys[:, columns])
        total = np.zeros(len(first), dtype=np.int64)
        np.add.at(total, number, blocks.rows)
        least = np.minimum(least, total[number])
    return replace(blocks, rows=least)


def known_in_words(model: Model) -> str:
    """Whom `of` or `any` protects from, to go on with what the model means; empty without them."""
    if not isinstance(model, KAnonymity) or not model.needs:
        return ""
    known = " and ".join(map(str, model.of)) if model.of else f"any {model.any} of the quasi-identifiers"
    return f" to somebody who knows {known} and no more"


def _population(model: str, blocks: Blocks) -> Ints:
    if blocks.population is None:
        raise ParameterError(f"{model}: needs the counts of a population table; write `population: {{table: ...}}`")
    return blocks.population


@privacy_model
class KMap(Model):
    """Every block has at least k rows of the population (Sweeney 2002). population: the name of its table."""

    name = "k_map"
    about = About(
        citation="Sweeney 2002",
        condition="pop(q) >= k",
        meaning="everybody looks the same as at least {k} people of the population",
        bounds=(Bound("k", "larger"),),
        needs=frozenset({"population"}),
        uses_sensitive=False,
        steady="sizes",
    )
    monotone = Monotone(generalization=True, suppression=True, entities=True)

    k: int = parameter("whole", at_least(1), 5)
    population: str | None = parameter("population", example="register.people", default=None)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        population = _population(self.name, blocks)
        return population, np.ones_like(population)


@privacy_model
class DeltaPresence(Model):
    """The share of a population block that is in the table lies between `min` and `max` (Nergiz et al. 2007).

    A population block without rows of the table has the share 0; it belongs to no block, so its 0 counts in every
    block's share for `min`: where `min` > 0, no block passes then, and suppression cannot help.
    """

    name = "delta_presence"
    about = About(
        citation="Nergiz et al. 2007",
        condition="min <= n(q)/pop(q) <= max for every block of the population",
        meaning="of the people of the population who look the same, a share of {min} to {max} is in the table",
        bounds=(Bound("min", "larger"), Bound("max", "smaller")),
        needs=frozenset({"population"}),
        uses_sensitive=False,
    )
    monotone = Monotone(generalization=True, suppression=False)

    min: int | Fraction = parameter("rational", between(0, 1), 0)
    max: int | Fraction = parameter("rational", between(0, 1), Fraction(1, 2))
    population: str | None = parameter("population", example="register.people", default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.name, "max", self.max, self.min <= self.max, "min <= max <= 1")

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        population = _population(self.name, blocks)
        if parameter == "min" and blocks.population_only is not None and len(blocks.population_only):
            return np.zeros_like(blocks.rows), np.ones_like(blocks.rows)
        return blocks.rows, population
