"""What known attacks gain at a node: counts and worst cases, for a report (models.md section 8).

Sources: homogeneity and background knowledge: l-diversity (ICDE 2006) 1.1 and 4; skewness and similarity: t-closeness;
proximity: (epsilon,m)-anonymity. "Rows" are blocks.rows, shares are of blocks.total. Shares are exact fractions.

Skewness in a 99%/1% table: block 1:1 moves 1%->50%, EMD .49; blocks 49:1 and 1:49 have equal entropy l 1.103 but EMD
.97 and .01.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from qblock.blocks import Blocks, Ints, Mask, Reference, grouped
from qblock.models.base import measured
from qblock.models.proximity import EpsilonMAnonymity
from qblock.models.ratios import extreme, times


@dataclass(frozen=True, kw_only=True)
class Homogeneity:
    """Blocks with one sensitive value (where the domain has several): everybody in them is exposed."""

    blocks: int
    rows: int
    mean_size: Fraction | None
    vulnerable: bool


@dataclass(frozen=True, kw_only=True)
class BackgroundKnowledge:
    """The worst posterior once `eliminated` values are ruled out, and the blocks (rows) where it is certainty.

    The worst choice rules out the most frequent values but one. (c,l)-diversity bounds it below c/(c+1) after l-2.
    """

    eliminated: int
    posterior: Fraction | None
    blocks: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Certainty:
    """How many values must be ruled out, at least, until somebody's is certain, and the blocks where so few are enough.

    values: those to rule out in one of these blocks, the one of most rows: all but its most frequent one. For a
    homogeneous block none.
    """

    eliminated: int | None
    values: tuple[str | None, ...]
    blocks: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Eliminated:
    """The worst posterior once a given set of values is ruled out; blocks that hold nothing else are left out."""

    values: tuple[str | None, ...]
    posterior: Fraction | None
    blocks: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Skewness:
    """The largest factor by which a value's share in a block exceeds its share of the table, and that value."""

    gain: Fraction | float | None
    value: str | None


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """A level of the sensitive taxonomy: the largest share of one label in a block, and the blocks with no other."""

    level: int
    share: Fraction | None
    blocks: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Proximity:
    """Numbers: the largest share of a block within epsilon of one of its values, and the blocks where that is all."""

    epsilon: Fraction
    share: Fraction | None
    blocks: int
    rows: int


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """Every attack at one node. What does not apply to the attribute is None or empty."""

    homogeneity: Homogeneity
    background_knowledge: tuple[BackgroundKnowledge, ...]
    certainty: Certainty
    eliminated: Eliminated | None
    skewness: Skewness
    similarity: tuple[Similarity, ...]
    proximity: Proximity | None

    def to_json(self) -> dict[str, Any]:
        """As JSON: shares are numbers, infinity is the text "inf"; attacks that do not apply are left out."""
        return {name: figures for name, figures in _json(self).items() if figures not in (None, [])}


def attacks(
    blocks: Blocks,
    reference: Reference,
    *,
    eliminated: Collection[str | None] = (),
    groups: Sequence[Ints] | None = None,
    epsilon: Fraction | int | None = None,
) -> Attacks:
    """All attacks on one sensitive attribute.

    eliminated: values that the attacker rules out; groups: label codes int64[V] by level from 1 on (default: the
    taxonomy's, the top left out); epsilon: how near numbers are alike (default: a twentieth of their range).
    """
    return Attacks(
        homogeneity=homogeneity(blocks, reference),
        background_knowledge=tuple(background_knowledge(blocks, j) for j in (1, 2, 3)),
        certainty=certainty(blocks, reference),
        eliminated=elimination(blocks, reference, eliminated) if eliminated else None,
        skewness=skewness(blocks, reference),
        similarity=similarity(blocks, reference, groups),
        proximity=proximity(blocks, reference, epsilon),
    )


def _within(blocks: Blocks, mask: Mask) -> dict[str, int]:
    return {"blocks": int(mask.sum()), "rows": int(blocks.rows[mask].sum())}


def homogeneity(blocks: Blocks, reference: Reference) -> Homogeneity:
    """Blocks with a single sensitive value; none when the domain has one value."""
    homogeneous = _within(blocks, (blocks.support == 1) & (reference.values >= 2))
    mean = Fraction(homogeneous["rows"], homogeneous["blocks"]) if homogeneous["blocks"] else None
    return Homogeneity(mean_size=mean, vulnerable=homogeneous["blocks"] > 0, **homogeneous)


