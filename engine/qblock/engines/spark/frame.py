"""A data frame of Spark as a table: of a session that somebody has, classic or Connect, without a URL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import pyarrow as pa

from qblock.engines.arrow import taken, taken_schema
from qblock.engines.copied import check_names
from qblock.engines.spark.adapter import quote_name
from qblock.engines.spark.client import arriving, borrowed
from qblock.engines.tables import SourceFacts, TableName
from qblock.spec.source_file import ColumnType


class SparkFrame:
    """The Tabular protocol for a data frame of Spark. Its rows are computed when they are copied, and the columns alone
    that are needed come over.

    session: that the frame is of.
    """

    facts: SourceFacts | None = None
    nan_is_missing = False
    library: ClassVar[Literal["pyspark"]] = "pyspark"
    types: ClassVar[Mapping[str, ColumnType]] = {}

    def __init__(self, frame: Any, name: str) -> None:
        """name: as messages have it, and of the copy."""
        self.name, self.home = name, TableName(None, name)
        self.session = frame.sparkSession
        self._frame = frame

    def names(self) -> list[str]:
        """The names of the columns, in order."""
        with borrowed(self.session, self.name):
            return list(self._frame.columns)

    def check(self, needed: Mapping[str, str]) -> None:
        check_names(f"the {self.name}", self.names(), needed)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        with borrowed(self.session, self.name):
            empty = self._of(columns).limit(0).toArrow()
        return taken_schema(list(empty.schema), f"the {self.name}")

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        what, rows = f"the {self.name}", arriving(self._of(columns))
        while True:
            with borrowed(self.session, self.name):
                part = next(rows, None)
            if part is None:
                return
            yield what, taken(part.to_batches(), schema, what)

    def _of(self, columns: Sequence[str]) -> Any:
        return self._frame.select(*map(quote_name, columns))
