"""Earth mover's distances between the sensitive values of a block and those of the table (models.md section 4).

Sources: Li, Li, Venkatasubramanian, t-closeness (equal, ordered, hierarchical ground distance). They are sums over the
values that occur in a block, so that an array of blocks times values is never needed. A distribution of the whole table
is Reference.totals; replace it to measure the distance to another one.

What is wished of a distance, and what kernel-JS meets: D(P,P)=0; D>=0; probability scaling (1%->11% counts more than
40%->50%); defined with zero probabilities; semantic awareness. EMD violates probability scaling (both give 0.1), KL
zero-definability, plain JS semantic awareness.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Reference, by_parts, grouped, parts
from qblock.errors import ParameterError
from qblock.models.base import DIGITS
from qblock.models.ratios import Integers, wide

_SAFE = 2**62
LN2 = Fraction(693147180559945309, 10**18)
LARGEST = 4096
"""The kernel is a matrix of values times values."""


class Distance(Protocol):
    """A distance between distributions over the domain."""

    @property
    def limit(self) -> Fraction:
        """No distance is larger."""

    @property
    def needs(self) -> frozenset[str]:
        """What the reference must hold: of "order", "taxonomy"."""

    def ratio(self, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        """Each block's distance to the table as numerators and denominators [B]; None where it is irrational."""

    def rows(self, p: Floats, q: Floats, reference: Reference) -> Floats:
        """float64[B]: the distances between the rows of two dense arrays of shares [B, V]."""


def _concatenated(pairs: list[tuple[Integers, Integers]]) -> tuple[Integers, Integers]:
    if not pairs:
        return np.zeros(0, np.int64), np.ones(0, np.int64)
    return np.concatenate([n for n, _ in pairs]), np.concatenate([d for _, d in pairs])


def _gains(blocks: Blocks, totals: Integers, size: int) -> Integers:
    """[B]: N*n times the mass by which a block exceeds the table, summed over the values: half of the differences."""
    count, total = blocks.count, blocks.total
    if totals.dtype == object:
        count, total = wide(count), wide(total)
    gain = count * size - totals[blocks.value] * total[blocks.owner]
    return blocks.sum(np.maximum(gain, 0))


def _integers(blocks: Blocks, totals: Ints, factor: int) -> Integers:
    """The totals, as Python integers where a product of block size, table size and `factor` overflows int64."""
    peak = int(blocks.total.max(initial=0)) * int(totals.sum()) * factor
    return totals if peak < _SAFE else wide(totals)


