"""t-closeness."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from qblock.blocks import Blocks, Floats, Reference
from qblock.errors import ParameterError
from qblock.models.about import About, Bound, Parameter, Setting, between, more_than, rational, require
from qblock.models.base import Exact, Model, Monotone
from qblock.models.distances import Distance, Equal, Hierarchical, Ordered
from qblock.models.kernel_js import KernelJS, kernel_matrix
from qblock.models.ratios import Integers

DISTANCES = ("equal", "ordered", "hierarchical", "kernel_js")


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


@dataclass(frozen=True, kw_only=True)
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
        parameters=(
            Parameter("t", "rational", between(0, 1), Fraction(1, 5)),
            Parameter("distance", "choice", DISTANCES, "equal"),
            Parameter("bandwidth", "rational", more_than(0), Fraction(1, 2)),
        ),
        bounds=(Bound("t", "smaller"),),
        needs=frozenset({"distribution", "domain"}),
        settings=tuple(Setting({"distance": distance}) for distance in ("equal", "ordered", "hierarchical")),
    )

    t: int | Fraction
    distance: str = "equal"
    bandwidth: int | Fraction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_limit(self.name, self.t, self._ground)

    @property
    def needs(self) -> frozenset[str]:
        return self.about.needs | self._ground.needs

    @property
    def _ground(self) -> Distance | KernelJS:
        return distance_named(self.name, self.distance, self.bandwidth)

    @property
    def monotone(self) -> Monotone:
        return Monotone(generalization=True, suppression=False)

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
