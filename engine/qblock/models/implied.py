"""What a guarantee grants in the terms of epsilon-privacy (EP 5, as corrected in papers.md E16 and E17).

Whatever limits the share of each value in every block limits how far anybody's belief moves: p_in is x/n, and p_out
lies between it and the prior. The (c,2) and t-close embeddings of the paper are two cases of that; its Lemma 1 and its
formula for (c,2)-diversity are misprinted, and these are the forms that hold.

Proof for classes I and II, with m = sigma(s): the first ratio falls in n, and at n = x/u is (x+u(sigma-1))/(x+m-1); the
second grows in x, at x = un; both are then Mobius functions of the other, extreme at their ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from qblock import adversary as adversaries
from qblock.blocks import Reference
from qblock.errors import ParameterError
from qblock.models.anonymity import DeltaPresence, KAnonymity, KMap
from qblock.models.base import DIGITS, Model, decimal
from qblock.models.closeness import NtCloseness, TCloseness
from qblock.models.diversity import (
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    NpdRecursiveCLDiversity,
    PdRecursiveCLDiversity,
    RecursiveCLDiversity,
)
from qblock.models.epsilon import EpsilonPrivacy, sigmas
from qblock.models.likeness import AlphaKAnonymity, BetaLikeness, DeltaDisclosure
from qblock.models.proximity import DeltaLDiversity, EpsilonMAnonymity

Shares = tuple[Fraction, ...]
UP = Fraction(1) + Fraction(1, 10**30)
"""Logarithms of 60 digits are rounded away from what would be a stronger bound."""
MOST_DELTA = 700
"""Of delta-disclosure: beyond it no share of any table is limited."""
NO_SHARE = "it limits no value's share below all of a block"


@dataclass(frozen=True)
class Implied:
    """The epsilon that every table with the guarantee has against one adversary: an upper bound, which need not be met.

    epsilon: infinity where there is none, None where no table has the guarantee; why: where it comes from, in words.
    """

    epsilon: Fraction | float | None
    why: str


def implied_epsilon(
    model: Model, reference: Reference, other: EpsilonPrivacy, weighed: Reference, *, same_prior: bool = True
) -> Implied:
    """What `model` grants against the adversary of `other`, about the sensitive attribute of `reference`.

    weighed: the same attribute's, with the prior of `other`; same_prior: whether both have the same (or none).
    """
    if same_prior and isinstance(model, EpsilonPrivacy) and replace(model, epsilon=other.epsilon) == other:
        return Implied(Fraction(model.epsilon), "it asks for that")
    if reference.values < 2:
        return Implied(Fraction(1), "there is only one value")
    if other.adversary == "IV":
        return Implied(math.inf, "no table stands against an adversary who may know anything")
    if other.known or other.predicates != "singletons":
        return Implied(math.inf, "no bound is known for what this adversary knows or asks")
    shares = caps(model, reference)
    if isinstance(shares, str):
        return Implied(math.inf, shares)
    if sum(shares) < 1:
        return Implied(None, f"no table has it: the shares of {reference.values} values would add up to less than 1")
    epsilon = epsilon_of_caps(shares, other, weighed)
    most = max(shares)
    if epsilon == math.inf:
        why = NO_SHARE if most >= 1 else "the prior holds a value impossible that the table has"
        return Implied(epsilon, why)
    return Implied(epsilon, f"no value makes up more than {float(most):.4g} of a block")


def epsilon_of_caps(shares: Sequence[Fraction], other: EpsilonPrivacy, reference: Reference) -> Fraction | float:
    """The least epsilon that follows from x <= share * n for each value, for classes I to III, single values, b = 0.

    Of x rows of n, 1 <= x <= u n: class III has max(u/p, (1-p)/(1-u)). Class I with sigma(s) = m, in all s, has
    x(n+s-1)/(n(x+m-1)), which falls in n, and at n = x/u is (x+u(s-1))/(x+m-1), a Mobius function of x: at its ends
    (1+u(s-1))/m and 1; and n(n-x+s-m)/((n+s-1)(n-x)), which grows in x, and at x = u n has the ends
    (1-u+u(s-m))/((1-u)(1+u(s-1))) and 1. Class II is that with m = 1.
    """
    worst: Fraction | float = Fraction(1)
    shape = None if other.adversary == "II" else adversaries.prior_shape(other.prior, reference)
    for value, u in enumerate(shares):
        if u == 0:
            continue
        if other.adversary == "III":
            assert shape is not None
            worst = max(worst, _infinite(u, shape[value]))
            continue
        if shape is None:
            worst = max(worst, _finite(u, Fraction(1), Fraction(other.stubbornness or 0)))
            continue
        for sigma in sigmas(other, shape, reference):
            worst = max(worst, _finite(u, sigma * shape[value], sigma))
    return worst


def _infinite(u: Fraction, p: Fraction) -> Fraction | float:
    if p == 1:
        return Fraction(1)
    return math.inf if p == 0 or u >= 1 else max(u / p, (1 - p) / (1 - u))


def _finite(u: Fraction, mass: Fraction, sigma: Fraction) -> Fraction | float:
    if mass == sigma:
        return Fraction(1)
    if mass == 0 or u >= 1:
        return math.inf
    grown = 1 + u * (sigma - 1)
    return max(grown / mass, (1 - u + u * (sigma - mass)) / ((1 - u) * grown))


def caps(model: Model, reference: Reference) -> Shares | str:
    """The largest share of a block that each value may have where the model holds, 0 for one that the table has not; or
    why there is none. In several attributes (models.md 2.8) what holds in the parts of a block holds in their union."""
    total = int(reference.totals.sum())
    if not total:
        return "there are no rows"
    shares = [Fraction(n, total) for n in reference.totals.tolist()]
    bounds = _bounds(model, reference, shares)
    if isinstance(bounds, str):
        return bounds
    most, least = bounds
    missing = sum(least)
    limited = (min(Fraction(1), u, 1 - (missing - low)) for u, low in zip(most, least, strict=True))
    result = tuple(u if share else Fraction(0) for u, share in zip(limited, shares, strict=True))
    return NO_SHARE if any(u >= 1 for u in result) else result


def _bounds(model: Model, reference: Reference, shares: list[Fraction]) -> tuple[list[Fraction], list[Fraction]] | str:
    """The largest and the least share of each value."""
    nothing = [Fraction(0)] * len(shares)

    def same_cap(u: Fraction) -> tuple[list[Fraction], list[Fraction]]:
        return [u] * len(shares), nothing

    match model:
        case KAnonymity() | KMap() | DeltaPresence():
            return "it looks at no sensitive value"
        case DistinctLDiversity():
            return "a value may make up any share of a block that leaves the others one row each"
        case FrequencyLDiversity():
            return same_cap(1 / Fraction(model.l))
        case EntropyLDiversity():
            return same_cap(_share_of_entropy(Fraction(model.l), len(shares)))
        case RecursiveCLDiversity():
            return same_cap(_recursive(Fraction(model.c), int(model.l), len(shares)))
        case PdRecursiveCLDiversity():
            return _pd(Fraction(model.c), int(model.l), model.allowed, reference), nothing
        case NpdRecursiveCLDiversity():
            protected = {reference.code_of(value) for value in model.protected}
            least = [Fraction(model.c2) / 100 if value in protected else Fraction(0) for value in range(len(shares))]
            return _pd(Fraction(model.c1), int(model.l), model.allowed, reference), least
        case EpsilonMAnonymity():
            return same_cap(1 / Fraction(model.m))
        case DeltaLDiversity():
            return same_cap(1 / Fraction(model.l))
        case AlphaKAnonymity():
            named = None if model.values is None else {reference.code_of(value) for value in model.values}
            limited = (named is None or value in named for value in range(len(shares)))
            return [Fraction(model.alpha) if is_limited else Fraction(1) for is_limited in limited], nothing
        case TCloseness():
            nearest = _nearest(model.distance, reference)
            if nearest is None:
                return "no bound on a value's share is known for this distance"
            return [share + Fraction(model.t) / nearest for share in shares], nothing
        case NtCloseness():
            return "it compares with larger blocks, whose shares it does not limit"
        case BetaLikeness():
            return [share * (1 + _gain(model, share)) for share in shares], nothing
        case DeltaDisclosure() if model.delta > MOST_DELTA:
            return NO_SHARE
        case DeltaDisclosure():
            factor = Fraction(DIGITS.exp(decimal(model.delta))) * UP
            least = [share / factor for share in shares] if model.absent == "violation" else nothing
            return [share * factor for share in shares], least
        case EpsilonPrivacy():
            return _of_epsilon(model, reference)
    return f"no bound is known for {model.name}"


def _recursive(c: Fraction, rank: int, values: int) -> Fraction:
    """r_1 < c T with T the counts from rank l on, at most V-l+1 of them, so that each of the l-2 between has T/(V-l+1):
    r_1/n < c/(c + 1 + (l-2)/(V-l+1)), which is c/(c+1) for l = 2. More ranks than values: nothing passes."""
    if rank == 1:
        return Fraction(1)
    return Fraction(0) if rank > values else c / (c + Fraction(values - 1, values - rank + 1))


def _pd(c: Fraction, rank: int, allowed: Sequence[str | None], reference: Reference) -> list[Fraction]:
    if not allowed:
        return [_recursive(c, rank, reference.values)] * reference.values
    free = {reference.code_of(value) for value in allowed}
    limit = Fraction(1) if rank == 1 else c / (c + 1)
    return [Fraction(1) if value in free else limit for value in range(reference.values)]


def _share_of_entropy(effective: Fraction, values: int) -> Fraction:
    """The largest share u whose entropy with the rest spread evenly, the most that it can be, is ln l; rounded up."""
    if effective <= 1 or values < 2:
        return Fraction(1)
    if effective > values:
        return Fraction(0)
    least = math.log(effective)
    low, high = 1 / values, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        rest = 1 - middle
        entropy = -middle * math.log(middle) - (rest * math.log(rest / (values - 1)) if rest > 0 else 0.0)
        low, high = (middle, high) if entropy >= least - 1e-12 else (low, middle)
    return min(Fraction(1), Fraction(math.ceil(high * 10**9) + 1, 10**9))


def _gain(model: BetaLikeness, share: Fraction) -> Fraction:
    if model.variant == "basic" or not share:
        return Fraction(model.beta)
    return min(Fraction(model.beta), Fraction(DIGITS.minus(DIGITS.ln(decimal(share)))) * UP)


def _nearest(distance: str, reference: Reference) -> Fraction | None:
    """The smallest ground distance of two values; None where the distance is no earth mover's."""
    if distance == "equal":
        return Fraction(1)
    if distance == "ordered":
        return Fraction(1, reference.values - 1)
    if distance == "hierarchical" and reference.taxonomy is not None:
        return Fraction(1, reference.taxonomy.shape[1] - 1)
    return None


