"""Models that bound the sizes of blocks: k-anonymity, k-map and delta-presence."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Ints, Reference
from qblock.errors import ParameterError
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


@privacy_model
class KAnonymity(Model):
    """Every block has at least k rows (Sweeney 2002; LD section 2.2). Ignores the sensitive attribute."""

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
    monotone = Monotone(generalization=True, suppression=True, entities=True)

    k: int = parameter("whole", at_least(1), 4)

    def _least_rows(self, reference: Reference) -> int:
        return int(self.k)

    def _least_entities(self) -> int:
        return int(self.k)

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        return blocks.rows, np.ones_like(blocks.rows)


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
