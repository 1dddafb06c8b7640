"""Where ranges begin and end, so that each label stands for enough people."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeVar

import sqlalchemy as sa

from qblock.canonical import decimal_text
from qblock.hierarchy.builders import check_ends
from qblock.profiling.columns import Proposal, as_written, of_one_form, widths_of
from qblock.profiling.profiles import Table

OUTER = Fraction(1, 100)
"""The share of the rows that is beyond each end, or as near to it as a cut is."""
TRIED = 20
"""Cuts further inside that are tried where fewer people than a block needs are beyond the first one."""
LARGEST = 10**15
"""Numbers that every engine compares exactly, whatever their type."""
Ends = tuple[Fraction | None, Fraction | None]
Interval = tuple[int, int | None]
Key = TypeVar("Key")


def with_ranges(
    proposals: Sequence[Proposal], table: Table, rows: int, people: Sequence[str], least: int
) -> list[Proposal]:
    """The proposals with the ranges that the values of a table call for. people, least: as of `with_ends`."""
    ended = with_ends(proposals, table, rows, people, least)
    return with_finest(of_one_form(with_edges(ended, table, people, least)), rows)


def with_ends(
    proposals: Sequence[Proposal], table: Table, rows: int, people: Sequence[str], least: int
) -> list[Proposal]:
    """The proposals, with bottom and top coding of ranges where values lie beyond the 1st or the 99th percentile,
    rounded outward to the least width; statements whose answers are as large as the spec.

    people: columns that may say who a row is about; least: the people whom an end label must stand for, whichever of
    these columns it is. No end is the least or the greatest value, unless that is a multiple of the width.
    """
    ranged = [p for p in proposals if "ranges" in p.form]
    if not ranged or rows < 2 * least:
        return list(proposals)
    outer = max(OUTER, Fraction(least, rows))
    inner = _percentiles(table, ranged, float(outer))
    cuts = {name: _cuts(p, *inner[name]) for p in ranged if (name := p.name) in inner}
    ends = _settled(table, ranged, cuts, people, least)
    return [_coded(p, cuts[name][0], *ends[name]) if (name := p.name) in ends else p for p in proposals]


def with_finest(proposals: Sequence[Proposal], rows: int) -> list[Proposal]:
    """The proposals, where values that are nearly all of single rows are read as cells: numbers a fifth as wide as the
    least range, which is a power of ten, and times as their days."""
    return [_of_cells(p) if 2 * p.profile.distinct > rows - p.profile.nulls else p for p in proposals]


def _of_cells(p: Proposal) -> Proposal:
    kind = p.profile.kind
    if "dates" in p.form and kind != "date":  # which has nothing below a day
        return p.with_form({**p.form, "finest": "day"})
    if "ranges" in p.form:
        finest = as_written(Fraction(str(p.form["ranges"][0])) / 5)
        return p if kind == "integer" and finest <= 1 else p.with_form({**p.form, "finest": finest})
    return p


def people_where(
    table: Table, conditions: Mapping[Key, sa.ColumnElement[bool]], people: Sequence[str]
) -> dict[Key, int]:
    """How many people the rows are of that meet each condition, whichever of these columns says so; rows where none
    does. A statement for each column: Spark repeats every row for each of several distinct counts."""
    if not conditions:
        return {}
    met = {f"n{i}": sa.case((condition, 1)) for i, condition in enumerate(conditions.values())}
    rows = [] if people else [table.row([sa.func.count(case).label(name) for name, case in met.items()])]
    for person in (table.value(table.columns[name]) for name in people):
        in_any_row = [sa.func.max(case).label(name) for name, case in met.items()]
        of_people = sa.select(*in_any_row).select_from(table.relation).where(person.is_not(None)).group_by(person)
        of = of_people.subquery("people")
        rows.append(table.row([sa.func.count(of.c[name]).label(name) for name in met], of))
    return {key: min(row[name] for row in rows) for name, key in zip(met, conditions, strict=True)}


def _percentiles(table: Table, ranged: Sequence[Proposal], outer: float) -> dict[str, tuple[Fraction, Fraction]]:
    figures = []
    for i, p in enumerate(ranged):
        column = p.profile.column
        value = table.value(column)
        for end, share in (("low", outer), ("high", 1 - outer)):
            at = sa.func.percentile_disc(sa.literal_column(f"{share:.9f}")).within_group(value)
            figures.append(table.session.text_of(at, column.kind).label(f"{end}_{i}"))
    answer = table.row(figures)
    inner = {p.name: (Fraction(answer[f"low_{i}"]), Fraction(answer[f"high_{i}"])) for i, p in enumerate(ranged)}
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
    table: Table,
    ranged: Sequence[Proposal],
    cuts: dict[str, tuple[list[Fraction], list[Fraction], list[Fraction]]],
    people: Sequence[str],
    least: int,
) -> dict[str, Ends]:
    """For each column the outermost cuts beyond which there are enough people."""
    beyond: dict[tuple[str, int, Fraction], sa.ColumnElement[bool]] = {}
    for p in ranged:
        if p.name in cuts:
            value = table.value(p.profile.column)
            for side in (0, 1):
                for cut in cuts[p.name][1 + side]:
                    at: sa.ColumnClause[Any] = sa.literal_column(decimal_text(cut))
                    beyond[p.name, side, cut] = value >= at if side else value < at
    ends: dict[str, list[Fraction | None]] = {}
    for (name, side, cut), count in people_where(table, beyond, people).items():
        of = ends.setdefault(name, [None, None])
        if of[side] is None and count >= least:
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
    coded = p.with_form({"ranges": [as_written(width) for width in widths], **ends})
    return replace(coded, reason=f"{p.reason}; {said} are grouped")


def with_edges(proposals: Sequence[Proposal], table: Table, people: Sequence[str], least: int) -> list[Proposal]:
    """The proposals, where each range between edges stands for enough people.

    people: columns that may say who a row is about; least: the people whom a label must stand for, whichever of these
    columns it is. A column with a single range left is one of `*` alone, and gets no edges.
    """
    inside: dict[tuple[str, Interval], sa.ColumnElement[bool]] = {}
    for p in proposals:
        edges = p.form.get("edges", [])
        value = table.value(p.profile.column)
        for low, high in [*itertools.combinations(edges, 2), *((edge, None) for edge in edges)]:
            above = value >= sa.literal_column(str(low))
            inside[p.name, (low, high)] = above if high is None else above & (value < sa.literal_column(str(high)))
    counted: dict[str, dict[Interval, int]] = {}
    for (name, interval), count in people_where(table, inside, people).items():
        counted.setdefault(name, {})[interval] = count
    settled = []
    for p in proposals:
        if p.name in counted:
            edges = kept_edges(p.form["edges"], counted[p.name], least)
            p = p.with_form({"edges": edges} if len(edges) > 1 else "suppress")
        settled.append(p)
    return settled


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
