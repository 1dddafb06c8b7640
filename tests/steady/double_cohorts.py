"""The rules of newcomers in cohorts once more, plainly, with switches that break them.

It shares nothing with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .cohorts import CohortFrame, Part, chosen_cut, cuts_of
from .double import Double, Kept
from .players import Played

Boxes = list[tuple[Any, Mapping[str, int]]]
"""Label and values of the people of each box."""


@dataclass(frozen=True)
class WrongCohorts:
    """Variants of the rule; the last two tell nobody's value where no model needs the coin, and `due` none at all.

    values: a part is cut only where both sides pass; merged: a box that fails is one with the other side of its cut;
    pooled: all boxes of a cohort that fail are tried as one; again: people of a box that failed wait again; unit: they
    are in the next cohort together, in one box with everybody; diverse: a cohort closes only when all its boxes pass;
    cells: leavers of all cells are one batch; due: a cohort has only those who have waited as long as somebody may;
    slower: no cohort closes in the run after one in which a box failed.
    """

    values: bool = False
    merged: bool = False
    pooled: bool = False
    again: bool = False
    unit: bool = False
    diverse: bool = False
    cells: bool = False
    due: bool = False
    slower: bool = False


@dataclass
class DoubleOfCohorts(Double):
    frame: CohortFrame = field(default_factory=lambda: CohortFrame((), 2))
    broken: WrongCohorts = field(default_factory=WrongCohorts)

    def run(
        self,
        state: Kept | None,
        present: Mapping[str, tuple[int, int]],
        erased: Collection[str],
        cohorts: tuple[int, ...],
        aside: Callable[[tuple[int, ...], int], bool],
        widths: tuple[int, ...],
    ) -> Played:
        self.at = {name: self.frame.combinations[block] for name, (block, _) in present.items()}
        self.now = {name: value for name, (_, value) in present.items()}
        return super().run(state, present, erased, cohorts, aside, widths)

    def _first_boxes(self, people: Mapping[str, int]) -> Boxes:
        top, least = self.frame.top, self.frame.base
        parts = self._leaves(Part(top, tuple(people)), dict.fromkeys(people, 0), least, lambda part: True)
        return [(part.box, {name: people[name] for name in part.people}) for part in parts]

    def _closing(self, before: Kept, waiting: Mapping[str, int], since: Mapping[str, int], size: int) -> Boxes:
        frame, broken = self.frame, self.broken
        longest = {name for name in waiting if before.run - since[name] >= frame.within}
        cohort = {name: value for name, value in waiting.items() if name in longest or not broken.due}
        due = longest or (not broken.due and (before.run + 1) % frame.within == 0)
        if not due or len(cohort) < frame.least or (broken.slower and before.failed[0]):
            return []

        def passes(part: Part) -> bool:
            return self._passes([[(values[name],) for name in part.people]], before.shares)

        values = dict(cohort)
        unit = {name: self.now[name] for name in before.failed[1] & self.now.keys() - before.cell.keys()}
        if broken.unit and unit:
            return [(frame.top, values | unit)]
        parts = self._leaves(Part(frame.top, tuple(cohort)), since, frame.least, passes)
        failing = [part for part in parts if not passes(part)]
        if broken.diverse and failing:
            return []
        if broken.pooled and len(failing) > 1:
            people = tuple(name for part in failing for name in part.people)
            parts = [part for part in parts if part not in failing] + [Part(frame.top, people)]
        return [(part.box, {name: values[name] for name in part.people}) for part in parts]

    def _leaves(self, part: Part, since: Mapping[str, int], least: int, passes: Callable[[Part], bool]) -> list[Part]:
        pairs = cuts_of(part, self.at, least)
        if self.broken.values:
            pairs = [pair for pair in pairs if passes(pair[0]) and passes(pair[1])]
        pair = chosen_cut(pairs, self.frame.rule, since)
        if pair is None:
            return [part]
        halves = [self._leaves(half, since, least, passes) for half in pair]
        if self.broken.merged and any(len(half) == 1 and not passes(half[0]) for half in halves):
            return [part]
        return halves[0] + halves[1]

    def _tried_again(self) -> bool:
        return self.broken.again

    def _cells_of_batches(self, names: Collection[tuple[Any, ...]]) -> list[list[tuple[Any, ...]]]:
        if not self.broken.cells:
            return super()._cells_of_batches(names)
        return [sorted(name for name in names if len(name) == n) for n in sorted({len(name) for name in names})]
