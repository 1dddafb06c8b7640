"""Millions of tiny histories of the steady job under an exact attacker.

python -m tests.steady.attack --histories 1000000 --model distinct --l 2 --first 1
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import get_args

from .attacker import Attack
from .beginnings import how_many
from .bundles import Known, frames_of_bundles
from .cohorts import CohortFrame, Cohorts, Drawn, frames_of_cohorts
from .frames import Frame, frames
from .players import Engine, EngineOfBundles
from .settings import NAMES, SEVERAL, setting
from .visits import CohortsOfBundles, VisitFrame, frames_of_visits
from .weights import Plainly, weighed

MOST = 2000
"""Histories of one frame."""
LIVELY = 0.4
"""Of frames in which fewer histories publish more than one version, by a few drawn ones, one in sixty is attacked; one
in 400 where there are several attributes, all of which must pass."""
LEVELS = ((2, 3), (2,))
WITHOUT_L = ("t", "pd", "k")


@dataclass
class Tally:
    """What attacks on many frames found.

    histories: assignments of values to frames, up to exchange of people of whom the same is known; assignments: with
    these; several: the share of each frame's assignments that published more than one version, added up; disclosed:
    histories with somebody certain, or with fewer candidates than promised; worst: frames of these; events: histories
    in which a batch came to that.
    """

    frames: int = 0
    histories: int = 0
    assignments: int = 0
    several: float = 0.0
    disclosed: int = 0
    worst: list[Frame] = field(default_factory=list)
    events: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.frames + other.frames,
            self.histories + other.histories,
            self.assignments + other.assignments,
            self.several + other.several,
            self.disclosed + other.disclosed,
            self.worst + other.worst,
            self.events + other.events,
        )

    @property
    def share(self) -> float:
        return self.several / self.frames if self.frames else 0.0

    @property
    def failed(self) -> bool:
        return bool(self.disclosed) or self.share < 0.25

    def __str__(self) -> str:
        events = ", ".join(f"{kind} {outcome} {n}" for (kind, outcome), n in sorted(self.events.items()))
        return (
            f"{self.frames} frames, {self.histories} histories ({self.assignments} assignments), {self.share:.0%} with "
            f"more than one version, {self.disclosed} disclosed ({len(self.worst)} frames)\n    {events}"
        )


def play(
    name: str,
    l: int,  # noqa: E741
    blocks: int,
    histories: int,
    seed: int,
    most: int = MOST,
    cells: bool = False,
    given: bool = False,
    bundles: Known | None = None,
    cohorts: tuple[int, int] | None = None,
    stale: Fraction | None = None,
    exact: bool = False,
) -> Tally:
    """Attack random frames until there are as many histories. The attacker sees the weight of each row, too.

    cells: only where leavers or changed values are tried; given: the histories with the rows of a drawn first version,
    which are fewer than all, so that there may be more people and values. bundles: people have several rows, of which
    this is known. cohorts: the delay of newcomers in cohorts, and the people of a box; stale: the share of absent
    people at which small and frozen cells go; exact: whether each version has the weights of its run, which tell more
    than those of the rule.
    """
    chosen = setting(name, l)
    player = Engine(chosen, stale=stale)
    tally = Tally()
    rng, passed_over, most_passed_over = random.Random(seed), 0, 60 if chosen.attributes == 1 else 400
    most *= 10 if cells or given else 1
    largest = 10**12 if given else most
    made: Iterator[Frame]
    if bundles and cohorts:
        made = frames_of_visits(seed, Drawn(l, *cohorts, blocks, cells), largest)
    elif bundles:
        made = frames_of_bundles(seed, l, blocks, bundles, largest, cells)
    elif cohorts:
        made = frames_of_cohorts(seed, Drawn(l, *cohorts, blocks, cells, chosen.attributes, given), largest)
    else:
        made = frames(
            seed, l, blocks, largest, small=player.coin, large=cells, attributes=chosen.attributes, wide=given
        )
    for frame in made:
        if isinstance(frame, VisitFrame):
            used: Engine = CohortsOfBundles(chosen, frame.values, frame=frame)
        elif isinstance(frame, CohortFrame):
            used = Cohorts(chosen, frame)
            used.verdicts = player.verdicts
        else:
            used = EngineOfBundles(chosen, frame.values, bundles) if bundles else player
        one, first = Attack(frame, Plainly(used, chosen.k, variant="exact") if exact else weighed(used)), None
        if given:
            first, lively, tried = one.begun(rng, l)
            if first is None or how_many(frame, first) > most:
                continue
        else:
            lively, tried = one.drawn(rng)
        taken = tried if cells else lively >= LIVELY or passed_over == most_passed_over
        passed_over = 0 if taken else passed_over + 1
        if passed_over:
            continue
        found = one.all() if first is None else one.given(first)
        tally.frames += 1
        tally.histories += found.histories
        tally.assignments += found.assignments
        tally.events += found.events
        bad = 0
        for transcript, seen in found.possible.items():
            tally.several += seen.assignments * seen.several / found.assignments
            # That a first version was refused is told to nobody where models need the coin (section 5).
            begun = not player.coin or transcript[0][:1] == (0,)
            if begun and found.disclosed(transcript, chosen.promises):
                bad += seen.histories
        if bad:
            tally.disclosed += bad
            tally.worst.append(frame)
        if tally.histories >= histories:
            return tally
    raise AssertionError


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000_000, help="of each combination")
    parser.add_argument("--model", choices=(*NAMES, *SEVERAL), action="append", help="all of them unless named")
    parser.add_argument("--l", type=int, choices=[2, 3], action="append")
    parser.add_argument("--blocks", type=int, choices=[1, 2], action="append")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--given", action="store_true", help="each frame with a drawn first version, and more people")
    parser.add_argument("--cells", action="store_true", help="only leavers and changed values, however many publish")
    parser.add_argument(
        "--bundles", choices=get_args(Known), help="several rows of a person, and what is known of them"
    )
    parser.add_argument("--cohorts", action="store_true", help="newcomers in cohorts, with each delay and each box")
    parser.add_argument("--within", type=int, action="append", help="the delays of cohorts; 1, 2 and 3 unless named")
    parser.add_argument("--least", type=int, action="append", help="the people of their boxes; 2, 3 and 4 unless named")
    parser.add_argument("--stale", type=Fraction, help="the share of absent people at which small and frozen cells go")
    parser.add_argument("--exact", action="store_true", help="weights of which each run states the truth")
    options = parser.parse_args(arguments)
    ways = list(itertools.product(options.within or (1, 2, 3), options.least or (2, 3, 4)))
    failed = False
    for name in options.model or NAMES:
        found = Tally()
        for l in options.l or LEVELS[name in WITHOUT_L]:  # noqa: E741
            # A box of fewer people than cells must have fails by its size.
            delays = [way for way in ways if way[1] >= l] if options.cohorts else [None]
            for blocks, cohorts in itertools.product(options.blocks or (1, 2), delays):
                begun = time.process_time()
                tally = play(
                    name,
                    l,
                    blocks,
                    options.histories,
                    options.first,
                    cells=options.cells,
                    given=options.given,
                    bundles=options.bundles,
                    cohorts=cohorts,
                    stale=options.stale,
                    exact=options.exact,
                )
                way = f", delay {cohorts[0]}, boxes of {cohorts[1]}" if cohorts else ""
                print(f"{name}, l = {l}, {blocks} blocks{way}: {tally}", flush=True)
                print(f"    {time.process_time() - begun:.0f} s", file=sys.stderr, flush=True)
                for frame in tally.worst[:1]:
                    print(f"    {frame}")
                found += tally
        print(f"{name}: {found}", flush=True)
        failed |= bool(found.disclosed) or (found.failed and not options.cells)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
