"""Parquet, read through Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ROWS = 1 << 16
"""Of a batch."""


def names(file: BufferedReader, what: str) -> list[str]:
    """The names of the columns, in order. what: the file, for messages."""
    return list(_opened(file).schema_arrow.names)


def schema(file: BufferedReader, columns: Sequence[str], what: str) -> pa.Schema:
    """The columns of the file, these among them."""
    return _opened(file).schema_arrow


def batches(file: BufferedReader, columns: Sequence[str], what: str) -> Iterator[pa.RecordBatch]:
    """The rows of these columns, and maybe of others."""
    return _opened(file).iter_batches(ROWS, columns=list(columns), use_threads=False)


def _opened(file: BufferedReader) -> pq.ParquetFile:
    import pyarrow.parquet as pq

    return pq.ParquetFile(file)
