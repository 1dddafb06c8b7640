"""Statements built from the spec, for every engine alike.

Columns of a frequency set: q0, q1, ... the code of each quasi-identifier at the node's level (a quasi-identifier at its
top level has one value and no column); s0, s1, ... the code of each sensitive attribute that it keeps; n, the rows.
The code of a label is the number of one leaf under it, so a code of any level can be looked up as a leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.lattice import Node

Expression = sa.ColumnElement[Any]
Query = sa.Select[*tuple[Any, ...]]


@dataclass(frozen=True)
class Dimension:
    """A hierarchy as a table: leaf (typed as the column compares), c0..cH codes, t0..tH labels.

    null_code and other_code are the code of the leaf whose label is `*` at every level: for NULL, and for values that
    the hierarchy does not cover, where the spec maps them to it.
    """

    table: sa.TableClause
    height: int
    leaves: int
    null_code: int | None = None
    other_code: int | None = None

    def covered(self, raw: Expression) -> Expression:
        """The code of a raw value at leaf level, after an outer join on the leaf; NULL where nothing covers it."""
        cases: list[tuple[Any, Expression]] = []
        if self.null_code is not None:
            cases.append((raw.is_(None), sa.literal_column(str(self.null_code))))
        if self.other_code is not None:
            cases.append((raw.is_not(None), sa.literal_column(str(self.other_code))))
        return sa.func.coalesce(self.code(0), sa.case(*cases)) if cases else self.code(0)

    def code(self, level: int) -> Expression:
        return self.table.c[f"c{level}"]

    def label(self, level: int) -> Expression:
        return self.table.c[f"t{level}"]


def whole(value: Expression) -> Expression:
    """A sum or count as BIGINT, whatever wider type the engine gives it."""
    return sa.cast(value, sa.BigInteger)


def raw_scan(relation: sa.FromClause, columns: Mapping[str, Expression]) -> Query:
    """The one scan of the base table: every combination of raw values with its number of rows."""
    return (
        sa.select(*(column.label(name) for name, column in columns.items()), sa.func.count().label("n"))
        .select_from(relation)
        .group_by(*columns.values())
    )


def distinct_values(raw: sa.TableClause, column: str, text: Expression) -> Query:
    """Each value of a scanned column as text (`value`) with its rows (`n`); NULL has a row of its own."""
    return sa.select(text.label("value"), whole(sa.func.sum(raw.c.n)).label("n")).group_by(raw.c[column])


def coded(raw: sa.TableClause, dimensions: Mapping[str, Dimension], keep: Sequence[str] = ()) -> Query:
    """The leaf frequency set: codes for raw values; NULL where no dimension covers the value. Loses no row.

    keep: further columns of the scan. Each combination of codes (and of what is kept) is one row.
    """
    joined: sa.FromClause = raw
    columns: list[Expression] = []
    for name, dimension in dimensions.items():
        joined = joined.outerjoin(dimension.table, raw.c[name] == dimension.table.c.leaf)
        columns.append(dimension.covered(raw.c[name]).label(name))
    columns += [raw.c[name] for name in (*keep, "n")]
    found = sa.select(*columns).select_from(joined)
    if all(dimension.other_code is None for dimension in dimensions.values()):
        return found
    # Values that no hierarchy covers share a code.
    apart = found.subquery()
    groups = [column for column in apart.c if column.key != "n"]
    return sa.select(*groups, whole(sa.func.sum(apart.c.n)).label("n")).group_by(*groups)


def uncovered_rows(leaf: sa.TableClause, names: Iterable[str]) -> Query:
    """For each coded column, the rows whose value no dimension covers; and all rows."""
    sums = [
        whole(sa.func.coalesce(sa.func.sum(sa.case((leaf.c[name].is_(None), leaf.c.n), else_=0)), 0)).label(name)
        for name in names
    ]
    return sa.select(*sums, whole(sa.func.coalesce(sa.func.sum(leaf.c.n), 0)).label("n"))


def uncovered_values(raw: sa.TableClause, name: str, text: Expression, dimension: Dimension) -> Query:
    """The values that no dimension covers (`value`, NULL for a NULL) with their rows, most rows first: an anti-join."""
    rows = whole(sa.func.sum(raw.c.n)).label("n")
    return (
        sa.select(text.label("value"), rows)
        .select_from(raw.outerjoin(dimension.table, raw.c[name] == dimension.table.c.leaf))
        .where(dimension.table.c.leaf.is_(None))
        .group_by(text)
        .order_by(rows.desc(), text)
    )


def roll_up(
    finer: sa.TableClause,
    finer_node: Node,
    node: Node,
    dimensions: Sequence[Dimension],
    sensitive: Sequence[int],
) -> Query:
    """A node's frequency set from that of a finer node, which keeps at least the same sensitive attributes."""
    joined: sa.FromClause = finer
    groups: list[Expression] = []
    for i, (old, new, dimension) in enumerate(zip(finer_node, node, dimensions, strict=True)):
        if new == dimension.height:
            continue
        code: Expression = finer.c[f"q{i}"]
        if new != old:
            mapping = dimension.table.alias(f"h{i}")
            joined = joined.join(mapping, mapping.c.c0 == code)
            code = mapping.c[f"c{new}"]
        groups.append(code.label(f"q{i}"))
    groups += [finer.c[f"s{i}"] for i in sensitive]
    rows = whole(sa.func.sum(finer.c.n)).label("n")
    return sa.select(*groups, rows).select_from(joined).group_by(*(_unlabelled(g) for g in groups))


def count_entities(leaf: sa.TableClause, node: Node, dimensions: Sequence[Dimension], sensitive: Sequence[int]) -> Any:
    """A node's counts of distinct entities, which are not additive: from the leaf frequency set, which still has the
    entities."""
    coded_node = roll_up(leaf, (0,) * len(node), node, dimensions, sensitive)
    groups = [whole(_unlabelled(c)).label(c.key) for c in coded_node.selected_columns if c.key != "n"]
    return coded_node.with_only_columns(
        *groups, sa.func.count(sa.distinct(leaf.c.e)).label("n"), maintain_column_froms=True
    )


def totals(leaf: sa.TableClause, name: str) -> Query:
    """Rows of each code of one column of a frequency set: `code`, `n`."""
    return sa.select(whole(leaf.c[name]).label("code"), whole(sa.func.sum(leaf.c.n)).label("n")).group_by(leaf.c[name])


def entity_totals(leaf: sa.TableClause, name: str) -> Query:
    """Distinct entities of each code of one column: `code`, `n`."""
    entities = sa.func.count(sa.distinct(leaf.c.e)).label("n")
    return sa.select(whole(leaf.c[name]).label("code"), entities).group_by(leaf.c[name])


def size_histogram(sizes: sa.TableClause) -> Query:
    """How many blocks there are of each size."""
    return sa.select(whole(sizes.c.n).label("size"), sa.func.count().label("blocks")).group_by(sizes.c.n)


def counts(frequency_set: sa.TableClause, names: Sequence[str]) -> Query:
    """The columns of a frequency set as BIGINT."""
    return sa.select(*(whole(frequency_set.c[name]).label(name) for name in names))


def _unlabelled(expression: Expression) -> Expression:
    return expression.element if isinstance(expression, sa.Label) else expression
