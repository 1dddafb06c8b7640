"""Columns that are made from others: copies, recodes, squares and logarithms. They tell nothing more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.engines.values import is_value
from qblock.hierarchy.labels import Labels
from qblock.profiling.columns import NUMBERS, Proposal
from qblock.profiling.profiles import Table
from qblock.profiling.words import suggests

LEAST_ROWS = 100
"""In fewer, columns depend on each other by chance."""
MOST_READ = 500_000_000
"""Values that are compared; of a table with more the columns further to the right are not looked at."""
FEW_ROWS = 10_000
"""Rows that are looked at before all are."""
SURE = 20
"""Rows that would have shown it, had the columns nothing to do with each other."""
LEAST_CORRELATION = 0.99999
NEAR = 0.002
"""How near the ends of a column are to those of a square or logarithm before it is computed."""
LARGEST = 1e15
ROLES = ("quasi_identifier", "sensitive", "decide")


def without_derived(proposals: Sequence[Proposal], rows: int, people: int, table: Table) -> list[Proposal]:
    """The proposals, where columns that are made from others are left out, each with what it is made from.

    people: whom the rows are about, at most. A few rows, which come over once, contradict most of what may depend on
    what; one GROUP BY for each column that is left tells of all rows. Squares and logarithms whose ends fit are
    correlated in one statement.
    """
    if rows < LEAST_ROWS:
        return list(proposals)
    most = math.isqrt(MOST_READ // rows)
    looked_at = [p for p in proposals if p.role in ROLES and not p.profile.approximate][:most]
    computed = _computed(looked_at, table)
    rest = [p for p in looked_at if p.name not in computed]
    reasons = _recoded(rest, rows, people, table) | computed
    return [
        replace(p, role="left out", entry=None, reason=reasons[p.name]) if p.name in reasons else p for p in proposals
    ]


def _value(p: Proposal, table: Table) -> sa.ColumnElement[Any]:
    """A column as a number where it is true or false."""
    value = table.value(p.profile.column)
    return sa.case((value, 1), (sa.not_(value), 0)) if p.profile.column.kind == "boolean" else value


def _recoded(columns: Sequence[Proposal], rows: int, people: int, table: Table) -> dict[str, str]:
    """Of each column that another one decides, the reason. What others know is kept, however it is decided."""
    ordered = sorted(columns, key=lambda p: (not suggests(p.name, "quasi"), p.role != "sensitive"))
    first = _first_rows(ordered, table) if ordered else {}
    decided = {
        (p.name, name)
        for p in ordered
        if people - _groups(p) >= SURE
        for name in _decided_by(p, [column for column in ordered if column is not p], first, rows, table)
    }
    spread = _spread([p for p in ordered if any(p.name == name for _, name in decided)], rows, table)
    reasons: dict[str, str] = {}
    for i, p in enumerate(ordered):
        name = p.name
        sources = [
            column
            for column in ordered
            if (column.name, name) in decided
            and (people - _groups(column)) * spread[name] >= SURE
            # Of copies the first is kept.
            and ((name, column.name) not in decided or ordered.index(column) < i)
        ]
        sources = [column for column in sources if column.name not in reasons] or sources
        copies = [column for column in sources if (name, column.name) in decided]
        if copies:
            reasons[name] = f"a copy of {copies[0].name}"
        elif sources and not suggests(name, "quasi"):
            reasons[name] = f"made from {min(sources, key=_groups).name}"
    return reasons


def _decided_by(
    p: Proposal, candidates: Sequence[Proposal], first: Mapping[str, Labels], rows: int, table: Table
) -> list[str]:
    """The columns that have one value, or none, wherever this one has one. first: `_first_rows`; what these contradict
    is not asked of all."""
    candidates = [column for column in candidates if _groups(column) <= _groups(p)]
    if candidates:
        codes = np.column_stack([first[column.name].of_leaf for column in candidates])
        by = first[p.name]
        same = (codes == codes[by.first[by.of_leaf]]).all(axis=0)
        candidates = [column for column, is_same in zip(candidates, same.tolist(), strict=True) if is_same]
    if candidates and rows > FEW_ROWS:
        candidates = _decided_in_all(p, candidates, table)
    return [column.name for column in candidates]


def _first_rows(columns: Sequence[Proposal], table: Table) -> dict[str, Labels]:
    """The values of columns, NULL among them, in FEW_ROWS of the table, or in all."""
    texts = table.texts([p.profile.column for p in columns])
    rows = table.session.fetch(sa.select(*texts).select_from(table.relation).limit(FEW_ROWS))
    return {p.name: Labels.of(rows[text.name]) for p, text in zip(columns, texts, strict=True)}


def _decided_in_all(p: Proposal, candidates: Sequence[Proposal], table: Table) -> list[Proposal]:
    """Those of the columns that have one value, or none, wherever this one has one; one statement."""
    values = [_value(column, table).label(f"c{i}") for i, column in enumerate([p, *candidates])]
    by, *others = sa.select(*values).select_from(table.relation).subquery("qblock_rows").c
    columns = []
    for value in others:
        there = sa.func.count(value)
        same = (sa.func.min(value) == sa.func.max(value)) & (there == sa.func.count())
        columns.append(sa.case((same | (there == 0), 1), else_=0).label(value.name))
    groups = sa.select(*columns).group_by(by).subquery("qblock_groups")
    answer = table.row([sa.func.min(same).label(same.name) for same in groups.c], of=groups)
    return [column for column, value in zip(candidates, others, strict=True) if answer[value.name] == 1]


def _spread(columns: Sequence[Proposal], rows: int, table: Table) -> dict[str, float]:
    """The share of rows that have not the most frequent value."""
    shares = {}
    for p in columns:
        count = sa.func.count().label("n")
        counts = sa.select(count).select_from(table.relation).group_by(_value(p, table))
        most = table.session.scalar(sa.select(sa.func.max(counts.subquery("qblock_counts").c.n)))
        shares[p.name] = 1 - int(most) / rows
    return shares


def _computed(columns: Sequence[Proposal], table: Table) -> dict[str, str]:
    """Of each column that is the square or logarithm of another one, or moves with it, the reason."""
    ends = {p.name: ends for p in columns if (ends := _ends(p)) is not None}
    numbers = [p for p in columns if p.name in ends]
    pairs = [
        (form, a, b)
        for j, b in enumerate(numbers)
        for i, a in enumerate(numbers)
        for form in FORMS
        if i != j and (form != "multiple" or i < j) and _fits(form, ends[a.name], ends[b.name])
    ]
    if not pairs:
        return {}
    figures: list[Any] = []
    for k, (form, a, b) in enumerate(pairs):
        base, other = (sa.cast(_value(p, table), sa.Double) for p in (a, b))
        figures.append(sa.func.corr(_transformed(form, base), other).label(f"corr_{k}"))
        figures.append(sa.func.count(sa.case((base.is_not(None) & other.is_not(None), 1))).label(f"n_{k}"))
    answer = table.row(figures)
    reasons: dict[str, str] = {}
    for k, (form, a, b) in enumerate(pairs):
        sure = answer[f"n_{k}"] >= LEAST_ROWS / 2 and (answer[f"corr_{k}"] or 0) >= LEAST_CORRELATION
        if sure and a.name not in reasons:
            reasons.setdefault(b.name, f"{FORMS[form]} {a.name}")
    return reasons


FORMS: Mapping[str, str] = {"square": "the square of", "logarithm": "the logarithm of", "multiple": "a multiple of"}


def _fits(form: str, base: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether the ends of a column may be those of a transformed one."""
    (low, high), (least, greatest) = base, other
    if form == "square":
        power = math.log10(greatest / high**2) if low >= 0 < high and greatest > 0 else 0.5
        scale = 10.0 ** round(power)
        return _near(greatest, scale * high**2) and abs(least - scale * low**2) <= NEAR * greatest and high > 1
    if form == "logarithm":
        return any(
            high > 0 and _near(greatest, factor * math.log(high)) and (low <= 0 or _near(least, factor * math.log(low)))
            for factor in (1, 1 / math.log(10), 1 / math.log(2))
        )
    return 0 < low < high and 0 < least < greatest and _near(greatest / high, least / low)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= NEAR * max(abs(a), abs(b)) + 1e-6


def _transformed(form: str, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    if form == "square":
        return value * value
    return sa.case((value > 0, sa.func.ln(value))) if form == "logarithm" else value


def _ends(p: Proposal) -> tuple[float, float] | None:
    least, greatest = p.profile.least or "", p.profile.greatest or ""
    numeric = p.profile.kind in NUMBERS and p.profile.distinct > 2
    if not numeric or not (is_value(least, "decimal") and is_value(greatest, "decimal")):
        return None
    ends = float(least), float(greatest)
    return ends if max(map(abs, ends)) < LARGEST else None


def _groups(p: Proposal) -> int:
    """Values, NULL among them."""
    return p.profile.distinct + (p.profile.nulls > 0)
