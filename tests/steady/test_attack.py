"""A few thousand tiny histories under the exact attacker; `python -m tests.steady.attack` tries millions."""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from .attack import LEVELS, WITHOUT_L, Tally, play
from .attacker import Attack
from .beginnings import how_many
from .bundles import Known, frames_of_bundles
from .cohorts import Drawn, frames_of_cohorts
from .double import Double, Wrong
from .double_cohorts import DoubleOfCohorts, WrongCohorts
from .frames import frames
from .players import Engine, EngineOfBundles, Played
from .settings import NAMES, SEVERAL, setting

HISTORIES = 1200 if os.environ.get("QBLOCK_TEST_ENGINES") == "all" else 400


@pytest.mark.parametrize("name", NAMES)
def test_nobody_is_certain(name: str) -> None:
    found = Tally()
    for l in LEVELS[name in WITHOUT_L]:  # noqa: E741
        for blocks in (1, 2):
            tally = play(name, l, blocks, HISTORIES, seed=2, most=2000, stale=Fraction(1, 2))
            assert not tally.disclosed, tally.worst[:1]
            found += tally
    assert found.histories >= HISTORIES
    assert found.share >= 0.25


@pytest.mark.parametrize("name", SEVERAL)
def test_nobody_is_certain_where_several_attributes_are_published(name: str) -> None:
    found = play(name, 2, 1, HISTORIES // 3, seed=2, most=60, given=True)
    assert not found.disclosed, found.worst[:1]
    assert found.share >= 0.25


@pytest.mark.parametrize("known", ["changes", "rows"])
def test_nobody_is_certain_who_has_several_rows(known: Known) -> None:
    found = play("distinct", 2, 1, HISTORIES // 2, seed=3, most=200, given=True, bundles=known)
    found += play("distinct", 2, 1, HISTORIES // 2, seed=4, most=200, given=True, bundles=known, cells=True)
    assert not found.disclosed, found.worst[:1]
    for kind in ("newcomers", "changed values"):
        assert found.events[kind, "closed"]
        assert found.events[kind, "failed"]


@pytest.mark.parametrize("way", [(1, 2), (2, 3), (3, 4)])
@pytest.mark.parametrize("name", ["distinct", "frequency", "t+distinct", "pd"])
def test_nobody_is_certain_with_newcomers_in_cohorts(name: str, way: tuple[int, int]) -> None:
    tally = play(name, 2, 2, HISTORIES, seed=8, cohorts=way)
    assert not tally.disclosed, tally.worst[:1]
    assert tally.share >= 0.25
    for outcome in ("closed", "failed"):
        assert tally.events["newcomers", outcome]


@pytest.mark.parametrize("name", ["two distinct", "entropy and distinct"])
def test_nobody_is_certain_with_newcomers_in_cohorts_and_two_attributes(name: str) -> None:
    tally = play(name, 2, 2, HISTORIES // 2, seed=8, most=30, given=True, cohorts=(2, 2))
    assert not tally.disclosed, tally.worst[:1]
    assert tally.events["newcomers", "failed"]


def test_leavers_and_changed_values_of_cohorts_are_tried_too() -> None:
    tally = play("distinct", 2, 1, 1500, seed=3, most=400, cells=True, cohorts=(1, 4))
    assert not tally.disclosed, tally.worst[:1]
    for kind in ("newcomers", "leavers", "changed values"):
        assert tally.events[kind, "closed"]
        assert tally.events[kind, "failed"]


@dataclass
class Watched(EngineOfBundles):
    """watched: how many people each version that was published has in each block."""

    watched: list[Counter[int]] = field(default_factory=list)

    def run(self, *given: Any) -> Played:
        played = super().run(*given)
        if played.rows is not None:
            self.watched.append(Counter(block for block, _ in played.rows.values()))
        return played


@pytest.mark.parametrize("known", ["changes", "rows"])
def test_the_attacker_sees_how_many_people_each_block_has(known: Known) -> None:
    """So publishing it (`publish.people`) tells nothing that was not tried."""
    chosen, rng, versions = setting("distinct", 2), random.Random(6), 0
    random_frames = frames_of_bundles(6, 2, 2, known, 10**12, large=True)
    for _ in range(40):
        frame = next(random_frames)
        player = Watched(chosen, frame.values, known)
        one, watched = Attack(frame, player), player.watched
        first, _, _ = one.begun(rng, 2)
        if first is None:
            continue
        watched.clear()
        published, rows = one.told(first)
        assert _people([linked for _, linked in rows], published) == watched
        versions += len(watched)
    assert versions > 40


def _people(linked: list[tuple[Any, ...]], published: tuple[int, ...]) -> list[Counter[int]]:
    """How many people each version has in each block, by nothing but the linked rows of each person: the place among
    what was published of the version that shows one first, and block and value in that one and each after it."""
    places = [place for place, run in enumerate(published) if run >= 0]  # others show an older version again
    found: list[Counter[int]] = [Counter() for _ in places]
    for begins, *rows in linked:
        for version, row in enumerate(rows, places.index(begins)):
            if row is not None:
                found[version][row[0]] += 1
    return found


def test_with_the_first_rows_given_all_histories_are_tried_that_they_leave() -> None:
    chosen, rng, compared = setting("two distinct"), random.Random(5), 0
    random_frames = frames(5, 2, 2, 500, attributes=2)
    for _ in range(30):
        one = Attack(next(random_frames), Engine(chosen))
        first, _, _ = one.begun(rng, 2)
        if first is None:
            continue
        found, everything = one.given(first), one.all()
        assert found.histories == how_many(one.frame, first)
        assert one.transcript_of(first) in found.possible
        for transcript, possible in found.possible.items():
            assert everything.possible[transcript] == possible
        compared += len(found.possible)
    assert compared > 25


def test_batches_of_every_kind_close_and_fail() -> None:
    tally = play("distinct", 2, 1, 12_000, seed=7)
    assert not tally.disclosed, tally.worst[:1]
    for kind in ("newcomers", "leavers", "changed values"):
        assert tally.events[kind, "closed"] > 50
        assert tally.events[kind, "failed"] > 50
    assert tally.events["whole cell", "closed"] > 50
    assert tally.events["erased", "closed"] > 50


@pytest.mark.parametrize("rule", ["leavers_by_size", "thaw", "whole", "returners"])
def test_the_attacker_finds_what_wrong_rules_tell(rule: str) -> None:
    chosen = setting("distinct", 2)
    player = Double([chosen.verdict], wrong=Wrong(**{rule: True}))
    random_frames = frames(7, 2, 1, 2000)
    for _ in range(300):
        found = Attack(next(random_frames), player).all()
        if any(found.disclosed(transcript, chosen.promises) for transcript in found.possible):
            return
    pytest.fail("nobody is certain")


def disclosed(wrong: WrongCohorts, most: int) -> bool:
    """Whether somebody is certain under a variant of cohorts in one of so many frames."""
    chosen = setting("distinct", 2)
    for frame in itertools.islice(frames_of_cohorts(7, Drawn(2, 1, 2, 1), 300), most):
        attack = Attack(frame, DoubleOfCohorts([chosen.verdict], frame=frame, broken=wrong)).all()
        if any(attack.disclosed(transcript, chosen.promises) for transcript in attack.possible):
            return True
    return False


@pytest.mark.parametrize("rule", ["values", "merged", "pooled", "again", "unit", "diverse", "cells"])
def test_the_attacker_finds_what_variants_of_cohorts_tell(rule: str) -> None:
    assert disclosed(WrongCohorts(**{rule: True}), 100)


@pytest.mark.parametrize("rule", ["due", "slower"])
def test_who_is_due_alone_and_a_delay_after_what_readers_saw_fail_tell_nothing(rule: str) -> None:
    assert not disclosed(WrongCohorts(**{rule: True}), 30)
