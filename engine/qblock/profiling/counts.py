"""How many of something somebody has, such as children: where the ranges of such a column begin."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from qblock.profiling.columns import Proposal
from qblock.profiling.ends import people_where
from qblock.warehouse import Session, TableName

Interval = tuple[int, int | None]


def with_edges(
    proposals: Sequence[Proposal], session: Session, table: TableName, people: Sequence[str], least: int
) -> list[Proposal]:
    """The proposals, where each range between edges stands for enough people; one statement.

    people: columns that may say who a row is about; least: the people whom a label must stand for, whichever of these
    columns it is. A column with a single range left is one of `*` alone, and gets no edges.
    """
    edged = [p for p in proposals if _edges(p)]
    known, relation = session.columns(table), session.relation(table)
    who: list[Any] = [session.comparable(relation.c[name], known[name]) for name in people]
    figures, intervals = [], []
    for p in edged:
        column = p.profile.column
        value = session.comparable(relation.c[column.name], column)
        for low, high in _intervals(_edges(p)):
            inside = value >= sa.literal_column(str(low))
            inside = inside if high is None else inside & (value < sa.literal_column(str(high)))
            figures.append(people_where(inside, who))
            intervals.append((column.name, (low, high)))
    if not figures:
        return list(proposals)
    labelled = [figure.label(f"n{i}") for i, figure in enumerate(figures)]
    answer = session.fetch(sa.select(*labelled).select_from(relation)).to_pylist()[0]
    counted: dict[str, dict[Interval, int]] = {}
    for i, (name, interval) in enumerate(intervals):
        counted.setdefault(name, {})[interval] = answer[f"n{i}"]
    return [
        _with(p, kept_edges(_edges(p), counted[p.profile.column.name], least)) if _edges(p) else p for p in proposals
    ]


def kept_edges(edges: Sequence[int], people: Mapping[Interval, int], least: int) -> list[int]:
    """The edges without those that begin too small a range: from above, each range is joined with the one below until
    it is large enough. people: of each interval between two edges, and from each edge on."""
    kept: list[int] = []
    end: int | None = None
    for edge in reversed(edges):
        if people[edge, end] >= least or edge == edges[0]:
            kept, end = [edge, *kept], edge
    if len(kept) > 1 and people[kept[0], kept[1]] < least:
        del kept[1]
    return kept


def _edges(p: Proposal) -> list[int]:
    form = p.entry["hierarchy"] if p.role == "quasi_identifier" else None
    return form.get("edges", []) if isinstance(form, dict) else []


def _intervals(edges: Sequence[int]) -> Iterator[Interval]:
    yield from itertools.combinations(edges, 2)
    yield from ((edge, None) for edge in edges)


def _with(p: Proposal, edges: list[int]) -> Proposal:
    form: Any = {"edges": edges} if len(edges) > 1 else "suppress"
    return replace(p, entry={**p.entry, "hierarchy": form})
