"""Rows that seem to repeat a person in a release that does not say who a row is about."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from qblock.spec import Spec
from qblock.spec.repeats import may_stand_for_people, repeats_people
from qblock.warehouse.protocol import Session, TableName


def repeated_people(spec: Spec, session: Session) -> list[str]:
    """What to say about them: at most one note, which names columns and gives no figure of the source. Nothing where
    the spec has an `entity`. A release does not need these columns, so a login that lacks permission to read one, or a
    view that fails in one, must not stop a run: nothing is said about that one then.
    """
    if spec.entity is not None:
        return []
    table = TableName.parse(spec.source.table)
    relation, columns = session.relation(table), session.columns(table)
    repeating = []
    for name, attribute in spec.attributes.items():
        column = columns.get(name)
        if column is None or not may_stand_for_people(name, attribute.role, column.kind, column.type):
            continue
        figures = session.attempt(_figures(session.comparable(relation.c[name], column), relation))
        if figures is not None and repeats_people(name, attribute.role, column.type, *map(int, figures)):
            repeating.append(name)
    return [_note(spec, repeating)] if repeating else []


def _figures(value: sa.ColumnElement[Any], relation: sa.FromClause) -> sa.Select[int, int]:
    """Rows with a value, and distinct values: both engines group faster than they count distinct values."""
    groups = sa.select(sa.func.count().label("n")).select_from(relation).where(value.is_not(None)).group_by(value)
    groups_of_rows = groups.subquery("qblock_people")
    rows: sa.ColumnElement[int] = sa.cast(sa.func.coalesce(sa.func.sum(groups_of_rows.c.n), 0), sa.BigInteger)
    return sa.select(rows, sa.func.count()).select_from(groups_of_rows)


def _note(spec: Spec, names: list[str]) -> str:
    plural = len(names) > 1
    what = f"columns {', '.join(names)} repeat" if plural else f"column {names[0]} repeats"
    unseen = all(spec.attributes[name].role == "identifying" for name in names)
    other = ", or leave it out of `attributes` if it does not name people" if unseen and not plural else ""
    entity = names[0] if not plural else "COLUMN"
    return (
        f"{what} values that look like people's: rows are counted, not people, so k rows of a block may be fewer "
        f"people; to count people write `entity: {entity}` and `count: entities`{other}"
    )
