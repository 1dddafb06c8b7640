"""(n,t)-closeness: both variants, and why the lattice form is searched without pruning."""

from __future__ import annotations

import csv
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from qblock.blocks import Blocks, Containing, Reference
from qblock.errors import ParameterError
from qblock.models import Monotone, NtCloseness, TCloseness, measured

Leaves = list[tuple[tuple[str, ...], int, int]]
"""(labels of one leaf, sensitive value, count)"""


def node(leaves: Leaves, labels: list[int], coarser: list[list[int]]) -> tuple[Blocks, Reference]:
    """The blocks keyed by some of the labels, within those of the coarser nodes."""

    def blocks_of(columns: list[int]) -> tuple[Blocks, list[tuple[str, ...]]]:
        keys = sorted({tuple(leaf[c] for c in columns) for leaf, _, _ in leaves})
        histograms: list[dict[int, int]] = [{} for _ in keys]
        for leaf, value, count in leaves:
            histogram = histograms[keys.index(tuple(leaf[c] for c in columns))]
            histogram[value] = histogram.get(value, 0) + count
        return Blocks.of(histograms), keys

    blocks, keys = blocks_of(labels)
    containing = []
    for columns in coarser:
        around, names = blocks_of(columns)
        some = {tuple(leaf[c] for c in labels): tuple(leaf[c] for c in columns) for leaf, _, _ in leaves}
        containing.append(Containing(around, np.array([names.index(some[key]) for key in keys])))
    return replace(blocks, containing=tuple(containing)), Reference.of(blocks)


def tightest(blocks: Blocks, reference: Reference, **asked: object) -> tuple[object, object]:
    """(smallest t for the n asked, largest n for the t asked), each held against checks at and beyond it."""
    model = NtCloseness(**asked)  # type: ignore[arg-type]
    t, n = (value.value for value in model.tightest(blocks, reference).values)
    assert model.passes(blocks, reference).all() == model.tightest(blocks, reference).holds == (t <= asked["t"])  # type: ignore[operator]
    at, deeper = {**asked, "n": n}, {**asked, "n": n + 1}  # type: ignore[operator]
    assert NtCloseness(**at).passes(blocks, reference).all()  # type: ignore[arg-type]
    if n < reference.rows:  # type: ignore[operator]
        assert not NtCloseness(**deeper).passes(blocks, reference).all()  # type: ignore[arg-type]
    if isinstance(t, Fraction):
        assert NtCloseness(**{**asked, "t": t}).passes(blocks, reference).all()  # type: ignore[arg-type]
        if t:
            assert not NtCloseness(**{**asked, "t": t - Fraction(1, 10**15)}).passes(blocks, reference).all()  # type: ignore[arg-type]
    return t, n


CHAIN: Leaves = [
    (("E1", "F", "G1", "T"), 0, 5),
    (("E1", "F", "G1", "T"), 1, 5),
    (("E2", "F", "G1", "T"), 0, 9),
    (("E2", "F", "G1", "T"), 1, 1),
    (("R1", "R1", "G1", "T"), 0, 16),
    (("R1", "R1", "G1", "T"), 1, 24),
    (("R2", "R2", "R2", "T"), 0, 240),
]
GRID: Leaves = [
    (("0", "0"), 0, 5),
    (("0", "1"), 0, 6),
    (("1", "0"), 0, 3),
    (("1", "0"), 1, 4),
    (("1", "1"), 0, 1),
    (("1", "1"), 1, 1),
]


def chain(level: int) -> tuple[Blocks, Reference]:
    return node(CHAIN, [level], [[c] for c in range(level + 1, 4)])


def test_a_chain_that_passes_fails_and_passes_again() -> None:
    # E1 (5,5) is G1 (30,30) in small, E2 (9,1) the table (270,30); their union F (14,6) is 1/5 from either.
    found = [tightest(*chain(level), n=40, t=Fraction(1, 10))[0] for level in range(4)]
    assert found == [0, Fraction(1, 5), 0, 0]
    model = NtCloseness(n=40, t=Fraction(1, 10))
    assert [model.passes(*chain(level)).all() for level in range(4)] == [True, False, True, True]


