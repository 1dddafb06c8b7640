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
    shares = [share for entry in tightest for share in _rooms(entry)]
    return min(shares, default=None)


def _rooms(entry: Mapping[str, Any]) -> Iterator[float]:
    reached = {figure["parameter"]: figure["value"] for figure in entry["values"]}
    for bound in BY_NAME[entry["model"]].about.bounds:
        requested, value = entry["asked"].get(bound.parameter), reached.get(bound.parameter)
        if isinstance(requested, int | float) and isinstance(value, int | float):
            share = headroom(Fraction(requested), value, larger=bound.stricter == "larger")
            if share is not None:
                yield share


def frontier(nodes: Sequence[NodeShown], *, more_is_better: bool) -> tuple[Node, ...]:
    """The satisfying nodes that no other one beats: more room and no worse a measure, or a better measure and no less
    room. The best measure first; of equal ones the first."""
    sign = -1 if more_is_better else 1
    known = [
        (sign * node.measure, -node.room, node.levels)
        for node in nodes
        if node.satisfied and node.measure is not None and node.room is not None
    ]
    unbeaten: list[Node] = []
    most: float | None = None
    for _, less, levels in sorted(known):
        if most is None or less < most:
            unbeaten.append(levels)
            most = less
    return tuple(unbeaten)


def near(lattice: Lattice, first: Sequence[Node], most: int) -> list[Node]:
    """These nodes and those one level coarser, so many."""
    nodes = dict.fromkeys(first)
    for node in first:
        nodes |= dict.fromkeys(lattice.parents(node)) if len(nodes) < most else {}
    return list(nodes)[:most]
