"""Bytes that come to the client from a Spark server, in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from qblock.engines.spark import session as spark


class Received:
    """Counts from when it is made; bytes may be set to 0 again."""

    def __init__(self) -> None:
        self.bytes = 0
        original = spark.SparkSession._fetched

        def counting(session: Any, *given: Any) -> pa.Table:
            table = original(session, *given)
            self.bytes += table.nbytes
            return table

        spark.SparkSession._fetched = counting  # type: ignore[assignment, method-assign]
