"""Counting people who may have several rows: which models stay monotone, and why the others do not."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import diversity
from reference.tables import Block, Table

from laws.cases import quick
from laws.draws import same
from laws.kinds import variants
from qblock.blocks import Blocks, Guards, Reference
from qblock.models import BY_NAME, REGISTRY, Model

NAMES = [model.name for model in REGISTRY]
People = dict[int, frozenset[int]]
"""One block: who has each sensitive value."""
people = st.frozensets(st.integers(0, 5), min_size=1, max_size=4)
block = st.dictionaries(st.integers(0, 2), people, min_size=1, max_size=3)


def counted(found: Sequence[People]) -> Blocks:
    """Distinct people per block and per value of the block; their sum may be larger than the block."""
    plain = Blocks.of([{value: len(who) for value, who in one.items()} for one in found])
    sizes = [len(frozenset().union(*one.values())) for one in found]
    return dataclasses.replace(plain, rows=np.array(sizes, np.int64), population=np.array(sizes, np.int64))


def union(one: People, two: People) -> People:
    return {v: one.get(v, frozenset()) | two.get(v, frozenset()) for v in one.keys() | two.keys()}


def by_rows(found: Sequence[People]) -> list[Block]:
    rows = [[{"s": v, "who": i} for v, who in one.items() for i in who] for one in found]
    table = Table([row for one in rows for row in one], domain=(0, 1, 2), entity="who")
    return [Block(table, one) for one in rows]


@quick
@given(found=st.lists(block, min_size=1, max_size=3))
def test_sizes_count_people_and_shares_count_pairs(found: list[People]) -> None:
    blocks, slow = counted(found), by_rows(found)
    reference = Reference.of(blocks, values=3)
    for name, params, value in (
        ("k_anonymity", {"k": 2}, diversity.k_tightest),
        ("distinct_l_diversity", {"l": 2}, diversity.distinct_tightest),
        ("frequency_l_diversity", {"l": 2}, diversity.frequency_tightest),
        ("entropy_l_diversity", {"l": 2}, diversity.entropy_tightest),
    ):
        answer = BY_NAME[name](**params).tightest(blocks, reference).values[0].value
        assert same(answer, min(map(value, slow)))
    recursive = BY_NAME["recursive_cl_diversity"](c=2, l=2)
    assert recursive.passes(blocks, reference).tolist() == [diversity.recursive_holds(b, 2, 2) for b in slow]


NO_SHARES: dict[str, Any] = {
    "k_anonymity": {"k": 3},
    "distinct_l_diversity": {"l": 2},
    "k_map": {"k": 3},
}
"""The models that need no shares keep their flags."""


@pytest.mark.parametrize("name", NO_SHARES)
@quick
@given(one=block, two=block)
def test_models_without_shares_stay_monotone(name: str, one: People, two: People) -> None:
    model = BY_NAME[name](**NO_SHARES[name])
    assert model.monotone.for_entities == model.monotone
    before, after = counted([one, two]), counted([union(one, two)])
    reference = Reference.of(before, values=3)
    parts, whole = model.passes(before, reference), model.passes(after, reference)
    assert whole[0] or not parts.any()


@pytest.mark.parametrize("name", NAMES)
def test_only_models_without_shares_are_declared_monotone(name: str) -> None:
    for model in variants(name).values():
        flags = model.monotone.for_entities
        assert flags.generalization == flags.suppression == (name in NO_SHARES)


ONE: People = {0: frozenset({1, 2}), 1: frozenset({3, 4})}
TWO: People = {0: frozenset({5, 6}), 1: frozenset({3, 4})}
"""Persons 3 and 4 have rows in both blocks, so that the union has 4 people with value 0 and 2 with value 1."""
SHARES: tuple[Model, ...] = tuple(
    BY_NAME[name](**params)
    for name, params in {
        "frequency_l_diversity": {"l": 2},
        "entropy_l_diversity": {"l": 2},
        "recursive_cl_diversity": {"c": Fraction(3, 2), "l": 2},
        "pd_recursive_cl_diversity": {"c": Fraction(3, 2), "l": 2},
        "npd_recursive_cl_diversity": {"c1": 9, "c2": 50, "l": 1, "protected": ("1",)},
        "alpha_k_anonymity": {"alpha": Fraction(1, 2), "k": 1},
        "t_closeness": {"t": Fraction(1, 10)},
        "nt_closeness": {"n": 8, "t": Fraction(1, 10), "variant": "own_or_top"},
        "beta_likeness": {"beta": Fraction(1, 10)},
        "delta_disclosure": {"delta": Fraction(1, 10)},
        "epsilon_privacy": {"epsilon": Fraction(11, 10), "adversary": "III"},
    }.items()
    if name in BY_NAME
)


@pytest.mark.parametrize("model", SHARES, ids=lambda model: model.name)
def test_shares_of_people_are_not_monotone(model: Model) -> None:
    balanced: People = {0: frozenset({1, 2, 5, 6}), 1: frozenset({3, 4, 7, 8})}
    reference = Reference.of(counted([balanced]), values=2)
    assert model.passes(counted([ONE, TWO]), reference).all()
    assert not model.passes(counted([union(ONE, TWO)]), reference).all()


@pytest.mark.parametrize("name", NAMES)
@quick
@given(found=st.lists(block, min_size=1, max_size=3), data=st.data())
def test_no_passing_block_has_fewer_people_than_the_least(name: str, found: list[People], data: st.DataObject) -> None:
    each = np.arange(len(found) + 1, dtype=np.int64)
    blocks = dataclasses.replace(counted(found), guards=Guards(each, np.zeros(len(found), np.int64)))
    reference = Reference.of(blocks, values=3, guarded=((0,),), numbers=tuple(map(Fraction, range(3))), ordered=True)
    reference = dataclasses.replace(reference, taxonomy=np.array([[0, 0], [1, 0], [2, 0]], np.int64))
    model = data.draw(st.sampled_from(list(variants(name).values())))
    sizes = blocks.rows[model.passes(blocks, reference)]
    assert (sizes >= model.least_block_size(reference, entities=True)).all()
