"""Which columns a first spec takes as what others know: a few that single out most rows, so that it can be searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from qblock.profiling.columns import Proposal
from qblock.profiling.decisions import nodes
from qblock.profiling.words import suggests
from qblock.warehouse import Session, TableName

MOST_COLUMNS = 8
MOST_NODES = 100_000
"""Of the lattice of one level per column: a hundredth of what a search accepts, so that it takes minutes at most."""
MOST_READ = 200_000_000
"""Values that are grouped for the choice; where that is too little, each column is looked at by itself."""


def chosen(proposals: Sequence[Proposal], rows: int, session: Session, table: TableName) -> list[Proposal]:
    """The proposals with at most MOST_COLUMNS quasi-identifiers; the others are left to a person (decide).

    Columns whose names others know come first. Of these, and then of the others, the next is the one with which most
    rows differ from all others: one GROUP BY for each column that may be next.
    """
    quasi = [p for p in proposals if p.role == "quasi_identifier"]
    if len(quasi) <= MOST_COLUMNS and nodes(quasi) <= MOST_NODES:
        return list(proposals)
    known = [p for p in quasi if suggests(p.profile.column.name, "quasi")]
    taken: list[Proposal] = []
    for group in (known, [p for p in quasi if p not in known]):
        rest = list(group)
        each = rows * len(rest) * MOST_COLUMNS > MOST_READ
        alone = _singled_out(session, table, [[p] for p in rest]) if each and rest else []
        rest = [p for _, p in sorted(zip(alone, rest, strict=True), key=lambda pair: -pair[0])] if each else rest
        while rest and len(taken) < MOST_COLUMNS:
            if not each:
                counts = _singled_out(session, table, [[*taken, p] for p in rest])
                rest.insert(0, rest.pop(counts.index(max(counts))))
            following = rest.pop(0)
            if nodes([*taken, following]) <= MOST_NODES:
                taken.append(following)
    return [p if p in taken or p.role != "quasi_identifier" else _left(p) for p in proposals]


def _left(p: Proposal) -> Proposal:
    return replace(p, role="decide", reason=f"{MOST_COLUMNS} columns at most are proposed; others single out more")


def _singled_out(session: Session, table: TableName, sets: Sequence[Sequence[Proposal]]) -> list[int]:
    """For each set of columns, how many rows differ in them from all others."""
    known, relation = session.columns(table), session.relation(table)
    queries = []
    for i, columns in enumerate(sets):
        values = [
            session.comparable(relation.c[name], known[name]) for name in (p.profile.column.name for p in columns)
        ]
        group = sa.select(sa.func.count().label("n")).select_from(relation).group_by(*values).subquery(f"qblock_g{i}")
        alone: sa.ColumnElement[Any] = sa.func.count(sa.case((group.c.n == 1, 1)))
        queries.append(sa.select(sa.literal_column(str(i)).label("i"), alone.label("alone")).select_from(group))
    answer = session.fetch(sa.union_all(*queries) if len(queries) > 1 else queries[0]).to_pylist()
    return [row["alone"] for row in sorted(answer, key=lambda row: row["i"])]
