"""DuckDB: a file attached read-only to a session in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock.engines.adapter import Adapter
from qblock.engines.engine import Engine, database_file
from qblock.engines.session import Warehouse


class Duckdb(Engine):
    """The entry of DuckDB, which is always there: counts are rolled up in it."""

    name = "duckdb"
    schemes = ("duckdb",)
    title = "DuckDB"
    example = "duckdb:///FILE"
    drivers = ("duckdb", "_duckdb")
    is_file = True
    publishes = True
    stores = True

    @property
    def adapter(self) -> type[Adapter]:
        from qblock.engines.duckdb.adapter import DuckdbAdapter

        return DuckdbAdapter

    def open(self, url: sa.URL, directory: Path, memory_limit: str | None) -> Warehouse:
        from qblock.engines.duckdb.adapter import DuckdbWarehouse

        return DuckdbWarehouse(database_file(url, directory), memory_limit)

    def place_of(self, url: sa.URL) -> tuple[Any, ...]:
        return ()  # a release file is never the source's


ENGINE = Duckdb()
