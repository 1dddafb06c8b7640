"""The adversaries of epsilon-privacy: prior, stubbornness, predicates and the smallest epsilon of one predicate.

Source: "Data Publishing against Realistic Adversaries" (VLDB 2009), sections 2 and 3, in the exact form: u is one of
the rows with the predicate, so p_in = x/(n-b) and p_out = (x + sigma(phi) - 1)/(n + sigma - 1). Its printed Theorems 1
and 2 are sufficient only, and the first is unsound for small sigma(s); they are not used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qblock.blocks import Ints, Reference
from qblock.errors import ParameterError, quoted

PRIORS = ("uniform", "table", "values", "from_table")


def prior_shape(prior: str, reference: Reference) -> tuple[Fraction, ...]:
    """The share of each value of the domain in an adversary's prior, exactly; sums to 1.

    uniform: 1/V; table: P_s of the raw table; values: Reference.prior holds the weights given in the spec, in any
    scale; from_table: Reference.prior holds the counts a(s) of the other table, and sigma(s) is proportional to a(s)+1,
    the posterior of an adversary who saw that table after knowing nothing. Values of the other table that are not in
    the domain are left out. Raises ParameterError when the prior is missing, negative or empty.
    """
    weights = _weights(prior, reference)
    total = sum(weights, Fraction(0))
    if total <= 0 or min(weights) < 0:
        raise ParameterError(f"epsilon_privacy: the prior '{prior}' needs weights >= 0 with a positive sum")
    return tuple(weight / total for weight in weights)


def external_stubbornness(reference: Reference) -> Fraction:
    """sigma of a prior from another table where the spec gives none: sum of a(s)+1, its size and one for each value."""
    return sum(_weights("from_table", reference), Fraction(0))


def _weights(prior: str, reference: Reference) -> list[Fraction]:
    if prior == "uniform":
        return [Fraction(1)] * reference.values
    if prior == "table":
        return [Fraction(n) for n in reference.totals.tolist()]
    if reference.prior is None or len(reference.prior) != reference.values:
        raise ParameterError(f"epsilon_privacy: the prior '{prior}' needs one weight for each of the domain's values")
    return [Fraction(w) + (1 if prior == "from_table" else 0) for w in reference.prior]


def least_stubbornness(shape: Sequence[Fraction]) -> Fraction:
    """sigma_lo, the smallest total with every positive sigma(s) >= 1."""
    return 1 / min(share for share in shape if share > 0)


def predictive(histogram: Sequence[int], sigma: Sequence[Fraction | int]) -> tuple[Fraction, ...]:
    """p_out of each value for one more person, after the others' histogram, under the prior Dirichlet(sigma)."""
    total = sum(histogram) + sum((Fraction(s) for s in sigma), Fraction(0))
    return tuple((count + Fraction(s)) / total for count, s in zip(histogram, sigma, strict=True))


def smallest_epsilon(x: int, n: int, known: int, mass: Fraction | int, sigma: Fraction | int) -> Fraction | float:
    """The smallest epsilon of one predicate in one block, for finite stubbornness (classes I and II; V >= 2).

    x of the block's n rows satisfy the predicate; `known` rows outside it are known; mass = sigma(phi).
    """
    if n <= known:
        return math.inf
    if x == 0:
        return Fraction(1)
    left, rest = n - known, n - x + Fraction(sigma) - mass
    certain = rest == 0 and known == 0
    if x - 1 + mass <= 0 or (left <= x and not certain):
        return math.inf
    total = n - 1 + Fraction(sigma)
    first = x * total / (left * (x - 1 + Fraction(mass)))
    return max(Fraction(1), first, Fraction(1) if certain else left * rest / (total * (left - x)))


def smallest_epsilon_infinite(x: int, n: int, known: int, share: Fraction) -> Fraction | float:
    """The smallest epsilon of one predicate in one block for infinite stubbornness (class III), where only its prior
    share matters."""
    if n <= known:
        return math.inf
    if x == 0:
        return Fraction(1)
    left = n - known
    if share == 1:
        return Fraction(1) if known == 0 else math.inf
    if share == 0 or left <= x:
        return math.inf
    return max(Fraction(1), x / (left * share), (1 - share) * left / (left - x))


@dataclass(frozen=True, eq=False)
class Layer:
    """Predicates that do not overlap. group: int64[V], the predicate of each value, -1 for none.

    complement: the predicates are all other values than the group instead. single: predicate i is value i.
    """

    group: Ints
    size: int
    complement: bool = False

    @property
    def single(self) -> bool:
        return bool(np.array_equal(self.group, np.arange(len(self.group))))

    def shares(self, shape: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The prior share of each predicate."""
        result = [Fraction(0)] * self.size
        for group, share in zip(self.group.tolist(), shape, strict=True):
            if group >= 0:
                result[group] += share
        return tuple(1 - share for share in result) if self.complement else tuple(result)

    def members(self) -> tuple[int, ...]:
        """The number of values in each predicate."""
        sizes = np.bincount(self.group[self.group >= 0], minlength=self.size).tolist()
        return tuple(len(self.group) - size if self.complement else size for size in sizes)


def layers(predicates: str | tuple[tuple[str | None, ...], ...], reference: Reference) -> tuple[Layer, ...]:
    """The predicates over a domain of two or more values.

    singletons: one value each; negative: everything but one value; taxonomy: every label of every level below the top,
    single values included; or explicit lists of values. Raises ParameterError for a list that is empty, holds an
    unknown value or the whole domain, and for a missing taxonomy.
    """
    values = reference.values
    each = np.arange(values, dtype=np.int64)
    if predicates == "singletons":
        return (Layer(each, values),)
    if predicates == "negative":
        return (Layer(each, values, complement=True),)
    if predicates == "taxonomy":
        if reference.taxonomy is None:
            raise ParameterError("epsilon_privacy: predicates: taxonomy needs a taxonomy of the sensitive attribute")
        columns = [_by_appearance(column) for column in reference.taxonomy.T]
        distinct = {column.tobytes(): column for column in [each, *columns] if column.max() > 0}
        return tuple(Layer(column, int(column.max()) + 1) for column in distinct.values())
    return _lists(predicates, reference)


def _by_appearance(codes: Ints) -> Ints:
    """int64[V]: the labels of a level numbered in the order in which they first occur, single values as 0, 1, 2, .."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]


def _lists(predicates: str | tuple[tuple[str | None, ...], ...], reference: Reference) -> tuple[Layer, ...]:
    remaining: list[Ints] = []
    for labels in predicates:
        codes = {label: reference.code_of(label) for label in labels}
        unknown = [label for label, code in codes.items() if code is None]
        chosen = {code for code in codes.values() if code is not None}
        if unknown or not chosen or len(chosen) == reference.values:
            reason = (
                f"holds the unknown value {quoted(unknown[0])}" if unknown else "is empty or holds the whole domain"
            )
            raise ParameterError(f"epsilon_privacy: a list of predicates {reason}; valid: some values of the domain")
        remaining.append(np.array(sorted(chosen), dtype=np.int64))
    result = []
    while remaining:
        group, size, later = np.full(reference.values, -1, dtype=np.int64), 0, []
        for members in remaining:
            if (group[members] >= 0).any():
                later.append(members)
            else:
                group[members] = size
                size += 1
        result.append(Layer(group, size))
        remaining = later
    return tuple(result)
