"""Reads the blocks of a recoding map over two quasi-identifiers, from the view and its helper view of labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from qblock.report.data import AreaShown, MapShown
from qblock.warehouse.protocol import Session

MOST_AREAS = 250
"""Areas that are drawn: those with most rows."""
MOST_BANDS = 16
"""Labels of the column down: those with most rows."""


def read_map(
    session: Session, view: sa.TableClause, columns: Sequence[Mapping[str, Any]], levels: Sequence[Mapping[str, Any]]
) -> MapShown | None:
    """None where all labels of each column are of one level, or no column's labels are of numbers. Across is the column
    of numbers that has most labels, down the other one that is split most."""
    known = [row for row in columns if row["role"] == "quasi-identifier"]
    if all(row["level"] is not None for row in known) or len(known) < 2:
        return None
    ends = {(row["column_name"], row["label"]): (_number(row["low"]), _number(row["high"])) for row in levels}
    numbers = {name for (name, _), (low, high) in ends.items() if low is not None or high is not None}
    known.sort(key=lambda row: -row["values_published"])
    across = next((row["column_name"] for row in known if row["column_name"] in numbers), None)
    if across is None:
        return None
    down = next(row["column_name"] for row in known if row["column_name"] != across)
    counted = _counted(session, view, across, down, [row["column_name"] for row in known])
    bands: dict[str, int] = {}
    for row in counted:
        bands[row["b"]] = bands.get(row["b"], 0) + row["n"]
    first = sorted(bands, key=lambda label: (-bands[label], label))[:MOST_BANDS]
    shown = [row for row in counted if row["b"] in first]
    shown.sort(key=lambda row: (-row["n"], row["a"], row["b"]))
    areas = [
        AreaShown(row["a"], row["b"], *ends.get((across, row["a"]), (None, None)), row["blocks"], row["n"])
        for row in shown[:MOST_AREAS]
    ]
    return MapShown(across, down, tuple(areas), len(counted), sum(row["n"] for row in counted))


def _counted(
    session: Session, view: sa.TableClause, across: str, down: str, known: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows (n) and blocks of each pair of labels (a, b)."""
    count = sa.func.count()
    labels = [view.c[name].label(f"c{i}") for i, name in enumerate(known)]
    blocks = (
        sa.select(*labels, count.label("n")).select_from(view).group_by(*(view.c[name] for name in known)).subquery()
    )
    a, b = (blocks.c[f"c{known.index(name)}"] for name in (across, down))
    rows = sa.cast(sa.func.sum(blocks.c.n), sa.BigInteger)
    query = sa.select(a.label("a"), b.label("b"), count.label("blocks"), rows.label("n")).group_by(a, b)
    return session.fetch(query).to_pylist()


def _number(text: str | None) -> float | None:
    """The end of a label, where it is one of numbers."""
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None
    return None if number is None or not math.isfinite(number) else number
