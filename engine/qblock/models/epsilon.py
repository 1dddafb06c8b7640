"""epsilon-privacy against realistic adversaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from qblock import adversary as adversaries
from qblock.blocks import Blocks, Floats, Ints, Mask, Reference
from qblock.models.about import About, Bound, Parameter, Setting, at_least, require
from qblock.models.base import Exact, Model, Monotone
from qblock.models.chunks import by_parts
from qblock.models.epsilon_sides import Guarded, Side, Sided
from qblock.models.epsilon_sizes import least_size
from qblock.models.ratios import NEAR

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


@dataclass(frozen=True, kw_only=True)
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
        parameters=(
            Parameter("epsilon", "rational", at_least(1), 5),
            Parameter("adversary", "choice", ("I", "II", "III", "IV"), "III"),
            Parameter("stubbornness", "rational", at_least(1), 1000),
            Parameter("at_most", "flag", example=False),
            Parameter("prior", "prior", example="table"),
            Parameter("known", "whole", at_least(0), 1),
            Parameter("predicates", "predicates", example="negative"),
        ),
        bounds=(Bound("epsilon", "smaller"),),
        needs=frozenset({"domain"}),
        settings=tuple(_settings()),
    )

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
