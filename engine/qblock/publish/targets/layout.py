"""Where the columns of a version are in a table of versions: every column that was ever published has its place there.

One partitioned table serves all column lists of a release, so that the view can be replaced over it and whoever still
reads from an older snapshot finds the older version whole, with NULL in the columns that it did not publish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qblock.ledger.kept import PublishedColumn

VERSION = "qblock_version"
MOST_COLUMNS = 1600
"""The most columns that a table of PostgreSQL may have."""
MOST_BYTES = 63


@dataclass(frozen=True)
class Layout:
    """stored: the column of the table that holds each published column, in the order of these; missing: those that the
    table does not have yet, with their types; key: the column that says a row's version."""

    table: str
    key: str
    stored: dict[str, str]
    missing: tuple[tuple[str, str], ...] = ()


def layout_of(table: Any, columns: Sequence[PublishedColumn]) -> Layout | None:
    """How a table of versions (a row of release_tables) holds these columns; None where it cannot.

    A column has its own name there. Where that holds another type already, what was published under it before stays as
    it was, and this one is stored under its name and type.
    """
    there = dict(table.columns)
    stored: dict[str, str] = {}
    for column in columns:
        names = (column.name, f"{column.name} ({column.type})")
        place = next((name for name in names if there.get(name, column.type) == column.type), None)
        if place is None or len(place.encode()) > MOST_BYTES:
            return None
        stored[column.name] = place
    missing = tuple((stored[c.name], c.type) for c in columns if stored[c.name] not in there)
    if len(set(stored.values())) < len(stored) or table.key in stored.values():
        return None
    if table.used + len(missing) > MOST_COLUMNS:
        return None
    return Layout(table.name, table.key, stored, missing)


def version_column(columns: Sequence[PublishedColumn]) -> str:
    """The name of the column that says a row's version: like no published column."""
    name = VERSION
    while name in {c.name for c in columns}:
        name += "_"
    return name
