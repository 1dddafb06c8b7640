"""t-closeness: worked examples of each distance, its edges, and its independence of how blocks are chunked."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from qblock.blocks import Blocks, Reference, parts
from qblock.errors import ParameterError
from qblock.models import Monotone, TCloseness, distances, measured

LN2 = Fraction("0.693147180559945")


def closeness(blocks: Blocks, reference: Reference, **asked: object) -> object:
    """The smallest t of the table; held against a check at it and just below it."""
    found = TCloseness(t=0, **asked).tightest(blocks, reference).values[0].value  # type: ignore[arg-type]
    if isinstance(found, Fraction):
        assert TCloseness(t=found, **asked).passes(blocks, reference).all()  # type: ignore[arg-type]
        if found:
            below = TCloseness(t=found - Fraction(1, 10**15), **asked)  # type: ignore[arg-type]
            assert not below.passes(blocks, reference).all()
            assert not below.tightest(blocks, reference).holds
    return found


def against(totals: list[int], block: dict[int, int], **more: object) -> tuple[Blocks, Reference]:
    """One block against a table with these totals."""
    return Blocks.of([block]), Reference(
        sum(totals), tuple(str(i) for i in range(len(totals))), np.array(totals), **more
    )  # type: ignore[arg-type]


SALARIES = [1] * 9
EARLY, SPREAD = {0: 1, 1: 1, 2: 1}, {3: 1, 5: 1, 8: 1}


@pytest.mark.parametrize(("block", "expected"), [(EARLY, Fraction(3, 8)), (SPREAD, Fraction(1, 6))])
def test_ordered_salaries(block: dict[int, int], expected: Fraction) -> None:
    assert closeness(*against(SALARIES, block, ordered=True), distance="ordered") == expected
    assert closeness(*against(SALARIES, block)) == Fraction(2, 3)


def test_ordered_counts_absent_values_of_the_domain() -> None:
    # The domain a < b < c < d with nobody at c: the table is a, d half each and the block is all a.
    # The cumulative differences are 1/2 at each of the three steps.
    assert closeness(*against([1, 0, 0, 1], {0: 4}, ordered=True), distance="ordered") == Fraction(1, 2)
    # b against a, d half each: |0-1/2|, |1-1/2|, |1-1/2| over three steps.
    assert closeness(*against([1, 0, 0, 1], {1: 4}, ordered=True), distance="ordered") == Fraction(1, 2)
    assert closeness(*against([1, 0, 0, 1], {1: 1, 2: 1}, ordered=True), distance="ordered") == Fraction(1, 3)


def test_hierarchical_two_levels() -> None:
    taxonomy = np.array([[i, g, 0] for i, g in enumerate((0, 0, 1, 1, 1))])
    blocks, reference = against([1] * 5, {0: 1, 1: 1}, taxonomy=taxonomy)
    assert closeness(blocks, reference, distance="hierarchical") == Fraction(3, 5)
    # Moving 3/10 within the pair costs half of moving it to the triple.
    assert closeness(*against([1, 1, 1, 1], {0: 2, 2: 1, 3: 1}, taxonomy=taxonomy[[0, 1, 2, 3]]), distance="equal") == (
        Fraction(1, 4)
    )
    assert closeness(
        *against([1, 1, 1, 1], {0: 2, 2: 1, 3: 1}, taxonomy=taxonomy[[0, 1, 2, 3]]), distance="hierarchical"
    ) == Fraction(1, 8)


def test_hierarchical_on_uneven_depth() -> None:
    # "other" hangs directly under the root: its label repeats on the level between. Height 2.
    #   * -> infection -> {flu, cold};  * -> other
    taxonomy = np.array([[0, 0, 0], [1, 0, 0], [2, 2, 0]])
    # Table 1/3 each. All flu: 1/3 from cold at 1/2, 1/3 from other at 1.
    assert closeness(*against([1, 1, 1], {0: 3}, taxonomy=taxonomy), distance="hierarchical") == Fraction(1, 2)
    # All other: 2/3 at distance 1.
    assert closeness(*against([1, 1, 1], {2: 3}, taxonomy=taxonomy), distance="hierarchical") == Fraction(2, 3)


def test_hierarchical_with_a_level_that_repeats() -> None:
    # Two pairs, on two of the three levels below the root: within a pair a third of the way, across all of it.
    taxonomy = np.array([[v, v // 2, v // 2, 0] for v in range(4)])
    # Table 1/4 each, all a: 1/4 from b, and 1/2 from c and d.
    assert closeness(*against([1] * 4, {0: 4}, taxonomy=taxonomy), distance="hierarchical") == Fraction(7, 12)


def test_taxonomy_of_height_one_is_the_equal_distance_and_of_height_zero_is_nothing() -> None:
    flat = np.array([[0, 0], [1, 0], [2, 0]])
    assert closeness(*against([2, 1, 1], {0: 1, 1: 1}, taxonomy=flat), distance="hierarchical") == Fraction(1, 4)
    assert closeness(*against([2, 1, 1], {0: 1, 1: 1})) == Fraction(1, 4)
    assert closeness(*against([4], {0: 1}, taxonomy=np.array([[0]])), distance="hierarchical") == 0


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_a_domain_of_one_value_and_the_whole_table_are_at_distance_zero(distance: str) -> None:
    one = against([3], {0: 2}, ordered=True, taxonomy=np.array([[0, 0]]))
    assert closeness(*one, distance=distance) == 0
    top = against([4, 6], {0: 4, 1: 6}, ordered=True, taxonomy=np.array([[0, 0], [1, 0]]))
    assert closeness(*top, distance=distance) == 0


def test_all_distances_coincide_for_two_values() -> None:
    table = against([99, 1], {0: 1, 1: 1}, ordered=True, taxonomy=np.array([[0, 0], [1, 0]]))
    assert {closeness(*table, distance=d) for d in ("equal", "ordered", "hierarchical")} == {Fraction(49, 100)}


def test_absent_values_count_in_the_equal_distance() -> None:
    # Half of the table's mass, at values 2 and 3, is missing from the block.
    assert closeness(*against([1, 1, 1, 1], {0: 1, 1: 1})) == Fraction(1, 2)


def test_kernel_js() -> None:
    salaries = {"distance": "kernel_js", "bandwidth": Fraction(1, 2)}
    early = closeness(*against(SALARIES, EARLY, ordered=True), **salaries)
    spread = closeness(*against(SALARIES, SPREAD, ordered=True), **salaries)
    assert isinstance(early, Decimal)
    assert isinstance(spread, Decimal)
    assert early.quantize(Decimal("1e-20")) == Decimal("0.17313321573718565626")
    assert spread.quantize(Decimal("1e-20")) == Decimal("0.01513095202030806746")
    # A bandwidth of one step, or less, smooths nothing: the plain Jensen-Shannon distance, the same for both.
    plain = {"distance": "kernel_js", "bandwidth": Fraction(1, 8)}
    for block in (EARLY, SPREAD):
        found = closeness(*against(SALARIES, block, ordered=True), **plain)
        assert isinstance(found, Decimal)
        assert found.quantize(Decimal("1e-20")) == Decimal("0.31825708414740640923")


def test_js_scales_with_probability() -> None:
    js = {"distance": "kernel_js", "bandwidth": 1}
    rare = closeness(*against([1, 99], {0: 11, 1: 89}), **js)
    common = closeness(*against([40, 60], {0: 50, 1: 50}), **js)
    assert round(float(rare), 15) == 0.025709086863848  # type: ignore[arg-type]
    assert round(float(common), 15) == 0.005059389928988  # type: ignore[arg-type]
    assert (
        closeness(*against([1, 99], {0: 11, 1: 89})) == closeness(*against([40, 60], {0: 50, 1: 50})) == Fraction(1, 10)
    )


def test_kernel_js_at_the_threshold() -> None:
    blocks, reference = against([5, 5], {0: 2, 1: 2})
    assert TCloseness(t=0, distance="kernel_js", bandwidth=1).passes(blocks, reference).all()
    near = against([10**9, 10**9], {0: 10**9 + 1, 1: 10**9})
    assert (
        not TCloseness(t=0, distance="kernel_js", bandwidth=1).passes(*near).all()
    )  # about 3e-20, nothing to a double
    assert TCloseness(t=Fraction(1, 10**19), distance="kernel_js", bandwidth=1).passes(*near).all()


def test_kernel_js_uses_the_order_or_the_taxonomy_or_neither() -> None:
    js = {"distance": "kernel_js", "bandwidth": Fraction(3, 4)}
    taxonomy = np.array([[0, 0, 0], [1, 0, 0], [2, 2, 0]])
    # All of value 0 against the table: in the taxonomy value 1 is near it and value 2 is not, and the smoothing
    # tells so; without taxonomy or order all three are equally far apart.
    inside = closeness(*against([0, 1, 0], {0: 1}, taxonomy=taxonomy), **js)
    outside = closeness(*against([0, 0, 1], {0: 1}, taxonomy=taxonomy), **js)
    assert 0.0 < inside < outside  # type: ignore[operator]
    assert closeness(*against([0, 1, 0], {0: 1}), **js) == closeness(*against([0, 0, 1], {0: 1}), **js)
    assert closeness(*against([0, 1, 0], {0: 1}, ordered=True), **js) < outside  # type: ignore[operator]


def test_disjoint_blocks_reach_ln_2() -> None:
    blocks, reference = against([0, 7], {0: 3})
    assert not TCloseness(t=Fraction("0.6931471805"), distance="kernel_js", bandwidth=1).passes(blocks, reference).all()
    assert closeness(blocks, reference) == 1
    assert TCloseness(t=1).passes(blocks, reference).all()


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_numbers_beyond_64_bits_stay_exact(distance: str) -> None:
    big = 10**12
    taxonomy = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]])
    blocks, reference = against([big, big + 1, big], {0: big - 1, 1: 1, 2: 5}, ordered=True, taxonomy=taxonomy)
    p, q = (
        [Fraction(big - 1, big + 5), Fraction(1, big + 5), Fraction(5, big + 5)],
        [Fraction(n, 3 * big + 1) for n in (big, big + 1, big)],
    )
    d = [x - y for x, y in zip(p, q, strict=True)]
    expected = {
        "equal": sum(map(abs, d)) / 2,
        "ordered": (abs(d[0]) + abs(d[0] + d[1])) / 2,
        "hierarchical": (sum(map(abs, d)) + abs(d[0] + d[1]) + abs(d[2])) / 4,
    }
    assert closeness(blocks, reference, distance=distance) == expected[distance]


def random_table(seed: int, size: int = 200, values: int = 6) -> tuple[Blocks, Reference]:
    counts = np.random.default_rng(seed).integers(0, 4, (size, values))
    blocks = Blocks.of([dict(enumerate(row.tolist())) for row in counts if row.any()])
    taxonomy = np.array([[v, v // 2, v // 4, 0] for v in range(values)])
    return blocks, Reference.of(blocks, values=values, ordered=True, taxonomy=taxonomy)


def by_definition(distance: str, p: list[Fraction], q: list[Fraction], taxonomy: np.ndarray) -> Fraction:
    d = [x - y for x, y in zip(p, q, strict=True)]
    if distance == "equal":
        return sum(map(abs, d), Fraction(0)) / 2
    if distance == "ordered":
        return sum((abs(sum(d[: i + 1], Fraction(0))) for i in range(len(d) - 1)), Fraction(0)) / (len(d) - 1)
    # The recursion over the tree: what a node's children can settle between them travels at the node's height.
    height = taxonomy.shape[1] - 1
    total = Fraction(0)
    for level in range(1, height + 1):
        for node in set(taxonomy[:, level].tolist()):
            children = {taxonomy[v, level - 1] for v in range(len(d)) if taxonomy[v, level] == node}
            extra = [
                sum((d[v] for v in range(len(d)) if taxonomy[v, level - 1] == child), Fraction(0)) for child in children
            ]
            settled = min(sum((e for e in extra if e > 0), Fraction(0)), -sum((e for e in extra if e < 0), Fraction(0)))
            total += Fraction(level, height) * settled
    return total


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_against_the_definition(distance: str) -> None:
    blocks, reference = random_table(7)
    assert reference.taxonomy is not None
    model = TCloseness(t=0, distance=distance)
    total = int(reference.totals.sum())
    whole = [Fraction(int(n), total) for n in reference.totals]
    found = measured(model, "t", blocks, reference)
    for i in range(len(blocks)):
        histogram = blocks.histogram(i)
        p = [Fraction(histogram.get(v, 0), sum(histogram.values())) for v in range(reference.values)]
        expected = by_definition(distance, p, whole, reference.taxonomy)
        assert model._exact("t", blocks.select([i]), reference) == expected
        assert found[i] == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("asked", [{"distance": d} for d in ("equal", "ordered", "hierarchical")] + [
    {"distance": "kernel_js", "bandwidth": Fraction(1, 3)}
])  # fmt: skip
def test_runs_of_blocks_do_not_matter(asked: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, reference = random_table(3)
    model = TCloseness(t=Fraction(1, 4), **asked)  # type: ignore[arg-type]
    at_once = measured(model, "t", blocks, reference)
    monkeypatch.setattr("qblock.blocks.PAIRS", 7)
    monkeypatch.setattr("qblock.blocks.CELLS", 13)
    np.testing.assert_allclose(measured(model, "t", blocks, reference), at_once, rtol=1e-13)
    assert len(list(parts(blocks))) > 20


def test_python_integers_agree_with_int64(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, reference = random_table(5)
    for distance in ("equal", "ordered", "hierarchical"):
        model = TCloseness(t=Fraction(1, 4), distance=distance)
        narrow = model.tightest(blocks, reference), model.passes(blocks, reference)
        with monkeypatch.context() as patch:
            patch.setattr(distances, "_SAFE", 0)
            wide = model.tightest(blocks, reference), model.passes(blocks, reference)
        assert wide[0] == narrow[0]
        np.testing.assert_array_equal(wide[1], narrow[1])


def test_merging_never_raises_the_distance() -> None:
    blocks, reference = random_table(11)
    merged = blocks.merged(np.arange(len(blocks)) // 3)
    for asked in (
        {"distance": "ordered"},
        {"distance": "hierarchical"},
        {"distance": "kernel_js", "bandwidth": Fraction(1, 2)},
    ):
        model = TCloseness(t=0, **asked)  # type: ignore[arg-type]
        fine = measured(model, "t", blocks, reference)
        coarse = measured(model, "t", merged, reference)
        for b in range(len(merged)):
            assert coarse[b] <= fine[3 * b : 3 * b + 3].max() + 1e-12
    assert TCloseness(t=0).monotone == Monotone(generalization=True, suppression=False)


def test_an_empty_table_has_no_tightest_value() -> None:
    blocks, reference = against([1, 1], {0: 1})
    for distance in ("equal", "ordered", "hierarchical"):
        found = TCloseness(t=0, distance=distance).tightest(blocks.select([]), replace(reference, ordered=True,
            taxonomy=np.array([[0, 0], [1, 0]])))  # fmt: skip
        assert found.holds
        assert found.values[0].value is None


@pytest.mark.parametrize(
    "asked",
    [
        {"t": Fraction(-1, 10)},
        {"t": Fraction(11, 10)},
        {"t": 0.2},
        {"t": Fraction(7, 10), "distance": "kernel_js", "bandwidth": 1},
        {"t": 0, "distance": "kernel_js"},
        {"t": 0, "distance": "kernel_js", "bandwidth": 0},
        {"t": 0, "distance": "equal", "bandwidth": 1},
        {"t": 0, "distance": "euclidean"},
    ],
)
def test_parameters_out_of_range(asked: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="valid"):
        TCloseness(**asked)  # type: ignore[arg-type]
    assert TCloseness(t=LN2, distance="kernel_js", bandwidth=1).t == LN2


def test_what_a_distance_needs() -> None:
    _, reference = against([1, 1, 1], {0: 1})
    for distance in ("ordered", "hierarchical"):
        with pytest.raises(ParameterError, match="needs"):
            TCloseness(t=0, distance=distance).validate(reference)
    crossed = np.array([[0, 0, 0], [1, 0, 1], [2, 1, 0]])
    with pytest.raises(ParameterError, match="one label"):
        TCloseness(t=0, distance="hierarchical").validate(replace(reference, taxonomy=crossed[:, :2]))
    with pytest.raises(ParameterError, match="not nested"):
        TCloseness(t=0, distance="hierarchical").validate(
            replace(reference, taxonomy=np.column_stack([crossed, [0, 0, 0]]))
        )
    assert TCloseness(t=0, distance="ordered").validate(replace(reference, ordered=True)) == []


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("closeness.table2", ["zip", "age"]),
        ("ldiv.figure2", ["zip", "age", "nationality"]),
        ("ldiv.figure3", ["zip", "age", "nationality"]),
        ("thesis.2_9", ["zip", "age"]),
        ("thesis.2_10", ["zip", "age"]),
        ("thesis.2_11", ["zip", "age"]),
        ("thesis.2_12", ["zip", "age"]),
    ],
)
def test_golden_tables(name: str, by: list[str], golden: dict, golden_table) -> None:  # type: ignore[no-untyped-def,type-arg]
    entry = golden[name]
    blocks, reference = golden_table(entry["file"], by, entry["sensitive"])
    assert list(reference.domain) == entry["expected"]["dom"]
    assert closeness(blocks, reference) == Fraction(entry["expected"]["t_equal"]["exact"])


def test_golden_skew(golden: dict) -> None:  # type: ignore[type-arg]
    entry = golden["closeness.skew"]
    totals = [entry["block"]["neg"], entry["block"]["pos"]]
    expected = entry["expected"]
    assert closeness(*against(totals, {0: 1, 1: 1})) == Fraction(expected["t_equal of block (1 pos,1 neg)"]["exact"])
    assert closeness(*against(totals, {0: 1, 1: 49})) == Fraction(expected["t_equal of block (49 pos,1 neg)"]["exact"])


def test_golden_distances(golden: dict) -> None:  # type: ignore[type-arg]
    expected = golden["closeness.emd_examples"]["expected"]
    early, spread = against(SALARIES, EARLY, ordered=True), against(SALARIES, SPREAD, ordered=True)
    ordered = {"distance": "ordered"}
    assert closeness(*early, **ordered) == Fraction(expected["ordered, 9 salaries uniform, block {v1,v2,v3}"]["exact"])
    assert closeness(*spread, **ordered) == Fraction(expected["ordered, block {v4,v6,v9}"]["exact"])
    kernel = {"distance": "kernel_js", "bandwidth": Fraction(1, 2)}
    for table, key in (
        (early, "kernel-JS B=1/2, 9 salaries, {v1,v2,v3}"),
        (spread, "kernel-JS B=1/2, {v4,v6,v9}"),
    ):
        digits = Decimal(expected[key]["digits"])
        found = closeness(*table, **kernel)
        assert isinstance(found, Decimal)
        assert abs(found - digits) < Decimal("1e-20")
