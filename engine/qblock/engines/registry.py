"""The engines by name, and the one that a URL is for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import sqlalchemy as sa

from qblock.engines.adapter import Adapter
from qblock.engines.engine import Engine
from qblock.engines.session import Warehouse
from qblock.errors import InputError
from qblock.spec.urls import OF_PROCESS, url_problem

FOLDERS = (
    "duckdb",
    "postgresql",
    "spark",
)
"""Each has an `ENGINE`. A new one is a folder beside these, and a line here."""
_ENTRIES: list[Engine] = [import_module(f"qblock.engines.{folder}").ENGINE for folder in FOLDERS]
ENGINES = {engine.name: engine for engine in _ENTRIES}
"""By name, as `Session.engine` and `Place.engine` say it."""
EXAMPLES = " or ".join(engine.example for engine in ENGINES.values())


def engine_of(url: sa.URL) -> Engine:
    """The engine of a URL. Raises InputError where there is none."""
    name = url.get_backend_name()
    for engine in ENGINES.values():
        if name in engine.schemes:
            return engine
    raise InputError(f"no engine for {name!r}; write {EXAMPLES}")


def adapter_of(connection: sa.Connection) -> type[Adapter]:
    """What differs in the engine that a connection is to."""
    return ENGINES[connection.dialect.name].adapter


def parse_url(url: str) -> sa.URL:
    """An SQLAlchemy URL; raises InputError that does not repeat the text, which may hold a password."""
    problem = url_problem(url)
    if problem is not None:
        raise InputError(problem)
    try:
        parsed = sa.make_url(url + "//" if url == OF_PROCESS else url)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(f"the database URL cannot be read; write {EXAMPLES}") from None
    engine_of(parsed).check_url(parsed)
    return parsed


def open_warehouse(url: str, directory: Path, memory_limit: str | None = None) -> Warehouse:
    """The warehouse of a URL, not connected yet; relative DuckDB paths start at `directory`."""
    parsed = parse_url(url)
    return engine_of(parsed).open(parsed, directory, memory_limit)
