"""Nodes as people write them, how many of them may be searched or listed, and the statements behind one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.engines import queries
from qblock.engines.memory import CLIENT, of_client
from qblock.engines.registry import ENGINES
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.frequency.coding import packed
from qblock.frequency.hubs import worth_hubs
from qblock.lattice import Node
from qblock.search.task import Task
from qblock.spec.sources import Suppress

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


def explain_sql(task: Task, node: str | None) -> list[tuple[str, str]]:
    """(title, statement) of the base scan and of a node's counts, as they are sent to each engine.

    The second and the following read what the first has stored: the packed key of every row, of which a mask keeps a
    node's bits. A node is counted from a finer frequency set where one was stored that is smaller.
    """
    source = task.source
    levels = parse_node(task, node or "top")
    table = TableName.parse(task.spec.source.table)
    names = list(source.sensitives)
    sets = source.frequency_sets
    statements: list[tuple[str, queries.Query]] = []
    for sensitive in ((), *((i,) for i in range(len(source.sensitives)))):
        query = sets.statement(levels, sensitive)
        what = f"counts of each value of {names[sensitive[0]]} in the blocks" if sensitive else "block sizes"
        statements.append((f"{what} of node {list(levels)}", query))

    if source.groups is not None:
        what = f"households or other groups in the blocks of node {list(levels)}"
        statements.append((what, source.groups.statement(levels, ())))

    def value_of(base: sa.FromClause, name: str) -> queries.Expression:
        return source.session.comparable(base.c[name], source.columns[name])

    texts = []
    for engine in ENGINES.values():
        if not engine.stores and engine.name != source.session.engine:
            continue
        facts, dialect = engine.adapter(), engine.adapter.dialect()
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in source.columns]
        schema = facts.prefix(table.schema)
        if table.catalog is not None and engine.name == source.session.engine:
            schema = quoted_name(f"{facts.prefix(table.catalog)}.{schema}", quote=False)
        base = sa.table(quoted_name(table.name, quote=True), *columns, schema=schema)
        quasi = [(value_of(base, n), d) for n, d in zip(source.quasi_identifiers, source.dimensions, strict=True)]
        values = [(value_of(base, name), attribute.dimension) for name, attribute in source.sensitives.items()]
        kept = {"e": base.c[task.spec.entity]} if sets.entities and task.spec.entity is not None else {}
        scan = ("the base table, coded in one scan", packed(base, sets.coding, quasi, values, kept))
        scans = [scan]
        if source.groups is not None and task.spec.groups is not None:
            whose = {"e": base.c[task.spec.groups]}
            scans.append(("the groups of rows, coded in another", packed(base, source.groups.coding, quasi, (), whose)))
        for title, query in (*scans, *statements):
            text = str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
            texts.append((f"{engine.title}: {title}", text))
    return texts
