"""Splits of open parts by one quasi-identifier, into labels or groups that all pass, and what each split gains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from qblock.blocks import Ints, Mask
from qblock.recoding import Ladder
from qblock.recoding.splits import KINDS, NONE
from qblock.search.boxes.counting import Atoms, Judge, PartCounting, Path, Sizes
from qblock.search.boxes.groups import Groups, added, distinct

CUTS = 24
"""Cuts of a part that are tried, the one nearest the median of its rows first."""
RESTS = 24
"""Rests of a part that are tried, the smallest first."""
COUNTED = 2
"""Of either where each try is a statement."""
Gains = np.typing.NDArray[Any]
"""Whole numbers, or nats per row: int64, of Python's where they may be larger, or float64."""
DIGITS = 12
"""Of a gain in nats per row: what logarithms give in any order of rows."""
BITS = 30
"""Of a gain for each nat: splits that are equally good are, whatever logarithms are rounded to."""
EXACT = 1 << 62
"""Gains up to which are whole numbers of the machine."""


@dataclass(frozen=True, eq=False)
class Open:
    """Parts that may be divided. parts: int64[P], ascending. Of each part and quasi-identifier, int64[P, Q]: leaves,
    how many its label stands for; grain, the level by whose labels it is divided next, -1 for none; first, the place
    of its first leaf among those of an ordered hierarchy."""

    parts: Ints
    leaves: Ints
    grain: Ints
    first: Ints

    def __len__(self) -> int:
        return len(self.parts)

    def select(self, index: Ints | Mask | slice) -> Open:
        """These parts, in that order."""
        return Open(self.parts[index], self.leaves[index], self.grain[index], self.first[index])

    @classmethod
    def concatenated(cls, given: Sequence[Open]) -> Open:
        """Parts of several, in the order of their numbers."""
        columns = [
            np.concatenate(of) for of in zip(*((o.parts, o.leaves, o.grain, o.first) for o in given), strict=True)
        ]
        return cls(*columns).select(np.argsort(columns[0]))


@dataclass(frozen=True, eq=False)
class Proposals:
    """Splits of parts by one quasi-identifier, of each at most one without suppressed rows and one with some.

    kind: int64[P], of KINDS, and worth, as of `Gain.worth`, of those without. group: int64[atoms], 0 and 1 for both
    sides of a cut, 0 for a rest, -1 for labels that stand alone; at: int64[P], the first atom above a cut; null:
    bool[P], whether NULL is with what is above it. suppressed: int64[P], the rows of labels that fail where these are
    suppressed and the others stand alone, 0 for none; spending: the gain of those; failing: bool[atoms].
    """

    attribute: int
    atoms: Atoms
    kind: Ints
    worth: Gains
    group: Ints
    at: Ints
    null: Mask
    suppressed: Ints
    spending: Gains
    failing: Mask

    @classmethod
    def of(cls, attribute: int, atoms: Atoms, worth: Gains, gains: Gains, failing: Mask) -> Proposals:
        """None yet. worth, gains: of splits into single labels."""
        number = len(atoms.parts)
        kind, at, suppressed = (np.full(number, value, dtype=np.int64) for value in (NONE, 0, 0))
        group, null = np.full(len(failing), -1, dtype=np.int64), np.zeros(number, dtype=bool)
        return cls(attribute, atoms, kind, worth.copy(), group, at, null, suppressed, gains, failing)

    def select(self, parts: Mask) -> Proposals:
        """Those of some of the parts. parts: bool[P]."""
        atoms = np.flatnonzero(parts[self.atoms.place])
        chosen, kind = self.atoms.select(parts, atoms), self.kind[parts]
        moved = self.at[parts] - self.atoms.start[:-1][parts] + chosen.start[:-1]
        return Proposals(
            self.attribute,
            chosen,
            kind,
            self.worth[parts],
            self.group[atoms],
            np.where(kind == KINDS.index("cut"), moved, 0),
            self.null[parts],
            self.suppressed[parts],
            self.spending[parts],
            self.failing[atoms],
        )

    @classmethod
    def concatenated(cls, given: Sequence[Proposals]) -> Proposals:
        """Those of several by one quasi-identifier, of ascending parts."""
        starts = np.cumsum([0, *(len(proposals.failing) for proposals in given)])[:-1]
        names = ("kind", "worth", "group", "null", "suppressed", "spending", "failing")
        columns = {name: np.concatenate([getattr(proposals, name) for proposals in given]) for name in names}
        at = np.concatenate([of.at + start for of, start in zip(given, starts.tolist(), strict=True)])
        return cls(given[0].attribute, Atoms.concatenated([of.atoms for of in given]), at=at, **columns)


