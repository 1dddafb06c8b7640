"""Policies whose versions show a mean beside the label of each row, by a rule that keeps it or by one that does not.

The people of one column of a frame have one age, which the attacker of `attacker.py` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from .players import Engine, Played

Variant = Literal["first", "cell", "block", "present", "value"]
"""A joint cell, and who leaves it, keeps the mean of its first version; or means are made anew in each version, of the
cell, of all who are shown in the block, of those of them who are present. `value`, a fault: of those of a cell who have
the same value."""


class Kept(NamedTuple):
    """state: of the policy; means: by person."""

    state: Any
    means: Mapping[str, Fraction]


@dataclass
class Typical:
    """A policy, and exact means beside its rows. ages: of each person."""

    player: Engine
    ages: Callable[[str], int]
    variant: Variant = "first"

    @property
    def coin(self) -> bool:
        return self.player.coin

    @property
    def sensitive(self) -> int:
        return self.player.sensitive

    def run(
        self,
        state: Kept | None,
        present: Mapping[str, tuple[int, int]],
        erased: Collection[str],
        cohorts: tuple[int, ...],
        aside: Callable[[tuple[int, ...], int], bool],
        widths: tuple[int, ...],
    ) -> Played:
        before = Kept(None, {}) if state is None else state
        played = self.player.run(before.state, present, erased, cohorts, aside, widths)
        if played.rows is None:
            return Played(Kept(played.state, before.means), None, played.events)
        means = self._means(played.state.shown, present)
        if self.variant == "first":
            means = {one: before.means.get(one, anew) for one, anew in means.items()}
        # What stands behind the value is no value: the attacker does not take it for one that changed.
        rows = {one: (*row, means[one]) for one, row in played.rows.items()}
        return Played(Kept(played.state, means), rows, played.events)

    def _means(self, shown: Mapping[str, Any], present: Collection[str]) -> dict[str, Fraction]:
        groups: dict[Hashable, list[str]] = {}
        for one, unit in shown.items():
            groups.setdefault(self._group(unit), []).append(one)
        means = {}
        for people in groups.values():
            counted = [one for one in people if self.variant != "present" or one in present] or people
            means |= dict.fromkeys(people, Fraction(sum(map(self.ages, counted)), len(counted)))
        return means

    def _group(self, unit: Any) -> Hashable:
        if self.variant in ("block", "present"):
            return unit.cell.block
        return (unit.cell, unit.values[-1]) if self.variant == "value" else unit.cell


def ages_by_column(name: str) -> int:
    """A different one for each column, so that no two groups of columns have the same sum."""
    return 2 ** int(name.split(".")[0])
