"""epsilon-privacy against realistic adversaries: the model, what priors weigh, and the least block that can pass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from qblock import adversary as adversaries
from qblock.adversary import Layer
from qblock.blocks import Blocks, Floats, Ints, Mask, Reference, by_parts, grouped
from qblock.models.base import (
    About,
    Bound,
    Exact,
    Model,
    Monotone,
    Setting,
    at_least,
    parameter,
    privacy_model,
    require,
)
from qblock.models.ratios import NEAR, double

FAR = Fraction(10**100)
"""Products of a few doubles up to here, and of their inverses, are doubles too."""
TRIES = 1 << 16
"""Caps that `least_size` computes at most."""

Masses = tuple[Fraction | None, Sequence[Fraction]]
"""A stubbornness (None for infinite) and the prior mass of every single value."""
Predicates = str | tuple[tuple[str | None, ...], ...]


def _settings() -> Iterator[Setting]:
    """Each class but IV, which accepts nothing: I and II with less and with more stubbornness, priors as they come.

    An audit gives class I no less than a row of prior for each value, on average; class II needs that.
    """

    def total(least: int) -> Callable[[Reference], int]:
        return lambda reference: max(least, reference.values)

    few, many = 1_000, 1_000_000
    for sigma in (few, many):
        for prior in ("uniform", "table"):
            parameters = {"adversary": "I", "stubbornness": sigma, "prior": prior}
            yield Setting(parameters, audited=False)
            if sigma == few and prior == "table":
                yield Setting(parameters | {"stubbornness": total(few)}, compared=False)
    for sigma in (few, many):
        yield Setting({"adversary": "II", "stubbornness": total(sigma)}, audited=sigma == few)
    for prior in ("uniform", "table"):
        yield Setting({"adversary": "III", "prior": prior})


@privacy_model
class EpsilonPrivacy(Model):
    """Nobody's chance of a predicate grows, or shrinks, by more than epsilon for having a row in the table (EP).

    adversary: I knows the shape of the prior and has stubbornness `stubbornness` (`at_most`: that or any smaller one
    with every sigma(s) >= 1); II has any shape with every sigma(s) >= 1; III has infinite stubbornness; IV is any.
    prior: uniform, table, values or from_table, see adversary.prior_shape; stubbornness may be left out with
    from_table. known: b, the number of other people in the block whose values the adversary knows. predicates:
    singletons, taxonomy, negative, tuples of values, or guarded: in each block those that its people guard
    (Blocks.guards, Reference.guarded), of which a block without any has none; then nothing is monotone, since a union
    guards what a part of it guards, over the rows of parts that guard nothing.
    """

    name = "epsilon_privacy"
    about = About(
        citation="EP (VLDB 2009) 2-3",
        condition="max(p_in/p_out, (1-p_out)/(1-p_in)) <= epsilon",
        meaning="what an attacker believes about the {sensitive} of anybody changes by at most the factor "
        "{epsilon} because that person is in the table",
        bounds=(Bound("epsilon", "smaller"),),
        needs=frozenset({"domain"}),
        settings=tuple(_settings()),
    )

    epsilon: int | Fraction = parameter("rational", at_least(1), 5)
    adversary: str = parameter("choice", ("I", "II", "III", "IV"), "III")
    stubbornness: int | Fraction | None = parameter("rational", at_least(1), 1000, default=None)
    at_most: bool = parameter("flag", example=False, default=True)
    prior: str = parameter("prior", example="table", default="uniform")
    known: int = parameter("whole", at_least(0), 1, default=0)
    predicates: Predicates = parameter("predicates", example="negative", default="singletons")

    def __post_init__(self) -> None:
        if not isinstance(self.predicates, str):
            object.__setattr__(self, "predicates", tuple(tuple(labels) for labels in self.predicates))
        super().__post_init__()
        kind, sigma = self.adversary, self.stubbornness
        require(self.name, "prior", self.prior, self.prior in adversaries.PRIORS, ", ".join(adversaries.PRIORS))
        named = ("singletons", "taxonomy", "negative", "guarded")
        valid = self.predicates in named if isinstance(self.predicates, str) else len(self.predicates) > 0
        require(self.name, "predicates", self.predicates, valid, f"{', '.join(named)} or lists of values")
        if kind in ("II", "IV"):
            require(self.name, "prior", self.prior, not self._own, f"none, since adversary {kind} may have any prior")
        if kind in ("III", "IV"):
            require(self.name, "stubbornness", sigma, sigma is None, f"none for adversary {kind}")
        elif sigma is None:
            valid = kind == "I" and self.prior == "from_table"
            require(self.name, "stubbornness", "(nothing)", valid, f"a number, which adversary {kind} needs")

    @property
    def needs(self) -> frozenset[str]:
        needed = {
            "prior": self._own,
            "distribution": self.prior == "table",
            "taxonomy": self.predicates == "taxonomy",
            "guards": self.predicates == "guarded",
        }
        return self.about.needs | {need for need, needs_it in needed.items() if needs_it}

    @property
    def _own(self) -> bool:
        """Whether the prior is one that the spec brings."""
        return self.prior in ("values", "from_table")

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=self.predicates != "guarded", suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        if reference.values < 2 or self.adversary == "IV":
            return []
        if self.predicates == "guarded":
            valid = reference.guarded is not None
            require(self.name, "predicates", self.predicates, valid, "a table of what each person guards")
        else:
            adversaries.layers(self.predicates, reference)
        if self.adversary == "II":
            sigma, least = self.stubbornness, reference.values
            require(self.name, "stubbornness", sigma, sigma is not None and sigma >= least, f"at least V = {least}")
            return []
        shape = adversaries.prior_shape(self.prior, reference)
        return self._warnings(shape, self._stubbornness(reference)) if self.adversary == "I" else []

    def _warnings(self, shape: tuple[Fraction, ...], sigma: Fraction) -> list[str]:
        warnings = []
        small = sum(share * sigma < 1 for share in shape)
        if small:
            warnings.append(
                f"{self.name}: {small} of the {len(shape)} values weigh less than one row in the prior (sigma(s) < 1)"
            )
        least = adversaries.least_stubbornness(shape)
        if self.at_most and sigma < least:
            warnings.append(
                f"{self.name}: no stubbornness up to {sigma} gives every value a row (that takes {least}), "
                f"so exactly {sigma} is used"
            )
        return warnings

    def _stubbornness(self, reference: Reference) -> Fraction:
        if self.stubbornness is None:
            return adversaries.external_stubbornness(reference)
        return Fraction(self.stubbornness)

    def _least_rows(self, reference: Reference) -> int:
        if reference.values < 2 or self.predicates == "guarded":
            return 1  # a block in which nobody guards anything has any size
        return reference.rows + 1 if self.adversary == "IV" else least(self, reference)

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        if reference.values < 2:
            return np.ones(len(blocks))
        if self.adversary == "IV":
            return np.where(self._asking(blocks), math.inf, 1.0)
        return by_parts(lambda part: self._measure_part(part, reference), blocks)

    def _asking(self, part: Blocks) -> Mask:
        """bool[B]: blocks for which there is any predicate."""
        if self.predicates != "guarded":
            return np.ones(len(part), dtype=bool)
        assert part.guards is not None
        return np.asarray(np.diff(part.guards.start) > 0)

    def _measure_part(self, part: Blocks, reference: Reference) -> Floats:
        result = np.where((part.rows <= self.known) & self._asking(part), math.inf, 1.0)
        for layer in setting(self, reference):
            pairs, x = layer.pairs(part)
            for side in layer.sides:
                values = side.epsilon(pairs.value, x, part.total[pairs.owner], self.known)
                result = np.maximum(result, pairs.max(values))
            result[layer.broken(part, self.known)] = math.inf
        return result

    def _exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        return self._exact_values(block, reference)[0]

    def _exactly(self, parameter: str, near: Ints, blocks: Blocks, reference: Reference) -> list[tuple[Ints, Exact]]:
        # Blocks of one size are often all near, with few different counts: remembering those beats comparing blocks.
        values = self._exact_values(blocks.select(near), reference)
        return [(near[i : i + 1], value) for i, value in enumerate(values)]

    def _exact_values(self, blocks: Blocks, reference: Reference) -> list[Exact]:
        worst = self._measure("epsilon", blocks, reference)
        result: list[Exact] = [math.inf if math.isinf(value) else Fraction(1) for value in worst.tolist()]
        if reference.values < 2 or self.adversary == "IV":
            return result
        for layer in setting(self, reference):
            pairs, x = layer.pairs(blocks)
            n = blocks.total[pairs.owner]
            for side in layer.sides:
                values = side.epsilon(pairs.value, x, n, self.known)
                # Only a predicate whose double is within the error of its block's worst can be the worst.
                bound = worst[pairs.owner]
                near = np.flatnonzero((values >= bound * (1 - NEAR)) & np.isfinite(bound) & (x > 0))
                known: dict[tuple[int, int, int], Fraction | float] = {}
                columns = (pairs.owner[near], side.kind[pairs.value[near]], x[near], n[near])
                for owner, *key in zip(*(column.tolist() for column in columns), strict=True):
                    kind, count, size = key
                    if (kind, count, size) not in known:
                        known[kind, count, size] = side.exact(kind, count, size, self.known)
                    result[owner] = max(result[owner], known[kind, count, size])
        return result


@lru_cache(maxsize=64)
def setting(model: EpsilonPrivacy, reference: Reference) -> tuple[Sided | Guarded, ...]:
    """What a model's predicates weigh in its adversary's priors; kept, since every node of a search asks for it."""
    shape = () if model.adversary == "II" else adversaries.prior_shape(model.prior, reference)
    if model.predicates == "guarded":
        sets = reference.guarded or ()
        shares = tuple(sum((shape[v] for v in members), Fraction(0)) for members in sets) if shape else ()
        sides = _sides(model, reference, tuple(map(len, sets)), shape, shares)
        return (Guarded.of(sets, reference.values, sides),) if sets else ()
    result = []
    for layer in adversaries.layers(model.predicates, reference):
        required = np.ones(reference.values, dtype=np.int64)
        if shape and model.known == 0:
            required = np.array([share > 0 for share in shape], dtype=np.int64)
        shares = layer.shares(shape) if shape else ()
        result.append(Sided(layer, _sides(model, reference, layer.members(), shape, shares), required))
    return tuple(result)


def _sides(
    model: EpsilonPrivacy,
    reference: Reference,
    members: tuple[int, ...],
    shape: tuple[Fraction, ...],
    shares: tuple[Fraction, ...],
) -> tuple[Side, ...]:
    """The priors to be tried. members: values in each predicate; shares: prior share of each (not for class II)."""
    if model.adversary == "II":
        return (Side.of(Fraction(model.stubbornness or 0), tuple(map(Fraction, members))),)
    if model.adversary == "III":
        return (Side.of(None, shares),)
    return tuple(Side.of(s, tuple(s * share for share in shares)) for s in sigmas(model, shape, reference))


def sigmas(model: EpsilonPrivacy, shape: tuple[Fraction, ...], reference: Reference) -> tuple[Fraction, ...]:
    """The ends of the range of stubbornness of class I; p_out is a Mobius function of it, so the ends suffice."""
    sigma = model._stubbornness(reference)
    least = adversaries.least_stubbornness(shape)
    return (least, sigma) if model.at_most and least < sigma else (sigma,)


@lru_cache(maxsize=64)
def least(model: EpsilonPrivacy, reference: Reference) -> int:
    """A lower bound of the block size; lists of predicates only ask for more rows than are known."""
    sided = setting(model, reference)[0]
    assert isinstance(sided, Sided)
    if model.predicates == "negative":
        return max(model.known + 1, int(sided.required.sum()) * (model.known + 1))
    if sided.layer.single:
        sides = [(side.sigma, side.masses) for side in sided.sides]
        return least_size(Fraction(model.epsilon), model.known, sides, reference.rows)
    return model.known + 1


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


def least_size(epsilon: Fraction, known: int, sides: Sequence[Masses], rows: int) -> int:
    """A lower bound of n(q) for blocks where the predicates of all single values hold; at most about rows + 1.

    With Nb = n - b and k = epsilon Nb/(n + sigma - 1), the two conditions on x = n(q,s) >= 1 (EP, exact form) are
    x (1-k) <= k (sigma(s)-1), which for x >= 1 asks for k max(1, sigma(s)) >= 1: the closed form `_start`; and
    x (epsilon (n+sigma-1) - Nb) <= Nb (epsilon (n+sigma-1) - (n+sigma-sigma(s))). With infinite stubbornness they are
    x <= epsilon p Nb and x <= Nb (1 - (1-p)/epsilon). At a given n, both are caps on x for each value by itself, and
    the counts of a block add up to n: sizes at which the caps add up to less are impossible. They are tried upwards
    from the closed form, a limited number of them; stopping early leaves a bound that is only less tight.
    """
    for sigma, masses in sides:
        if known == 0 and max(masses) == (1 if sigma is None else sigma):
            return 1  # a value that is certain before the table is published may fill a block of one row
    start = max([known + 1, *(_start(epsilon, known, sigma, masses, rows) for sigma, masses in sides)])
    kinds = Counter(zip(*(masses for _, masses in sides), strict=True))
    caps = [
        (copies, [_cap(epsilon, known, sigma, mass) for (sigma, _), mass in zip(sides, kind, strict=True)])
        for kind, copies in kinds.items()
    ]
    for n in range(start, min(rows, start + TRIES // (len(kinds) * len(sides))) + 1):
        if sum(copies * max(0, min(cap(n) for cap in of)) for copies, of in caps) >= n:
            return n
        start = n + 1
    return min(start, rows + 1)


def _start(epsilon: Fraction, known: int, sigma: Fraction | None, masses: Sequence[Fraction], rows: int) -> int:
    if sigma is None:
        return 1
    top = max(Fraction(1), *masses)
    lacking, gain = sigma - 1 + epsilon * known * top, epsilon * top - 1
    if gain == 0:
        return 1 if lacking == 0 else rows + 1
    return math.ceil(lacking / gain)


def _cap(epsilon: Fraction, known: int, sigma: Fraction | None, mass: Fraction) -> Callable[[int], int]:
    """The most rows of a value in a block of n. In integers: doubles lose (epsilon - 1) n where epsilon is near 1."""
    p, q = epsilon.as_integer_ratio()
    unit = math.lcm(mass.denominator, 1 if sigma is None else sigma.denominator)
    m, s = int(mass * unit), int((sigma or 0) * unit)

    def infinite(n: int) -> int:
        left = n - known
        second = left * (p * unit - q * (unit - m)) // (p * unit)
        return min(p * m * left // (q * unit), second, left - 1)

    def finite(n: int) -> int:
        left, total = n - known, (n - 1) * unit + s
        most = left - 1
        lacking, slope = q * total - p * left * unit, p * total - q * left * unit
        if lacking > 0:
            most = min(most, p * left * (m - unit) // lacking)
        if slope > 0:
            most = min(most, left * (p * total - q * (n * unit + s - m)) // slope)
        return most

    return infinite if sigma is None else finite
