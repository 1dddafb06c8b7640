"""The smallest histories in which a variant of cohorts tells somebody's value, and the rule does not.

Person by person, one letter a run, - for absent, with the value of the quasi-identifier before them where it is not x.
The first version is one block; boxes have two people or more, and so have the cells of the models.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from .attacker import Attack
from .cohorts import Cohorts, cohort_frame_of
from .double import Wrong
from .double_cohorts import DoubleOfCohorts, WrongCohorts
from .players import Player
from .settings import setting

BROKEN, WRONG = WrongCohorts(), Wrong()


@dataclass(frozen=True)
class Example:
    """values: how many there are; broken, wrong: the variant."""

    people: str
    values: int
    broken: WrongCohorts = BROKEN
    wrong: Wrong = WRONG
    model: str = "distinct"
    within: int = 1


FIRST = "aa bb "
EXAMPLES = {
    "a part is cut where both sides pass": Example(FIRST + "-c -c y:-d y:-b y:-a", 4, WrongCohorts(values=True)),
    "a box that fails is merged with the other side of its cut": Example(
        FIRST + "-c -c y:-d y:-b y:-a", 4, WrongCohorts(merged=True)
    ),
    "boxes that fail are pooled": Example(FIRST + "-b -b y:-a y:-a y:-a", 2, WrongCohorts(pooled=True)),
    "people of a box that failed wait again": Example("aaa bbb -aa -aa --b", 2, WrongCohorts(again=True)),
    "people of a box that failed are with the next cohort in one box": Example(
        "aaa bbb -aa -aa --a --b", 2, WrongCohorts(unit=True)
    ),
    "a cohort closes when its boxes pass": Example("aaa bbb -aa -aa --b", 2, WrongCohorts(diverse=True)),
    "leavers of cells are one batch": Example("bbb aaa a-- -cc -b-", 3, WrongCohorts(cells=True)),
    "failing tells which value, pd": Example("aa bb -b -b", 2, wrong=Wrong(no_coin=True), model="pd"),
    "no cohort closes in the run after a failure, pd": Example(
        "aaaa bbbb -bbb -bbb --aa --bb", 2, WrongCohorts(slower=True), model="pd"
    ),
}


def double(example: Example, *, right: bool) -> Player:
    chosen = setting(example.model)
    rules = chosen.rules
    frame, _ = cohort_frame_of(example.people.split(), example.values, example.within)
    return DoubleOfCohorts(
        [chosen.verdict],
        rules.k,
        rules.ls,
        rules.sure,
        rules.cells,
        rules.coin,
        Wrong() if right else example.wrong,
        frame=frame,
        broken=WrongCohorts() if right else example.broken,
    )


def told(example: Example, player: Player) -> bool:
    """Whether somebody's value is certain in this very history."""
    frame, chosen = cohort_frame_of(example.people.split(), example.values, example.within)
    attack = Attack(frame, player)
    return bool(attack.given(chosen).disclosed(attack.transcript_of(chosen), setting(example.model).promises))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_variant_tells_somebodys_value(name: str) -> None:
    assert told(EXAMPLES[name], double(EXAMPLES[name], right=False))


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_rule_does_not(name: str) -> None:
    example = EXAMPLES[name]
    frame, _ = cohort_frame_of(example.people.split(), example.values, example.within)
    assert not told(example, double(example, right=True))
    assert not told(example, Cohorts(setting(example.model), frame))
