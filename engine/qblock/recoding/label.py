"""The labels of one quasi-identifier as boxes have them, and what neighbours are cut at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qblock.blocks import Ints

Form = Literal["plain", "range", "rest"]


@dataclass(frozen=True, eq=False)
class Label:
    """A set of leaves that is published under one text: one label of the hierarchy, or several of one parent.

    level: of the hierarchy; codes: of its labels there, in their order; leaves: how many leaves they stand for;
    form: `plain` for one label; of several, `range` for neighbours and `rest` for others. within: the plain label whose
    children they are. bounds: of a range. stated: how it reads, where that was said before. number: among those of its
    ladder, -1 where it is of none.
    """

    level: int
    codes: Ints
    leaves: int
    form: Form
    within: Label | None = None
    stated: str | None = None
    bounds: Bounds | None = None
    number: int = -1

    @property
    def rest(self) -> bool:
        """Whether it reads by a number: of several labels that no cut tells apart, also where fewer are left."""
        return self.within is not None and self.bounds is None


@dataclass(frozen=True)
class Bounds:
    """What neighbours of an ordered hierarchy are between.

    names: of the first and the last label; leaves: the first leaf of the first and the last leaf of the last. low,
    high: the cuts around them, low <= value < high, each None where `within` ends; they have no meaning where `exact`,
    which is for a single label and for labels that no cut is known between: then only what lies between the leaves
    belongs to them. null: whether the leaf of NULL is one of them.
    """

    names: tuple[str | None, str | None]
    leaves: tuple[str | None, str | None]
    null: bool = False
    low: str | None = None
    high: str | None = None
    exact: bool = True


@dataclass(frozen=True, eq=False)
class Sides:
    """What a label is cut into. labels: of both sides; bounds: of both; ranks: the places of both in the order of their
    level, NULL left out."""

    labels: tuple[Label, ...]
    bounds: tuple[Bounds, ...]
    ranks: tuple[tuple[int, int], ...]
