"""Blocks that are one household, site or family: k people of one group are told apart by nobody who looks for a person,
and by everybody who looks for the group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from qblock.column_names import folded
from qblock.engines.queries import whole
from qblock.lattice import Node
from qblock.search.task import Task
from qblock.source import SourceTable
from qblock.spec import Spec
from qblock.spec.repeats import MOST_ROWS

NAMED = re.compile(
    r"_(hh|household|haushalt|family|familie|couple|dwelling|address|building|site|clinic|practice|centre|center"
    r"|school|class|cluster|employer|company)_"
)
"""Groups of more than MOST_ROWS rows on average, by their names."""


@dataclass(frozen=True)
class OneGroup:
    """Blocks of two rows or more, all of which have one value of a column."""

    column: str
    blocks: int
    rows: int


def one_groups(task: Task, node: Node) -> list[OneGroup]:
    """The blocks of a node that are one group, by each column that may tell groups. task: of the source as it is."""
    names = _repeating(task)
    if not names:
        return []
    source = task.source
    joined: sa.FromClause = source.relation
    codes = []
    for i, level in enumerate(node):
        if level < source.dimensions[i].height:
            shown = source.labels(i, level)
            joined = joined.outerjoin(shown.table, shown.leaf)
            codes.append(shown.code)
    values = [source.expression(name) for name in names]
    n = sa.func.count()
    is_one = [
        sa.case((sa.and_(sa.func.count(v) == n, sa.func.min(v) == sa.func.max(v)), 1), else_=0).label(f"one_{i}")
        for i, v in enumerate(values)
    ]
    # Fewer rows than any model lets stand are suppressed.
    least: sa.ColumnElement[int] = sa.literal_column(str(max(2, task.least)))
    blocks = (
        sa.select(n.label("rows"), *is_one).select_from(joined).group_by(*codes).having(n >= least).subquery("blocks")
    )
    sums = [
        sa.func.coalesce(whole(sa.func.sum(figure)), 0).label(f"{what}_{i}")
        for i in range(len(names))
        for what, figure in (("blocks", blocks.c[f"one_{i}"]), ("rows", blocks.c[f"one_{i}"] * blocks.c.rows))
    ]
    (row,) = source.session.fetch(sa.select(*sums)).to_pylist()
    told = [OneGroup(name, int(row[f"blocks_{i}"]), int(row[f"rows_{i}"])) for i, name in enumerate(names)]
    return [group for group in told if group.blocks]


def _repeating(task: Task) -> list[str]:
    """The columns that may tell groups: published as they are, or identifying ones that the login may read, whose
    values have few rows each. What the spec counts groups or people by is not among them."""
    spec, source = task.spec, task.source
    known = [name for name in (*spec.insensitives, *_identifying(spec)) if _readable(source, name)]
    return [name for name in known if _few_rows_each(source, name)]


def _identifying(spec: Spec) -> Iterator[str]:
    for name, attribute in spec.attributes.items():
        if attribute.role == "identifying" and name not in (spec.entity, spec.groups):
            yield name


def _readable(source: SourceTable, name: str) -> bool:
    return name in source.relation.c and name in source.columns and source.columns[name].kind in ("integer", "text")


def _totals(sizes: sa.Subquery) -> sa.Select[int, int]:
    """Rows with a value, and distinct values."""
    rows = whole(sa.func.coalesce(sa.func.sum(sizes.c.n), 0)).label("rows")
    return sa.select(rows, sa.func.count().label("groups")).select_from(sizes)


def _few_rows_each(source: SourceTable, name: str) -> bool:
    value = source.expression(name)
    groups = sa.select(sa.func.count().label("n")).select_from(source.relation).where(value.is_not(None))
    sizes = groups.group_by(value).subquery("qblock_sizes")
    if name in source.spec.insensitives:
        (row,) = source.session.fetch(_totals(sizes)).to_pylist()
        figures: tuple[int, ...] | None = tuple(row.values())
    else:
        figures = source.session.attempt(_totals(sizes))
    if figures is None:  # the login may not read it
        return False
    rows, values = map(int, figures)
    few = rows <= MOST_ROWS * values or NAMED.search(folded(name)) is not None
    return values < rows <= values * values and few
