"""What predicates weigh in the priors of an adversary, and the epsilons of many blocks at once (EP 2-3)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from qblock import adversary as adversaries
from qblock.adversary import Layer
from qblock.blocks import Blocks, Floats, Ints, Mask
from qblock.models.chunks import grouped
from qblock.models.ratios import double

FAR = Fraction(10**100)
"""Products of a few doubles up to here, and of their inverses, are doubles too."""


@dataclass(frozen=True, eq=False)
class Side:
    """One stubbornness (None for infinite) with the prior mass of each predicate: sigma(phi), or its share.

    weights and remaining: the masses, and what the prior leaves for everything else, as doubles; kind: the first
    predicate with the same mass; plain: whether doubles hold all of them and their products.
    """

    sigma: Fraction | None
    masses: tuple[Fraction, ...]
    weights: Floats
    remaining: Floats
    kind: Ints
    plain: bool = True

    @classmethod
    def of(cls, sigma: Fraction | None, masses: tuple[Fraction, ...]) -> Side:
        remaining = [(1 if sigma is None else sigma) - mass for mass in masses]
        first = {mass: i for i, mass in reversed(list(enumerate(masses)))}
        kind = np.array([first[mass] for mass in masses], dtype=np.int64)
        plain = all(mass == 0 or 1 / FAR < mass < FAR for mass in (*first, *set(remaining), sigma or 1))
        weights, rest = (np.array([double(mass) for mass in of], dtype=np.float64) for of in (masses, remaining))
        return cls(sigma, masses, weights, rest, kind, plain)

    def exact(self, predicate: int, x: int, n: int, known: int) -> Fraction | float:
        if self.sigma is None:
            return adversaries.smallest_epsilon_infinite(x, n, known, self.masses[predicate])
        return adversaries.smallest_epsilon(x, n, known, self.masses[predicate], self.sigma)

    def epsilon(self, predicate: Ints, x: Ints, n: Ints, known: int) -> Floats:
        """adversary.smallest_epsilon (or its infinite form) as doubles, over arrays; for n > known."""
        if not self.plain:
            return self._one_by_one(predicate, x, n, known)
        known = min(known, int(n.max(initial=0)))  # nobody is left in any block either way
        left, mass, rest = n - known, self.weights[predicate], self.remaining[predicate]
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.sigma is None:
                first, second = x / (left * mass), rest * left / (left - x)
                certain = rest == 0
                never = (mass == 0) | (left <= x)
            else:
                total = (n - 1) + float(self.sigma)
                first, second = x * total / (left * ((x - 1) + mass)), left * ((n - x) + rest) / (total * (left - x))
                certain = (rest == 0) & (x == n)
                never = ((x == 1) & (mass == 0)) | (left <= x)
        result = np.maximum(1.0, np.maximum(first, second))
        result = np.where(never, math.inf, result)
        result = np.where(certain, 1.0 if known == 0 else math.inf, result)
        return np.asarray(np.where(x == 0, 1.0, result), dtype=np.float64)

    def _one_by_one(self, predicate: Ints, x: Ints, n: Ints, known: int) -> Floats:
        """adversary.smallest_epsilon of each distinct case, exactly in integers."""
        cases, place = np.unique(np.stack([self.kind[predicate], x, n], axis=1), axis=0, return_inverse=True)
        epsilons = [self.exact(kind, count, size, known) if count else 1 for kind, count, size in cases.tolist()]
        values = [value if isinstance(value, float) else double(value) for value in epsilons]
        return np.array(values, dtype=np.float64)[place.reshape(-1)]


@dataclass(frozen=True, eq=False)
class Sided:
    """A layer of predicates with the priors to be tried on it; required: bool[V], absence of the value is fatal."""

    layer: Layer
    sides: tuple[Side, ...]
    required: Ints

    def pairs(self, part: Blocks) -> tuple[Blocks, Ints]:
        """The blocks counted by predicate, and x = n(q, phi) of each pair."""
        pairs = part if self.layer.single else grouped(part, self.layer.group)
        return pairs, part.total[pairs.owner] - pairs.count if self.layer.complement else pairs.count

    def broken(self, part: Blocks, known: int) -> Mask:
        """bool[B]: blocks where everybody satisfies the complement of an absent value, which is not certain before."""
        if not self.layer.complement:
            return np.zeros(len(part), dtype=bool)
        return np.asarray(part.sum(self.required[part.value]) < self.required.sum(), dtype=bool)


@dataclass(frozen=True, eq=False)
class Guarded:
    """Predicates that count only in the blocks where somebody guards them; they may overlap.

    start: int64[F+1], member: int64[]: the values of predicate i are member[start[i]:start[i+1]]; values: V. Which of
    them count in a block is in Blocks.guards.
    """

    start: Ints
    member: Ints
    values: int
    sides: tuple[Side, ...]

    @classmethod
    def of(cls, predicates: Sequence[Sequence[int]], values: int, sides: tuple[Side, ...]) -> Guarded:
        start = np.cumsum([0, *(len(members) for members in predicates)]).astype(np.int64)
        return cls(start, np.array([v for members in predicates for v in members], np.int64), values, sides)

    def pairs(self, part: Blocks) -> tuple[Blocks, Ints]:
        """The guarded predicates of each block, with x = n(q, phi); a block without any has predicate 0 with x = 0."""
        assert part.guards is not None
        guards, lacking = part.guards, np.diff(part.guards.start) == 0
        start = guards.start + np.concatenate(([0], np.cumsum(lacking)))
        predicate = np.insert(guards.predicate, guards.start[:-1][lacking], 0)
        owner = np.repeat(np.arange(len(part), dtype=np.int64), np.diff(start))
        sizes = np.diff(self.start)[predicate]
        first = np.concatenate(([0], np.cumsum(sizes)))
        within = np.arange(first[-1]) - np.repeat(first[:-1], sizes)
        member = self.member[np.repeat(self.start[predicate], sizes) + within]
        wanted = np.repeat(owner, sizes) * self.values + member
        there = part.owner * self.values + part.value  # ascending, since pairs are sorted by block and value
        place = np.minimum(np.searchsorted(there, wanted), len(there) - 1)
        count = np.where(there[place] == wanted, part.count[place], 0)
        x = np.add.reduceat(count, first[:-1]) if len(predicate) else count
        x[lacking[owner]] = 0
        pairs = replace(part, start=start.astype(np.int64), value=predicate, count=x, guards=None, containing=())
        return pairs, x

    def broken(self, part: Blocks, known: int) -> Mask:
        return np.zeros(len(part), dtype=bool)
