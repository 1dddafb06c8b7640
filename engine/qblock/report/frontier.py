"""Nodes between privacy and utility: how much room each leaves to what is asked, and which no other one beats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from qblock.lattice import Lattice, Node
from qblock.ledger.events import headroom
from qblock.models import BY_NAME
from qblock.report.data import NodeShown


def room(tightest: Sequence[Mapping[str, Any]]) -> float | None:
    """The least distance between asked and reached of all requirements, as a share of what is asked, as the ledger
    has it. tightest: of a node of `search --nodes all`. None where no requirement has one."""
    found = [one for entry in tightest for one in _rooms(entry)]
    return min(found, default=None)


def _rooms(entry: Mapping[str, Any]) -> Iterator[float]:
    reached = {one["parameter"]: one["value"] for one in entry["values"]}
    for bound in BY_NAME[entry["model"]].about.bounds:
        asked, value = entry["asked"].get(bound.parameter), reached.get(bound.parameter)
        if isinstance(asked, int | float) and isinstance(value, int | float):
            share = headroom(Fraction(asked), value, larger=bound.stricter == "larger")
            if share is not None:
                yield share


def frontier(nodes: Sequence[NodeShown], *, more_is_better: bool) -> tuple[Node, ...]:
    """The satisfying nodes that no other one beats: more room and no worse a measure, or a better measure and no less
    room. The best measure first; of equal ones the first."""
    sign = -1 if more_is_better else 1
    known = [
        (sign * one.measure, -one.room, one.levels)
        for one in nodes
        if one.satisfied and one.measure is not None and one.room is not None
    ]
    found: list[Node] = []
    most: float | None = None
    for _, less, levels in sorted(known):
        if most is None or less < most:
            found.append(levels)
            most = less
    return tuple(found)


def near(lattice: Lattice, first: Sequence[Node], most: int) -> list[Node]:
    """These nodes and those one level coarser, so many."""
    found = dict.fromkeys(first)
    for node in first:
        found |= dict.fromkeys(lattice.parents(node)) if len(found) < most else {}
    return list(found)[:most]
