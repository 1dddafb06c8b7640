"""Rows that leave a Spark server, or come to it from elsewhere, in batches.

A server that is only read: what a run reads of it is copied, each table by one statement.

Nothing is stored on the server, so that a login that may read is enough. Spark has no transactions: each table is of
one moment where its format keeps that (Delta Lake, Iceberg), and two tables may be of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.engines.copied import check_names, home_of_copy, rows_sent
from qblock.engines.queries import Query
from qblock.engines.session import Restriction, Session
from qblock.engines.spark.adapter import column_of, is_read
from qblock.engines.spark.client import Frame
from qblock.engines.spark.session import SparkReader, SparkSession, SparkWarehouse, parts_of
from qblock.engines.tables import Column, RawType, SourceFacts, TableName
from qblock.errors import InputError, QblockError
from qblock.spec.source_file import ColumnType

PART_ROWS, PART_BYTES = 122_880, 64 << 20
"""What arrives is written when there is so much of it: a row group of the embedded database."""
TYPES: dict[str, pa.DataType] = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
}


class SparkTable:
    """The Tabular protocol for a table of a Spark server."""

    facts: SourceFacts | None = None
    types: Mapping[str, ColumnType] = {}
    nan_is_missing = False

    def __init__(self, session: SparkReader, table: TableName) -> None:
        self.name, self.home = str(table), home_of_copy(table)
        self._table, self._session = table, session
        self._columns = session.columns(table)

    @property
    def columns(self) -> list[str]:
        """The names of all columns that can be copied."""
        return [name for name, column in self._columns.items() if is_read(column)]

    def check(self, needed: Mapping[str, str]) -> None:
        check_names(f"the source {self.name}", list(self._columns), needed)
        for name, place in needed.items():
            if not is_read(self._columns[name]):
                raise InputError(
                    f"{place}: column {name} of {self.name} has the type {self._columns[name].type}, which is not read "
                    "from Spark. Cast it to STRING in a view, and name the view in the spec"
                )

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([pa.field(name, _type(self._columns[name])) for name in columns])

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        arrived: list[pa.Table] = []
        for part in self._session.parts(self._query(columns), self._table):
            if part.schema.types != schema.types:
                raise QblockError(f"the columns of {self.name} were changed while it was copied; run again")
            arrived.append(part)
            if sum(p.num_rows for p in arrived) >= PART_ROWS or sum(p.nbytes for p in arrived) >= PART_BYTES:
                yield self.name, _batches(arrived)
                arrived = []
        yield self.name, _batches(arrived)

    def _query(self, names: Sequence[str]) -> sa.Select[*tuple[Any, ...]]:
        """Values as they are, but those that compare as text: as their canonical text."""
        session, relation = self._session, self._session.relation(self._table, names)
        values = []
        for name in names:
            column, value = self._columns[name], session.comparable(relation.c[name], self._columns[name])
            values.append((session.text_of(value, "text") if column.kind == "text" else value).label(name))
        return sa.select(*values)


def _type(column: Column) -> pa.DataType:
    if column.kind == "decimal":
        digits, places = column.compare_as.removeprefix("decimal(").removesuffix(")").split(",")
        return pa.decimal128(int(digits), int(places))
    return TYPES[column.compare_as]


def _batches(parts: Sequence[pa.Table]) -> list[pa.RecordBatch]:
    return [batch for part in parts for batch in part.to_batches()]


def send_rows(source: Session, query: Query, target: SparkSession, columns: Mapping[str, str]) -> Frame:
    """The rows of a query of the embedded database on the server, where they are in a table of the session's own.
    columns: their types by name."""
    names = [f"c{i}" for i in range(len(columns))]
    types = [_type(column_of(name, type_.lower())) for name, type_ in columns.items()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    batches = rows_sent(source, query, PART_ROWS)
    parts = (part for batch in batches for part in parts_of(_cast(batch, schema)))
    table = target.load_parts("qblock_sent", names, parts)
    typed = (
        sa.cast(table.c[at], RawType(type_)).label(quoted_name(name, quote=True))
        for at, (name, type_) in zip(names, columns.items(), strict=True)
    )
    return target.frame(sa.select(*typed))


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)


@contextmanager
def read_tables(
    url: sa.URL, restricted: Mapping[TableName, Restriction]
) -> Iterator[Callable[[TableName], SparkTable]]:
    """Tables of a server, of each the rows that are named."""
    warehouse = SparkWarehouse(url)
    for table, restriction in restricted.items():
        warehouse.restrict(table, restriction)
    try:
        with warehouse.reader() as session:
            yield partial(SparkTable, session)
    finally:
        warehouse.close()
