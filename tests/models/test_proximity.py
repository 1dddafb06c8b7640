"""Worked examples of (epsilon,m)-anonymity and (delta,l)-diversity, by hand."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from by_hand import passes, rows, table, values

from qblock.blocks import Blocks, Reference
from qblock.errors import ParameterError
from qblock.models import DeltaLDiversity, EpsilonMAnonymity, FrequencyLDiversity, Monotone


def m(epsilon: int | Fraction, *blocks: tuple[int | str, ...], relative: bool = False) -> object:
    return values(EpsilonMAnonymity(epsilon=epsilon, m=1, relative=relative), rows(*blocks))["m"]


def l_of(delta: int | Fraction, *blocks: tuple[int | str, ...], reading: str = "window") -> object:
    return values(DeltaLDiversity(delta=delta, l=1, reading=reading), rows(*blocks))["l"]  # type: ignore[arg-type]


def delta_of(l: int | Fraction, *blocks: tuple[int | str, ...], reading: str = "window") -> object:  # noqa: E741
    return values(DeltaLDiversity(delta=0, l=l, reading=reading), rows(*blocks))["delta"]  # type: ignore[arg-type]


def test_epsilon_m() -> None:
    assert [m(15, (40, 60)), m(15, (50, 80)), m(15, (40, 60, 50, 80))] == [2, 2, Fraction(4, 3)]
    assert m(10, (490, 500, 510, 1000)) == Fraction(4, 3)
    assert m(9, (490, 500, 510, 1000)) == 4
    assert m(0, (1, 1, 2)) == Fraction(3, 2)
    assert m(10**9, (1, 1, 2)) == 1
    model = EpsilonMAnonymity(epsilon=15, m=2)
    assert passes(model, rows((40, 60), (50, 80), (40, 50, 60, 80))) == [True, True, False]


def test_an_interval_is_closed_and_exact() -> None:
    tenths = ("0.1", "0.2", "0.3")  # in doubles 0.3 - 0.2 is less than 0.1, and 0.2 + 0.1 is more than 0.3
    assert m(Fraction(1, 10), tenths) == 1
    assert m(Fraction(1, 10) - Fraction(1, 10**20), tenths) == 3
    assert m(1, (10**30, 10**30 + 1, 10**30 + 3)) == Fraction(3, 2)


def test_relative_epsilon_uses_the_magnitude() -> None:
    # within a tenth of 110 lies 100, but not the other way round
    assert m(Fraction(1, 10), (100, 110), relative=True) == 1
    assert m(Fraction(1, 11), (100, 110), relative=True) == 1
    assert m(Fraction(1, 12), (100, 110), relative=True) == 2
    assert m(Fraction(1, 10), (-100, -110), relative=True) == 1
    assert m(1, (0, 1, 5), relative=True) == 1
    assert m(Fraction(1, 2), (0, 1, 5), relative=True) == 3


def test_window_and_literal_readings_differ() -> None:
    delta = Fraction(15, 2)
    blocks = ((40, 60), (50, 80), (40, 60, 50, 80))
    assert [l_of(delta, b) for b in blocks] == [2, 2, 2]
    assert [l_of(delta, b, reading="literal") for b in blocks] == [2, 2, Fraction(4, 3)]
    assert l_of(15, (40, 60)) == l_of(15, (40, 60), reading="literal") == 1
    # touching intervals meet: 40 and 60 at delta = 10
    assert l_of(10, (40, 60)) == 1
    assert l_of(10 - Fraction(1, 10**12), (40, 60)) == 2


def test_a_block_of_one_row_has_l_of_one() -> None:
    for reading in ("window", "literal"):
        assert l_of(5, (40,), reading=reading) == 1
        assert passes(DeltaLDiversity(delta=0, l=2, reading=reading), rows((40,), (40, 41))) == [False, True]


def test_without_distance_it_is_frequency_diversity() -> None:
    blocks = ((1, 1, 2), (3, 4, 5), (7,))
    for l in (1, Fraction(3, 2), 2, 3):  # noqa: E741
        expected = passes(FrequencyLDiversity(l=l), rows(*blocks))
        assert passes(EpsilonMAnonymity(epsilon=0, m=l), rows(*blocks)) == expected
        assert passes(DeltaLDiversity(delta=0, l=l), rows(*blocks)) == expected
        assert passes(DeltaLDiversity(delta=0, l=l, reading="literal"), rows(*blocks)) == expected


@pytest.mark.parametrize(
    ("l", "window", "literal"),
    [
        (1, math.inf, math.inf),
        (Fraction(4, 3), 20, 10),  # four rows: from 40 to 80; from 60 either way
        (2, 10, 5),  # three rows: 40 to 60; 50 either way
        (3, 5, 5),  # two rows: 40 to 50
        (5, 0, 0),
    ],
)
def test_supremum_of_delta_is_not_attained(l: int | Fraction, window: float, literal: float) -> None:  # noqa: E741
    block = (40, 60, 50, 80)
    for reading, expected in (("window", window), ("literal", literal)):
        assert delta_of(l, block, reading=reading) == expected
        if expected in (0, math.inf):
            continue
        at = DeltaLDiversity(delta=Fraction(expected), l=l, reading=reading)  # type: ignore[arg-type]
        below = DeltaLDiversity(delta=expected - Fraction(1, 10**15), l=l, reading=reading)  # type: ignore[arg-type]
        assert passes(at, rows(block)) == [False]
        assert passes(below, rows(block)) == [True]


def test_supremum_of_delta_with_repeated_numbers_and_several_blocks() -> None:
    assert delta_of(2, (1, 1, 1, 5)) == 0
    assert delta_of(2, (1, 1, 4, 5)) == Fraction(3, 2)  # three rows: 1 to 4
    assert delta_of(2, (1, 1, 4, 5), (1, 2)) == Fraction(1, 2)
    assert delta_of(2, (1, 1, 4, 5), (1, 2), reading="literal") == Fraction(1, 2)
    assert delta_of(Fraction(4, 3), (0, 1, 2, 9), reading="literal") == Fraction(7, 2)  # 2 reaches 0 and 9 within 7


def test_a_domain_in_any_order_and_with_two_texts_of_a_number() -> None:
    blocks = Blocks.of([{0: 1, 1: 1, 2: 2, 3: 1}])
    numbers = (Fraction(9), Fraction(1), Fraction(5), Fraction(1))
    reference = Reference(5, ("9", "1", "5", "1.0"), np.array([1, 1, 2, 1]), numbers=numbers)
    assert values(EpsilonMAnonymity(epsilon=0, m=1), (blocks, reference)) == {"m": Fraction(5, 2)}
    assert values(EpsilonMAnonymity(epsilon=4, m=1), (blocks, reference)) == {"m": 1}
    assert values(DeltaLDiversity(delta=2, l=2), (blocks, reference)) == {"l": Fraction(5, 4), "delta": 2}


def test_flags() -> None:
    assert EpsilonMAnonymity(epsilon=1, m=2).monotone == Monotone(False, False)
    assert DeltaLDiversity(delta=1, l=2).monotone == Monotone(True, False)
    assert DeltaLDiversity(delta=1, l=2, reading="literal").monotone == Monotone(False, False)
    assert DeltaLDiversity(delta=1, l=Fraction(5, 2)).least_block_size(rows((1,))[1]) == 3


def test_an_empty_table_satisfies_both() -> None:
    blocks, reference = rows()
    for model in (EpsilonMAnonymity(epsilon=1, m=2), DeltaLDiversity(delta=1, l=2)):
        assert passes(model, (blocks, reference)) == []
        assert set(values(model, (blocks, reference)).values()) == {None}


@pytest.mark.parametrize(
    ("model", "asked", "text"),
    [
        (EpsilonMAnonymity, {"epsilon": -1, "m": 2}, "epsilon >= 0"),
        (EpsilonMAnonymity, {"epsilon": 1, "m": Fraction(1, 2)}, "m >= 1"),
        (EpsilonMAnonymity, {"epsilon": Fraction(3, 2), "m": 2, "relative": True}, "0 <= epsilon <= 1"),
        (DeltaLDiversity, {"delta": -1, "l": 2}, "delta >= 0"),
        (DeltaLDiversity, {"delta": 1, "l": 0}, "l >= 1"),
        (DeltaLDiversity, {"delta": 1.5, "l": 2}, "delta >= 0"),
        (DeltaLDiversity, {"delta": 1, "l": 2, "reading": "other"}, "window or literal"),
    ],
)
def test_parameters_out_of_range(model: type, asked: dict[str, object], text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        model(**asked)


def test_values_that_are_no_numbers_are_refused() -> None:
    blocks, reference = table((1, 1))
    for model in (EpsilonMAnonymity(epsilon=1, m=2), DeltaLDiversity(delta=1, l=2)):
        with pytest.raises(ParameterError, match="must be numeric"):
            model.validate(reference)
        with pytest.raises(ParameterError, match="must be numeric"):
            model.passes(blocks, reference)
