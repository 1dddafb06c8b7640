"""Exact comparison of arrays of fractions, against Python's own fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from qblock.blocks import Blocks
from qblock.models import ratios

N = 10**9
NEAR = [(N + 1, N), (N, N - 1), (N + 2, N + 1), (2 * N + 2, 2 * N)]
"""Fractions that differ by about 1e-18, and one that is equal to the first."""


@pytest.mark.parametrize("dtype", [np.int64, object])
def test_sign_and_extreme_tell_what_doubles_cannot(dtype: type) -> None:
    numerator = np.array([p for p, _ in NEAR], dtype=dtype)
    denominator = np.array([q for _, q in NEAR], dtype=dtype)
    assert ratios.sign(numerator, denominator, Fraction(N + 1, N)).tolist() == [0, 1, -1, 0]
    assert ratios.extreme(numerator, denominator, largest=True) == Fraction(N, N - 1)
    assert ratios.extreme(numerator, denominator, largest=False) == Fraction(N + 2, N + 1)


def test_products_beyond_64_bits() -> None:
    asked = Fraction(10**40 + 1, 10**40)
    assert ratios.sign(np.array([1, 3, 2]), np.array([1, 2, 3]), asked).tolist() == [-1, 1, -1]
    assert ratios.times(np.array([2**40]), 2**40).tolist() == [2**80]
    assert ratios.times(np.array([2**40]), np.array([2**30])).tolist() == [2**70]
    assert ratios.times(np.array([3]), 5).dtype == np.int64


def test_infinity() -> None:
    numerator, denominator = np.array([1, 5]), np.array([0, 2])
    assert ratios.quotient(numerator, denominator).tolist() == [math.inf, 2.5]
    assert ratios.extreme(numerator, denominator, largest=True) == math.inf
    assert ratios.extreme(numerator, denominator, largest=False) == Fraction(5, 2)
    for asked in (10**6, 10**40):
        assert ratios.sign(numerator, denominator, asked).tolist() == [1, -1]


@pytest.mark.parametrize("spread", [9, 1])
def test_greatest_of_each_block(spread: int) -> None:
    generator = random.Random(spread)
    blocks = Blocks.of([dict.fromkeys(range(generator.randint(1, 6)), 1) for _ in range(50)])
    near = [generator.choice(NEAR) for _ in blocks.value] if spread == 1 else []
    pairs = near or [(generator.randint(0, 9), generator.randint(1, 9)) for _ in blocks.value]
    chosen = ratios.greatest(blocks, *(np.array(side) for side in zip(*pairs, strict=True)))
    found = [Fraction(*pairs[i]) for i in chosen.tolist()]
    expected = [
        max(Fraction(*p) for p in pairs[a:b])
        for a, b in zip(blocks.start[:-1].tolist(), blocks.start[1:].tolist(), strict=True)
    ]
    assert found == expected
    assert blocks.owner[chosen].tolist() == list(range(50))


def test_greatest_prefers_infinity() -> None:
    blocks = Blocks.of([{0: 1, 1: 1}, {0: 1}])
    assert ratios.greatest(blocks, np.array([5, 1, 2]), np.array([1, 0, 1])).tolist() == [1, 2]


def test_alike() -> None:
    blocks = Blocks.of([{0: 2, 1: 1}, {0: 1, 1: 2}, {0: 2, 1: 1}, {0: 2}, {1: 2}])
    label = ratios.equality_classes(blocks.start, blocks.value, blocks.count)
    assert label[0] == label[2]
    assert len(set(label.tolist())) == 4
    label = ratios.equality_classes(blocks.start, blocks.descending)
    assert label[0] == label[1] == label[2] != label[3] == label[4]
