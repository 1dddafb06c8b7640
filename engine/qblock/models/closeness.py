"""t-closeness and (n,t)-closeness."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from qblock.blocks import Blocks, Containing, Floats, Ints, Mask, Reference, parts
from qblock.errors import ParameterError
from qblock.models.base import (
    About,
    Bound,
    Exact,
    Model,
    Monotone,
    Setting,
    at_least,
    between,
    compare,
    more_than,
    parameter,
    privacy_model,
    rational,
    require,
)
from qblock.models.distances import Distance, Equal, Hierarchical, KernelJS, Ordered, dense, kernel_matrix
from qblock.models.ratios import NEAR, Integers, double, sign

DISTANCES = ("equal", "ordered", "hierarchical", "kernel_js")
T = Bound("t", "smaller")
MANY = 1_000
"""Rows that are no small group, where nobody said how many are."""


def distance_named(model: str, name: str, bandwidth: int | Fraction | None = None) -> Distance | KernelJS:
    """The distance that a model asks for by name; only kernel_js takes, and needs, a bandwidth."""
    require(model, "distance", name, name in DISTANCES, ", ".join(DISTANCES))
    if name != "kernel_js":
        require(model, "bandwidth", bandwidth, bandwidth is None, "none, except for distance: kernel_js")
        known: dict[str, Distance] = {"equal": Equal(), "ordered": Ordered(), "hierarchical": Hierarchical()}
        return known[name]
    if bandwidth is None or not rational(bandwidth) or bandwidth <= 0:
        raise ParameterError(f"{model}: bandwidth = {bandwidth} is out of range; valid: a number > 0 for kernel_js")
    return KernelJS(Fraction(bandwidth))


def check_limit(model: str, t: int | Fraction, distance: Distance | KernelJS) -> None:
    """Raise ParameterError for a t that the distance never reaches."""
    if distance.limit < 1:
        require(model, "t", t, t <= distance.limit, "0 <= t <= ln 2 = 0.693147180559945")


def check_reference(model: str, distance: Distance | KernelJS, reference: Reference) -> None:
    """Raise ParameterError where the sensitive attribute lacks the order or taxonomy that a distance needs."""
    if "order" in distance.needs and not reference.ordered and reference.values > 1:
        raise ParameterError(
            f"{model}: distance = ordered needs an order of the sensitive values; valid: a numeric attribute, or one "
            "with `order: ascending` or a list"
        )
    if "taxonomy" in distance.needs:
        if reference.taxonomy is None:
            raise ParameterError(f"{model}: distance = hierarchical needs a `taxonomy` of the sensitive attribute")
        distance.ratio(Blocks.of([]), reference)
    if isinstance(distance, KernelJS):
        kernel_matrix(distance, reference)


def exact_distances(distance: Distance | KernelJS, blocks: Blocks, reference: Reference) -> list[Exact]:
    """The distance of each block to the distribution of the reference, exactly."""
    if isinstance(distance, KernelJS):
        return [distance.exact(blocks.select([i]), reference) for i in range(len(blocks))]
    pair = distance.ratio(blocks, reference)
    assert pair is not None
    return [Fraction(int(numerator), int(denominator)) for numerator, denominator in zip(*pair, strict=True)]


@privacy_model
class TCloseness(Model):
    """The distribution of the sensitive value in each block is within t of the table's (Li, Li, Venkatasubramanian).

    distance: equal, ordered, hierarchical (earth mover's) or kernel_js with a bandwidth > 0.
    """

    name = "t_closeness"
    about = About(
        citation="CL III; TH 2.1.3",
        condition="D(p_q, P) <= t",
        meaning="among people who look the same, {sensitive} is distributed as in the whole table, up to a "
        "distance of {t}",
        bounds=(Bound("t", "smaller"),),
        needs=frozenset({"distribution", "domain"}),
        settings=tuple(Setting({"distance": distance}) for distance in ("equal", "ordered", "hierarchical")),
        steady="simulated",
    )
    monotone = Monotone(generalization=True, suppression=False)

    t: int | Fraction = parameter("rational", between(0, 1), Fraction(1, 5))
    distance: str = parameter("choice", DISTANCES, "equal", default="equal")
    bandwidth: int | Fraction | None = parameter("rational", more_than(0), Fraction(1, 2), default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limit(self.name, self.t, self._ground)

    @property
    def needs(self) -> frozenset[str]:
        return self.about.needs | self._ground.needs

    @property
    def _ground(self) -> Distance | KernelJS:
        return distance_named(self.name, self.distance, self.bandwidth)

    def validate(self, reference: Reference) -> list[str]:
        check_reference(self.name, self._ground, reference)
        return []

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        return self._ground.ratio(blocks, reference)

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        distance = self._ground
        if isinstance(distance, KernelJS):
            return distance.measure(blocks, reference)
        return super()._measure(parameter, blocks, reference)

    def _exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        return exact_distances(self._ground, block, reference)[0]


@privacy_model
class NtCloseness(Model):
    """Each block is within t of a natural superset of at least n rows (Li, Li, Venkatasubramanian, TKDE 2010).

    variant lattice: the supersets are the block itself, the blocks of coarser nodes that contain it
    (Blocks.containing) and the table. own_or_top: the block itself and the table only, which is monotone. partition:
    the block itself and the parts that it was split from (Blocks.containing), the table the first of them: for a
    recoding map alone.
    """

    name = "nt_closeness"
    about = About(
        citation="CL IV",
        condition="n(q) >= n, or D(p_q, p_E) <= t for a block E of n rows or more that contains q",
        meaning="people who look the same are {n} or more, or {sensitive} is distributed among them as among {n} "
        "or more who hold them, up to a distance of {t}",
        bounds=(T, Bound("n", "larger", decides=False)),
        needs=frozenset({"distribution", "domain"}),
        settings=(Setting({"n": lambda reference: max(1, min(MANY, reference.size)), "variant": "own_or_top"}),),
    )

    n: int = parameter("whole", at_least(1), 10)
    t: int | Fraction = parameter("rational", between(0, 1), Fraction(1, 5))
    distance: str = parameter("choice", DISTANCES, "equal", default="equal")
    bandwidth: int | Fraction | None = parameter("rational", more_than(0), Fraction(1, 2), default=None)
    variant: str = parameter("choice", ("lattice", "own_or_top", "partition"), "lattice", default="lattice")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limit(self.name, self.t, self._ground)

    @property
    def needs(self) -> frozenset[str]:
        return self.about.needs | self._ground.needs | (set() if self.variant == "own_or_top" else {"containing"})

    @property
    def _ground(self) -> Distance | KernelJS:
        return distance_named(self.name, self.distance, self.bandwidth)

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=self.variant == "own_or_top", suppression=False)

    def validate(self, reference: Reference) -> list[str]:
        # A table without rows is decided before any parameter that depends on its size.
        size, what = reference.size, "rows" if reference.people is None else "entities"
        require(self.name, "n", self.n, size == 0 or self.n <= size, f"1 <= n <= N = {size}, the {what} of the table")
        check_reference(self.name, self._ground, reference)
        return []

    def _supersets(self, blocks: Blocks, reference: Reference) -> Iterator[Containing]:
        """The coarser nodes whose blocks count, and last the table as a node of one block."""
        if self.variant != "own_or_top":
            yield from blocks.containing
        values = np.flatnonzero(reference.totals)
        ends = np.array([0, len(values)])
        table = Blocks(ends, values, reference.totals[values], np.array([reference.size]))
        yield Containing(table, np.zeros(len(blocks), dtype=np.int64))

    def _ratio(self, parameter: str, blocks: Blocks, reference: Reference) -> tuple[Integers, Integers] | None:
        if parameter == "n":
            return self._largest_n(blocks, reference), np.ones_like(blocks.rows)
        pair = None if blocks.containing and self.variant != "own_or_top" else self._ground.ratio(blocks, reference)
        if pair is None:
            return None
        # Only the table is around a block: a large block needs none, and a table of fewer than n rows is none.
        numerator, denominator = pair
        large, near = blocks.rows >= self.n, reference.size >= self.n
        return np.where(large, 0, numerator if near else 1), np.where(large, 1, denominator if near else 0)

    def _measure(self, parameter: str, blocks: Blocks, reference: Reference) -> Floats:
        return self._least_t(blocks, reference) if parameter == "t" else super()._measure(parameter, blocks, reference)

    def _exact(self, parameter: str, block: Blocks, reference: Reference) -> Exact | int:
        if parameter == "n":
            return super()._exact(parameter, block, reference)
        return self._exact_t(block, reference)[0]

    def _exactly(self, parameter: str, near: Ints, blocks: Blocks, reference: Reference) -> list[tuple[Ints, Exact]]:
        values = self._exact_t(blocks.select(near), reference)
        return [(near[i : i + 1], value) for i, value in enumerate(values)]

    def _candidates(self, blocks: Blocks, reference: Reference) -> Iterator[tuple[Ints, Containing, Floats]]:
        """For each node of supersets: the blocks of fewer than n rows with n or more around them, and the distance."""
        for within in self._supersets(blocks, reference):
            index = np.flatnonzero((blocks.rows < self.n) & (within.blocks.rows[within.index] >= self.n))
            yield index, within, self._distances(blocks, index, within, reference)

    def _least_t(self, blocks: Blocks, reference: Reference) -> Floats:
        result = np.where(blocks.rows >= self.n, 0.0, np.inf)
        for index, _, distances in self._candidates(blocks, reference):
            result[index] = np.minimum(result[index], distances)
        return result

    def _exact_t(self, blocks: Blocks, reference: Reference) -> list[Exact]:
        least = self._least_t(blocks, reference)
        result: list[Exact] = [math.inf if small else Fraction(0) for small in (blocks.rows < self.n).tolist()]
        for index, within, distances in self._candidates(blocks, reference):
            # Only a superset whose double is within the error of the least can be the nearest.
            nearest = index[distances <= least[index] + NEAR]
            values = self._exact_distances(blocks, nearest, within, reference)
            for i, value in zip(nearest.tolist(), values, strict=True):
                result[i] = min(result[i], value)
        return result

    def _largest_n(self, blocks: Blocks, reference: Reference) -> Ints:
        result = blocks.rows.copy()
        for within in self._supersets(blocks, reference):
            sizes = within.blocks.rows[within.index]
            index = np.flatnonzero(sizes > result)
            close = index[self._close(blocks, index, within, reference)]
            result[close] = sizes[close]
        return result

    def _close(self, blocks: Blocks, index: Ints, within: Containing, reference: Reference) -> Mask:
        if len(within.blocks) == 1:
            pair = self._ground.ratio(blocks.select(index), _with_totals(reference, within.blocks, 0))
            if pair is not None:
                return sign(*pair, self.t) <= 0
        values, target = self._distances(blocks, index, within, reference), double(self.t)
        result = values < target
        near = np.flatnonzero(np.abs(values - target) <= NEAR)
        exact = self._exact_distances(blocks, index[near], within, reference)
        result[near] = [compare(value, self.t, T) for value in exact]
        return result

    def _distances(self, blocks: Blocks, index: Ints, within: Containing, reference: Reference) -> Floats:
        """float64: the distance of each block named to the block that contains it."""
        chosen = replace(blocks.select(index), containing=(Containing(within.blocks, within.index[index]),))
        distances = []
        for part in parts(chosen, reference.values):
            around, place = np.unique(part.containing[0].index, return_inverse=True)
            q = dense(within.blocks.select(around), reference.values)[place]
            distances.append(self._ground.rows(dense(part, reference.values), q, reference))
        return np.concatenate(distances) if distances else np.zeros(0)

    def _exact_distances(self, blocks: Blocks, index: Ints, within: Containing, reference: Reference) -> list[Exact]:
        """The distance of each block named to the block that contains it, exactly."""
        result: list[Exact] = [Fraction(0)] * len(index)
        around = within.index[index]
        for place in np.unique(around).tolist():
            members = np.flatnonzero(around == place)
            reference_of = _with_totals(reference, within.blocks, place)
            distances = exact_distances(self._ground, blocks.select(index[members]), reference_of)
            for i, exact in zip(members.tolist(), distances, strict=True):
                result[i] = exact
        return result


def _with_totals(reference: Reference, blocks: Blocks, block: int) -> Reference:
    """A reference whose table is one of these blocks."""
    totals = np.zeros(reference.values, dtype=np.int64)
    for value, count in blocks.histogram(block).items():
        totals[value] = count
    return replace(reference, totals=totals)
