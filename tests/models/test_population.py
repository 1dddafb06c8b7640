"""Worked examples of k-map and delta-presence, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from by_hand import passes, table, values

from qblock.blocks import Blocks, Reference
from qblock.errors import ParameterError
from qblock.models import DeltaPresence, KMap, Model, Monotone


def people(rows: list[int], population: list[int], only: list[int] | None = None) -> tuple[Blocks, Reference]:
    blocks, reference = table(*((n,) for n in rows))
    return replace(
        blocks,
        population=np.array(population, np.int64),
        population_only=None if only is None else np.array(only, np.int64),
    ), reference


def test_k_map_counts_the_population() -> None:
    given = people([1, 2, 3], [5, 2, 4])
    assert passes(KMap(k=4), given) == [True, False, True]
    assert values(KMap(k=4), given) == {"k": 2}
    assert passes(KMap(k=2), people([1], [2], only=[1])) == [True]  # a population block that is not published


def test_delta_presence() -> None:
    given = people([1, 2, 3], [5, 4, 4], only=[])
    assert values(DeltaPresence(min=0, max=1), given) == {"min": Fraction(1, 5), "max": Fraction(3, 4)}
    assert passes(DeltaPresence(min=Fraction(1, 5), max=Fraction(3, 4)), given) == [True, True, True]
    assert passes(DeltaPresence(min=Fraction(1, 4), max=Fraction(1, 2)), given) == [False, True, False]


def test_a_population_block_without_rows_has_the_share_zero() -> None:
    given = people([1, 2], [2, 4], only=[7])
    assert values(DeltaPresence(min=0, max=1), given) == {"min": 0, "max": Fraction(1, 2)}
    assert passes(DeltaPresence(min=0, max=Fraction(1, 2)), given) == [True, True]
    assert passes(DeltaPresence(min=Fraction(1, 100), max=1), given) == [False, False]


def test_rows_beyond_the_population_never_pass() -> None:
    assert passes(DeltaPresence(min=0, max=1), people([3, 3], [3, 2])) == [True, False]
    assert values(DeltaPresence(min=0, max=1), people([3], [0])) == {"min": math.inf, "max": math.inf}


@pytest.mark.parametrize("model", [KMap(k=2), DeltaPresence(min=0, max=1)], ids=lambda m: m.name)
def test_without_a_population_there_is_no_verdict(model: Model) -> None:
    with pytest.raises(ParameterError, match="population"):
        model.passes(*table((1, 1)))
    assert model.passes(*table()).all()


def test_flags() -> None:
    assert KMap(k=1).monotone == KMap(k=1).monotone.for_entities == Monotone(True, True, entities=True)
    assert DeltaPresence(min=0, max=1).monotone == Monotone(True, False)
    assert DeltaPresence(min=0, max=1).monotone.for_entities == Monotone(False, False)


def test_suppression_with_a_bound_on_the_share_is_not_monotone() -> None:
    model = DeltaPresence(min=0, max=Fraction(1, 2))
    fine = people([5, 3], [10, 3])
    assert passes(model, fine) == [True, False]  # three rows would be dropped
    assert passes(model, people([8], [13])) == [False]  # and eight of the union


@pytest.mark.parametrize(
    ("model", "asked", "text"),
    [
        (KMap, {"k": 0}, "k >= 1"),
        (DeltaPresence, {"min": Fraction(-1, 2), "max": 1}, "0 <= min <= 1"),
        (DeltaPresence, {"min": Fraction(1, 2), "max": Fraction(1, 3)}, "min <= max <= 1"),
        (DeltaPresence, {"min": 0, "max": 2}, "0 <= max <= 1"),
    ],
)
def test_parameters_out_of_range(model: type, asked: dict[str, object], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        model(**asked)
