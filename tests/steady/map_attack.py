"""Small histories in the boxes of a map under an exact attacker.

In `tests`: python -m steady.map_attack --frames 900
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from recoding.attack import HOLDS
from recoding.searched import Combination, flat, paired
from reference.recoding import Attribute

from .attacker import Attack
from .frames import Column, Frame, told_apart
from .maps import Maps, added
from .settings import setting

Shape = tuple[tuple[Attribute, ...], tuple[Combination, ...]]
SHAPES: list[Shape] = [
    ((flat("p", "wxyz"),), ()),
    ((flat("p", "1234", ascending=True),), ((9,),)),
    ((flat("p", "xyz"), flat("q", "uv")), ()),
    ((paired("p", ["x0", "x1", "y0", "y1"]),), (("z9",),)),
]
"""Quasi-identifiers, with combinations that come to the hierarchies later: 9 is beyond both sides of a cut."""


@dataclass
class Tally:
    """told: frames in which the first version alone leaves somebody one value; added: those in which later versions
    leave somebody one who had more."""

    frames: int = 0
    histories: int = 0
    assignments: int = 0
    several: int = 0
    told: int = 0
    added: int = 0
    events: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.frames} frames, {self.histories} histories ({self.assignments} assignments), {self.several} with "
            f"more than one version; somebody certain in {self.told} frames, by later versions in {self.added}"
        )


def drawn(rng: random.Random, leaves: int, later: int, moving: bool) -> Frame:
    """People of two or three combinations, and newcomers, also of others. later: how many leaves the hierarchies do
    not have at first; moving: whether somebody may leave, or change."""
    runs, people = rng.choice([2, 2, 3]), Counter[Column]()
    old = rng.sample(range(leaves - later), rng.choice([2, 3, 3]))
    new = [block for block in range(leaves) if block not in old]

    def column(block: int, comes: int) -> Column:
        present, changed = [run >= comes for run in range(runs)], [0] * runs
        what = rng.choice(["stay", "stay", "leave", "change"]) if moving else "stay"
        if comes + 1 < runs and what != "stay":
            run = rng.randrange(comes + 1, runs)
            if what == "change":
                changed[run] = 1
            else:
                present[run:] = [False] * (runs - run)
        return Column(block, tuple(present), tuple(changed))

    for block in old:
        left = rng.choice([1, 2, 2, 3])
        while left:
            size = rng.randint(1, left)
            people[column(block, 0)] += size
            left -= size
    for _ in range(rng.choice([0, 1, 2]) if moving else rng.choice([1, 2, 2])):
        people[column(rng.choice([*new[-2:], old[0]]), rng.randrange(1, runs))] += rng.choice([1, 2, 2])
    return Frame(told_apart(people), rng.choice([2, 3]))


def play(frames: int, seed: int, *, sizes: bool, moving: bool, most: int = 4000) -> Tally:
    """Attack drawn frames of at most so many histories each."""
    rng, tally = random.Random(seed), Tally()
    while tally.frames < frames:
        attributes, later = rng.choice(SHAPES)
        name = rng.choice(list(HOLDS))
        leaves = [*itertools.product(*(one.paths for one in attributes)), *later]
        frame = drawn(rng, len(leaves), len(later), moving)
        if frame.multisets() > most:
            continue
        one = Attack(frame, Maps(setting(name), HOLDS[name], attributes, leaves, sizes, frozenset(later)))
        found = one.all()
        tally.frames += 1
        tally.histories += found.histories
        tally.assignments += found.assignments
        tally.several += sum(some.histories for some in found.possible.values() if some.several)
        tally.told += any(found.disclosed(transcript, (2,)) for transcript in found.possible)
        tally.added += bool(added(found, one.values, 2))
        tally.events += found.events
    return tally


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--first", type=int, default=1, help="the seed")
    options = parser.parse_args(arguments)
    for sizes, moving in [(True, True), (False, False), (False, True)]:
        found = play(options.frames, options.first, sizes=sizes, moving=moving)
        print(f"{'sizes' if sizes else 'minimal'}, {'all' if moving else 'newcomers alone'}: {found}", flush=True)
        if found.told if sizes else found.added and not moving:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