@dataclass(frozen=True, eq=False)
class Candidates:
    """One quasi-identifier in one round. parts: those of `atoms`; place: int64[atoms], the place of each one's part;
    failing: bool[atoms]; leaves: int64[atoms], how many each label stands for."""

    attribute: int
    parts: Open
    atoms: Atoms
    place: Ints
    failing: Mask
    leaves: Ints

    @property
    def level(self) -> Ints:
        """int64[P]: the level by whose labels each part is divided."""
        return self.atoms.level[self.atoms.start[:-1]]

    def numbers(self, index: Ints) -> Ints:
        """int64[atoms]: the number of each atom's part among some, given by their places; -1 for others."""
        number = np.full(len(self.parts), -1, dtype=np.int64)
        number[index] = np.arange(len(index))
        return number[self.place]


@dataclass(frozen=True, eq=False)
class Tried:
    """Parts for which more groups are tried. parts: int64[P], their places among all; atoms: of them; where: int64, the
    place of each atom among all."""

    parts: Ints
    atoms: Atoms
    where: Ints

    def only(self, parts: Ints) -> Tried:
        """Some of them, and few others. parts: by their places among all."""
        if 2 * len(parts) > len(self.parts):
            return self
        there = np.zeros(len(self.parts), dtype=bool)
        there[np.searchsorted(self.parts, parts)] = True
        index = np.flatnonzero(there[self.atoms.place])
        return Tried(parts, self.atoms.select(there, index), self.where[index])

    def numbers(self, parts: Ints) -> Ints:
        """int64[atoms]: the number of each atom's part among some, given by their places; -1 for others."""
        number = np.full(len(self.parts), -1, dtype=np.int64)
        number[np.searchsorted(self.parts, parts)] = np.arange(len(parts))
        return number[self.atoms.place]


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

    def propose(self, attribute: int, parts: Open, atoms: Atoms, budget: int) -> Proposals:
        """The splits of the parts of atoms, `parts` in their order. budget: rows that may be suppressed."""
        ladder, place, number = self._ladders[attribute], atoms.place, len(parts)
        failing = self._judge.failing(atoms.groups, atoms.part, self._path)
        bad = added(np.where(failing, atoms.groups.rows, 0), place, number)
        leaves = np.zeros(len(atoms.part), dtype=np.int64)
        for level in distinct(atoms.level).tolist():
            here = atoms.level == level
            leaves[here] = ladder.under(level)[atoms.code[here]]
        candidates = Candidates(attribute, parts, atoms, place, failing, leaves)
        there = atoms.groups.rows > 0
        any_passes, blocked = np.zeros(number, dtype=bool), np.zeros(number, dtype=bool)
        any_passes[place[~failing & there]] = True
        # Nobody can be suppressed where only the population has somebody.
        blocked[place[failing & ~there]] = True
        fits = ~blocked & ((bad == 0) | ((bad <= budget) & any_passes))
        gains = self._gain.of(attribute, parts, atoms.groups, place, leaves, failing)
        proposals = Proposals.of(attribute, atoms, self._gain.worth(gains, atoms.groups, place), gains, failing)
        proposals.kind[fits & (bad == 0)] = KINDS.index("each")
        spends = fits & (bad > 0) & (gains > 0)
        proposals.suppressed[spends] = bad[spends]
        unsplit = blocked | (bad > 0)
        if not self._counting.entities:
            # Fewer rows than two groups need, or a single label, are in no two groups that pass.
            unsplit &= added(atoms.groups.size, place, number) >= 2 * max(1, self._judge.least)
            unsplit &= np.diff(atoms.start) > 1
        left = np.flatnonzero(unsplit)
        if len(left):
            (self._cuts if ladder.ordered and self._cut else self._rests)(candidates, left, proposals)
        return proposals

    def _cuts(self, candidates: Candidates, left: Ints, proposals: Proposals) -> None:
        """Two groups of neighbours of each part. left: the places of parts."""
        ladder, atoms, place = self._ladders[candidates.attribute], candidates.atoms, candidates.place
        nulls = np.array([ladder.null_at(level) for level in range(ladder.hierarchy.height + 1)])[candidates.level]
        null = atoms.code[atoms.start[1:] - 1] == nulls
        tries, begin = self._places_to_cut(candidates, left, null)
        trying, every = np.arange(len(left)), np.arange(len(place))
        tried = Tried(np.arange(len(null)), atoms, every)
        for turn in range(int(np.diff(begin).max(initial=0))):
            trying = trying[begin[trying] + turn < begin[trying + 1]]
            here, at = left[trying], np.zeros(len(null), dtype=np.int64)
            at[here] = tries[begin[trying] + turn]
            tried = tried.only(here)
            number = tried.numbers(here)
            group = np.where(number >= 0, 2 * number + (tried.where >= at[tried.parts][tried.atoms.place]), -1)
            groups = self._counting.by_group(candidates.attribute, tried.atoms, group, 2 * len(here))
            bad = self._judge.failing(groups, np.repeat(atoms.parts[here], 2), self._path).reshape(-1, 2).any(axis=1)
            passing, trying = here[~bad], trying[bad]
            both = groups.select(np.flatnonzero(np.repeat(~bad, 2)))
            leaves = self._sides(candidates, passing, at[passing], null[passing], apart_at=nulls[passing])
            sides = np.repeat(np.arange(len(passing), dtype=np.int64), 2)
            proposals.worth[passing] = self._worth(candidates, passing, both, sides, leaves.reshape(-1))
            proposals.kind[passing] = KINDS.index("cut")
            proposals.at[passing], proposals.null[passing] = at[passing], null[passing]
        cut = (proposals.kind == KINDS.index("cut"))[place]
        proposals.group[cut] = (every >= proposals.at[place])[cut]

    def _sides(self, candidates: Candidates, cut: Ints, at: Ints, null: Mask, apart_at: Ints) -> Ints:
        """int64[C, 2]: how many leaves both sides of cuts stand for. cut: the places of parts; at: the first atoms
        above; null: whether NULL is with these; apart_at: the codes of NULL where it is apart, else -1."""
        ladder, parts = self._ladders[candidates.attribute], candidates.parts
        first, whole = parts.first[cut, candidates.attribute], parts.leaves[cut, candidates.attribute]
        begins = np.zeros(len(cut), dtype=np.int64)
        level, code = candidates.atoms.level[at], candidates.atoms.code[at]
        for depth in distinct(level).tolist():
            begins[level == depth] = ladder.first_leaves(depth)[code[level == depth]]
        # The leaf of NULL is the last; where nobody has it, it is on neither side.
        without = ~null & (apart_at >= 0) & (first + whole == ladder.size)
        return np.stack((begins - first, first + whole - begins - without), axis=1)

    def _places_to_cut(self, candidates: Candidates, left: Ints, null: Mask) -> tuple[Ints, Ints]:
        """The atoms to cut before, part by part, that nearest the median of its rows first; and int64[left+1], where
        those of each part begin. null: whether NULL is the last label of a part."""
        least, entities = self._judge.least, self._counting.entities
        most = COUNTED if entities else CUTS
        of, sizes = candidates.numbers(left), candidates.atoms.groups.size
        whole = added(sizes, of, len(left))
        below = np.cumsum(sizes) - sizes
        below = below - below[candidates.atoms.start[:-1]][candidates.place]
        fit = (of >= 0) & (np.diff(candidates.place, prepend=-1) == 0)
        if not entities:
            # Entities may be in several labels: none is left out before it is counted.
            fit &= (below >= least) & (whole[of] - below >= least)
        places = np.flatnonzero(fit)
        of, below = of[places], below[places]
        nearest = np.lexsort((places, np.abs(2 * below - whole[of]), of))
        with_null = null[left][of]
        # NULL is cut away first: alone, else with as few values as it takes.
        highest = np.flatnonzero(with_null)[::-1]
        highest = highest[np.argsort(of[highest], kind="stable")]
        highest = highest[_rank(of[highest]) < most // 2]
        nearest = nearest[_rank(of[nearest]) < np.where(with_null[nearest], most // 2, most)]
        both = np.concatenate((highest, nearest))
        both = both[np.argsort(of[both], kind="stable")]
        return places[both], np.searchsorted(of[both], np.arange(len(left) + 1))

    def _rests(self, candidates: Candidates, left: Ints, proposals: Proposals) -> None:
        """Labels that stand alone and one rest of each part. left: the places of parts."""
        atoms, place = candidates.atoms, candidates.place
        rank, number_alone, least = self._sizes_of_rest(candidates, left)
        tried = Tried(np.arange(len(least)), atoms, np.arange(len(place)))
        for more in _further(0, COUNTED if self._counting.entities else RESTS):
            moved = least + more
            left = left[moved[left] < number_alone[left]]
            if not len(left):
                break
            tried = tried.only(left)
            number = tried.numbers(left)
            in_rest = (number >= 0) & (rank[tried.where] < moved[tried.parts][tried.atoms.place])
            rests = self._counting.by_group(candidates.attribute, tried.atoms, np.where(in_rest, number, -1), len(left))
            bad = self._judge.failing(rests, atoms.parts[left], self._path)
            passing, left = left[~bad], left[bad]
            # As groups of their own: what stands alone, and one rest for each part.
            number = tried.numbers(passing)
            alone = np.flatnonzero((number >= 0) & ~in_rest)
            standing = added(candidates.leaves[tried.where[alone]], number[alone], len(passing))
            whole = candidates.parts.leaves[passing, candidates.attribute]
            beside = Groups.concatenated([tried.atoms.groups.select(alone), rests.select(np.flatnonzero(~bad))])
            of = np.concatenate((number[alone], np.arange(len(passing))))
            leaves = np.concatenate((candidates.leaves[tried.where[alone]], whole - standing))
            proposals.worth[passing] = self._worth(candidates, passing, beside, of, leaves)
            proposals.kind[passing] = KINDS.index("rest")
            proposals.group[tried.where[in_rest & (number >= 0)]] = 0

    def _sizes_of_rest(self, candidates: Candidates, left: Ints) -> tuple[Ints, Ints, Ints]:
        """int64[atoms]: the place of each label that could stand alone among those of its part, the smallest first, -1
        for others; int64[P]: how many could; and how many of them to put to the rest at least."""
        groups, failing, place = candidates.atoms.groups, candidates.failing, candidates.place
        parts = len(candidates.parts)
        alone = np.flatnonzero((candidates.numbers(left) >= 0) & ~failing & (groups.rows > 0))
        order = alone[np.lexsort((groups.size[alone], place[alone]))]
        of, sizes = place[order], groups.size[order]
        rank, number = np.full(len(place), -1, dtype=np.int64), np.bincount(of, minlength=parts)
        rank[order] = _rank(of)
        least = np.zeros(parts, dtype=np.int64)
        if not self._counting.entities:
            missing = self._judge.least - added(np.where(failing, groups.size, 0), place, parts)
            together = np.cumsum(sizes)
            together = together - (together - sizes)[np.arange(len(of)) - rank[order]]
            short = np.bincount(of[together < missing[of]], minlength=parts)
            least = np.where(missing > 0, short + 1, 0)
        return rank, number, least

    def _worth(self, candidates: Candidates, places: Ints, groups: Groups, place: Ints, leaves: Ints) -> Gains:
        """Of splits of some parts into groups, all of which pass."""
        nothing, parts = np.zeros(len(place), dtype=bool), candidates.parts.select(places)
        gains = self._gain.of(candidates.attribute, parts, groups, place, leaves, nothing)
        return self._gain.worth(gains, groups, place)


def _rank(of: Ints) -> Ints:
    """The place of each among those of its part, which lie one behind another."""
    every = np.arange(len(of))
    new = np.diff(of, prepend=-1) != 0
    return every - np.maximum.accumulate(np.where(new, every, 0))


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
        self._by, self._rows, self._column = by, rows, column
        self._sizes = np.array([ladder.size for ladder in ladders], dtype=np.int64)
        shares = [weight / max(ladder.size - 1, 1) for weight, ladder in zip(weights, ladders, strict=True)]
        common = math.lcm(*(share.denominator for share in shares)) if shares else 1
        scale = [int(share * common) for share in shares]
        most = rows * (sum(of * ladder.size for of, ladder in zip(scale, ladders, strict=True)) + rows)
        # Exact, also where a number of the machine does not hold it.
        self._type: Any = np.int64 if most < EXACT else object
        self._scale = np.array(scale, dtype=self._type)
        # Sums of n ln n as whole numbers of the machine, which are the same in any order.
        self._nat = 2.0 ** math.floor(61 - math.log2(max(rows * math.log(max(rows, 2)), 1)))

    def of(self, attribute: int, parts: Open, groups: Groups, place: Ints, leaves: Ints, failing: Mask) -> Gains:
        """What each of some parts gains. groups: that they are split into, each in the part of the place int64[G], with
        labels of the split attribute that stand for so many leaves int64[G]; failing: those that are suppressed then.
        """
        number, rows, before = len(parts), groups.rows, parts.leaves[:, attribute]
        if self._by == "kl_divergence":
            return self._divergence(groups, place, before, leaves, failing, number)
        lost = added(np.where(failing, rows, 0), place, number).astype(self._type)
        gains: Gains
        if self._by == "discernibility":
            whole, inner = added(rows, place, number), added(np.where(failing, 0, rows * rows), place, number)
            gains = whole.astype(self._type) ** 2 - inner - self._rows * lost
            return gains
        gained = added(np.where(failing, 0, rows * (before[place] - leaves)), place, number)
        gains = self._scale[attribute] * gained.astype(self._type)
        if failing.any():
            # What it costs to suppress one row of a part.
            gains = gains - lost * ((self._sizes - parts.leaves) * self._scale).sum(axis=1)
        return gains

    def worth(self, gains: Gains, groups: Groups, place: Ints) -> Gains:
        """By what the splits of one part are compared. gains: of parts; groups: that they are split into, each in the
        part of the place int64[G].

        A gain of loss counts for each nat of the entropy of the groups' sizes. A part can be divided down to its least
        size, and a split that takes less of this leaves more to others; one that divides no rows takes nothing.
        """
        if self._by != "loss":
            return gains
        whole = self._nats(added(groups.rows, place, len(gains)))
        taken = (whole - added(self._nats(groups.rows), place, len(gains))) / self._nat
        gained, free = gains.astype(np.float64), np.where(gains > 0, math.inf, 0.0)
        mantissa, exponent = np.frexp(np.divide(gained, taken, out=free, where=taken > 0))
        worth: Gains = np.ldexp(np.rint(np.ldexp(mantissa, BITS)), exponent - BITS)
        return worth

    def _nats(self, n: Ints) -> Ints:
        """n ln n, in parts of a nat."""
        nats: Ints = np.rint(n * np.log(np.maximum(n, 1)) * self._nat).astype(np.int64)
        return nats

    def _divergence(self, groups: Groups, place: Ints, before: Ints, leaves: Ints, failing: Mask, number: int) -> Gains:
        inner = np.zeros(number)
        shown = ~failing
        np.add.at(inner, place[shown], (groups.rows * np.log(before[place] / leaves))[shown])
        owner, values, count = groups.told([] if self._column is None else [self._column])
        value = np.zeros_like(count) if self._column is None else values[:, 0]
        span = int(value.max(initial=0)) + 1
        keys, own = np.unique(owner * span + value, return_inverse=True)
        n = np.bincount(own.reshape(-1), weights=count, minlength=len(keys))
        of = place[keys // span]
        merged, whole = np.unique(of * span + keys % span, return_inverse=True)
        total = np.bincount(whole.reshape(-1), weights=n, minlength=len(merged))
        np.add.at(inner, of, n * np.log(n))
        np.add.at(inner, merged // span, -total * np.log(total))
        return np.array([round(value / self._rows, DIGITS) for value in inner.tolist()], dtype=np.float64)
