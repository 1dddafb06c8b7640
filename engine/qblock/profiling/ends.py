"""Where the ranges of a column end: beyond are a few very low or very high values, which share one open label each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sqlalchemy as sa

from qblock.canonical import decimal_text
from qblock.hierarchy.builders import check_ends
from qblock.profiling.columns import Proposal, as_written, widths_of
from qblock.warehouse import Session, TableName

OUTER = Fraction(1, 100)
"""The share of the rows that is beyond each end, or as near to it as a cut is."""
TRIED = 20
"""Cuts further inside that are tried where fewer people than a block needs are beyond the first one."""
LARGEST = 10**15
"""Numbers that every engine compares exactly, whatever their type."""
Ends = tuple[Fraction | None, Fraction | None]


def with_ends(
    proposals: Sequence[Proposal], session: Session, table: TableName, rows: int, people: Sequence[str], least: int
) -> list[Proposal]:
    """The proposals, with bottom and top coding of ranges where values lie beyond the 1st or the 99th percentile,
    rounded outward to the least width; two statements, whose answers are as large as the spec.

    people: columns that may say who a row is about; least: the people whom an end label must stand for, whichever of
    these columns it is. No end is the least or the greatest value, unless that is a multiple of the width.
    """
    ranged = [p for p in proposals if p.role == "quasi_identifier" and _has_ranges(p)]
    if not ranged or rows < 2 * least:
        return list(proposals)
    outer = max(OUTER, Fraction(least, rows))
    inner = _percentiles(session, table, ranged, float(outer))
    cuts = {name: _cuts(p, *inner[name]) for p in ranged if (name := p.profile.column.name) in inner}
    ends = _settled(session, table, ranged, cuts, people, least)
    return [_coded(p, cuts[name][0], *ends[name]) if (name := p.profile.column.name) in ends else p for p in proposals]


def with_finest(proposals: Sequence[Proposal], rows: int) -> list[Proposal]:
    """The proposals, where values that are nearly all of single rows are read as cells: numbers a fifth as wide as the
    least range, which is a power of ten, and times as their days."""
    return [_of_cells(p) if _own_values(p, rows) else p for p in proposals]


def _own_values(p: Proposal, rows: int) -> bool:
    """Whether a quasi-identifier of ranges or dates has more values than half of its rows."""
    form = p.entry["hierarchy"] if p.role == "quasi_identifier" else None
    return (
        isinstance(form, dict)
        and bool({"ranges", "dates"} & set(form))
        and 2 * p.profile.distinct > rows - p.profile.nulls
    )


def _of_cells(p: Proposal) -> Proposal:
    form, kind = p.entry["hierarchy"], p.profile.kind
    if "dates" in form:
        # A day is the least that a column of dates has.
        finest: Any = None if kind == "date" else "day"
    else:
        finest = as_written(Fraction(str(form["ranges"][0])) / 5)
        finest = None if kind == "integer" and finest <= 1 else finest
    if finest is None:
        return p
    return replace(p, entry={**p.entry, "hierarchy": {**form, "finest": finest}})


def people_where(condition: sa.ColumnElement[bool], who: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[int]:
    """How many people rows are of, whichever of these columns says so; rows where none does."""
    counts = [sa.func.count(sa.case((condition, 1)))]
    counts += [sa.func.count(sa.distinct(sa.case((condition, person)))) for person in who]
    return sa.func.least(*counts) if who else counts[0]


def _has_ranges(p: Proposal) -> bool:
    return isinstance(p.entry["hierarchy"], dict) and "ranges" in p.entry["hierarchy"]


def _percentiles(
    session: Session, table: TableName, ranged: Sequence[Proposal], outer: float
) -> dict[str, tuple[Fraction, Fraction]]:
    relation, figures = session.relation(table), []
    for i, p in enumerate(ranged):
        column = p.profile.column
        value = session.comparable(relation.c[column.name], column)
        for end, share in (("low", outer), ("high", 1 - outer)):
            at = sa.func.percentile_disc(sa.literal_column(f"{share:.9f}")).within_group(value)
            figures.append(session.text_of(at, column.kind).label(f"{end}_{i}"))
    answer = session.fetch(sa.select(*figures).select_from(relation)).to_pylist()[0]
    inner = {
        p.profile.column.name: (Fraction(answer[f"low_{i}"]), Fraction(answer[f"high_{i}"]))
        for i, p in enumerate(ranged)
    }
    return {name: (low, high) for name, (low, high) in inner.items() if -LARGEST < low <= high < LARGEST}


def _cuts(p: Proposal, low: Fraction, high: Fraction) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """The widths of ranges between two percentiles, and the cuts at which they may begin and end: the first is the
    percentile rounded outward, each other lies further inside. None where no value is beyond the first."""
    widths = widths_of(high - low, whole=p.profile.kind == "integer")
    width = widths[0]
    first, last = math.floor(low / width) * width, (math.floor(high / width) + 1) * width
    inside = range(min(TRIED, int((last - first) / width)))
    below = [first + i * width for i in inside] if Fraction(p.profile.least or 0) < first else []
    above = [last - i * width for i in inside] if Fraction(p.profile.greatest or 0) >= last else []
    return widths, below, above


def _settled(
    session: Session,
    table: TableName,
    ranged: Sequence[Proposal],
    cuts: dict[str, tuple[list[Fraction], list[Fraction], list[Fraction]]],
    people: Sequence[str],
    least: int,
) -> dict[str, Ends]:
    """For each column the outermost cuts beyond which there are enough people."""
    known, relation = session.columns(table), session.relation(table)
    who: list[Any] = [session.comparable(relation.c[name], known[name]) for name in people]
    figures, beyond_cuts = [], []
    for p in ranged:
        column = p.profile.column
        if column.name not in cuts:
            continue
        value = session.comparable(relation.c[column.name], column)
        for side in (0, 1):
            for cut in cuts[column.name][1 + side]:
                at: sa.ColumnClause[Any] = sa.literal_column(decimal_text(cut))
                beyond = value >= at if side else value < at
                figures.append(people_where(beyond, who))
                beyond_cuts.append((column.name, side, cut))
    if not figures:
        return {}
    labelled = [figure.label(f"n{i}") for i, figure in enumerate(figures)]
    answer = session.fetch(sa.select(*labelled).select_from(relation)).to_pylist()[0]
    ends: dict[str, list[Fraction | None]] = {}
    for i, (name, side, cut) in enumerate(beyond_cuts):
        of = ends.setdefault(name, [None, None])
        if of[side] is None and answer[f"n{i}"] >= least:
            of[side] = cut
    return {name: (low, high) for name, (low, high) in ends.items() if (low, high) != (None, None)}


def _coded(p: Proposal, widths: list[Fraction], low: Fraction | None, high: Fraction | None) -> Proposal:
    while widths:
        try:
            check_ends(widths, 0, low, high)
            break
        except ValueError:
            widths = widths[:-1]
    if not widths or (low is not None and low == high):
        return p
    ends = {key: as_written(cut) for key, cut in (("from", low), ("to", high)) if cut is not None}
    words = [] if low is None else [f"under {decimal_text(low)}"]
    words += [] if high is None else [f"{decimal_text(high)} and over"]
    said = " and ".join(words)
    entry = {**p.entry, "hierarchy": {"ranges": [as_written(width) for width in widths], **ends}}
    return replace(p, entry=entry, reason=f"{p.reason}; {said} are grouped")
