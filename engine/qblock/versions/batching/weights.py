"""How many people of each joint cell are stated to be present (docs/steady-job.md section 2, Weights).

By presence and by which cells there are, and nothing else: both are known to the attacker of that page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from qblock.versions.batching.state import Cell


class Stated(NamedTuple):
    """What is stated of a cell. people: whom it had then; present: how many of them were there."""

    people: int
    present: int

    @property
    def weight(self) -> float:
        """Of each of its rows."""
        return self.present / self.people


NOTHING = Stated(0, 0)
"""Of a cell of which nothing was stated as it is now: it is stated anew."""


def tolerance(people: int, k: int) -> int:
    """By how many people the number of a cell is wrong before it is stated anew.

    A tenth of them; but two at least, so that no weight follows a single person, and never more than k. With k alone,
    which is more than half of a box of 18 people where k is 10, weights hardly move: counts are 57 % too high after 52
    weeks in each of which 1 % leave, and 4 % with this.
    """
    return min(k, max(2, -(-people // 10)))


def restated(
    stated: Mapping[Cell, Stated],
    before: Mapping[Cell, int],
    after: Mapping[Cell, int],
    absent: Mapping[Cell, int],
    k: int,
) -> dict[Cell, Stated]:
    """What is stated of each cell after a run.

    Stated anew is the number of a cell that is new, or has other people than before, and one that is wrong by as many
    people as `tolerance` says, in either direction.

    Args:
        stated: What was stated before. Of a cell that is missing: that everybody is present.
        before: How many people each cell had that was there before.
        after: How many it has now.
        absent: How many of these are not present.
        k: The least people of a cell.
    """
    numbers = {}
    for cell, people in after.items():
        last = stated.get(cell, Stated(before.get(cell, 0), before.get(cell, 0)))
        now = Stated(people, people - absent.get(cell, 0))
        wrong = abs(now.present - last.present) >= tolerance(people, k)
        numbers[cell] = now if wrong or last.people != people else last
    return numbers


def moved(stated: Mapping[Cell, Stated], numbers: Mapping[Cell, Stated], before: Mapping[Cell, int]) -> int:
    """Of how many cells that have the same people as before another number is stated."""
    return sum(
        stated.get(cell, Stated(now.people, now.people)) != now
        for cell, now in numbers.items()
        if before.get(cell) == now.people
    )


def partly(numbers: Mapping[Cell, Stated]) -> dict[Cell, Stated]:
    """Those of whom not everybody is stated to be present."""
    return {cell: number for cell, number in numbers.items() if number.present < number.people}
