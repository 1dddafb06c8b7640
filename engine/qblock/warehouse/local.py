"""A table that is brought into an embedded database of this process, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from qblock.warehouse.duckdb import DuckdbFacts
from qblock.warehouse.protocol import Session, quote
from qblock.warehouse.session import translated

PART = "qblock_part"


def gather(
    session: Session, name: str, columns: Sequence[str], parts: Iterable[Mapping[str, NDArray[np.int64]]]
) -> sa.TableClause:
    """Create a temporary table of whole numbers from parts of its rows. session: of `engines.local_warehouse`."""
    nothing = sa.cast(sa.null(), sa.BigInteger)
    table = session.store(name, sa.select(*(nothing.label(column) for column in columns)).where(sa.false()))
    driver: Any = session.connection.connection.driver_connection
    into = f"INSERT INTO {quote(name)} SELECT {', '.join(map(quote, columns))} FROM {PART}"
    for part in parts:
        session.count()
        with translated(DuckdbFacts()):
            driver.register(PART, dict(part))  # arrays by name, for which the driver does not import pandas
            try:
                driver.execute(into)
            finally:
                driver.unregister(PART)
    return table