def _of_epsilon(model: EpsilonPrivacy, reference: Reference) -> tuple[list[Fraction], list[Fraction]] | str:
    if model.adversary == "IV":
        return "no table has it"
    if model.adversary != "III":
        return "it allows any share of a value in blocks that are large enough"
    if model.prior in ("values", "from_table") and reference.prior is None:
        return "its prior is of its own"
    shape = adversaries.prior_shape(model.prior, reference)
    epsilon, zero = Fraction(model.epsilon), [Fraction(0)] * len(shape)
    if model.predicates in ("singletons", "taxonomy"):
        return [max(Fraction(0), min(epsilon * p, 1 - (1 - p) / epsilon)) for p in shape], zero
    if model.predicates == "negative":
        return [Fraction(1)] * len(shape), [max(p / epsilon, 1 - (1 - p) * epsilon) for p in shape]
    return "its predicates are not single values"


def epsilon_of_c2(c: Fraction | int, values: int) -> Fraction:
    """The least epsilon of class III with the uniform prior that allows shares up to c/(c+1), as (c,2)-diversity does.

    It is max(V c/(c+1), (c+1)(V-1)/V), not the printed min. At exactly that share a block is epsilon-private and not
    (c,2)-diverse, whose condition is strict. No table has only shares below 1/V, so c must be at least 1/(V-1);
    raises ParameterError below that and for V < 2.
    """
    c = Fraction(c)
    if values < 2 or c * (values - 1) < 1:
        raise ParameterError(f"c = {c} is out of range; valid: c >= 1/(V-1) and at least two values, V = {values}")
    return max(values * c / (c + 1), (c + 1) * (values - 1) / values)


def epsilon_of_t(t: Fraction | int, shares: Sequence[Fraction], nearest: Fraction | int = 1) -> Fraction:
    """The epsilon of class III with the table's prior that every t-close table has; shares are P_s.

    nearest: the smallest positive ground distance of the earth mover's distance (1 for the equal one). Raises
    ParameterError unless t/nearest is below the smallest positive share, where the guarantee ends: a block without that
    value can be t-close.
    """
    moved, positive = Fraction(t) / Fraction(nearest), [share for share in shares if share > 0]
    if moved < 0 or moved >= min(positive):
        raise ParameterError(f"t = {t} is out of range; valid: 0 <= t < {min(positive) * nearest}, the smallest share")
    return max(max((p + moved) / p, p / (p - moved)) for p in positive)
