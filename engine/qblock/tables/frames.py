"""Data frames and Arrow tables, as the embedded database takes them. Nothing else knows a library of frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from qblock.engines.arrow import taken, taken_schema
from qblock.engines.copied import SourceFacts, check_names
from qblock.engines.tables import TableName
from qblock.errors import InputError
from qblock.results.tables import Library
from qblock.spec.source_file import ColumnType

FRAME = "data frame"
ROWS = 1 << 16
"""Of a batch."""
DAYS = (date.min, date.max)
"""What stands for infinite days, which no library of frames has; DuckDB's own client gives the same."""


class FrameTable:
    """The Tabular protocol for a data frame or Arrow table. Only the columns that are asked for are converted."""

    name = FRAME
    home = TableName(None, FRAME)
    facts: SourceFacts | None = None
    nan_is_missing = True
    types: Mapping[str, ColumnType] = {}
    session: Any = None
    """Of what is in memory nobody's."""

    def __init__(self, data: Any) -> None:
        self.library: Library = "pandas" if _is_pandas(data) else "polars" if _is_polars(data) else "arrow"
        self._columns = _pandas_columns(data) if self.library == "pandas" else _arrow_columns(data)
        self._read: dict[str, pa.ChunkedArray] = {}

    def names(self) -> list[str]:
        """The names of the columns, in order; those that are no text are left out."""
        return [name for name, _ in self._columns if isinstance(name, str)]

    def check(self, needed: Mapping[str, str]) -> None:
        unnamed = {str(name) for name, _ in self._columns if not isinstance(name, str)}
        for name, place in needed.items():
            if name in unnamed and name not in self.names():
                raise InputError(
                    f"{place}: the name of column {name} of the {FRAME} is no text; rename the columns: "
                    "frame.columns = frame.columns.map(str)"
                )
        check_names(f"the {FRAME}", self.names(), needed)

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        return taken_schema([pa.field(name, self._column(name).type) for name in columns], f"the {FRAME}")

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        whole = pa.table({name: self._column(name) for name in columns})
        yield f"the {FRAME}", taken(whole.to_batches(ROWS), schema, f"the {FRAME}")

    def _column(self, name: str) -> pa.ChunkedArray:
        if name not in self._read:
            column = next(column for label, column in self._columns if label == name)
            self._read[name] = column if isinstance(column, pa.ChunkedArray) else _converted(name, column)
        return self._read[name]


def is_spark(data: Any) -> bool:
    """Whether it is a data frame of Spark, whose rows are somewhere else."""
    return type(data).__module__.startswith("pyspark.sql.") and type(data).__name__ == "DataFrame"


def _is_pandas(data: Any) -> bool:
    # Whoever has such a frame has imported pandas; nobody else need do it.
    return type(data).__module__.split(".")[0] == "pandas" and hasattr(data, "iloc") and hasattr(data, "columns")


def _is_polars(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "polars" and type(data).__name__ == "DataFrame"


def _pandas_columns(frame: Any) -> list[tuple[Any, Any]]:
    """Label and values of each column. The index takes no part: it tells rows apart, and would link them."""
    return [(label, frame.iloc[:, position]) for position, label in enumerate(frame.columns)]


def _arrow_columns(data: Any) -> list[tuple[Any, Any]]:
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if not isinstance(data, pa.Table):
        data = _arrow_table(data)
    return list(zip(data.schema.names, data.columns, strict=True))


def _arrow_table(data: Any) -> pa.Table:
    """Whatever another library offers as Arrow."""
    try:
        if hasattr(data, "__arrow_c_stream__") and not isinstance(data, type):
            return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError):
        pass  # a stream of something else than rows
    if type(data).__name__ == "LazyFrame":
        raise InputError("a LazyFrame is not a table before it is computed; give frame.collect()")
    raise InputError(
        f"a {type(data).__name__} is not a table. Give a DataFrame of pandas, polars or Spark, an Arrow table, or the "
        "path of a Parquet or CSV file"
    )


def _converted(name: str, values: Any) -> pa.ChunkedArray:
    """A pandas column in Arrow. The library's own errors quote a value."""
    try:
        converted = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        kind = getattr(values, "dtype", "object")
        raise InputError(
            f"the {FRAME}: column {name} ({kind}) holds values that have no one type; make them one: "
            f"frame[{name!r}] = frame[{name!r}].astype('string'), or numbers, or dates"
        ) from error
    return converted if isinstance(converted, pa.ChunkedArray) else pa.chunked_array([converted])


def within_calendar(table: pa.Table, bounds: Sequence[str]) -> pa.Table:
    """A table whose bounds are days that Python has, where they are dates: an open end is its first or last day."""
    first, last = (pa.scalar(day, pa.date32()) for day in DAYS)
    for name in bounds:
        if table.schema.field(name).type == pa.date32():
            days = pc.max_element_wise(pc.min_element_wise(table[name], last), first)
            table = table.set_column(table.schema.get_field_index(name), name, days)
    return table
