"""How many nodes of a lattice may be searched or listed, and what makes a larger lattice small enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

from qblock.errors import InputError
from qblock.frequency.hubs import worth_hubs
from qblock.search.task import Task
from qblock.spec.sources import Suppress
from qblock.warehouse.memory import CLIENT, of_client

MOST_NODES = 10_000_000
"""Of a lattice that is searched: beyond, a search takes hours, whatever the memory."""
SEARCHED, PLANNED, LISTED = 60, 45, 4_000
"""Bytes for each node of the lattice: of a search, of each plan of hubs in a large table (of sizes, and of each
sensitive attribute), and of an answer that lists every node."""
MOST_BEFORE_A_MAP = 100_000
"""Of a lattice that is searched for the node at which a recoding map may begin, too."""
DEFAULT = "1 GiB where it is not given"
NAMED = 8
"""Columns that a message names at most."""


def check_searchable(task: Task) -> None:
    """Raise InputError where the lattice is larger than the search for a node may be."""
    problem = too_large(task)
    if problem is not None:
        raise InputError(problem)


def too_large(task: Task) -> str | None:
    """Why the lattice cannot be searched, and what can be done instead; None where it can."""
    nodes = len(task.lattice)
    plans = 1 + len(task.spec.sensitives) if worth_hubs(task.source.rows) else 0
    each = SEARCHED + plans * PLANNED
    most = min(MOST_NODES, _affordable(task, each))
    if nodes <= most or task.spec.search.within is not None:
        return None
    ways = [
        "`search: {recoding: multidimensional}`, which needs no lattice",
        "`search: {within: 60s}`, which takes the best node that it comes to in this time",
    ]
    if nodes <= MOST_NODES:
        ways.append(f"`search: {{memory_limit: {math.ceil(nodes * each / CLIENT / 10**9)}GB}}`")
    ways.append(f"fewer columns: {_without(task, most)}")
    fewer = _with_max(task, most)
    if fewer:
        ways.append(f"hierarchies that end earlier, if that passes: {fewer}")
    because = "" if most == MOST_NODES else " with this `search.memory_limit`"
    return (
        f"{task.spec.at('search')}: the lattice of {len(task.lattice.heights)} quasi-identifiers has {nodes:,} nodes, "
        f"and at most {most:,} are searched{because}. Write {'; or '.join(ways)}"
    )


def check_listed(task: Task, what: str) -> None:
    """Raise InputError where an answer with an entry for each node would not fit the client's memory."""
    nodes, most = len(task.lattice), _affordable(task, LISTED)
    if nodes > most:
        raise InputError(
            f"{what} has an entry for each node, and the lattice has {nodes:,} nodes; at most {most:,} are listed with "
            f"this `search.memory_limit` ({task.spec.search.memory_limit or DEFAULT}). Raise it, or look at a release "
            "with fewer quasi-identifiers"
        )


def _affordable(task: Task, bytes_each: int) -> int:
    return of_client(task.spec.search.memory_limit) // bytes_each


def _without(task: Task, most: int) -> str:
    """The columns to leave out, as lines: those with most levels first, until the rest is small enough."""
    names, shape = task.spec.quasi_identifiers, list(task.lattice.shape)
    nodes, left_out = math.prod(shape), []
    for i in sorted(range(len(shape)), key=lambda i: (-shape[i], i)):
        if nodes <= most:
            break
        nodes //= shape[i]
        left_out.append(f"`{names[i]}: identifying`")
    return f"{_listed(left_out)}, which leaves {nodes:,} nodes"


def _with_max(task: Task, most: int) -> str:
    """Lower highest levels, as keys of hierarchies; empty where they would not be enough."""
    names, attributes = task.spec.quasi_identifiers, task.spec.attributes
    shape = list(task.lattice.shape)
    able = [i for i, name in enumerate(names) if not isinstance(attributes[name].hierarchy, Suppress)]
    lowered: dict[int, int] = {}
    while math.prod(shape) > most:
        i = max(able, key=lambda i: (shape[i], -i), default=None)
        if i is None or shape[i] <= 2:
            return ""
        shape[i] -= 1
        lowered[i] = shape[i] - 1
    return _listed([f"`max: {level}` in the hierarchy of {names[i]}" for i, level in sorted(lowered.items())])


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - NAMED
    return ", ".join(parts[:NAMED]) + (f" and {more} more" if more > 0 else "")
