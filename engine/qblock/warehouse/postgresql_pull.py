"""PostgreSQL: the rows of a temporary table by binary COPY, as one value for each column of so many pages.

The driver handles each row of a COPY by itself, which takes longer than all else where a row is a number or two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.warehouse.parts import Part
from qblock.warehouse.protocol import quote

PAGES = 64
"""Pages of a piece: some ten thousand rows."""


def pieces(connection: sa.Connection, table: str, columns: Sequence[str], pages: int = PAGES) -> Iterator[Part]:
    """The rows of a temporary table whose columns are BIGINT and never NULL, those of so many pages at a time."""
    driver: Any = connection.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(_statement(table, columns, pages)) as copy:
        for row in copy.rows():
            if row[0] is None:  # no row is in these pages
                continue
            piece = {name: np.frombuffer(data, ">i8").astype(np.int64) for name, data in zip(columns, row, strict=True)}
            if len({len(column) for column in piece.values()}) > 1:
                raise QblockError(f"the table {table} has NULLs among its codes; this is a fault of qblock")
            yield piece


def _statement(table: str, columns: Sequence[str], pages: int) -> str:
    # For every few pages a scan of these alone (Tid Range Scan). A GROUP BY of ctid writes it as text in every row.
    sent = ", ".join(f"string_agg(int8send({quote(name)}), '')" for name in columns)
    name = quote(table)
    literal = name.replace("'", "''")
    number = f"pg_relation_size('{literal}'::regclass) / current_setting('block_size')::bigint"
    return (
        f"COPY (SELECT found.* FROM generate_series(0, {number}, {pages}) AS range (page), LATERAL ("
        f"SELECT {sent} FROM {name} WHERE ctid >= format('(%s,0)', page)::tid "
        f"AND ctid < format('(%s,0)', page + {pages})::tid) AS found) TO STDOUT (FORMAT BINARY)"
    )
