"""Nodes as people write them."""

from __future__ import annotations

import re

from qblock.errors import InputError
from qblock.lattice import Node
from qblock.search.task import Task


def parse_node(task: Task, text: str) -> Node:
    """`bottom`, `top`, `a=2,b=1` (the rest at level 0) or `2,1,0`. Raises InputError naming the levels that exist."""
    names, heights = task.spec.quasi_identifiers, task.lattice.heights
    if text in ("bottom", "top"):
        return task.lattice.bottom if text == "bottom" else task.lattice.top
    if re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text, re.ASCII):
        node = tuple(int(part) for part in text.split(","))
    else:
        given = _named(text, names)
        node = tuple(given.get(name, 0) for name in names) if given else ()
    if node not in task.lattice:
        levels = ", ".join(f"{name} 0..{height}" for name, height in zip(names, heights, strict=True))
        raise InputError(f"node {text!r}: write NAME=LEVEL,... or one level for each of: {levels}")
    return node


def _named(text: str, names: tuple[str, ...]) -> dict[str, int]:
    """The levels of `a=2,b=1`; empty where it is not that. A name may hold commas and equals signs of its own."""
    given: dict[str, int] = {}
    rest = text
    longest_first = sorted(names, key=len, reverse=True)
    while rest:
        for name in longest_first:
            found = re.match(rf"\s*{re.escape(name)}\s*=\s*(\d+)\s*(,|$)", rest, re.ASCII)
            if found and name not in given:
                given[name] = int(found[1])
                rest = rest[found.end() :]
                break
        else:
            return {}
    return given