def test_the_largest_n() -> None:
    # At level 0 E1 is within 1/10 of G1 (60 rows) only, R1 (16,24) of itself and of G1; E2 and R2 of the whole table.
    assert tightest(*chain(0), n=40, t=Fraction(1, 10)) == (0, 60)
    # F, of 20 rows, is 1/5 from G1 (60 rows) and from the table (300); R1 is 1/2 from the table, 1/10 from G1.
    assert tightest(*chain(1), n=40, t=Fraction(1, 10)) == (Fraction(1, 5), 20)
    assert tightest(*chain(1), n=40, t=Fraction(1, 5)) == (Fraction(1, 5), 60)
    assert tightest(*chain(1), n=40, t=Fraction(1, 2)) == (Fraction(1, 5), 300)


def test_a_subset_of_the_quasi_identifiers_can_fail() -> None:
    both = node(GRID, [0, 1], [[0], [1], []])
    x, y, neither = node(GRID, [0], [[]]), node(GRID, [1], [[]]), node(GRID, [], [])
    asked = {"n": 11, "t": Fraction(1, 4)}
    assert tightest(*both, **asked)[0] == Fraction(1, 4)
    assert tightest(*x, **asked)[0] == Fraction(11, 36)
    assert tightest(*y, **asked)[0] == Fraction(1, 8)
    assert tightest(*neither, **asked)[0] == 0
    assert [NtCloseness(**asked).passes(*table).all() for table in (both, x, y, neither)] == [True, False, True, True]  # type: ignore[arg-type]


def test_n_of_one_and_of_the_whole_table() -> None:
    blocks, reference = chain(0)
    assert tightest(blocks, reference, n=1, t=0)[0] == 0
    closest = TCloseness(t=0).tightest(blocks, reference).values[0].value
    assert tightest(blocks, reference, n=300, t=0)[0] == closest == Fraction(1, 2)


def test_own_or_top_looks_at_the_table_only() -> None:
    blocks, reference = chain(0)
    # E1 has fewer than 40 rows and is 2/5 from the table.
    assert tightest(blocks, reference, n=40, t=0, variant="own_or_top")[0] == Fraction(2, 5)
    assert tightest(blocks, reference, n=40, t=0)[0] == 0
    assert NtCloseness(n=40, t=0, variant="own_or_top").monotone == Monotone(True, False)
    assert NtCloseness(n=40, t=0).monotone == Monotone(False, False)


def test_without_coarser_nodes_the_table_is_still_there() -> None:
    blocks, reference = node(GRID, [0], [])
    assert tightest(blocks, reference, n=11, t=Fraction(1, 4))[0] == Fraction(11, 36)


