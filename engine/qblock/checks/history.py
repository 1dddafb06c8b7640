"""Rows that are no longer true, and times at which a row was stored: what a table has for its own sake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from qblock.column_names import FAR, folded, sure_part, words
from qblock.engines.queries import whole
from qblock.engines.tables import Column, TableName
from qblock.search.task import Task
from qblock.spec.condition import columns_of, condition_of, written

DATES = ("date", "timestamp", "timestamptz")
STORED = re.compile(
    r"(dw|dwh|etl|row|rec|record|sys|meta|_)*(load|loaded|insert|inserted|create|created|creation|update|updated"
    r"|modif(y|ied)|change|changed|ingest|ingested|refreshed|synced|extracted|imported|processed|dbt_updated|etl)"
    r"(_?(at|on|date|dt|ts|time|timestamp|datetime|utc))+"
)
"""Names of the time at which a row was stored."""


@dataclass(frozen=True)
class Superseded:
    """Rows that a column says are no longer true, of so many; current: the condition of the others, with the spec's."""

    column: str
    rows: int
    current: str


def superseded(task: Task) -> Iterator[Superseded]:
    """Each column of a source that says of some rows that they are superseded or deleted, where the spec's condition
    does not look at it: an end of validity beside its begin, or a flag. Of one that the login may not read, nothing."""
    spec, session = task.spec, task.source.session
    used = () if spec.source.where is None else columns_of(condition_of(spec.source.where))
    table = TableName.parse(spec.source.table)
    columns = session.columns(table)
    begins = any(sure_part(name) == "valid_from" for name in columns)
    for name, column in columns.items():
        part = sure_part(name)
        if name in used or (part == "valid_until" and not begins):
            continue
        relation = session.relation(table, [name])
        over = _over(relation, column, part) if name in relation.c else None
        row = None if over is None else session.attempt(_figures(relation, relation.c[name], over))
        if row is not None and 0 < int(row[0]) < int(row[1]):
            current = _current(written(name), column.kind, part, row[2])
            also = "" if spec.source.where is None else f"({spec.source.where}) AND "
            yield Superseded(name, int(row[0]), f"{also}{current}")


def _over(relation: sa.FromClause, column: Column, part: str | None) -> sa.ColumnElement[bool] | None:
    """What is true of the superseded rows; None of a column that tells none."""
    value: sa.ColumnElement[Any] = relation.c[column.name]
    if part == "valid_until" and column.kind in DATES:
        far: sa.ColumnElement[Any] = sa.literal_column(f"DATE '{FAR}-01-01'")
        return sa.and_(value.is_not(None), value < far)
    if part not in ("current", "deleted"):
        return None
    if column.kind == "boolean":
        return value if part == "deleted" else sa.not_(value)
    if column.kind != "text":
        return None
    said = words("yes" if part == "deleted" else "no")
    return sa.func.lower(value).in_([sa.literal_column(f"'{word}'") for word in said])


def _figures(relation: sa.FromClause, value: sa.ColumnElement[Any], over: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """How many rows are superseded, how many there are, and the value of another one."""
    text = sa.func.min(sa.case((sa.not_(over), sa.cast(value, sa.Text))))
    rows = whole(sa.func.count(sa.case((over, 1))))
    query: sa.Select[Any] = sa.select(rows, whole(sa.func.count()), text).select_from(relation)
    return query


def _current(name: str, kind: str, part: str | None, other: str | None) -> str:
    """The condition of the rows that are not superseded, as a spec has it."""
    if part == "valid_until":
        return f"({name} IS NULL OR {name} >= '{FAR}-01-01')"
    if kind == "boolean":
        return f"NOT {name}" if part == "deleted" else name
    text = (other or "").replace("'", "''")
    return f"{name} = '{text}'"


def stored_times(task: Task) -> list[str]:
    """The quasi-identifiers that say when a row was stored, by name and kind."""
    source = task.source
    if source.recoding is not None:
        return []
    return [
        name
        for name in source.quasi_identifiers
        if source.columns[name].kind in DATES and STORED.fullmatch(folded(name).strip("_"))
    ]
