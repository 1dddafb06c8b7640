"""The policy in the boxes of a recoding map; `steady.map_attack` tries more histories."""

from __future__ import annotations

from recoding.searched import flat

from .attacker import Attack
from .frames import Column, Frame
from .map_attack import HOLDS, play
from .maps import Maps, added
from .settings import setting


def test_in_the_boxes_of_a_map_by_sizes_nobody_is_certain() -> None:
    found = play(45, 1, sizes=True, moving=True, most=1000)
    assert not found.told
    assert not found.added
    for kind in ("newcomers", "leavers", "changed values"):
        assert found.events[kind, "closed"]
        assert found.events[kind, "failed"]
    assert found.events["whole cell", "closed"]


def test_newcomers_add_nothing_to_what_the_choice_of_splits_tells() -> None:
    found = play(45, 1, sizes=False, moving=False, most=1000)
    assert found.told
    assert found.several
    assert not found.added


def leavers(sizes: bool) -> list[tuple[int, int]]:
    """Of xxx with aaa and yyy with bbb two x and one y leave. Columns and runs in which the second version leaves one
    value of those that the first one did not tell."""
    people = {
        Column(0, (True, False), (0, 0)): ((0, -1), (0, -1)),
        Column(0, (True, True), (0, 0)): ((0, 0),),
        Column(1, (True, False), (0, 0)): ((1, -1),),
        Column(1, (True, True), (0, 0)): ((1, 1), (1, 1)),
    }
    frame = Frame(tuple((column, len(values)) for column, values in people.items()), 2)
    player = Maps(setting("distinct"), HOLDS["distinct"], (flat("p", "xy"),), [("x",), ("y",)], sizes)
    one = Attack(frame, player)
    found, this = one.all(), one.transcript_of(list(people.values()))
    return [(column, run) for transcript, column, run in added(found, one.values, 2) if transcript == this]


def test_leavers_may_add_to_it() -> None:
    """All x have a and all y b, or the other way round, else they were divided: then aab leave, or abb."""
    assert leavers(sizes=False) == [(0, 0), (1, 0), (1, 1), (2, 0), (3, 0), (3, 1)]
    assert leavers(sizes=True) == []
