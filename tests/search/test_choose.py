"""The choice among satisfying nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qblock.errors import InputError, Refused
from qblock.metrics import METRICS
from qblock.search.strategies import search
from qblock.search.utility import Ranked, candidates, choose

from .fakes import Known, nodes_in, up_set
from .tables import Table, tables


def test_the_best_value_wins() -> None:
    values = {(0, 2): 5, (1, 1): 3, (2, 0): 4}
    assert choose(values, values.__getitem__, "discernibility") == (1, 1)
    assert choose(values, values.__getitem__, "precision") == (0, 2)


def test_ties_go_to_the_lower_height_and_then_to_the_lower_levels() -> None:
    assert choose([(2, 1), (0, 2), (1, 1)], lambda node: 7, "discernibility") == (0, 2)
    assert choose([(3, 0), (1, 3)], lambda node: 7.0, "precision") == (3, 0)


def test_rounding_errors_do_not_break_ties() -> None:
    values = {(0, 2): 0.1 + 0.2, (1, 0): 0.3}
    assert choose(values, values.__getitem__, "loss") == (1, 0)
    assert choose({(0, 2): 10**16, (1, 0): 10**16 + 1}, {(0, 2): 10**16, (1, 0): 10**16 + 1}.get, "height") == (0, 2)


def test_each_node_is_measured_once() -> None:
    seen = []
    choose([(1,), (0,)], lambda node: seen.append(node) or 1.0, "loss")
    assert sorted(seen) == [(0,), (1,)]


def test_what_cannot_be_better_is_not_measured() -> None:
    values, bounds, seen = {(0,): 5.0, (1,): 4.0, (2,): 9.0, (3,): 4.0}, {(0,): 3, (1,): 4, (2,): 8, (3,): None}, []
    assert choose(values, lambda node: seen.append(node) or values[node], "loss", bounds.get) == (1,)
    assert sorted(seen) == [(0,), (1,), (3,)]


def test_a_bound_may_get_tighter_meanwhile() -> None:
    seen: list[tuple[int, ...]] = []

    def bound(node: tuple[int, ...]) -> int:
        return 10 if node == (1,) and seen else 0

    assert choose([(0,), (1,)], lambda node: seen.append(node) or 3, "discernibility", bound) == (0,)
    assert seen == [(0,)]


@given(data=st.data())
def test_bounds_do_not_change_the_choice(data: st.DataObject) -> None:
    nodes = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, unique=True))
    for name, sign in (("loss", 1), ("precision", -1)):
        values = {node: data.draw(st.sampled_from([0.1, 0.1 + 0.2, 0.3, 1.0])) for node in nodes}
        slack = {node: data.draw(st.sampled_from([0.0, 0.1, None])) for node in nodes}
        bounds = {node: None if slack[node] is None else values[node] - sign * slack[node] for node in nodes}
        assert choose(nodes, values.__getitem__, name, bounds.get) == choose(nodes, values.__getitem__, name)


def test_without_a_node_the_choice_is_refused() -> None:
    with pytest.raises(Refused, match="no node"):
        choose([], lambda node: 0.0, "height")


def test_an_unknown_metric_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="discernibility"):
        choose([(0,)], lambda node: 0.0, "beauty")


@pytest.mark.parametrize("metric", METRICS, ids=lambda m: m.name)
@given(table=tables(), data=st.data())
def test_candidates_hold_the_best_node(metric: object, table: Table, data: st.DataObject) -> None:
    lattice = table.lattice
    passing = up_set(lattice, data.draw(nodes_in(lattice, min_size=1)))
    outcome = search(Known(lattice, passing, passing, sizes_only=True))
    for least in (1, 2):

        def value(node: tuple[int, ...], least: int = least) -> float:
            return metric.of(table.published(node, least))

        chosen = choose(candidates(outcome, metric.name, suppression=least > 1), value, metric.name)
        assert chosen == choose(outcome.satisfying(), value, metric.name)


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=4), data=st.data())
def test_nodes_in_the_order_of_bounds_give_the_same_node_and_measure_no_more(shape: list[int], data: Any) -> None:
    size = int(np.prod(shape))
    numbers = st.lists(st.integers(0, 5), min_size=size, max_size=size)
    mask = np.array(data.draw(numbers)).reshape(shape) > 1
    values = np.array(data.draw(numbers)).reshape(shape)
    bounds = np.maximum(values - np.array(data.draw(numbers)).reshape(shape), 0)
    nodes = [tuple(node) for node in np.argwhere(mask).tolist()]
    if not nodes:
        return
    measured: list[Any] = []

    def measure(node: Any) -> int:
        measured.append(node)
        return int(values[node])

    # Bounds may be tighter by the time that a node's turn comes.
    best = choose(Ranked(mask, bounds // 2), measure, "discernibility", lambda node: int(bounds[node]))
    assert best == min(nodes, key=lambda node: (values[node], sum(node), node))
    assert len(measured) == len(set(measured))
    assert all(bounds[node] <= values[best] for node in measured)
