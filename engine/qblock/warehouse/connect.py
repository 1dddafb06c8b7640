"""From a URL to a warehouse, and what may be printed of a URL."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from psycopg.pq import Conninfo

from qblock.errors import InputError
from qblock.spec.urls import url_problem
from qblock.warehouse.addresses import connection_parameters, shown_url
from qblock.warehouse.duckdb import DuckdbWarehouse
from qblock.warehouse.postgresql import PostgresqlWarehouse
from qblock.warehouse.protocol import Warehouse

ENGINES = "duckdb:///FILE or postgresql://USER@HOST/DATABASE"


def parse_url(url: str) -> sa.URL:
    """An SQLAlchemy URL; raises InputError that does not repeat the text, which may hold a password."""
    problem = url_problem(url)
    if problem is not None:
        raise InputError(problem)
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(f"the database URL cannot be read; right would be {ENGINES}") from None
    engine = parsed.get_backend_name()
    if engine not in ("duckdb", "postgresql", "postgres"):
        raise InputError(f"no engine for {engine!r}; right would be {ENGINES}")
    if engine != "duckdb":
        _check_parameters(parsed)
    return parsed


def _check_parameters(url: sa.URL) -> None:
    """Raise InputError for what follows the ? of a PostgreSQL URL and is not libpq's, and says nothing of it."""
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    if not set(url.query) <= known:
        raise InputError(
            f"the URL of {shown_url(url)} has a parameter that the PostgreSQL client does not know; correct what "
            "follows the ? of the URL"
        )
    parts = [url.username, url.password, url.host, url.database, *connection_parameters(url).values()]
    if any("\0" in part for part in parts if isinstance(part, str)):
        raise InputError("the database URL has a NUL character (%00); remove it")


def duckdb_path(url: sa.URL, directory: Path) -> Path:
    """The file of a duckdb URL; relative paths start at `directory`. Raises InputError for a database in memory."""
    if not url.database or url.database == ":memory:":
        raise InputError("a DuckDB URL must name a file: duckdb:///warehouse.duckdb")
    return (directory / url.database).resolve()


def open_warehouse(url: str, directory: Path, memory_limit: str | None = None) -> Warehouse:
    """The warehouse of a URL, not connected yet; relative DuckDB paths start at `directory`."""
    parsed = parse_url(url)
    if parsed.get_backend_name() == "duckdb":
        return DuckdbWarehouse(duckdb_path(parsed, directory), memory_limit)
    return PostgresqlWarehouse(parsed.set(drivername="postgresql"), memory_limit)
