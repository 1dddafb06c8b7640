"""A database of this process, in which frequency sets are rolled up apart from their source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from qblock.engines.duckdb.adapter import DuckdbAdapter, DuckdbWarehouse
from qblock.engines.quoting import quote
from qblock.engines.session import Session, translated
from qblock.engines.sql_session import sql_of


def local_warehouse(memory_limit: str | None = None) -> DuckdbWarehouse:
    """A database of this process without tables: where frequency sets are rolled up apart from their source."""
    return DuckdbWarehouse(None, memory_limit)


PART = "qblock_part"


def gather(
    session: Session, name: str, columns: Sequence[str], parts: Iterable[Mapping[str, NDArray[np.int64]]]
) -> sa.TableClause:
    """Create a temporary table of whole numbers from parts of its rows. session: of `local_warehouse`."""
    nothing = sa.cast(sa.null(), sa.BigInteger)
    table = session.store(name, sa.select(*(nothing.label(column) for column in columns)).where(sa.false()))
    driver: Any = sql_of(session).connection.connection.driver_connection
    into = f"INSERT INTO {quote(name)} SELECT {', '.join(map(quote, columns))} FROM {PART}"
    for part in parts:
        session.count()
        with translated(DuckdbAdapter()):
            driver.register(PART, dict(part))  # arrays by name, for which the driver does not import pandas
            try:
                driver.execute(into)
            finally:
                driver.unregister(PART)
    return table
