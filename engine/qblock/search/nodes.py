"""Nodes as people write them."""

from __future__ import annotations

from qblock.errors import InputError
from qblock.lattice import Node
from qblock.search.task import Task


def parse_node(task: Task, text: str) -> Node:
    """`bottom`, `top`, `a=2,b=1` (the rest at level 0) or `2,1,0`. Raises InputError naming the levels there are."""
    names, heights = task.spec.quasi_identifiers, task.lattice.heights
    if text in ("bottom", "top"):
        return task.lattice.bottom if text == "bottom" else task.lattice.top
    levels = ", ".join(f"{name} 0..{height}" for name, height in zip(names, heights, strict=True))
    wrong = InputError(f"node {text!r}: right would be NAME=LEVEL,... or one level for each of: {levels}")
    parts = [part.strip() for part in text.split(",")]
    try:
        if all("=" in part for part in parts):
            given = {name.strip(): int(level) for name, level in (part.rsplit("=", 1) for part in parts)}
            if len(given) != len(parts) or not set(given) <= set(names):
                raise wrong
            node = tuple(given.get(name, 0) for name in names)
        else:
            node = tuple(int(part) for part in parts)
    except ValueError:
        raise wrong from None
    if node not in task.lattice:
        raise wrong
    return node
