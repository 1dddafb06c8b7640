"""PostgreSQL: one REPEATABLE READ transaction; counts travel by binary COPY."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock.engines.adapter import Adapter
from qblock.engines.engine import Engine, Privilege
from qblock.engines.session import Warehouse


class Postgresql(Engine):
    """The entry of PostgreSQL."""

    name = "postgresql"
    schemes = ("postgresql", "postgres")
    title = "PostgreSQL"
    example = "postgresql://USER@HOST/DATABASE"
    drivers = ("psycopg",)
    publishes = True
    stores = True

    @property
    def adapter(self) -> type[Adapter]:
        from qblock.engines.postgresql.adapter import PostgresqlAdapter

        return PostgresqlAdapter

    def open(self, url: sa.URL, directory: Path, memory_limit: str | None) -> Warehouse:
        from qblock.engines.postgresql.adapter import PostgresqlWarehouse

        return PostgresqlWarehouse(url.set(drivername="postgresql"), memory_limit)

    def copier(self, url: sa.URL, memory_limit: str | None) -> Callable[..., Warehouse]:
        from qblock.engines.postgresql.copied import PostgresqlCopy

        return partial(PostgresqlCopy, url)

    def check_url(self, url: sa.URL) -> None:
        from qblock.engines.postgresql.faults import check_parameters

        check_parameters(url)

    def place_of(self, url: sa.URL) -> tuple[Any, ...]:
        return url.host, url.port, url.database, url.query

    def right_missing(self, url: sa.URL, privilege: Privilege) -> str | None:
        from qblock.engines.postgresql.adapter import right_missing

        return right_missing(url, privilege)


ENGINE = Postgresql()
