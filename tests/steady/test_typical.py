"""Means beside labels in several versions: of values they tell nothing, of ages they do where they are made anew."""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import pytest

from .attacker import Attack
from .frames import Frame, frames
from .players import Engine
from .settings import setting
from .typical import Typical, Variant, ages_by_column

FRAMES = 5


def lively(name: str) -> list[Frame]:
    """Frames of which some history has several versions."""
    player, chosen = Engine(setting(name)), []
    for frame in frames(7, 2, 1, 400):
        if any(one.several for one in Attack(frame, player).all().possible.values()):
            chosen.append(frame)
        if len(chosen) == FRAMES:
            break
    return chosen


@pytest.mark.parametrize("name", ["distinct", "frequency"])
def test_means_of_known_people_tell_no_two_assignments_apart(name: str) -> None:
    player, promised, told = Engine(setting(name)), setting(name).promises, set()
    for frame in lively(name):
        plain = Attack(frame, player).all()
        for variant in get_args(Variant):
            shown = Attack(frame, Typical(player, ages_by_column, variant)).all()
            if variant != "value":
                assert len(shown.possible) == len(plain.possible), (variant, frame)
            if any(shown.disclosed(transcript, promised) for transcript in shown.possible):
                told.add(variant)
    # A mean of those with one value tells whose it is: the attacker sees means.
    assert told == {"value"}


AGES = {"a": 30, "b": 37, "c": 31, "d": 36, "e": 33, "f": 38}


def sums(variant: Variant) -> list[Fraction]:
    """Of a mean in two versions, each times those whom it is of if made anew: one of four leaves, two come."""
    player = Typical(Engine(setting("k")), AGES.__getitem__, variant)
    first = player.run(None, dict.fromkeys("abcd", (0, 0)), (), (2,), lambda block, number: False, (2,))
    second = player.run(first.state, dict.fromkeys("abcef", (0, 0)), (), (2,), lambda block, number: False, (2,))
    assert first.rows is not None
    assert second.rows is not None
    assert second.rows.keys() == set(AGES)
    return [4 * first.rows["a"][2], 5 * second.rows["a"][2]]


def test_means_that_are_made_anew_tell_the_age_of_somebody_who_left() -> None:
    """The attacker knows the ages of those who came, and of nobody else."""
    before, after = sums("present")
    assert before + AGES["e"] + AGES["f"] - after == AGES["d"]
    before, after = sums("first")
    assert before / 4 == after / 5
