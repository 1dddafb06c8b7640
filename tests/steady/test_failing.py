"""Who may be in a batch that fails, by public counts: held against every choice of so many people."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

from qblock.models import DistinctLDiversity, EntropyLDiversity, FrequencyLDiversity, Model, RecursiveCLDiversity
from qblock.versions.batching.failing import Column, cannot_fail, failing_counts, leaves_candidates

from .verdicts import Verdict, distinct, entropy, frequency, recursive

MODELS: dict[str, tuple[Model, Verdict, int]] = {
    "distinct": (DistinctLDiversity(l=3), distinct(3), 3),
    "frequency": (FrequencyLDiversity(l=2), frequency(2), 2),
    "entropy": (EntropyLDiversity(l=2), entropy(2), 2),
    "recursive": (RecursiveCLDiversity(c=2, l=2), recursive(Fraction(2), 2), 2),
}


def choices(counts: tuple[int, ...], size: int, verdict: Verdict) -> list[tuple[int, ...]]:
    """All of so many people that fail, or leave others who do, as a count of each value."""
    failing = []
    for taken in itertools.product(*(range(n + 1) for n in counts)):
        left = [n - some for n, some in zip(counts, taken, strict=True)]
        if sum(taken) == size and not all(
            verdict({i: n for i, n in enumerate(group) if n}, {}) for group in (taken, left)
        ):
            failing.append(taken)
    return failing


@pytest.mark.parametrize("name", MODELS)
def test_whatever_is_said_to_fail_does_and_nothing_does_that_cannot(name: str) -> None:
    model, verdict, l = MODELS[name]  # noqa: E741
    rng, safe, sharp = random.Random(1), 0, 0
    for _ in range(120):
        most, values = rng.choice([(4, 5), (2, 6), (1, 8)])
        counts = tuple(sorted((rng.randint(1, most) for _ in range(rng.randint(2, values))), reverse=True))
        size = rng.randint(1, sum(counts) - 1)
        column = Column(tuple(v for v, n in enumerate(counts) for _ in range(n)), l, (model,))
        failing = choices(counts, size, verdict)
        able = {n for taken in failing for n, some in zip(counts, taken, strict=True) if some}
        assert failing_counts(counts, size, (model,)) <= able
        assert cannot_fail([column], size) == (not failing)
        inside = {v for taken in failing for v, some in enumerate(taken) if some}
        outside = {v for taken in failing for v, some in enumerate(taken) if some < counts[v]}
        if leaves_candidates([column], size):
            assert min(len(inside), len(outside)) >= l
            sharp += 1
        safe += not failing
    assert safe > 2
    assert sharp > 20


def test_as_many_values_as_the_models_imply_and_no_more_are_needed() -> None:
    """Where most people have two values of four, four leavers may all have these, whoever else is with them."""
    model = (DistinctLDiversity(l=4),)
    column = Column(tuple("aaaabbbbccccddefgh"), 4, model)
    assert leaves_candidates([column], 8)
    assert not leaves_candidates([column._replace(values=tuple("aabbcdefghijklmnop"))], 8)


def test_who_is_in_a_batch_that_fails_by_one_attribute_is_there_with_the_values_of_all() -> None:
    model = (DistinctLDiversity(l=2),)
    values = Column(tuple("aaabbb"), 2, model)
    others = Column(tuple("uvwxyz"), 2, model)
    assert leaves_candidates([values, others], 3)
    assert not leaves_candidates([values, others._replace(values=tuple("uuuuuz"), l=3)], 3)
    assert not leaves_candidates([others], 3)
    assert cannot_fail([others], 3)
    assert not cannot_fail([values, others], 3)
