"""Worked examples of k-anonymity and the l-diversity family, by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from by_hand import passes, table, values

from qblock.blocks import Blocks, Reference
from qblock.errors import ParameterError
from qblock.models import (
    DistinctLDiversity,
    EntropyLDiversity,
    FrequencyLDiversity,
    KAnonymity,
    Model,
    Monotone,
    RecursiveCLDiversity,
)


def test_k_anonymity() -> None:
    assert passes(KAnonymity(k=3), table((2, 1), (3,), (2,), (1, 1))) == [True, True, False, False]
    assert values(KAnonymity(k=1), table((2, 1), (4,))) == {"k": 3}
    assert KAnonymity(k=5).least_block_size(table((1,))[1]) == 5
    assert KAnonymity(k=2).monotone == KAnonymity(k=2).monotone.for_entities == Monotone(True, True, entities=True)


def test_distinct() -> None:
    assert passes(DistinctLDiversity(l=2), table((9, 1), (9,), (1, 0, 1))) == [True, False, True]
    assert values(DistinctLDiversity(l=2), table((9, 1), (1, 1, 1))) == {"l": 2}
    assert values(DistinctLDiversity(l=1), table((7,))) == {"l": 1}  # a domain of one value allows l = 1 only
    assert DistinctLDiversity(l=3).monotone.for_entities == Monotone(True, True, entities=True)


def test_distinct_counts_the_null_value_as_a_value() -> None:
    blocks = Blocks.of([{0: 1, 1: 1}])
    reference = Reference(2, (None, "flu"), np.array([1, 1]))
    assert DistinctLDiversity(l=2).passes(blocks, reference).all()


def test_frequency() -> None:
    assert passes(FrequencyLDiversity(l=2), table((2, 1, 1), (3, 2), (5, 5), (1,))) == [True, False, True, False]
    assert values(FrequencyLDiversity(l=2), table((2, 1, 1), (3, 2))) == {"l": Fraction(5, 3)}
    assert passes(FrequencyLDiversity(l=Fraction(5, 3)), table((3, 2))) == [True]
    assert passes(FrequencyLDiversity(l=Fraction(5, 3) + Fraction(1, 10**30)), table((3, 2))) == [False]
    assert passes(FrequencyLDiversity(l=1), table((7,))) == [True]
    assert FrequencyLDiversity(l=Fraction(14, 5)).least_block_size(table((1,))[1]) == 3
    assert FrequencyLDiversity(l=2).monotone == Monotone(True, False)
    assert FrequencyLDiversity(l=2).monotone.for_entities == Monotone(False, False)


def test_entropy_at_the_threshold() -> None:
    three = EntropyLDiversity(l=3)
    assert passes(three, table((7, 7, 7), (100001, 99999, 100000), (1, 1, 1), (4, 4, 4, 1))) == [
        True,
        False,
        True,
        True,
    ]
    assert values(three, table((7, 7, 7), (1, 1, 1))) == {"l": 3}
    assert isinstance(values(three, table((7, 7, 7)))["l"], int)
    near = values(three, table((100001, 99999, 100000)))["l"]
    assert isinstance(near, Decimal)
    assert 0 < 3 - near < Decimal("1e-9")


def test_entropy_worked_values() -> None:
    # exp(H) of (2,1,1) is 4 / 2**(1/2)
    assert values(EntropyLDiversity(l=2), table((2, 1, 1)))["l"] == pytest.approx(
        2 * Decimal(2).sqrt(), rel=Decimal("1e-27")
    )
    assert passes(EntropyLDiversity(l=Fraction(28, 10)), table((2, 1, 1))) == [True]
    assert passes(EntropyLDiversity(l=Fraction(283, 100)), table((2, 1, 1))) == [False]
    # p = 1/2, 1/8 four times: H = 2 ln 2 although the counts are not equal
    assert values(EntropyLDiversity(l=4), table((4, 1, 1, 1, 1))) == {"l": 4}
    assert passes(EntropyLDiversity(l=4), table((4, 1, 1, 1, 1), (1, 4, 1, 1, 1), (5, 1, 1, 1, 1))) == [
        True,
        True,
        False,
    ]
    assert values(EntropyLDiversity(l=1), table((9,), (5, 1))) == {"l": 1}
    assert passes(EntropyLDiversity(l=1), table((9,))) == [True]


def test_entropy_of_blocks_that_are_alike_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 2 * math.sqrt(2)  # within 1e-9 of exp(H) of every one of these blocks
    model = EntropyLDiversity(l=Fraction(asked))
    calls = []
    exact = EntropyLDiversity._exact
    monkeypatch.setattr(EntropyLDiversity, "_exact", lambda *a: calls.append(1) or exact(*a))  # type: ignore[func-returns-value]
    blocks, reference = table(*[(2, 1, 1), (1, 2, 1), (1, 1, 2)] * 50)
    assert len(set(model.passes(blocks, reference).tolist())) == 1
    assert len(calls) == 1


def test_recursive() -> None:
    # (2,1,1): at l = 2 the tail is 2 and the infimum of c is 1, at l = 3 it is 2; never attained
    assert values(RecursiveCLDiversity(c=3, l=2), table((2, 1, 1))) == {"l": 3, "c": 1}
    assert values(RecursiveCLDiversity(c=2, l=3), table((2, 1, 1))) == {"l": 2, "c": 2}
    assert passes(RecursiveCLDiversity(c=2, l=3), table((2, 1, 1))) == [False]
    assert passes(RecursiveCLDiversity(c=2 + Fraction(1, 10**20), l=3), table((2, 1, 1))) == [True]
    assert passes(RecursiveCLDiversity(c=1, l=2), table((5, 5), (3, 2, 2))) == [False, True]


def test_recursive_l_of_one_and_beyond_the_support() -> None:
    tiny = Fraction(1, 1000)
    assert passes(RecursiveCLDiversity(c=tiny, l=1), table((9,), (5, 5))) == [True, True]
    assert values(RecursiveCLDiversity(c=tiny, l=1), table((9,), (5, 5))) == {"l": 1, "c": 0}
    assert passes(RecursiveCLDiversity(c=10**9, l=3), table((1, 1), (1, 1, 1))) == [False, True]
    assert values(RecursiveCLDiversity(c=10**9, l=3), table((1, 1), (1, 1, 1))) == {"l": 2, "c": math.inf}
    # a product c * tail beyond 64 bits
    assert passes(RecursiveCLDiversity(c=Fraction(10**30 + 1, 10**30), l=2), table((5, 5), (6, 5))) == [True, False]


def test_recursive_ties_need_no_rule() -> None:
    model = RecursiveCLDiversity(c=2, l=3)
    assert passes(model, table((3, 3, 3, 1), (1, 3, 3, 3))) == [True, True]
    assert values(model, table((3, 3, 3, 1))) == {"l": 3, "c": Fraction(3, 4)}


def test_recursive_removal_of_any_value_leaves_one_less() -> None:
    # (c,l) iff removing each single value leaves (c,l-1), for l >= 3
    for counts in [(4, 3, 2, 1), (5, 1, 1), (2, 2, 2, 2), (3, 3, 1), (7, 4, 2)]:
        for l in (3, 4):  # noqa: E741
            rests = [counts[:i] + counts[i + 1 :] for i in range(len(counts))]
            whole = passes(RecursiveCLDiversity(c=Fraction(3, 2), l=l), table(counts)) == [True]
            assert whole == all(passes(RecursiveCLDiversity(c=Fraction(3, 2), l=l - 1), table(*rests)))


@pytest.mark.parametrize(
    "model",
    [
        KAnonymity(k=9),
        DistinctLDiversity(l=9),
        FrequencyLDiversity(l=9),
        EntropyLDiversity(l=9),
        RecursiveCLDiversity(c=1, l=9),
    ],
    ids=lambda m: m.name,
)
def test_a_table_without_blocks_satisfies_everything(model: Model) -> None:
    blocks, reference = table()
    assert passes(model, table()) == []
    result = model.tightest(blocks, reference)
    assert result.holds
    assert {v.value for v in result.values} == {None}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: KAnonymity(k=0), "k >= 1"),
        (lambda: KAnonymity(k=Fraction(5, 2)), "integer"),
        (lambda: DistinctLDiversity(l=0), "l >= 1"),
        (lambda: DistinctLDiversity(l=Fraction(3, 2)), "integer"),
        (lambda: FrequencyLDiversity(l=Fraction(9, 10)), "l >= 1"),
        (lambda: FrequencyLDiversity(l=2.5), "l >= 1"),
        (lambda: EntropyLDiversity(l=0), "l >= 1"),
        (lambda: RecursiveCLDiversity(c=0, l=2), "c > 0"),
        (lambda: RecursiveCLDiversity(c=1, l=0), "l >= 1"),
        (lambda: RecursiveCLDiversity(c=1, l=Fraction(5, 2)), "integer"),
    ],
)
def test_parameters_out_of_range(make: object, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        make()  # type: ignore[operator]


def test_shares_of_entities_use_the_sum_of_the_counts() -> None:
    # two persons, each with both values: n(q) = 2, the counts add up to 4
    blocks = Blocks(np.array([0, 2]), np.array([0, 1]), np.array([2, 2]), np.array([2]))
    reference = Reference(4, ("a", "b"), np.array([2, 2]))
    assert KAnonymity(k=2).tightest(blocks, reference).values[0].value == 2
    assert KAnonymity(k=2).least_block_size(reference, entities=True) == 2
    assert FrequencyLDiversity(l=2).tightest(blocks, reference).values[0].value == 2
    assert EntropyLDiversity(l=2).tightest(blocks, reference).values[0].value == 2
    assert RecursiveCLDiversity(c=2, l=2).tightest(blocks, reference).values[1].value == 1


def test_a_block_of_one_entity_can_be_diverse() -> None:
    blocks = Blocks(np.array([0, 3]), np.array([0, 1, 2]), np.array([1, 1, 1]), np.array([1]))
    reference = Reference(3, ("a", "b", "c"), np.array([1, 1, 1]))
    for model in (DistinctLDiversity(l=3), FrequencyLDiversity(l=3), EntropyLDiversity(l=3)):
        assert model.passes(blocks, reference).all()
        assert model.least_block_size(reference, entities=True) == 1
