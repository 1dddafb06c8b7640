"""Policies whose versions show the weight of each row, too, by the engine's rule or by one that is wrong."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from qblock.versions.batching.weights import Stated, partly, restated

from .bundles import bundles
from .double import Double
from .double import Kept as KeptOfDouble
from .players import LONGEST, Engine, Played, Rows

Variant = Literal["", "exact", "value", "failed", "rows"]
"""Of the plain rule: every run states the truth; each value of a cell has a weight of its own; all are stated anew in a
run in which a batch of newcomers failed; the share is of rows, where people have several."""


class Kept(NamedTuple):
    """state: of the policy; rows: that readers see; stated: of the weights."""

    state: Any
    rows: Rows
    stated: Any


@dataclass
class Weighed:
    """A policy, and weights beside its rows. A version is published for them alone, too."""

    player: Any
    k: int

    @property
    def coin(self) -> bool:
        return bool(self.player.coin)

    @property
    def sensitive(self) -> int:
        return int(self.player.sensitive)

    def run(
        self,
        state: Kept | None,
        present: Mapping[str, tuple[int, int]],
        erased: Collection[str],
        cohorts: tuple[int, ...],
        aside: Callable[[tuple[int, ...], int], bool],
        widths: tuple[int, ...],
    ) -> Played:
        before = Kept(None, {}, {}) if state is None else state
        played: Played = self.player.run(before.state, present, erased, cohorts, aside, widths)
        stated, weights = self._weights(before, played, present)
        told = played.rows if played.rows is not None else {one: row[:2] for one, row in before.rows.items()}
        rows = {one: (*row, weights[one]) for one, row in told.items()}
        is_new = played.rows is not None or rows != before.rows
        return Played(Kept(played.state, rows, stated), rows if is_new else None, played.events)

    def _weights(self, before: Kept, played: Played, present: Collection[str]) -> tuple[Any, Mapping[str, Any]]:
        raise NotImplementedError


class ByEngine(Weighed):
    """With the engine's rule. player: an Engine."""

    player: Engine

    def _weights(self, before: Kept, played: Played, present: Collection[str]) -> tuple[Any, Mapping[str, Any]]:
        shown, last = played.state.shown, {} if before.state is None else before.state.shown
        absent = Counter(unit.cell for one, unit in shown.items() if one not in present)
        sizes = (Counter(unit.cell for unit in units.values()) for units in (last, shown))
        numbers = partly(restated(before.stated, *sizes, absent, self.k))
        whole = Stated(1, 1)
        weights = {one: Fraction(*reversed(numbers.get(unit.cell, whole))) for one, unit in shown.items()}
        return numbers, weights


@dataclass
class Plainly(Weighed):
    """With the rule said once more, cell by cell with its people. player: a Double, or an Engine; width: of the values
    of the rows of somebody who has several."""

    variant: Variant = field(default="", kw_only=True)
    width: int = field(default=0, kw_only=True)

    def _weights(self, before: Kept, played: Played, present: Collection[str]) -> tuple[Any, Mapping[str, Any]]:
        groups: dict[Hashable, list[str]] = {}
        for one, (cell, value) in _cells(played.state).items():
            groups.setdefault((cell, value) if self.variant == "value" else cell, []).append(one)
        stated, weights = {}, {}
        for cell, people in groups.items():
            name = cell, frozenset(people)
            there = [one for one in people if one in present]
            number, weight = before.stated.get(name, (None, None))
            far = self._far(len(people))
            if number is None or abs(len(there) - number) >= far or self._failed(played):
                number, weight = len(there), Fraction(self._size(there, played), self._size(people, played))
            stated[name] = number, weight
            weights |= dict.fromkeys(people, weight)
        return stated, weights

    def _far(self, people: int) -> int:
        return 1 if self.variant == "exact" else min(self.k, max(2, math.ceil(people / 10)))

    def _failed(self, played: Played) -> bool:
        return self.variant == "failed" and bool(played.state.failed[0])

    def _size(self, people: Collection[str], played: Played) -> int:
        if self.variant != "rows":
            return len(people)
        shown, named = _cells(played.state), bundles(self.width, LONGEST)
        return sum(len(named[shown[one][1]]) for one in people)


def _cells(state: Any) -> dict[str, tuple[Hashable, Any]]:
    """Cell and value of everybody who is shown."""
    if isinstance(state, KeptOfDouble):
        return {one: (cell, state.history[one][-1]) for one, cell in state.cell.items()}
    return {one: (unit.cell, unit.values[-1]) for one, unit in state.shown.items()}


def weighed(player: Engine | Double) -> Weighed:
    """A policy with weights as they are."""
    return ByEngine(player, player.rules.k) if isinstance(player, Engine) else Plainly(player, player.k)
