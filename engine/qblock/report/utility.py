"""Reads what a release keeps of its source: shares of labels, numbers, and how columns go together.

Both sides are counted by the warehouse: of the source only labels come here that a hierarchy has or readers see.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.blocks import Floats
from qblock.engines.session import Session
from qblock.engines.tables import TableName
from qblock.hierarchy import TOP
from qblock.report.spreading import Spreading, cramers_v, distance
from qblock.results.report_utility import ColumnKept, NumbersKept, PairKept, ShareKept, UtilityKept
from qblock.search.task import Task

Expression = sa.ColumnElement[Any]
MOST_COLUMNS = 12
"""That are compared, quasi-identifiers first: each pair of them takes a statement for each side."""
MOST_VALUES = 10
"""Of a column that is no quasi-identifier: the published values that most rows have."""
MOST_PAIRS = 20
LARGEST = 1e150
"""Numbers from here on are left out: their squares are no doubles."""
BOUND_OF = "bound of "
"""How the role of a column begins that has the bounds of another one."""
NUMBERS = ("integer", "decimal", "float")


@dataclass(frozen=True, eq=False)
class Rows:
    """One side: its rows, and of each column its text and its number."""

    session: Session
    relation: sa.FromClause
    texts: Mapping[str, Expression]
    numbers: Mapping[str, Expression]

    def total(self) -> int:
        return int(self.session.scalar(sa.select(sa.func.count()).select_from(self.relation)) or 0)

    def counted(self, *names: str, bins: Mapping[str, Sequence[str | None]]) -> list[tuple[Any, ...]]:
        """Rows by the texts of these columns, the number of rows last. bins: of a column, the texts that are told
        apart, which are numbers in their order; the others are the next number."""
        values = [
            (_binned(self.texts[name], bins[name]) if name in bins else self.texts[name]).label(f"t{i}")
            for i, name in enumerate(names)
        ]
        rows = sa.select(*values).select_from(self.relation).subquery("counted")
        columns = list(rows.c)
        query = sa.select(*columns, sa.cast(sa.func.count(), sa.BigInteger).label("n")).group_by(*columns)
        return [tuple(row.values()) for row in self.session.fetch(query).to_pylist()]

    def most_frequent(self, name: str) -> list[str | None]:
        """The texts that most rows have."""
        rows = sa.select(self.texts[name].label("t")).select_from(self.relation).subquery("listed")
        n = sa.func.count()
        query = sa.select(rows.c.t, n.label("n")).group_by(rows.c.t).order_by(n.desc(), self.session.bytewise(rows.c.t))
        return [row["t"] for row in self.session.fetch(query.limit(MOST_VALUES)).to_pylist()]

    def numbers_of(self, name: str) -> NumbersKept | None:
        """Mean and quartiles; each quartile is the least number that so many rows do not exceed."""
        number = self.numbers[name]
        rows = sa.select(number.label("v")).select_from(self.relation).subquery("valued")
        n = sa.func.count()
        each = sa.select(rows.c.v, n.label("n")).where(rows.c.v.is_not(None)).group_by(rows.c.v).subquery("each")
        # Frames of the window are rows whose numbers are not larger.
        so_far = sa.func.sum(each.c.n).over(order_by=each.c.v).label("c")
        running = sa.select(each.c.v, each.c.n, so_far, sa.func.sum(each.c.n).over().label("t")).subquery("running")
        quartiles = [
            sa.func.min(sa.case((4 * running.c.c >= quarter * running.c.t, running.c.v))).label(f"q{quarter}")
            for quarter in (1, 2, 3)
        ]
        mean = (sa.func.sum(running.c.v * running.c.n) / sa.func.sum(running.c.n)).label("mean")
        row = self.session.fetch(sa.select(mean, *quartiles).select_from(running)).to_pylist()[0]
        if row["mean"] is None:
            return None
        mean_, lower, median, upper = (float(value) for value in row.values())
        return NumbersKept(mean=mean_, lower=lower, median=median, upper=upper)

    def pearson(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """The correlation of each pair of columns with numbers, over the rows that have both."""
        names = sorted({name for pair in pairs for name in pair})
        rows = sa.select(*(self.numbers[name].label(f"v{i}") for i, name in enumerate(names)))
        both = rows.select_from(self.relation).subquery("paired")
        columns = {name: both.c[f"v{i}"] for i, name in enumerate(names)}
        correlations = [sa.func.corr(columns[a], columns[b]).label(f"r{i}") for i, (a, b) in enumerate(pairs)]
        if not correlations:
            return []
        values = self.session.fetch(sa.select(*correlations)).to_pylist()[0].values()
        return [None if value is None or not math.isfinite(value) else float(value) for value in values]


def _binned(text: Expression, bins: Sequence[str | None]) -> Expression:
    """The number of a text among these."""
    whens: list[tuple[Any, Expression]] = [
        (text.is_(None) if known is None else text == sa.literal(known, sa.Text), sa.literal_column(str(i)))
        for i, known in enumerate(bins)
    ]
    rest: Expression = sa.literal_column(str(len(bins)))
    return sa.case(*whens, else_=rest) if whens else rest


def finite(value: Expression) -> Expression:
    """A number as a double, NULL for one that is none or too large."""
    number = sa.cast(value, sa.Double)
    return sa.case((sa.func.abs(number) < sa.literal_column(repr(LARGEST)), number))


@dataclass(frozen=True, eq=False)
class Released:
    """What is published. columns: as `VIEW_columns` has them, those that are compared; entries: the rows of
    `VIEW_levels` of each quasi-identifier; values: of each other column, that most rows have; pairs: the rows by the
    texts of two columns, of which `values` are numbered; numbers, correlations: of columns with numbers."""

    rows: int
    columns: Sequence[Mapping[str, Any]]
    entries: Mapping[str, Sequence[Mapping[str, Any]]]
    values: Mapping[str, Sequence[str | None]]
    counts: Mapping[str, Sequence[tuple[Any, ...]]]
    pairs: Mapping[tuple[str, str], Sequence[tuple[Any, ...]]]
    numbers: Mapping[str, NumbersKept | None]
    correlations: Mapping[tuple[str, str], float | None] = field(default_factory=dict)


def read_released(
    session: Session, table: TableName, listed: Sequence[Mapping[str, Any]], levels: Sequence[Mapping[str, Any]]
) -> Released:
    """The published side. table: the rows with the middles of labels, `VIEW_midpoints`; listed, levels: the rows of
    `VIEW_columns` and of `VIEW_levels`."""
    relation, columns = session.relation(table), session.columns(table)
    middles = _middles(listed, list(columns))
    known = [row for row in listed if row["role"] == "quasi-identifier"]
    others = [row for row in listed if row["role"] in ("sensitive attribute", "insensitive") and row["source_type"]]
    compared = [*known, *others][:MOST_COLUMNS]
    names = [row["column_name"] for row in compared]
    kinds = {name: columns[name].kind for name in names}
    numbered = {name: middles.get(name, name) for name in names if name in middles or kinds[name] in NUMBERS}
    numbers = {name: finite(relation.c[of]) for name, of in numbered.items() if columns[of].kind in NUMBERS}
    texts = {name: session.text_of(relation.c[name], kinds[name]) for name in names}
    rows = Rows(session, relation, texts, numbers)
    values = {row["column_name"]: rows.most_frequent(row["column_name"]) for row in compared if row in others}
    pairs = [pair for pair in combinations(names, 2) if not set(pair) <= numbers.keys()]
    both = [pair for pair in combinations(names, 2) if set(pair) <= numbers.keys()]
    return Released(
        rows=rows.total(),
        columns=compared,
        entries={name: [row for row in levels if row["column_name"] == name] for name in names if name not in values},
        values=values,
        counts={name: rows.counted(name, bins=values) for name in values},
        pairs={pair: rows.counted(*pair, bins=values) for pair in pairs},
        numbers={name: rows.numbers_of(name) for name in numbers},
        correlations=dict(zip(both, rows.pearson(both), strict=True)),
    )


def _middles(listed: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> dict[str, str]:
    """By quasi-identifier the column with the middles of its labels: they come after all others, in their order."""
    published = {row["column_name"] for row in listed}
    place = {name: i for i, name in enumerate(columns)}
    bounds = [row for row in listed if row["role"].startswith(BOUND_OF) and row["column_name"] in place]
    bounds.sort(key=lambda row: place[row["column_name"]])
    of = dict.fromkeys(row["role"].removeprefix(BOUND_OF) for row in bounds)
    return dict(zip(of, (name for name in columns if name not in published), strict=True))


def read_utility(task: Task, released: Released) -> UtilityKept:
    """The source beside what is published. Columns that the spec no longer has are left out."""
    source = task.source
    hierarchies = dict(zip(source.quasi_identifiers, source.hierarchies, strict=True))
    levels = {row["column_name"]: row["level"] for row in released.columns if row["column_name"] in released.entries}
    whole = None not in levels.values()
    spreads = {
        name: Spreading(hierarchies[name], released.entries[name], level, whole)
        for name, level in levels.items()
        if name in hierarchies
    }
    there = {*spreads, *(name for name in released.values if name in source.spec.attributes)}
    compared = [row for row in released.columns if row["column_name"] in there]
    names = [row["column_name"] for row in compared]
    bins: dict[str, Sequence[str | None]] = {n: spreads[n].bins if n in spreads else released.values[n] for n in names}
    weights = {name: _weights(bins[name], spreads.get(name)) for name in names}
    rows = source_rows(task, spreads, names)
    comparison = _Comparison(rows, released, rows.total(), bins, weights)
    pairs = comparison.pairs(names)
    pairs.sort(key=lambda pair: (pair.loss is None, -(pair.loss or 0)))
    return UtilityKept(
        rows_source=comparison.total,
        rows_released=released.rows,
        columns=tuple(comparison.column(row) for row in compared),
        pairs=tuple(pairs[:MOST_PAIRS]),
        pairs_total=len(pairs),
    )


def _weights(bins: Sequence[str | None], spread: Spreading | None) -> Mapping[Any, Floats]:
    """Of each published text, or its number, the share of its rows in each bin."""
    if spread is not None:
        return spread.weights()
    return dict(enumerate(np.eye(len(bins) + 1)))


def source_rows(task: Task, spreads: Mapping[str, Spreading], names: Sequence[str]) -> Rows:
    """The rows of the source, quasi-identifiers as the labels at which they are compared."""
    source = task.source
    joined: sa.FromClause = source.relation
    texts: dict[str, Expression] = {}
    for i, (name, dimension) in enumerate(zip(source.quasi_identifiers, source.dimensions, strict=True)):
        if name not in spreads:
            continue
        if spreads[name].level >= dimension.height:
            texts[name] = sa.literal_column(f"'{TOP}'", sa.Text)
            continue
        shown = source.labels(i, spreads[name].level)
        joined = joined.outerjoin(shown.table, shown.leaf)
        texts[name] = sa.cast(shown.label, sa.Text)
    numbers = {}
    for name in names:
        kind, value = source.columns[name].kind, source.expression(name)
        texts.setdefault(name, source.session.text_of(value, kind))
        if kind in NUMBERS:
            numbers[name] = finite(value)
    return Rows(source.session, joined, texts, numbers)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """total: rows of the source; bins, weights: of each column."""

    source: Rows
    released: Released
    total: int
    bins: Mapping[str, Sequence[str | None]]
    weights: Mapping[str, Mapping[Any, Floats]]

    def column(self, row: Mapping[str, Any]) -> ColumnKept:
        name, released = row["column_name"], self.released
        theirs = np.zeros(len(self.bins[name]) + 1)
        listed = released.entries.get(name)
        counts = released.counts[name] if listed is None else [(entry["label"], entry["rows"]) for entry in listed]
        for text, n in counts:
            theirs += self.weights[name][text] * n
        ours = np.zeros(len(theirs))
        for number, n in self.source.counted(name, bins=self.bins):
            ours[number] += n
        ours, theirs = ours / max(1, ours.sum()), theirs / max(1, theirs.sum())
        shares = zip(self.bins[name], ours.tolist(), theirs.tolist(), strict=False)
        there = name in self.source.numbers and released.numbers.get(name) is not None
        return ColumnKept(
            name=name,
            role=row["role"],
            labels=tuple(ShareKept(label=label, source=mine, released=other) for label, mine, other in shares),
            rest_source=float(ours[-1]),
            rest_released=float(theirs[-1]),
            distance=distance(ours, theirs),
            source=self.source.numbers_of(name) if there else None,
            released=released.numbers[name] if there else None,
        )

    def pairs(self, names: Sequence[str]) -> list[PairKept]:
        correlated = [pair for pair in self.released.correlations if set(pair) <= self.source.numbers.keys() & {*names}]
        pearson = zip(correlated, self.source.pearson(correlated), strict=True)
        result = [_pair(pair, "pearson", ours, self.released.correlations[pair]) for pair, ours in pearson]
        for pair, counted in self.released.pairs.items():
            if not set(pair) <= {*names}:
                continue
            theirs, ours = self._table(pair), self._table(pair)
            for first, second, n in counted:
                theirs += np.outer(self.weights[pair[0]][first], self.weights[pair[1]][second]) * n
            for first, second, n in self.source.counted(*pair, bins=self.bins):
                ours[first, second] += n
            result.append(_pair(pair, "cramers_v", cramers_v(ours), cramers_v(theirs)))
        return result

    def _table(self, pair: tuple[str, str]) -> Floats:
        return np.zeros([len(self.bins[name]) + 1 for name in pair])


def _pair(pair: tuple[str, str], measure: Any, ours: float | None, theirs: float | None) -> PairKept:
    loss = None if ours is None or theirs is None else abs(ours - theirs)
    return PairKept(first=pair[0], second=pair[1], measure=measure, source=ours, released=theirs, loss=loss)