def expected_homogeneous(groups: int, values: int, size: int) -> Fraction:
    """How many of `groups` blocks of `size` rows are homogeneous by chance, for `values` equally likely values."""
    return Fraction(groups * values, values**size)


def background_knowledge(blocks: Blocks, eliminated: int) -> BackgroundKnowledge:
    """The worst case over any `eliminated` values: r_1 against the values from rank eliminated + 2 on."""
    if not len(blocks):
        return BackgroundKnowledge(eliminated=eliminated, posterior=None, blocks=0, rows=0)
    sums = np.concatenate(([0], np.cumsum(blocks.descending)))
    ranked = np.minimum(blocks.start[:-1] + eliminated + 1, blocks.start[1:])
    tail = sums[blocks.start[1:]] - sums[ranked]
    worst = extreme(blocks.largest, blocks.largest + tail, largest=True)
    return BackgroundKnowledge(eliminated=eliminated, posterior=Fraction(worst), **_within(blocks, tail == 0))


def certainty(blocks: Blocks, reference: Reference) -> Certainty:
    """The least number of values to rule out for a certain one, m(q) - 1 of the least diverse blocks."""
    if not len(blocks):
        return Certainty(eliminated=None, values=(), blocks=0, rows=0)
    least = int(blocks.support.min())
    mask = blocks.support == least
    least_diverse = np.flatnonzero(mask)
    histogram = blocks.histogram(int(least_diverse[np.argmax(blocks.rows[least_diverse])]))
    most = max(histogram, key=lambda value: (histogram[value], -value))
    values = tuple(reference.domain[value] for value in sorted(histogram) if value != most)
    return Certainty(eliminated=least - 1, values=values, **_within(blocks, mask))


def elimination(blocks: Blocks, reference: Reference, values: Collection[str | None]) -> Eliminated:
    """The largest n_s/(n - n_X) over the values s that are left when the set X is ruled out."""
    gone = np.array([value in values for value in reference.domain], dtype=bool)[blocks.value]
    left = np.where(gone, 0, blocks.count)
    rest, largest = blocks.sum(left), blocks.max(left)
    occupied = rest > 0
    worst = Fraction(extreme(largest[occupied], rest[occupied], largest=True)) if occupied.any() else None
    names = tuple(value for value in reference.domain if value in values)
    return Eliminated(values=names, posterior=worst, **_within(blocks, occupied & (largest == rest)))


def skewness(blocks: Blocks, reference: Reference) -> Skewness:
    """max over blocks and values of (n_s/n)/P_s."""
    if not len(blocks):
        return Skewness(gain=None, value=None)
    share = times(blocks.count, int(reference.totals.sum()))
    expected = times(reference.totals[blocks.value], blocks.total[blocks.owner])
    worst = int(np.argmax(blocks.count / blocks.total[blocks.owner] / reference.shares[blocks.value]))
    return Skewness(gain=extreme(share, expected, largest=True), value=reference.domain[int(blocks.value[worst])])


def similarity(blocks: Blocks, reference: Reference, groups: Sequence[Ints] | None = None) -> tuple[Similarity, ...]:
    """For each level of the taxonomy with more than one label: max n(q,G)/n, and the blocks where it is 1."""
    if groups is None:
        groups = [] if reference.taxonomy is None else list(reference.taxonomy.T[1:])
    result = []
    for level, labels in enumerate(groups, start=1):
        codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        if codes.max(initial=0) == 0:
            continue
        counts = grouped(blocks, codes).largest
        share = Fraction(extreme(counts, blocks.total, largest=True)) if len(blocks) else None
        result.append(Similarity(level=level, share=share, **_within(blocks, counts == blocks.total)))
    return tuple(result)


def proximity(blocks: Blocks, reference: Reference, epsilon: Fraction | int | None = None) -> Proximity | None:
    """max over the values x of a block of the share within epsilon of x; None unless the attribute is numeric."""
    if reference.numbers is None or not reference.numbers:
        return None
    near = (max(reference.numbers) - min(reference.numbers)) / 20 if epsilon is None else Fraction(epsilon)
    if not len(blocks):
        return Proximity(epsilon=near, share=None, blocks=0, rows=0)
    model = EpsilonMAnonymity(epsilon=near, m=1)
    m = model.tightest(blocks, reference).values[0].value
    assert isinstance(m, int | Fraction)
    alone = measured(model, "m", blocks, reference) == 1
    return Proximity(epsilon=near, share=1 / Fraction(m), **_within(blocks, alone))


def _json(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_json(entry) for entry in value]
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return "inf" if isinstance(value, float) else value
