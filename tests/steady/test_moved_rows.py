"""Rows of one person that move between blocks, under an attacker who knows whose, when, from where and to where.

Such a row is shown beside the people of two cells, of which it may be the only one in common. Every assignment of
values to rows is tried.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

from .bundles import bundles
from .players import LONGEST, EngineOfBundles
from .settings import setting

VALUES = 3
NAMED = bundles(VALUES, LONGEST)
Run = Mapping[str, str]
"""The rows of each unit, a letter each; a unit is a person and a block."""


@dataclass
class Owned(EngineOfBundles):
    """Units of one person begin with the same letter."""

    def _owner(self, unit: str) -> str:
        return unit[0]


def run_of(text: str) -> Run:
    """`p1:ab q1:c` is two rows of p in block 1, and one of q."""
    return dict(one.split(":") for one in text.split())


STORIES = {
    "all rows of somebody": ("p1:a q1:b r1:c s2:d t2:e", "q1:b r1:c p2:a u2:f s2:d t2:e"),
    "one of two rows": ("p1:ag q1:bh r1:ck s2:d t2:e", "p1:g q1:bh r1:ck p2:a u2:f s2:d t2:e"),
}
"""Everybody in a block has as many rows in the first run, since the attacker knows how many."""


def certain(story: tuple[str, ...]) -> set[str]:
    """The units that somebody is certain of a value of, in any run of any history."""
    runs = [run_of(text) for text in story]
    letters = sorted({letter for run in runs for rows in run.values() for letter in rows})
    player = Owned(setting("distinct"), VALUES)
    possible: dict[Hashable, dict[tuple[str, int], set[frozenset[int]]]] = {}
    for values in itertools.product(range(VALUES), repeat=len(letters)):
        value = dict(zip(letters, values, strict=True))
        state: Any = None
        published: list[int] = []
        linked: dict[str, tuple[Any, ...]] = defaultdict(tuple)
        for number, run in enumerate(runs):
            present = {
                unit: (int(unit[1]), NAMED.index(tuple(sorted(value[one] for one in rows))))
                for unit, rows in run.items()
            }
            played = player.run(state, present, (), (2,), lambda block, n: False, (len(NAMED),))
            state = played.state
            if played.rows is not None:
                published.append(number)
                for unit in {*linked, *played.rows}:
                    linked[unit] += ((number, played.rows.get(unit)),)
        seen = possible.setdefault((tuple(published), tuple(sorted(linked.values(), key=repr))), {})
        for number, run in enumerate(runs):
            for unit, rows in run.items():
                seen.setdefault((unit, number), set()).add(frozenset(value[one] for one in rows))
    return {unit for seen in possible.values() for (unit, _), found in seen.items() if frozenset.intersection(*found)}


@pytest.mark.parametrize("story", STORIES)
def test_nobody_is_certain_whose_rows_move(story: str) -> None:
    assert not certain(STORIES[story])


@pytest.mark.parametrize("story", STORIES)
def test_shown_on_both_sides_they_tell_a_value(story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("qblock.versions.batching.step"), "_held_back", lambda *_: {})
    assert certain(STORIES[story])
