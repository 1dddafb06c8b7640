"""Splits of open parts by one quasi-identifier, into labels or groups that all pass, and what each split gains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from qblock.blocks import Ints, Mask
from qblock.recoding import Label, Ladder
from qblock.recoding.tree import Kind
from qblock.search.boxes.counting import Atoms, Groups, Judge, PartCounting, Path, Sizes, added

CUTS = 24
"""Cuts of a part that are tried, the one nearest the median of its rows first."""
RESTS = 24
"""Rests of a part that are tried, the smallest first."""
COUNTED = 2
"""Of either where each try is a statement."""
Value = int | float
DIGITS = 12
"""Of a gain in nats per row: what logarithms give in any order of rows."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A split of one part. at: the code of the label of a cut; null: whether NULL goes with what is above it; alone:
    the codes of labels that stand alone beside a rest; failing: the codes of labels that are suppressed, with so many
    rows."""

    part: int
    attribute: int
    level: int
    kind: Kind
    gain: Value
    at: int = 0
    null: bool = False
    alone: tuple[int, ...] = ()
    failing: tuple[int, ...] = ()
    suppressed: int = 0


@dataclass(frozen=True, eq=False)
class Candidates:
    """One quasi-identifier in one round. labels: of the parts in `atoms`; failing: bool[atoms]; leaves: int64[atoms],
    how many each label stands for."""

    attribute: int
    labels: Sequence[tuple[Label, ...]]
    atoms: Atoms
    failing: Mask
    leaves: Ints

    def run(self, p: int) -> slice:
        """The atoms of the part at a place."""
        return slice(int(self.atoms.start[p]), int(self.atoms.start[p + 1]))

    def label(self, p: int) -> Label:
        return self.labels[p][self.attribute]

    def proposal(self, p: int, kind: Kind, gain: Value, **more: Any) -> Proposal:
        atoms = self.atoms
        return Proposal(int(atoms.parts[p]), self.attribute, int(atoms.level[atoms.start[p]]), kind, gain, **more)


class Proposer:
    """cuts: whether neighbours are grouped, where an attribute is ordered."""

    def __init__(
        self,
        counting: PartCounting,
        ladders: Sequence[Ladder],
        judge: Judge | Sizes,
        gain: Gain,
        path: Path,
        *,
        cuts: bool = True,
    ) -> None:
        self._counting, self._ladders, self._judge, self._gain, self._path = counting, ladders, judge, gain, path
        self._cut = cuts

    def propose(
        self, attribute: int, labels: Sequence[tuple[Label, ...]], atoms: Atoms, budget: int
    ) -> Iterator[Proposal]:
        """At most two for each part: one without and one with suppressed rows. labels: of the parts in `atoms`."""
        ladder, place, number = self._ladders[attribute], atoms.place, len(atoms.parts)
        failing = self._judge.failing(atoms.groups, atoms.part, self._path)
        bad = added(np.where(failing, atoms.groups.rows, 0), place, number)
        leaves = np.zeros(len(atoms.part), dtype=np.int64)
        for level in np.unique(atoms.level).tolist():
            here = atoms.level == level
            leaves[here] = ladder.under(level)[atoms.code[here]]
        candidates = Candidates(attribute, labels, atoms, failing, leaves)
        there = atoms.groups.rows > 0
        any_passes, blocked = np.zeros(number, dtype=bool), np.zeros(number, dtype=bool)
        any_passes[place[~failing & there]] = True
        # Nobody can be suppressed where only the population has somebody.
        blocked[place[failing & ~there]] = True
        fits = ~blocked & ((bad == 0) | ((bad <= budget) & any_passes))
        gains = self._gain.of(attribute, labels, atoms.groups, place, leaves, failing)
        for p in np.flatnonzero(fits).tolist():
            if not bad[p] or gains[p] > 0:
                run = candidates.run(p)
                lost = tuple(atoms.code[run][failing[run]].tolist())
                yield candidates.proposal(p, "each", gains[p], failing=lost, suppressed=int(bad[p]))
        unsplit = blocked | (bad > 0)
        if not self._counting.entities:
            # Fewer rows than two groups need, or a single label, are in no two groups that pass.
            unsplit &= added(atoms.groups.size, place, number) >= 2 * max(1, self._judge.least)
            unsplit &= np.diff(atoms.start) > 1
        left = np.flatnonzero(unsplit).tolist()
        if left:
            yield from (self._cuts if ladder.ordered and self._cut else self._rests)(candidates, left)

    def _cuts(self, candidates: Candidates, left: Sequence[int]) -> Iterator[Proposal]:
        """Two groups of neighbours of each part."""
        ladder, atoms = self._ladders[candidates.attribute], candidates.atoms
        null = {}
        for p in left:
            run = candidates.run(p)
            null[p] = int(atoms.code[run][-1]) == ladder.null_at(int(atoms.level[run.start]))
        tries = {p: self._places_to_cut(candidates, p, null=null[p]) for p in left}
        for turn in range(max(map(len, tries.values()))):
            here = [p for p, places in tries.items() if len(places) > turn]
            group = np.full(len(atoms.part), -1, dtype=np.int64)
            for j, p in enumerate(here):
                run = candidates.run(p)
                group[run] = 2 * j
                group[run.start + tries[p][turn] : run.stop] = 2 * j + 1
            groups = self._counting.by_group(candidates.attribute, atoms, group, 2 * len(here))
            bad = self._judge.failing(groups, np.repeat(atoms.parts[here], 2), self._path)
            passing = np.flatnonzero(~bad.reshape(-1, 2).any(axis=1)).tolist()
            splittable = [here[j] for j in passing]
            at = [int(atoms.code[candidates.run(p).start + tries[p][turn]]) for p in splittable]
            levels = [int(atoms.level[candidates.run(p).start]) for p in splittable]
            of = zip(splittable, levels, at, strict=True)
            cuts = [ladder.cut(candidates.label(p), level, code, null=null[p]) for p, level, code in of]
            leaves = np.array([side.leaves for cut in cuts for side in cut.labels], dtype=np.int64)
            both = groups.select(np.array([2 * j + side for j in passing for side in (0, 1)], dtype=np.int64))
            gains = self._gained(
                candidates, splittable, both, np.repeat(np.arange(len(splittable), dtype=np.int64), 2), leaves
            )
            for p, code, gain in zip(splittable, at, gains, strict=True):
                yield candidates.proposal(p, "cut", gain, at=code, null=null[p])
                del tries[p]

    def _places_to_cut(self, candidates: Candidates, p: int, *, null: bool) -> list[int]:
        """Where to cut the labels of a part, the place nearest the median of its rows first. null: whether NULL is the
        last of them."""
        least, entities = self._judge.least, self._counting.entities
        most = COUNTED if entities else CUTS
        sizes = candidates.atoms.groups.size[candidates.run(p)]
        below, whole = np.cumsum(sizes)[:-1], int(sizes.sum())
        # Entities may be in several labels: none is left out before it is counted.
        fit = slice(None) if entities else (below >= least) & (whole - below >= least)
        places = np.arange(1, len(sizes))[fit]
        nearest: list[int] = places[np.lexsort((places, np.abs(2 * below[fit] - whole)))].tolist()
        if not null:
            return nearest[:most]
        # NULL is cut away first: alone, else with as few values as it takes.
        return [*places[::-1][: most // 2].tolist(), *nearest[: most // 2]]

    def _rests(self, candidates: Candidates, left: Sequence[int]) -> Iterator[Proposal]:
        """Labels that stand alone and one rest of each part."""
        atoms = candidates.atoms
        tries = {p: self._sizes_of_rest(candidates, p) for p in left}
        for turn in range(max(len(moved) for _, moved in tries.values())):
            here = [p for p, (_, moved) in tries.items() if len(moved) > turn]
            group = np.full(len(atoms.part), -1, dtype=np.int64)
            for j, p in enumerate(here):
                run = candidates.run(p)
                order, moved = tries[p]
                group[run] = j
                group[run.start + order[moved[turn] :]] = -1
            rests = self._counting.by_group(candidates.attribute, atoms, group, len(here))
            passing = np.flatnonzero(~self._judge.failing(rests, atoms.parts[here], self._path))
            splittable = [here[j] for j in passing.tolist()]
            # As groups of their own: what stands alone, and one rest for each part.
            place_of = np.full(len(atoms.parts), -1, dtype=np.int64)
            place_of[splittable] = np.arange(len(splittable))
            place = place_of[atoms.place]
            alone = np.flatnonzero((place >= 0) & (group < 0))
            whole = np.array([candidates.label(p).leaves for p in splittable], dtype=np.int64)
            standing = added(candidates.leaves[alone], place[alone], len(splittable))
            leaves = np.concatenate((candidates.leaves[alone], whole - standing))
            beside = Groups.concatenated([atoms.groups.select(alone), rests.select(passing)])
            gains = self._gained(
                candidates, splittable, beside, np.concatenate((place[alone], np.arange(len(splittable)))), leaves
            )
            for p, gain in zip(splittable, gains, strict=True):
                run = candidates.run(p)
                yield candidates.proposal(p, "rest", gain, alone=tuple(atoms.code[run][group[run] < 0].tolist()))
                del tries[p]

    def _sizes_of_rest(self, candidates: Candidates, p: int) -> tuple[Ints, list[int]]:
        """The labels of a part that could stand alone, the smallest first, and how many of them to put to the rest."""
        run, entities = candidates.run(p), self._counting.entities
        groups, failing = candidates.atoms.groups, candidates.failing[run]
        sizes = groups.size[run]
        alone = np.flatnonzero(~failing & (groups.rows[run] > 0))
        order = alone[np.argsort(sizes[alone], kind="stable")]
        least, missing = 0, self._judge.least - int(sizes[failing].sum())
        if not entities and missing > 0:
            least = int(np.searchsorted(np.cumsum(sizes[order]), missing)) + 1
        return order, [n for n in _further(least, COUNTED if entities else RESTS) if n < len(order)]

    def _gained(
        self, candidates: Candidates, places: Sequence[int], groups: Groups, place: Ints, leaves: Ints
    ) -> list[Value]:
        """What some parts gain that are split into groups, all of which pass."""
        nothing = np.zeros(len(place), dtype=bool)
        return self._gain.of(
            candidates.attribute, [candidates.labels[p] for p in places], groups, place, leaves, nothing
        )


def _further(least: int, most: int) -> Iterator[int]:
    """How many labels join a rest: one more at first, and then ever more at once."""
    step = 1
    for turn in range(most):
        yield least
        least += step
        step = step if turn < most // 2 else 2 * step


class Gain:
    """by: loss, discernibility or kl_divergence. rows: N; weights: of each attribute; column: of the values that the
    divergence is reckoned with, None where there are none."""

    def __init__(
        self, by: str, ladders: Sequence[Ladder], rows: int, weights: Sequence[Fraction], column: int | None
    ) -> None:
        self._by, self._ladders, self._rows, self._column = by, tuple(ladders), rows, column
        shares = [weight / max(ladder.size - 1, 1) for weight, ladder in zip(weights, ladders, strict=True)]
        common = math.lcm(*(share.denominator for share in shares)) if shares else 1
        self._scale = [int(share * common) for share in shares]

    def of(
        self,
        attribute: int,
        labels: Sequence[tuple[Label, ...]],
        groups: Groups,
        place: Ints,
        leaves: Ints,
        failing: Mask,
    ) -> list[Value]:
        """What each of some parts gains. labels: of the parts; groups: that they are split into, each in the part of
        the place int64[G], with labels of the split attribute that stand for so many leaves int64[G]; failing: those
        that are suppressed then."""
        number = len(labels)
        rows = groups.rows
        if self._by == "discernibility":
            whole, inner = added(rows, place, number), added(np.where(failing, 0, rows * rows), place, number)
            lost = added(np.where(failing, rows, 0), place, number)
            return [
                w * w - i - self._rows * f
                for w, i, f in zip(whole.tolist(), inner.tolist(), lost.tolist(), strict=True)
            ]
        before = np.array([label[attribute].leaves for label in labels], dtype=np.int64)
        if self._by == "loss":
            gained = added(np.where(failing, 0, rows * (before[place] - leaves)), place, number)
            lost = added(np.where(failing, rows, 0), place, number)
            scale = self._scale[attribute]
            return [
                scale * g - (f * self._hidden(label) if f else 0)
                for g, f, label in zip(gained.tolist(), lost.tolist(), labels, strict=True)
            ]
        return self._divergence(groups, place, before, leaves, failing, number)

    def _hidden(self, labels: tuple[Label, ...]) -> int:
        """What it costs to suppress one row of a part."""
        triples = zip(self._scale, self._ladders, labels, strict=True)
        return sum(scale * (ladder.size - label.leaves) for scale, ladder, label in triples)

    def _divergence(
        self, groups: Groups, place: Ints, before: Ints, leaves: Ints, failing: Mask, number: int
    ) -> list[Value]:
        inner = np.zeros(number)
        shown = ~failing
        np.add.at(inner, place[shown], (groups.rows * np.log(before[place] / leaves))[shown])
        value = groups.values[:, self._column] if self._column is not None else np.zeros_like(groups.n)
        span = int(value.max(initial=0)) + 1
        keys, own = np.unique(groups.owner * span + value, return_inverse=True)
        n = np.bincount(own.reshape(-1), weights=groups.n, minlength=len(keys))
        of = place[keys // span]
        merged, whole = np.unique(of * span + keys % span, return_inverse=True)
        total = np.bincount(whole.reshape(-1), weights=n, minlength=len(merged))
        np.add.at(inner, of, n * np.log(n))
        np.add.at(inner, merged // span, -total * np.log(total))
        return [round(float(value) / self._rows, DIGITS) for value in inner]
