"""Spark, through Spark Connect: what is read is copied into a private schema first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from qblock.engines.adapter import Adapter
from qblock.engines.engine import Engine
from qblock.engines.session import Warehouse


class Spark(Engine):
    """The entry of Spark."""

    name = "spark"
    schemes = ("sc", "spark")
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

    def copier(self, url: sa.URL, memory_limit: str | None) -> Callable[..., Warehouse]:
        from qblock.engines.copied import ServerCopy
        from qblock.engines.spark.copied import read_tables

        return partial(ServerCopy, partial(read_tables, url), of_one_moment=False)

    def check_url(self, url: sa.URL) -> None:
        from qblock.engines.spark.client import check_url

        check_url(url)

    def place_of(self, url: sa.URL) -> tuple[Any, ...]:
        from qblock.engines.spark.client import DEFAULT_PORT

        return url.host, url.port or DEFAULT_PORT  # what follows says who logs in


ENGINE = Spark()
