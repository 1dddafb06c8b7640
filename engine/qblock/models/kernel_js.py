"""The kernel-smoothed Jensen-Shannon distance, which knows how far values are apart and scales with probability."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

import numpy as np

from qblock.blocks import Blocks, Floats, Ints, Reference
from qblock.errors import ParameterError
from qblock.models.base import DIGITS
from qblock.models.chunks import by_parts
from qblock.models.distances import taxonomy_levels
from qblock.models.ratios import Integers

LN2 = Fraction(693147180559945309, 10**18)
LARGEST = 4096
"""The kernel is a matrix of values times values."""


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
