"""People with rows at several places, and people with several rows who come in cohorts, under the exact attacker."""

from __future__ import annotations

from importlib import import_module
from itertools import islice
from typing import Any

import pytest

from qblock.versions.batching.state import Unit

from .attack import play
from .places import RIGHT, Outcome, Wrong, attack, stories, story_of
from .settings import setting

DISTINCT = setting("distinct")
TRIED = {
    "units of a batch that failed move": (
        ["a0:a b0:b d1:d e1:e", "a0:a b0:b d1:d e1:e p0:p q0:q", "a0:a b0:b d1:d e1:e p1:p q1:q r1:r"],
        {"base": True},
    ),
    "a unit leaves as another one of the person grows": (
        ["p0:a q0:b p1:c t1:d u1:e v1:f", "q0:b p1:ca t1:dg u1:e v1:f"],
        {"base": True, "values": 3},
    ),
}
"""Rows that were shown or tried, and are another unit's from then on."""


def told(text: list[str], wrong: Wrong = RIGHT, **settings: Any) -> Outcome:
    return attack(story_of(text, **settings), DISTINCT, wrong)


@pytest.mark.parametrize("name", TRIED)
def test_nobody_is_certain_whose_rows_move(name: str) -> None:
    text, settings = TRIED[name]
    assert not told(text, **{"values": 2, **settings}).certain


@pytest.mark.parametrize("name", TRIED)
def test_shown_again_elsewhere_they_tell_a_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where units that are out, and those that left, count for nothing."""
    text, settings = TRIED[name]
    step = import_module("qblock.versions.batching.step")
    moving = step._moving

    def of_shown(shown: dict[str, Unit], present: Any, memory: Any, pending: Any, owner: Any) -> Any:
        there = {unit: of for unit, of in shown.items() if unit in present}
        return moving(there, present, step.replace(memory, seen={}), pending, owner)

    monkeypatch.setattr(step, "_moving", of_shown)
    assert told(text, **{"values": 2, **settings}).certain


TWICE = ["a0:A b0:B", "a0:A b0:B p0:P p1:Q"]
"""Somebody with two units, alone."""


def test_a_person_is_once_in_a_cohort() -> None:
    assert not told(TWICE, values=2).events
    assert told(TWICE, Wrong(twice=True), values=2).certain


def test_units_of_a_box_that_failed_do_not_wait_again() -> None:
    text = ["a0:a b0:b", "a0:a b0:b p0:p p1:q q0:r", "a0:a b0:b p0:p p1:q q0:r r0:s"]
    assert not told(text, values=2).certain
    assert told(text, Wrong(again=True), values=2).certain


def drawn(wrong: Wrong, most: int) -> Outcome:
    outcome = Outcome(set())
    for story in islice(stories(3, 2, 6_000), most):
        outcome += attack(story, DISTINCT, wrong)
    return outcome


def test_nobody_is_certain_with_rows_at_several_places() -> None:
    outcome = drawn(RIGHT, 6)
    assert not outcome.certain
    for result in ("closed", "failed"):
        assert outcome.events["newcomers", result]


def test_the_attacker_finds_who_is_twice_in_a_cohort() -> None:
    assert drawn(Wrong(twice=True), 6).certain


@pytest.mark.parametrize("way", [(1, 2), (2, 3)])
def test_nobody_is_certain_who_comes_with_several_rows(way: tuple[int, int]) -> None:
    tally = play("distinct", 2, 2, 300, seed=8, most=100, given=True, bundles="changes", cohorts=way)
    assert not tally.disclosed, tally.worst[:1]
    for outcome in ("closed", "failed"):
        assert tally.events["newcomers", outcome]
