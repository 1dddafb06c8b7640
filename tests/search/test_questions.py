"""What the strategies ask: nothing that follows from earlier answers, in an order that keeps the questions few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from qblock.lattice import Lattice, is_generalization
from qblock.search.lattice import count_down, count_up, minimal_mask, nodes_of
from qblock.search.strategies import BoundaryEstimate, search

from .fakes import Known, monotone_cases, rows, up_set


@pytest.mark.parametrize("strategy", ["chains", "incognito"])
@given(case=monotone_cases())
def test_nothing_is_asked_that_is_known(strategy: str, case: Known) -> None:
    search(case, strategy=strategy)
    for asked_nodes, verdicts in ((case.asked_sizes, case.sizes), (case.asked_full, case.full)):
        for i, node in enumerate(asked_nodes):
            for earlier in asked_nodes[:i]:
                assert not (verdicts[earlier] and is_generalization(node, earlier))
                assert not (not verdicts[earlier] and is_generalization(earlier, node))


def test_incognito_goes_by_subsets() -> None:
    lattice = Lattice((1, 1))
    passing = up_set(lattice, [(1, 0)])
    case = Known(lattice, passing, passing, sizes_only=True)
    assert search(case, strategy="incognito").minimal == [(1, 0)]
    # {first}: 0 fails, 1 passes; {second}: 0 passes, 1 is marked; both: (1, 0) is known from {second}
    assert case.asked_sizes == [(0, 1), (1, 1), (1, 0)]


def test_incognito_asks_no_candidate_whose_projection_failed() -> None:
    lattice = Lattice((2, 2, 2))
    passing = up_set(lattice, [(2, 2, 1)])
    case = Known(lattice, passing, passing, sizes_only=True)
    search(case, strategy="incognito")
    assert set(case.asked_sizes) == {(0, 2, 2), (1, 2, 2), (2, 0, 2), (2, 1, 2), (2, 2, 0), (2, 2, 1), (2, 2, 2)}


def certificate(passing: np.ndarray) -> int:
    """The nodes that any proof must have asked: minimal passing and maximal failing ones."""
    failing = ~passing
    return len(nodes_of(minimal_mask(passing))) + int((failing & (count_up(failing) == 1)).sum())


@pytest.mark.parametrize("most", [1, 8, 64, 512, 4096])
def test_chains_asks_few_nodes_where_blocks_shrink_by_level(most: int) -> None:
    lattice = Lattice((4, 1, 1, 2, 3, 2))
    passing = np.zeros(lattice.shape, dtype=bool)
    for node in lattice.nodes():
        passing[node] = rows(lattice, node) <= most
    case = Known(lattice, passing, passing, sizes_only=True)
    outcome = search(case)
    assert certificate(passing) <= outcome.nodes_evaluated <= 1.25 * certificate(passing) + 12


def test_the_last_digits_of_a_guess_decide_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """They depend on the processor; equal attributes make many guesses equal but for them."""
    lattice = Lattice((2, 2, 2, 2, 2))
    passing = np.zeros(lattice.shape, dtype=bool)
    for node in lattice.nodes():
        passing[node] = rows(lattice, node) <= 40
    chances = BoundaryEstimate.chances
    asked_nodes = []
    for seed in range(5):
        noise = np.random.default_rng(seed)

        def noisy(estimate: BoundaryEstimate, noise: np.random.Generator = noise) -> np.ndarray:
            exact = chances(estimate)
            return exact * (1 + 4e-16 * noise.integers(-4, 5, exact.shape))

        monkeypatch.setattr(BoundaryEstimate, "chances", noisy)
        case = Known(lattice, passing, passing, sizes_only=True)
        search(case)
        asked_nodes.append(case.asked_sizes)
    assert all(nodes == asked_nodes[0] for nodes in asked_nodes)


@pytest.mark.parametrize("passes", [True, False])
def test_chains_sees_quickly_that_all_or_nothing_passes(passes: bool) -> None:
    lattice = Lattice((4, 1, 1, 2, 3, 2, 2))
    verdicts = np.full(lattice.shape, passes)
    case = Known(lattice, verdicts, verdicts, sizes_only=True)
    assert search(case).nodes_evaluated <= 20


@given(case=monotone_cases())
def test_counts_of_up_sets_and_down_sets(case: Known) -> None:
    up, down = count_up(case.full), count_down(case.full)
    passing = nodes_of(case.full)
    for node in case.lattice.nodes():
        assert up[node] == sum(is_generalization(other, node) for other in passing)
        assert down[node] == sum(is_generalization(node, other) for other in passing)


def test_a_guess_follows_the_verdicts() -> None:
    lattice = Lattice((2, 1))
    estimate = BoundaryEstimate(lattice)
    before = estimate.chances()
    assert before.shape == (3, 2)
    assert before[0, 0] < before[1, 0] < before[2, 1]
    estimate.learn((1, 0), True)
    after = estimate.chances()
    assert after[1, 0] > before[1, 0]
    estimate.learn((0, 0), False)
    assert estimate.chances()[0, 0] < after[0, 0]
