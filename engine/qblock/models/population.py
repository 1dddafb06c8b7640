"""Models that compare the table with a population table over the same quasi-identifiers (models.md section 12)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Ints, Reference
from qblock.errors import ParameterError
from qblock.models.base import Bound, Model, Monotone, rational, require, whole
from qblock.models.ratios import Integers


def _population(model: str, blocks: Blocks) -> Ints:
    if blocks.population is None:
        raise ParameterError(f"{model}: needs the counts of a population table; write `population: {{table: ...}}`")
    return blocks.population


@dataclass(frozen=True, kw_only=True)
class KMap(Model):
    """Every block has at least k rows of the population (Sweeney 2002). population: the name of its table."""

    name = "k_map"
    citation = "Sweeney 2002"
    condition = "pop(q) >= k"
    bounds = (Bound("k", "larger"),)
    needs = frozenset({"population"})
    whole = frozenset({"k"})
    uses_sensitive = False

    k: int
    population: str | None = None

    def __post_init__(self) -> None:
        require(self.name, "k", self.k, whole(self.k) and self.k >= 1, "an integer k >= 1")

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=True)

    @property
    def monotone_for_entities(self) -> Monotone:
        return self.monotone

    def ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        population = _population(self.name, blocks)
        return population, np.ones_like(population)


@dataclass(frozen=True, kw_only=True)
class DeltaPresence(Model):
    """The share of a population block that is in the table lies between `min` and `max` (Nergiz et al. 2007).

    A population block without rows of the table has the share 0; it belongs to no block, so that its 0 stands in every
    block's share for `min`: where `min` > 0 no block passes then, and no suppression mends it.
    """

    name = "delta_presence"
    citation = "Nergiz et al. 2007"
    condition = "min <= n(q)/pop(q) <= max for every block of the population"
    bounds = (Bound("min", "larger"), Bound("max", "smaller"))
    needs = frozenset({"population"})
    uses_sensitive = False

    min: int | Fraction
    max: int | Fraction
    population: str | None = None

    def __post_init__(self) -> None:
        require(self.name, "min", self.min, rational(self.min) and 0 <= self.min <= 1, "0 <= min <= 1")
        valid = rational(self.max) and self.min <= self.max <= 1
        require(self.name, "max", self.max, valid, "min <= max <= 1")

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

    def ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        population = _population(self.name, blocks)
        if parameter == "min" and blocks.population_only is not None and len(blocks.population_only):
            return np.zeros_like(blocks.rows), np.ones_like(blocks.rows)
        return blocks.rows, population
