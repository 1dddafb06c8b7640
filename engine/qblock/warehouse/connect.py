"""From a URL to a warehouse, and what may be printed of a URL."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.spec.urls import url_problem
from qblock.warehouse.engines import EXAMPLES, engine_of
from qblock.warehouse.protocol import Warehouse


def parse_url(url: str) -> sa.URL:
    """An SQLAlchemy URL; raises InputError that does not repeat the text, which may hold a password."""
    problem = url_problem(url)
    if problem is not None:
        raise InputError(problem)
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(f"the database URL cannot be read; right would be {EXAMPLES}") from None
    engine_of(parsed).check_url(parsed)
    return parsed


def open_warehouse(url: str, directory: Path, memory_limit: str | None = None) -> Warehouse:
    """The warehouse of a URL, not connected yet; relative DuckDB paths start at `directory`."""
    parsed = parse_url(url)
    return engine_of(parsed).opened(parsed, directory, memory_limit)
