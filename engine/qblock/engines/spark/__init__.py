"""Spark, through Spark Connect: what is read is copied into a private schema first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock.engines.adapter import Adapter
from qblock.engines.engine import Engine
from qblock.engines.session import Warehouse
from qblock.engines.tables import TableName


class Spark(Engine):
    """The entry of Spark."""

    name = "spark"
    schemes = ("sc",)
    title = "Spark"
    example = "sc://HOST:15002/;token=${TOKEN}"
    drivers = ("pyspark", "grpc")
    publishes = True

    @property
    def adapter(self) -> type[Adapter]:
        from qblock.engines.spark.adapter import SparkAdapter

        return SparkAdapter

    def open(self, url: sa.URL, directory: Path, memory_limit: str | None) -> Warehouse:
        from qblock.engines.spark.session import SparkWarehouse

        return SparkWarehouse(url)

    def copy(
        self,
        url: sa.URL,
        table: TableName,
        needed: Mapping[str, str],
        beside: Sequence[TableName],
        memory_limit: str | None,
        *,
        rows: bool,
    ) -> Warehouse:
        from qblock.engines.copied import ServerCopy
        from qblock.engines.spark.copied import read_tables

        opened = partial(read_tables, url)
        return ServerCopy(opened, table, needed, beside, memory_limit, rows=rows, of_one_moment=False)

    def check_url(self, url: sa.URL) -> None:
        from qblock.engines.spark.client import check_url

        check_url(url)

    def place_of(self, url: sa.URL) -> tuple[Any, ...]:
        from qblock.engines.spark.client import DEFAULT_PORT

        return url.host, url.port or DEFAULT_PORT  # what follows says who logs in


ENGINE = Spark()
