"""Multi-attribute l-diversity: the example of LD section 4.5 and the combination of verdicts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from qblock.blocks import Reference
from qblock.errors import ParameterError
from qblock.models import (
    DeltaLDiversity,
    DistinctLDiversity,
    EntropyLDiversity,
    EpsilonMAnonymity,
    FrequencyLDiversity,
    KAnonymity,
    Model,
    PdRecursiveCLDiversity,
    RecursiveCLDiversity,
    multi,
)


def attributes(model: Model, block: list[int], *columns: list[int]) -> list[multi.Attribute]:
    values = np.array(columns, np.int64).T
    parts = multi.split(np.array(block, np.int64), values, np.ones(len(block), np.int64))
    return [
        multi.Attribute(model, blocks, Reference.of(blocks, values=int(values[:, i].max()) + 1), owner)
        for i, (blocks, owner) in enumerate(parts)
    ]


# {(s1,v1), (s1,v2), (s2,v3), (s3,v3)}, and a block in which every combination of two values occurs
EXAMPLE = ([0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 2, 0, 0, 1, 1], [0, 1, 2, 2, 0, 1, 0, 1])


def test_three_values_each_but_none_once_the_other_is_known() -> None:
    alone = attributes(DistinctLDiversity(l=3), EXAMPLE[0][:4], EXAMPLE[1][:4])
    assert multi.tightest(alone).values[0].value == 3
    both = attributes(DistinctLDiversity(l=2), *EXAMPLE)
    assert multi.tightest(both).values[0].value == 1
    assert not multi.tightest(both).holds
    assert multi.passes(both, 2).tolist() == [False, True]


def test_parts_are_owned_by_their_block() -> None:
    (blocks, owner), (other, _) = multi.split(np.array(EXAMPLE[0]), np.array(EXAMPLE[1:]).T, np.ones(8, dtype=np.int64))
    assert owner.tolist() == [0, 0, 0, 1, 1]  # v1, v2, v3 of the first block; v1, v2 of the second
    assert [blocks.histogram(i) for i in range(5)] == [{0: 1}, {0: 1}, {1: 1, 2: 1}, {0: 1, 1: 1}, {0: 1, 1: 1}]
    assert int(other.rows.sum()) == 8


def test_the_worst_attribute_counts_for_each_parameter() -> None:
    model = RecursiveCLDiversity(c=3, l=2)
    one = attributes(model, [0] * 6, [0, 0, 0, 1, 1, 2], [0] * 6)
    found = {v.parameter: v.value for v in multi.tightest(one[:1]).values}
    assert found == {"l": 2, "c": 1}
    worse = attributes(model, [0] * 5, [0, 0, 0, 0, 1], [0] * 5)
    mixed = multi.tightest([one[0], worse[0]])
    assert {v.parameter: v.value for v in mixed.values} == {"l": 1, "c": 4}
    assert not mixed.holds


@pytest.mark.parametrize(
    "model", [KAnonymity(k=2), FrequencyLDiversity(l=2), EntropyLDiversity(l=2), DistinctLDiversity(l=2)]
)
def test_one_attribute_is_the_base_model(model: Model) -> None:
    block, column = [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]
    (one,) = attributes(model, block, column)
    assert multi.passes([one], 2).tolist() == model.passes(one.blocks, one.reference).tolist()
    assert multi.tightest([one]) == model.tightest(one.blocks, one.reference)


def test_a_table_without_rows() -> None:
    parts = multi.split(np.zeros(0, np.int64), np.zeros((0, 2), np.int64), np.zeros(0, np.int64))
    empty = [multi.Attribute(DistinctLDiversity(l=2), b, Reference.of(b, values=1), owner) for b, owner in parts]
    assert multi.tightest(empty).holds
    assert multi.tightest(empty).values[0].value is None


def test_bases() -> None:
    multi.check_base(PdRecursiveCLDiversity(c=1, l=2))
    multi.check_base(DeltaLDiversity(delta=1, l=2))
    with pytest.raises(ParameterError, match="valid: window"):
        multi.check_base(DeltaLDiversity(delta=1, l=2, reading="literal"))
    with pytest.raises(ParameterError, match="entropy_l_diversity"):
        multi.check_base(EpsilonMAnonymity(epsilon=Fraction(1), m=2))
