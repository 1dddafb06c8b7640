"""Columns published as they are whose values nearly single out rows."""

from __future__ import annotations

import sqlalchemy as sa

from qblock.search.task import Task


def nearly_unique(task: Task) -> list[str]:
    """Those with fewer than 2 rows for each value on average."""
    source, spec = task.source, task.spec
    names = spec.insensitives
    if not names:
        return []
    counted = [sa.func.count(sa.distinct(source.expression(name))).label(f"n{i}") for i, name in enumerate(names)]
    row = source.session.fetch(sa.select(*counted).select_from(source.relation)).to_pylist()[0]
    return [name for i, name in enumerate(names) if 2 * row[f"n{i}"] > source.rows]
