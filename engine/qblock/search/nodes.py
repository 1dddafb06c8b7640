"""Nodes as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qblock.errors import InputError
from qblock.lattice import Node
from qblock.search.task import Task


def parse_node(task: Task, text: str) -> Node:
    """`bottom`, `top`, `a=2,b=1` (the rest at level 0) or `2,1,0`. Raises InputError naming the levels that exist."""
    names = task.spec.quasi_identifiers
    if text in ("bottom", "top"):
        return task.lattice.bottom if text == "bottom" else task.lattice.top
    if re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text, re.ASCII):
        node = tuple(int(part) for part in text.split(","))
    else:
        given = _named(text, names)
        node = tuple(given.get(name, 0) for name in names) if given else ()
    if node not in task.lattice:
        raise InputError(f"node {text!r}: write NAME=LEVEL,... or one level for each of: {_levels(task)}")
    return node


def pinned_node(task: Task, node: Sequence[int]) -> Node:
    """The node that a spec pins. Raises InputError, with its line, where it is not in the lattice."""
    if tuple(node) not in task.lattice:
        place = task.spec.at("search", "node")
        raise InputError(f"{place}: node {list(node)} is not in the lattice; levels: {_levels(task)}")
    return tuple(node)


def _levels(task: Task) -> str:
    ranges = []
    for hierarchy, highest in zip(task.source.hierarchies, task.lattice.heights, strict=True):
        ranges.append(f"{hierarchy.attribute} 0..{highest}" + (" (max)" if highest < hierarchy.height else ""))
    return ", ".join(ranges)


def _named(text: str, names: tuple[str, ...]) -> dict[str, int]:
    """The levels of `a=2,b=1`; empty where it is not that. A name may hold commas and equals signs of its own."""
    given: dict[str, int] = {}
    rest = text
    longest_first = sorted(names, key=len, reverse=True)
    while rest:
        for name in longest_first:
            match = re.match(rf"\s*{re.escape(name)}\s*=\s*(\d+)\s*(,|$)", rest, re.ASCII)
            if match and name not in given:
                given[name] = int(match[1])
                rest = rest[match.end() :]
                break
        else:
            return {}
    return given
