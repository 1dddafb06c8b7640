"""All strategies give the same answer as the definition, on any lattice and any verdicts."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.errors import InputError
from qblock.lattice import Lattice, is_generalization, minimal
from qblock.search.strategies import STRATEGIES, search

from .fakes import Known, monotone_cases, scattered_cases, up_set


def fresh(case: Known, **changes: object) -> Known:
    return dataclasses.replace(case, asked_sizes=[], asked_full=[], batches=[], **changes)


def satisfying(case: Known) -> list[tuple[int, ...]]:
    return [node for node in sorted(case.lattice.nodes()) if case.full[node]]


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=monotone_cases())
def test_monotone_conditions(strategy: str, case: Known) -> None:
    case = fresh(case)
    outcome = search(case, strategy=strategy)
    assert np.array_equal(outcome.satisfied, case.full)
    assert outcome.satisfying() == satisfying(case)
    assert outcome.minimal == minimal(satisfying(case))
    assert outcome.decided.all()
    assert outcome.nodes_evaluated == len({*case.asked_sizes, *case.asked_full})


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=monotone_cases())
def test_sizes_alone(strategy: str, case: Known) -> None:
    case = fresh(case, full=case.sizes, sizes_only=True)
    outcome = search(case, strategy=strategy)
    assert np.array_equal(outcome.satisfied, case.sizes)
    if strategy != "exhaustive":
        assert not case.asked_full
        assert outcome.optimality == "minimal"


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=scattered_cases())
def test_conditions_that_are_not_monotone(strategy: str, case: Known) -> None:
    case = fresh(case)
    outcome = search(case, strategy=strategy)
    assert np.array_equal(outcome.satisfied, case.full)
    assert outcome.minimal == minimal(satisfying(case))
    assert outcome.optimality == "scanned"
    passing = {node for node in case.lattice.nodes() if case.sizes[node]}
    assert set(case.asked_full) == (passing if strategy != "exhaustive" else set(case.lattice.nodes()))


@given(case=scattered_cases(), data=st.data())
def test_sizes_that_are_not_monotone_prune_nothing_but_themselves(case: Known, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=len(case.lattice), max_size=len(case.lattice)))
    sizes = case.full | np.array(bits, dtype=bool).reshape(case.lattice.shape)
    case = fresh(case, sizes=sizes, sizes_monotone=False)
    outcome = search(case)
    assert np.array_equal(outcome.satisfied, case.full)
    assert len(case.asked_sizes) == len(case.lattice)
    assert search(fresh(case, full=sizes, sizes_only=True)).optimality == "scanned"


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(case=monotone_cases())
def test_progress_runs_to_the_end(strategy: str, case: Known) -> None:
    seen: list[tuple[int, int]] = []
    case = fresh(case)
    search(case, strategy=strategy, tally=lambda decided, left, price: seen.append((decided, left)))
    assert len(seen) == len(case.asked_sizes) + len(case.asked_full)
    assert all(decided + left == len(case.lattice) for decided, left in seen)
    assert [decided for decided, _ in seen] == sorted(decided for decided, _ in seen)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_interrupt_passes_through(strategy: str) -> None:
    lattice = Lattice((2, 2))
    everything = up_set(lattice, [lattice.bottom])

    def interrupt(decided: int, left: int, price: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(Known(lattice, everything, everything), strategy=strategy, tally=interrupt)


def test_of_nodes_that_are_asked_together_none_decides_another() -> None:
    lattice = Lattice((3, 3, 3))
    passing = up_set(lattice, [(1, 1, 1), (0, 2, 3)])
    case = Known(lattice, passing, passing, max_concurrency=3)
    alone = Known(lattice, passing, passing)
    assert search(case).minimal == search(alone).minimal == [(0, 2, 3), (1, 1, 1)]
    assert max(map(len, case.batches)) == 3
    for batch in case.batches:
        for node, other in itertools.permutations(batch, 2):
            assert not is_generalization(node, other)


def test_an_unknown_strategy_names_the_known_ones() -> None:
    lattice = Lattice((1,))
    everything = up_set(lattice, [lattice.bottom])
    with pytest.raises(InputError, match="chains"):
        search(Known(lattice, everything, everything), strategy="greedy")


def test_a_lattice_of_one_node() -> None:
    lattice = Lattice((0, 0))
    everything = up_set(lattice, [lattice.bottom])
    assert search(Known(lattice, everything, everything)).minimal == [(0, 0)]
    assert search(Known(lattice, everything, ~everything)).minimal == []
