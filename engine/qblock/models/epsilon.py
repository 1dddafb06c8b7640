"""epsilon-privacy against realistic adversaries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from qblock import adversary as adversaries
from qblock.adversary import Layer
from qblock.blocks import Blocks, Floats, Ints, Reference
from qblock.models.base import Bound, Exact, Model, Monotone, rational, require, whole
from qblock.models.chunks import by_parts, grouped
from qblock.models.epsilon_sizes import least_size
from qblock.models.ratios import NEAR

Predicates = str | tuple[tuple[str | None, ...], ...]


@dataclass(frozen=True, kw_only=True)
class EpsilonPrivacy(Model):
    """Nobody's chance of a predicate grows, or shrinks, by more than epsilon for having a row in the table (EP).

    adversary: I knows the shape of the prior and has stubbornness `stubbornness` (`at_most`: that or any smaller one
    with every sigma(s) >= 1); II has any shape with every sigma(s) >= 1; III has infinite stubbornness; IV is any.
    prior: uniform, table, values or from_table, see adversary.prior_shape; stubbornness may be left out with
    from_table. known: b, the number of other people in the block whose values the adversary knows. predicates:
    singletons, taxonomy, negative, or tuples of values.
    """

    name = "epsilon_privacy"
    citation = "EP (VLDB 2009) 2-3"
    condition = "max(p_in/p_out, (1-p_out)/(1-p_in)) <= epsilon"
    bounds = (Bound("epsilon", "smaller"),)
    needs = frozenset({"domain"})

    epsilon: int | Fraction
    adversary: str
    stubbornness: int | Fraction | None = None
    at_most: bool = True
    prior: str = "uniform"
    known: int = 0
    predicates: Predicates = "singletons"

    def __post_init__(self) -> None:
        if not isinstance(self.predicates, str):
            object.__setattr__(self, "predicates", tuple(tuple(labels) for labels in self.predicates))
        kind, sigma, own = self.adversary, self.stubbornness, self.prior in ("values", "from_table")
        require(
            self.name, "epsilon", self.epsilon, rational(self.epsilon) and self.epsilon >= 1, "epsilon >= 1, exactly"
        )
        require(self.name, "adversary", kind, kind in ("I", "II", "III", "IV"), "I, II, III or IV")
        require(self.name, "prior", self.prior, self.prior in adversaries.PRIORS, ", ".join(adversaries.PRIORS))
        require(self.name, "known", self.known, whole(self.known) and self.known >= 0, "an integer b >= 0")
        named = ("singletons", "taxonomy", "negative")
        valid = self.predicates in named if isinstance(self.predicates, str) else len(self.predicates) > 0
        require(self.name, "predicates", self.predicates, valid, f"{', '.join(named)} or lists of values")
        if kind in ("II", "IV"):
            require(self.name, "prior", self.prior, not own, f"none, since adversary {kind} may have any prior")
        if kind in ("III", "IV"):
            require(self.name, "stubbornness", sigma, sigma is None, f"none for adversary {kind}")
        elif sigma is None:
            valid = kind == "I" and self.prior == "from_table"
            require(self.name, "stubbornness", "(nothing)", valid, f"a number, which adversary {kind} needs")
        else:
            require(self.name, "stubbornness", sigma, rational(sigma) and sigma >= 1, "a total of at least 1")

        needs = {"prior": own, "distribution": self.prior == "table", "taxonomy": self.predicates == "taxonomy"}
        object.__setattr__(self, "needs", type(self).needs | {need for need, needed in needs.items() if needed})

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        if reference.values < 2 or self.adversary == "IV":
            return []
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

    def least_block_size(self, reference: Reference) -> int:
        if reference.values < 2:
            return 1
        return reference.rows + 1 if self.adversary == "IV" else least(self, reference)

    def measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        if reference.values < 2:
            return np.ones(len(blocks))
        if self.adversary == "IV":
            return np.full(len(blocks), math.inf)
        return by_parts(lambda part: self._measure(part, reference), blocks)

    def _measure(self, part: Blocks, reference: Reference) -> Floats:
        result = np.where(part.rows <= self.known, math.inf, 1.0)
        for layer in setting(self, reference):
            pairs, x = layer.pairs(part)
            for _, values in layer.epsilons(pairs, x, part.total[pairs.owner], self.known):
                result = np.maximum(result, pairs.max(values))
            result[layer.broken(part, self.known)] = math.inf
        return result

    def exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        return self._exact_values(block, reference)[0]

    def _exactly(self, parameter: str, near: Ints, blocks: Blocks, reference: Reference) -> list[tuple[Ints, Exact]]:
        # Blocks of one size are often all near, with few different counts: remembering those beats comparing blocks.
        values = self._exact_values(blocks.select(near), reference)
        return [(near[i : i + 1], value) for i, value in enumerate(values)]

    def _exact_values(self, blocks: Blocks, reference: Reference) -> list[Exact]:
        worst = self.measure("epsilon", blocks, reference)
        result: list[Exact] = [math.inf if math.isinf(value) else Fraction(1) for value in worst.tolist()]
        if reference.values < 2 or self.adversary == "IV":
            return result
        for layer in setting(self, reference):
            pairs, x = layer.pairs(blocks)
            n = blocks.total[pairs.owner]
            for side, values in layer.epsilons(pairs, x, n, self.known):
                # Only a predicate whose double is within the error of its block's worst can be the worst.
                near = np.flatnonzero((values >= worst[pairs.owner] * (1 - NEAR)) & np.isfinite(worst[pairs.owner]))
                known: dict[tuple[int, int, int], Fraction | float] = {}
                columns = (pairs.owner[near], side.kind[pairs.value[near]], x[near], n[near])
                for owner, *key in zip(*(column.tolist() for column in columns), strict=True):
                    kind, count, size = key
                    if (kind, count, size) not in known:
                        known[kind, count, size] = side.exact(kind, count, size, self.known)
                    result[owner] = max(result[owner], known[kind, count, size])
        return result


@dataclass(frozen=True, eq=False)
class Side:
    """One stubbornness (None for infinite) with the prior mass of each predicate: sigma(phi), or its share.

    weights and others: the masses, and what the prior leaves for everything else, as doubles; kind: the first
    predicate with the same mass.
    """

    sigma: Fraction | None
    masses: tuple[Fraction, ...]
    weights: Floats
    others: Floats
    kind: Ints

    @classmethod
    def of(cls, sigma: Fraction | None, masses: tuple[Fraction, ...]) -> Side:
        others = [(1 if sigma is None else sigma) - mass for mass in masses]
        first = {mass: i for i, mass in reversed(list(enumerate(masses)))}
        kind = np.array([first[mass] for mass in masses], dtype=np.int64)
        return cls(sigma, masses, np.array(masses, dtype=np.float64), np.array(others, dtype=np.float64), kind)

    def exact(self, predicate: int, x: int, n: int, known: int) -> Fraction | float:
        if self.sigma is None:
            return adversaries.smallest_epsilon_infinite(x, n, known, self.masses[predicate])
        return adversaries.smallest_epsilon(x, n, known, self.masses[predicate], self.sigma)

    def epsilon(self, predicate: Ints, x: Ints, n: Ints, known: int) -> Floats:
        """adversary.smallest_epsilon (or its infinite form) as doubles, over arrays; for n > known."""
        left, mass, rest = n - known, self.weights[predicate], self.others[predicate]
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

    def epsilons(self, pairs: Blocks, x: Ints, n: Ints, known: int) -> Iterator[tuple[Side, Floats]]:
        for side in self.sides:
            yield side, side.epsilon(pairs.value, x, n, known)

    def broken(self, part: Blocks, known: int) -> np.typing.NDArray[np.bool_]:
        """bool[B]: blocks where everybody satisfies the complement of an absent value, which is not certain before."""
        if not self.layer.complement:
            return np.zeros(len(part), dtype=bool)
        return np.asarray(part.sum(self.required[part.value]) < self.required.sum(), dtype=bool)


@lru_cache(maxsize=64)
def setting(model: EpsilonPrivacy, reference: Reference) -> tuple[Sided, ...]:
    """What a model's predicates weigh in its adversary's priors; kept, since every node of a search asks for it."""
    result = []
    for layer in adversaries.layers(model.predicates, reference):
        required = np.ones(reference.values, dtype=np.int64)
        if model.adversary == "II":
            sigma = Fraction(model.stubbornness or 0)
            sides: tuple[Side, ...] = (Side.of(sigma, tuple(Fraction(size) for size in layer.members())),)
        else:
            shape = adversaries.prior_shape(model.prior, reference)
            shares = layer.shares(shape)
            if model.adversary == "III":
                sides = (Side.of(None, shares),)
            else:
                sides = tuple(Side.of(s, tuple(s * share for share in shares)) for s in sigmas(model, shape, reference))
            if model.known == 0:
                required = np.array([share > 0 for share in shape], dtype=np.int64)
        result.append(Sided(layer, sides, required))
    return tuple(result)


def sigmas(model: EpsilonPrivacy, shape: tuple[Fraction, ...], reference: Reference) -> tuple[Fraction, ...]:
    """The ends of the range of stubbornness of class I; p_out is a Mobius function of it, so the ends suffice."""
    sigma = model._stubbornness(reference)
    least = adversaries.least_stubbornness(shape)
    return (least, sigma) if model.at_most and least < sigma else (sigma,)


@lru_cache(maxsize=64)
def least(model: EpsilonPrivacy, reference: Reference) -> int:
    """A lower bound of the block size; lists of predicates only ask for more rows than are known."""
    sided = setting(model, reference)
    if model.predicates == "negative":
        return max(model.known + 1, int(sided[0].required.sum()) * (model.known + 1))
    if sided[0].layer.single:
        sides = [(side.sigma, side.masses) for side in sided[0].sides]
        return least_size(Fraction(model.epsilon), model.known, sides, reference.rows)
    return model.known + 1
