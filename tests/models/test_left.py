"""What is left of blocks for who can exclude values: the same, whether by bounds or counted anew of each case."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qblock.blocks import Blocks, Ints, Reference
from qblock.checks.skew import Known
from qblock.models import (
    DeltaLDiversity,
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    Model,
    NpdRecursiveCLDiversity,
    PdRecursiveCLDiversity,
    RecursiveCLDiversity,
    left,
    left_bounds,
)

F = Fraction
LEAVES, VALUES = 4, 5
MODELS: list[Model] = [
    DistinctLDiversity(l=1),
    DistinctLDiversity(l=3),
    FrequencyLDiversity(l=2),
    FrequencyLDiversity(l=F(5, 2)),
    EntropyLDiversity(l=2),
    EntropyLDiversity(l=F(5, 2)),
    RecursiveCLDiversity(c=2, l=1),
    RecursiveCLDiversity(c=2, l=2),
    RecursiveCLDiversity(c=F(1, 2), l=3),
    RecursiveCLDiversity(c=10**400, l=3),
    PdRecursiveCLDiversity(c=2, l=2, allowed=("0",)),
    NpdRecursiveCLDiversity(c1=4, c2=20, l=2, protected=("0", "1")),
    DeltaLDiversity(delta=F(1, 2), l=F(3, 2)),
]
BOUNDED = [
    model
    for model in MODELS
    if left_bounds.bounds_of_l.dispatch(type(model)) is not left_bounds.bounds_of_l.dispatch(Model)
]


def bounds(model: Model, cases: left.Left) -> left_bounds.Bounds:
    known = left_bounds.bounds_of_l(model, cases)
    assert known is not None
    return known


Row = tuple[int, int, int]
"""A person's group, leaf and value."""


@dataclass
class Groups:
    """The groups of rows, as readers see them."""

    rows: list[Row]

    def blocks(self, sensitive: int) -> Blocks:
        counts = defaultdict(Counter)
        for group, _, value in self.rows:
            counts[group][value] += 1
        return Blocks.of([counts[group] for group in range(len(counts))])

    def leaves(self, sensitive: int, i: int) -> tuple[Ints, Ints, Ints]:
        group, leaf, _ = np.array(self.rows, dtype=np.int64).T
        return group, leaf, np.ones_like(group)

    def hidden(self) -> list[int]:
        return [0]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Row], np.ndarray]:
    """Rows, and bool[leaves, values], what a leaf excludes: some of what no row with it has."""
    kinds = st.tuples(st.integers(0, 3), st.integers(0, LEAVES - 1), st.integers(0, VALUES - 1))
    counted = draw(st.dictionaries(kinds, st.sampled_from([1, 1, 2, 3, 40]), min_size=1, max_size=25))
    named = sorted({group for group, _, _ in counted})
    rows = [(named.index(group), leaf, value) for (group, leaf, value), n in counted.items() for _ in range(n)]
    excluded = np.array(draw(st.lists(st.booleans(), min_size=LEAVES * VALUES, max_size=LEAVES * VALUES)))
    excluded = excluded.reshape(LEAVES, VALUES)
    for _, leaf, value in rows:
        excluded[leaf, value] = False
    return rows, excluded


def reference_of(rows: list[Row]) -> Reference:
    numbers = tuple(map(Fraction, range(VALUES)))
    return Reference.of(Groups(rows).blocks(0), values=VALUES, ordered=True, numbers=numbers)


def left_of(rows: list[Row], group: int, gone: np.ndarray) -> Blocks:
    return Blocks.of([Counter(value for of, _, value in rows if of == group and not gone[value])])


def slowly(rows: list[Row], excluded: np.ndarray, model: Model) -> tuple[float, float, int] | None:
    """Pair after pair of a group and a leaf that is in it: l as asked, the least that is left, and whose it is."""
    reference, failing, people = reference_of(rows), [], 0
    for (group, leaf), n in Counter((group, leaf) for group, leaf, _ in rows).items():
        block = left_of(rows, group, excluded[leaf])
        if excluded[leaf].any() and not model.passes(block, reference).all():
            failing.append(float({v.parameter: v.value for v in model.tightest(block, reference).values}["l"]))
            people += n
    return (float(model.l), min(failing), people) if failing else None


def fast(rows: list[Row], excluded: np.ndarray, model: Model) -> tuple[float, float, int] | None:
    leaves = np.flatnonzero(excluded.any(axis=1))
    if not len(leaves):
        return None
    return Known(Groups(rows), 0, 0, leaves, excluded[leaves]).failing(model, reference_of(rows))


UNEVEN = [(0, 0, 0)] * 40 + [(0, 1, value) for value in range(1, 5)] + [(1, 0, value) for value in (0, 1, 3)] * 2
ONE_GONE = np.eye(VALUES, dtype=bool)[[4, 0, 0, 0]]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name}-{model.l}")
@given(table=tables(), times=st.sampled_from([0, 10**6]), cells=st.sampled_from([1, 12, 10**6]))
@example(table=(UNEVEN, ONE_GONE), times=10**6, cells=12)
@settings(deadline=None, max_examples=40)
def test_who_fails_is_the_same_by_bounds_and_case_by_case(
    model: Model, table: tuple[list[Row], np.ndarray], times: int, cells: int
) -> None:
    with (
        mock.patch.object(left, "WHOLE_TIMES", times),
        mock.patch.object(left, "MOST", max(cells, 12)),
        mock.patch.object(left, "CELLS", cells),
        mock.patch.object(left, "PAIRS", cells),
    ):
        assert fast(*table, model) == slowly(*table, model)


@pytest.mark.parametrize("model", BOUNDED, ids=lambda model: f"{model.name}-{model.l}")
@given(table=tables())
@example(table=(UNEVEN, ONE_GONE))
@settings(deadline=None, max_examples=40)
def test_l_is_within_its_bounds_and_decides(model: Model, table: tuple[list[Row], np.ndarray]) -> None:
    rows, excluded = table
    reference, blocks = reference_of(rows), Groups(rows).blocks(0)
    pairs = sorted({(group, leaf) for group, leaf, _ in rows})
    group, leaf = np.array(pairs, dtype=np.int64).T
    low, high = bounds(model, left.Left(blocks, group, leaf, excluded))
    for n, (of, known) in enumerate(pairs):
        block = left_of(rows, of, excluded[known])
        exact = {v.parameter: v.value for v in model.tightest(block, reference).values}["l"]
        assert low[n] <= exact <= high[n]
        assert bool(model.passes(block, reference).all()) == (F(exact) - model.l > -F(1, 10**40))


def test_bounds_decide_most_of_what_is_excluded() -> None:
    """They would be of no use where they told nothing."""
    blocks = Groups(UNEVEN).blocks(0)
    cases = left.Left(blocks, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), ONE_GONE)
    for model, passing, failing in (
        (DistinctLDiversity(l=3), [True, True, True, False], [False, False, False, True]),
        (EntropyLDiversity(l=F(5, 2)), [False, True, True, False], [True, False, False, True]),
        (FrequencyLDiversity(l=F(5, 2)), [False, False, True, False], [False, False, False, True]),
        (RecursiveCLDiversity(c=2, l=3), [False, False, True, False], [False, False, False, True]),
    ):
        low, high = bounds(model, cases)
        assert (low >= float(model.l)).tolist() == passing, model
        assert (high < float(model.l)).tolist() == failing, model
