"""Sizes of `cohort: auto`, held against enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from qblock.blocks import Reference
from qblock.models import DistinctLDiversity, EntropyLDiversity, FrequencyLDiversity, KAnonymity
from qblock.versions.batching.cohort import (
    ByValues,
    Sizes,
    chance_of,
    chance_of_distinct,
    chance_of_frequency,
    cohort_size,
)

NOTHING = Reference(0, (), np.zeros(0, dtype=np.int64))
SHARES = np.array([0.5, 0.25, 0.15, 0.1])


def enumerated(n: int, passes) -> float:
    return sum(
        float(np.prod(SHARES[list(drawn)])) for drawn in itertools.product(range(4), repeat=n) if passes(Counter(drawn))
    )


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_chances_are_those_of_enumeration(n: int) -> None:
    for l in (1, 2, 3, 4):  # noqa: E741
        assert chance_of_distinct(SHARES, n, l) == pytest.approx(enumerated(n, lambda c: len(c) >= l))  # noqa: B023
    for l in (1, Fraction(3, 2), 2, 3):  # noqa: E741
        held = enumerated(n, lambda c: max(c.values()) * l <= n)  # noqa: B023
        assert chance_of_frequency(SHARES, n, l) == pytest.approx(held)


def test_a_simulated_chance_is_near_the_exact_one_and_repeats() -> None:
    exact = enumerated(6, lambda c: len(c) > 1 and -sum(v / 6 * np.log(v / 6) for v in c.values()) >= np.log(2) - 1e-12)
    found = chance_of([EntropyLDiversity(l=2)], NOTHING)(SHARES, 6)
    assert found == pytest.approx(exact, abs=0.02)
    assert found == chance_of([EntropyLDiversity(l=2)], NOTHING)(SHARES, 6)


def test_the_size_is_the_least_that_passes_and_at_least_twice_the_least_block() -> None:
    models = [KAnonymity(k=2), DistinctLDiversity(l=2)]
    chance = chance_of(models, NOTHING)
    assert cohort_size([1, 1], 2, chance) == 11  # 2 * 0.5 ** 11 < 0.001
    assert cohort_size([3, 1], 2, chance) == 25  # 0.75 ** 25 + 0.25 ** 25
    assert cohort_size([1] * 100, 2, chance) == 4
    assert cohort_size([1] * 100, 5, chance) == 10
    assert cohort_size([7], 2, chance) is None
    assert cohort_size([10**6, 1], 2, chance) is None
    assert cohort_size([2, 1], 2, chance_of([FrequencyLDiversity(l=2)], NOTHING)) is None
    assert cohort_size([5], 3, chance_of([KAnonymity(k=3)], NOTHING)) == 6
    assert cohort_size([1, 1, 1], 2, chance_of([EntropyLDiversity(l=Fraction(3, 2))], NOTHING)) is not None


def test_a_block_never_shown_takes_the_distribution_of_the_version() -> None:
    chance = chance_of([DistinctLDiversity(l=2)], NOTHING)

    def sized(counts: ByValues) -> int | None:
        by_value = dict(counts)
        return cohort_size([by_value.get(("a",), 0), by_value.get(("b",), 0)], 2, chance)

    size = Sizes(lambda: {(0,): {("a",): 4}, (1,): {("b",): 4}}, sized, 2)
    assert size((0,)) is None
    assert size((2,)) == cohort_size([4, 4], 2, chance)