@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical", "kernel_js"])
def test_every_distance_is_the_one_of_t_closeness(distance: str) -> None:
    # Three nodes: 8 blocks, within 4, within 2. What the model reports is the least over the supersets of what
    # t-closeness reports with the superset as its table.
    rng = np.random.default_rng(4)
    leaves: Leaves = [
        ((str(b), str(b // 2), str(b // 4)), value, int(count))
        for b in range(8)
        for value, count in enumerate(rng.integers(0, 5, 4) + (np.arange(4) == b % 4))
        if count
    ]
    blocks, reference = node(leaves, [0], [[1], [2]])
    reference = replace(reference, ordered=True, taxonomy=np.array([[v, v // 2, 0] for v in range(4)]))
    asked = {"distance": distance, "bandwidth": Fraction(1, 2) if distance == "kernel_js" else None}
    n = int(np.median([*blocks.containing[0].blocks.rows]))
    expected = []
    for b in range(8):
        found = [Fraction(0)] if blocks.rows[b] >= n else []
        tables = [(c.blocks, int(c.index[b])) for c in blocks.containing]
        for around, place in tables:
            if around.rows[place] >= n:
                totals = np.bincount(
                    around.select([place]).value, weights=around.select([place]).count, minlength=4
                ).astype(np.int64)
                model = TCloseness(t=0, **asked)  # type: ignore[arg-type]
                found.append(model._exact("t", blocks.select([b]), replace(reference, totals=totals)))  # type: ignore[arg-type]
        found.append(TCloseness(t=0, **asked)._exact("t", blocks.select([b]), reference))  # type: ignore[arg-type]
        expected.append(min(found))
    model = NtCloseness(n=n, t=0, **asked)  # type: ignore[arg-type]
    doubles = measured(model, "t", blocks, reference)
    for b, value in enumerate(expected):
        assert model._exact("t", blocks.select([b]), reference) == value
        assert doubles[b] == pytest.approx(float(value), abs=1e-12)
    worst = model.tightest(blocks, reference).values[0].value
    assert worst == max(expected) > 0
    if isinstance(worst, Decimal):
        assert NtCloseness(n=n, t=Fraction(worst) + Fraction(1, 10**20), **asked).passes(blocks, reference).all()  # type: ignore[arg-type]
    else:
        assert tightest(blocks, reference, n=n, t=Fraction(1, 9), **asked)[0] == worst


def test_runs_of_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, reference = chain(0)
    model = NtCloseness(n=40, t=Fraction(1, 10))
    at_once = measured(model, "t", blocks, reference), measured(model, "n", blocks, reference)
    monkeypatch.setattr("qblock.blocks.PAIRS", 1)
    monkeypatch.setattr("qblock.blocks.CELLS", 1)
    np.testing.assert_array_equal(measured(model, "t", blocks, reference), at_once[0])
    np.testing.assert_array_equal(measured(model, "n", blocks, reference), at_once[1])


def test_own_or_top_survives_merging() -> None:
    counts = np.random.default_rng(8).integers(0, 5, (200, 3)) + 1
    blocks = Blocks.of([dict(enumerate(row)) for row in counts.tolist()])
    reference = Reference.of(blocks)
    merged = blocks.merged(np.arange(200) // 2)
    for t in (Fraction(1, 20), Fraction(1, 8), Fraction(1, 4)):
        model = NtCloseness(n=12, t=t, variant="own_or_top")
        fine, coarse = model.passes(blocks, reference), model.passes(merged, reference)
        assert coarse[fine[::2] & fine[1::2]].all()
        assert not model.passes(blocks, reference).all()


@pytest.mark.parametrize(
    "asked", [{"n": 0}, {"n": Fraction(3, 2)}, {"t": 2}, {"t": 0.1}, {"variant": "grid"}, {"distance": "far"}]
)
def test_parameters_out_of_range(asked: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="valid"):
        NtCloseness(**{"n": 2, "t": 0, **asked})  # type: ignore[arg-type]


def test_n_beyond_the_table_is_an_error() -> None:
    _, reference = chain(0)
    with pytest.raises(ParameterError, match="N = 300"):
        NtCloseness(n=301, t=0).validate(reference)
    assert NtCloseness(n=300, t=0).validate(reference) == []
    assert "containing" in NtCloseness(n=2, t=0).needs
    assert NtCloseness(n=2, t=0, distance="ordered", variant="own_or_top").needs >= {"order"}
    assert "containing" not in NtCloseness(n=2, t=0, variant="own_or_top").needs


def read(path: Path, labels: list[str]) -> Leaves:
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    values = sorted({row["s"] for row in rows})
    return [(tuple(row[c] for c in labels), values.index(row["s"]), int(row["count"])) for row in rows]


def test_golden_chain(golden: dict, shared: Path) -> None:  # type: ignore[type-arg]
    entry = golden["closeness.nt_not_monotone"]
    leaves = read(shared / "golden" / entry["file"], ["l0", "l1", "l2", "l3"])
    for level in range(4):
        table = node(leaves, [level], [[c] for c in range(level + 1, 4)])
        expected = Fraction(entry["expected"][f"level {level} smallest t"]["exact"])
        assert tightest(*table, n=entry["n"], t=0)[0] == expected


def test_golden_grid(golden: dict, shared: Path) -> None:  # type: ignore[type-arg]
    entry = golden["closeness.nt_no_subset_property"]
    leaves = read(shared / "golden" / entry["file"], ["x", "y"])
    tables = {
        "QI {x,y} smallest t": node(leaves, [0, 1], [[0], [1], []]),
        "QI {x}": node(leaves, [0], [[]]),
        "QI {y}": node(leaves, [1], [[]]),
        "QI {}": node(leaves, [], []),
    }
    for key, table in tables.items():
        assert tightest(*table, n=entry["n"], t=0)[0] == Fraction(entry["expected"][key]["exact"])
