"""What an adversary who knows a population believes about each person, one combination after the other, in fractions.

Source: l-diversity (ICDE 2006), section 3 and Theorem 3.1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from qblock.bayes import InconsistentPrior
from qblock.errors import InputError, ParameterError

Leaf = Hashable
"""A combination of leaf quasi-identifier values, or its number."""

Weights = Mapping[Leaf, Sequence[Fraction | int]]
"""f(q,s) of the population, in any scale: for each leaf, one weight for each sensitive value."""


@dataclass(frozen=True)
class Belief:
    """What is believed about a person with this leaf who is in the table: one share for each sensitive value.

    counts: the table's rows with this leaf, by sensitive value.
    """

    leaf: Leaf
    prior: tuple[Fraction, ...]
    posterior: tuple[Fraction, ...]
    counts: tuple[int, ...]

    def occurs(self, value: int) -> bool:
        """Whether some row of the table has this leaf and the value."""
        return self.counts[value] > 0

    def differs(self, value: int) -> bool:
        """Whether some row of the table has this leaf and another value."""
        return sum(self.counts) > self.counts[value]


@dataclass(frozen=True)
class Disclosure:
    """A leaf and the number of a sensitive value, with the belief in it before and after the release."""

    leaf: Leaf
    value: int
    prior: Fraction
    posterior: Fraction


def beliefs(
    population: Weights, table: Mapping[Leaf, Sequence[int]], block: Mapping[Leaf, Hashable]
) -> tuple[Belief, ...]:
    """Prior f(s|q) and posterior (Theorem 3.1) of every leaf that occurs in the table.

    table: n(q,s) of each leaf, leaves without rows may be missing; block: the block of every leaf of the population.
    Raises InconsistentPrior where the posterior is undefined, and InputError for a leaf that the population lacks.
    """
    mass: dict[Hashable, list[Fraction]] = {}
    for leaf, weights in population.items():
        mass[block[leaf]] = _plus(mass.get(block[leaf]), [Fraction(w) for w in weights])
    published: dict[Hashable, list[int]] = {}
    rows = {leaf: tuple(counts) for leaf, counts in table.items() if sum(counts) > 0}
    for leaf, counts in rows.items():
        if leaf not in population:
            raise InputError("a quasi-identifier combination of the table is missing in the population's distribution")
        previous = published.get(block[leaf], [0] * len(counts))
        published[block[leaf]] = [x + y for x, y in zip(previous, counts, strict=True)]
    return tuple(
        Belief(leaf, *_belief(population[leaf], mass[block[leaf]], published[block[leaf]]), counts)
        for leaf, counts in rows.items()
    )


def _plus(total: list[Fraction] | None, weights: list[Fraction]) -> list[Fraction]:
    return weights if total is None else [x + y for x, y in zip(total, weights, strict=True)]


def _belief(
    weights: Sequence[Fraction | int], mass: list[Fraction], counts: list[int]
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    total, whole = sum((Fraction(w) for w in weights), Fraction(0)), sum(mass)
    if total == 0:
        raise InconsistentPrior("inconsistent prior: somebody in the table has a combination that nobody has")
    prior = tuple(Fraction(w) / total for w in weights)
    if any(n and not m for n, m in zip(counts, mass, strict=True)):
        raise InconsistentPrior("inconsistent prior: a block holds a sensitive value that nobody in it can have")
    # n(q*,s) f(s|q)/f(s|q*); a value that cannot occur in the block has no rows there.
    scores = [n * p / (m / whole) if m else Fraction(0) for n, p, m in zip(counts, prior, mass, strict=True)]
    if sum(scores) == 0:
        raise InconsistentPrior("inconsistent prior: a block holds no sensitive value that one of its people can have")
    return prior, tuple(score / sum(scores) for score in scores)


def largest_change(beliefs: Sequence[Belief]) -> Fraction:
    """max |alpha - beta| over all leaves and values; 0 for an empty table."""
    return max(
        (abs(b - a) for belief in beliefs for a, b in zip(belief.prior, belief.posterior, strict=True)),
        default=Fraction(0),
    )


def _each(beliefs: Sequence[Belief]) -> Iterator[tuple[Belief, Disclosure]]:
    for belief in beliefs:
        for value, (alpha, beta) in enumerate(zip(belief.prior, belief.posterior, strict=True)):
            yield belief, Disclosure(belief.leaf, value, alpha, beta)


def breaches(beliefs: Sequence[Belief], rho1: Fraction, rho2: Fraction) -> tuple[Disclosure, ...]:
    """(rho1,rho2)-breaches: a belief that rises from below rho1 to above rho2, or falls the same way; strict.

    Raises ParameterError unless 0 < rho1 < rho2 < 1.
    """
    if not 0 < rho1 < rho2 < 1:
        raise ParameterError(f"rho1 = {rho1}, rho2 = {rho2} are out of range; valid: 0 < rho1 < rho2 < 1")
    return tuple(
        d
        for _, d in _each(beliefs)
        if (d.prior < rho1 and d.posterior > rho2) or (d.prior > 1 - rho1 and d.posterior < 1 - rho2)
    )


def positive_disclosures(beliefs: Sequence[Belief], delta: Fraction) -> tuple[Disclosure, ...]:
    """Values believed with more than 1 - delta (strict) that some row with that leaf has; 0 < delta < 1."""
    _check("delta", delta)
    return tuple(d for belief, d in _each(beliefs) if d.posterior > 1 - delta and belief.occurs(d.value))


def negative_disclosures(beliefs: Sequence[Belief], epsilon: Fraction) -> tuple[Disclosure, ...]:
    """Values believed with less than epsilon (strict) where some row with that leaf has another; 0 < epsilon < 1."""
    _check("epsilon", epsilon)
    return tuple(d for belief, d in _each(beliefs) if d.posterior < epsilon and belief.differs(d.value))


def _check(name: str, value: Fraction) -> None:
    if not 0 < value < 1:
        raise ParameterError(f"{name} = {value} is out of range; valid: 0 < {name} < 1")
