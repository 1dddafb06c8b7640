"""The multi-attribute form against the reference: each attribute, with all the others known."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import diversity
from reference.tables import Block, Table

from laws.cases import quick
from laws.draws import same, worst
from qblock.blocks import Reference
from qblock.models import BY_NAME, Model
from qblock.models.multi import Attribute, passes, split, tightest

Rows = list[tuple[int, int, int]]
"""(block, value of the first attribute, value of the second) of each person."""

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=14)
BASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("k_anonymity", {"k": 2}, diversity.k_holds, diversity.k_tightest),
    ("distinct_l_diversity", {"l": 2}, diversity.distinct_holds, diversity.distinct_tightest),
    ("frequency_l_diversity", {"l": Fraction(3, 2)}, diversity.frequency_holds, diversity.frequency_tightest),
    ("entropy_l_diversity", {"l": Fraction(3, 2)}, diversity.entropy_holds, diversity.entropy_tightest),
]


def attributes(model: Model, people: Rows) -> tuple[list[Attribute], list[int]]:
    """The engine's parts of every attribute, and the blocks in the order of their numbers."""
    numbers = sorted({row[0] for row in people})
    counted = Counter(people)
    block = np.array([numbers.index(row[0]) for row in counted], np.int64)
    values = np.array([row[1:] for row in counted], np.int64)
    count = np.array(list(counted.values()), np.int64)
    parts = split(block, values, count)
    return [Attribute(model, b, Reference.of(b, values=4), owner) for b, owner in parts], numbers


def parts_by_hand(people: Rows, block: int) -> list[Block]:
    table = Table([{"a": a, "b": b} for q, a, b in people if q == block], "a")
    return [part for parts in diversity.multi_attribute_blocks(table.whole(), ["a", "b"]).values() for part in parts]


@pytest.mark.parametrize(("name", "params", "holds", "value"), BASES, ids=[base[0] for base in BASES])
@quick
@given(people=rows)
def test_multi_attribute_form(name: str, params: dict[str, Any], holds: Any, value: Any, people: Rows) -> None:
    model = BY_NAME[name](**params)
    found, numbers = attributes(model, people)
    by_hand = [parts_by_hand(people, q) for q in numbers]
    verdicts = [all(holds(part, *params.values()) for part in parts) for parts in by_hand]
    assert passes(found, len(numbers)).tolist() == verdicts
    answer = tightest(found)
    assert answer.holds is all(verdicts)
    assert same(answer.values[0].value, worst([value(part) for parts in by_hand for part in parts], "larger"))


@quick
@given(people=rows, union=st.sampled_from([(0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 0, 0)]))
def test_multi_attribute_form_of_a_monotone_base_is_monotone(people: Rows, union: tuple[int, ...]) -> None:
    """Parts of a union are unions of parts."""
    for name, params, *_ in BASES:
        model = BY_NAME[name](**params)
        fine, numbers = attributes(model, people)
        coarse, merged = attributes(model, [(union[q], a, b) for q, a, b in people])
        before, after = passes(fine, len(numbers)), passes(coarse, len(merged))
        for i, whole in enumerate(merged):
            assert after[i] or not all(before[j] for j, q in enumerate(numbers) if union[q] == whole)