@dataclass(frozen=True)
class Equal:
    """All values are equally far apart: half of the sum of the differences (total variation)."""

    limit = Fraction(1)
    needs = frozenset[str]()

    def ratio(self, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        pairs = []
        size = int(reference.totals.sum())
        for part in parts(blocks):
            totals = _integers(part, reference.totals, 1)
            pairs.append((_gains(part, totals, size), part.total.astype(totals.dtype) * size))
        return _concatenated(pairs)

    def rows(self, p: Floats, q: Floats, reference: Reference) -> Floats:
        return np.asarray(np.abs(p - q).sum(axis=1) / 2)


@dataclass(frozen=True)
class Ordered:
    """Values i and j of the V of the domain are |i-j|/(V-1) apart: the differences of the cumulative shares."""

    limit = Fraction(1)
    needs = frozenset({"order"})

    def ratio(self, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        if reference.values == 1:
            return np.zeros(len(blocks), np.int64), np.ones(len(blocks), np.int64)
        size, steps = int(reference.totals.sum()), reference.values - 1
        pairs = []
        for part in parts(blocks):
            totals = _integers(part, reference.totals, 4 * reference.values)
            total = part.total.astype(totals.dtype)
            pairs.append((self._numerator(part, totals, total, size), total * (size * steps)))
        return _concatenated(pairs)

    def _numerator(self, part: Blocks, totals: Integers, total: Integers, size: int) -> Integers:
        """[B]: sum over the domain of |C N - C_table n|, C being cumulative counts.

        C is constant from one value of the block to the next and C_table never falls, so that each such run of the
        domain has at most one change of sign; prefix sums of C_table give both sides of it.
        """
        below = np.cumsum(totals)
        area = np.concatenate(([0], np.cumsum(below))).astype(totals.dtype)
        before = np.concatenate(([0], np.cumsum(part.count)))
        held = before[1:] - before[part.start[:-1]][part.owner]
        begin = part.value
        end = np.append(part.value[1:], 0)
        end[part.start[1:] - 1] = len(totals) - 1
        n = total[part.owner]
        mass = held.astype(totals.dtype) * size
        turn = np.searchsorted(below.astype(np.int64), (mass // n).astype(np.int64), side="right")
        turn = np.clip(turn, begin, end)
        runs = mass * (2 * turn - begin - end) + n * (area[begin] + area[end] - 2 * area[turn])
        result: Integers = part.sum(runs) + total * area[part.value[part.start[:-1]]]
        return result

    def rows(self, p: Floats, q: Floats, reference: Reference) -> Floats:
        difference = np.abs(np.cumsum(p - q, axis=1)[:, :-1])
        return np.asarray(difference.sum(axis=1) / max(reference.values - 1, 1))


@dataclass(frozen=True)
class Hierarchical:
    """Two values are as far apart as their lowest common ancestor is high in the taxonomy, as a share of its height."""

    limit = Fraction(1)
    needs = frozenset({"taxonomy"})

    def ratio(self, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers]:
        height, levels = taxonomy_levels(reference)
        size = int(reference.totals.sum())
        pairs = []
        for part in parts(blocks):
            totals = _integers(part, reference.totals, max(height, 1))
            gains = np.zeros(len(part), totals.dtype)
            for codes, repeated in levels:
                sums = np.zeros(int(codes.max()) + 1, totals.dtype)
                np.add.at(sums, codes, totals)
                gains = gains + _gains(grouped(part, codes), sums, size) * repeated
            pairs.append((gains, part.total.astype(totals.dtype) * (size * max(height, 1))))
        return _concatenated(pairs)

    def rows(self, p: Floats, q: Floats, reference: Reference) -> Floats:
        height, levels = taxonomy_levels(reference)
        difference, result = p - q, np.zeros(len(p))
        for codes, repeated in levels:
            order = np.argsort(codes, kind="stable")
            first = np.flatnonzero(np.diff(codes[order], prepend=-1))
            result += np.abs(np.add.reduceat(difference[:, order], first, axis=1)).sum(axis=1) * repeated
        return np.asarray(result / (2 * max(height, 1)))


Levels = tuple[tuple[Ints, int], ...]


def taxonomy_levels(reference: Reference) -> tuple[int, Levels]:
    """The height of the taxonomy, and the labels of each level below the top; levels that agree are given once.

    With each level goes how often it repeats: a label that is on several levels is how a branch of less depth looks.
    Raises ParameterError when there is no taxonomy, when it does not end in one label, or when a level is not coarser
    than the one below.
    """
    if reference.taxonomy is None:
        raise ParameterError("distance = hierarchical needs a taxonomy of the sensitive attribute")
    taxonomy = np.ascontiguousarray(reference.taxonomy, dtype=np.int64)
    return _levels(taxonomy.tobytes(), taxonomy.shape[1])


@lru_cache(maxsize=16)
def _levels(codes: bytes, width: int) -> tuple[int, Levels]:
    # Kept by content: (n,t)-closeness measures against many distributions over one taxonomy.
    taxonomy = np.frombuffer(codes, dtype=np.int64).reshape(-1, width)
    columns = [np.unique(column, return_inverse=True)[1].astype(np.int64) for column in taxonomy.T]
    if columns[-1].max(initial=0) > 0:
        raise ParameterError("the taxonomy of the sensitive attribute must end in one label for all values")
    distinct: dict[bytes, tuple[Ints, int]] = {}
    for finer, coarser in itertools.pairwise(columns):
        if len(np.unique(finer * len(taxonomy) + coarser)) > len(np.unique(finer)):
            raise ParameterError("the taxonomy of the sensitive attribute is not nested: a label has two parents")
        _, repeated = distinct.get(finer.tobytes(), (finer, 0))
        distinct[finer.tobytes()] = (finer, repeated + 1)
    return width - 1, tuple(distinct.values())


@dataclass(frozen=True)
class KernelJS:
    """Jensen-Shannon distance (natural logarithm) after Epanechnikov smoothing with a bandwidth B > 0.

    The ground distance is the ordered one where the attribute has an order, else the hierarchical one where it has a
    taxonomy, else the equal one. B of at most the smallest positive distance is the plain Jensen-Shannon distance.
    """

    bandwidth: Fraction
    limit = LN2
    needs = frozenset[str]()

    def ratio(self, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        return None

    def measure(self, blocks: Blocks, reference: Reference) -> Floats:
        """float64[B]: the distance of each block to the table."""
        table = reference.shares[None, :]
        return by_parts(
            lambda part: self.rows(dense(part, reference.values), table, reference), blocks, reference.values
        )

    def rows(self, p: Floats, q: Floats, reference: Reference) -> Floats:
        kernel, norm = kernel_matrix(self, reference)
        smoothed = kernel.astype(np.float64) / norm[:, None]
        p, q = p @ smoothed.T, q @ smoothed.T
        p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
        mean = (p + q) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(p > 0, p * np.log(p / mean), 0.0)
            right = np.where(q > 0, q * np.log(q / mean), 0.0)
        return np.asarray(np.maximum((left + right).sum(axis=1) / 2, 0.0))

    def exact(self, block: Blocks, reference: Reference) -> Decimal:
        """The distance of one block to the table in 60 digits."""
        with localcontext(DIGITS):
            p = self._smooth(block.histogram(0), reference)
            q = self._smooth({v: n for v, n in enumerate(reference.totals.tolist()) if n}, reference)
            result = Decimal(0)
            for x, y in zip(p, q, strict=True):
                mean = (x + y) / 2
                result += sum(z * (z / mean).ln() / 2 for z in (x, y) if z)
            return max(result, Decimal(0))

    def _smooth(self, histogram: dict[int, int], reference: Reference) -> list[Decimal]:
        kernel, norm = kernel_matrix(self, reference)
        columns, counts = list(histogram), list(histogram.values())
        raw = [
            Decimal(sum(n * k for n, k in zip(counts, row[columns].tolist(), strict=True))) / total
            for row, total in zip(kernel, norm.tolist(), strict=True)
        ]
        whole = sum(raw, Decimal(0))
        return [x / whole for x in raw]


def kernel_matrix(distance: KernelJS, reference: Reference) -> tuple[Ints, Ints]:
    """1-(d/B)^2 for d < B, else 0, in a common integer scale [V, V], and the sums of its rows [V].

    Raises ParameterError for a domain of more than LARGEST values, and for a bandwidth of too many digits.
    """
    if reference.values > LARGEST:
        raise ParameterError(
            f"distance = kernel_js compares all pairs of {reference.values} values; valid: at most {LARGEST} values"
        )
    if reference.ordered or reference.taxonomy is None:
        return _kernel(distance.bandwidth, reference.values, reference.ordered, b"", 0)
    taxonomy_levels(reference)
    taxonomy = np.ascontiguousarray(reference.taxonomy, dtype=np.int64)
    return _kernel(distance.bandwidth, reference.values, False, taxonomy.tobytes(), taxonomy.shape[1])


@lru_cache(maxsize=8)
def _kernel(bandwidth: Fraction, values: int, ordered: bool, taxonomy: bytes, width: int) -> tuple[Ints, Ints]:
    # Kept by content: (n,t)-closeness measures against many distributions over one domain.
    each = np.arange(values, dtype=np.int64)
    if ordered:
        steps, unit = np.abs(each[:, None] - each[None, :]), max(values - 1, 1)
    elif taxonomy:
        steps, unit = np.zeros((values, values), dtype=np.int64), max(width - 1, 1)
        for labels in np.frombuffer(taxonomy, dtype=np.int64).reshape(-1, width).T[:-1]:
            steps += labels[:, None] != labels[None, :]
    else:
        steps, unit = (each[:, None] != each[None, :]).astype(np.int64), 1
    p, q = bandwidth.as_integer_ratio()
    reach = p * unit
    if reach**2 * values >= 2**62 or (q * unit) ** 2 >= 2**62:
        raise ParameterError(f"bandwidth = {bandwidth} has too many digits; valid: up to about 4 digits")
    kernel = np.where(steps * q < reach, reach**2 - (steps * q) ** 2, 0).astype(np.int64)
    return kernel, kernel.sum(axis=1)


def dense(blocks: Blocks, values: int) -> Floats:
    """float64[B, V]: the share of each value in each block; for a few blocks at a time."""
    result = np.zeros((len(blocks), values))
    result[blocks.owner, blocks.value] = blocks.count / blocks.total[blocks.owner]
    return result
