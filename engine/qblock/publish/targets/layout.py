"""Where published columns are in the table that readers see: every column that was ever published has its place there.

One table serves all column lists of a release, so that the view can be replaced over it and whoever still reads from an
older snapshot finds the older version whole, with NULL in the columns that it did not publish.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qblock.ledger.kept import PublishedColumn

MOST_COLUMNS = 1600
"""The most columns that a table of PostgreSQL may have."""
MOST_BYTES = 63
ROWS, HELPERS, VERSIONS = "data[0-9]*", "now_[a-z]+", "v[0-9]+"
"""Tables of a release in the private schema: the rows that are shown, what helper views show, and kept versions."""


def pattern_of(release: str, *kinds: str) -> str:
    """A regular expression of the names of a release's tables, by default of all; what tells them from each other comes
    first, since a release's name may end in anything."""
    return f"^({'|'.join(kinds or (ROWS, HELPERS, VERSIONS))})_{release}$"


def of_kinds(tables: Sequence[Any], release: str, *kinds: str) -> list[Any]:
    """Those of a release's tables that are of these kinds."""
    return [table for table in tables if re.fullmatch(pattern_of(release, *kinds), table.name)]


def version_table(version: int, release: str) -> str:
    """The name of the table that keeps a version."""
    return f"v{version}_{release}"


@dataclass(frozen=True)
class Layout:
    """stored: the column of the table that holds each published column, in the order of these; missing: those that the
    table does not have yet, with their types."""

    table: str
    stored: dict[str, str]
    missing: tuple[tuple[str, str], ...] = ()


def layout_of(table: Any, columns: Sequence[PublishedColumn]) -> Layout | None:
    """How a table (a row of release_tables) holds these columns; None where it cannot.

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
    if len(set(stored.values())) < len(stored) or table.used + len(missing) > MOST_COLUMNS:
        return None
    return Layout(table.name, stored, missing)
