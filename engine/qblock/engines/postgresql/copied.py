"""A PostgreSQL database that is only read: what a run reads of it is copied, in one snapshot, by SELECT and COPY alone.

A login that may do nothing but SELECT is enough, and a replica, where nothing can be written.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from qblock.engines.copied import ServerCopy, check_names, rows_sent
from qblock.engines.postgresql.adapter import PostgresqlAdapter, PostgresqlWarehouse
from qblock.engines.postgresql.lock_waits import state_of
from qblock.engines.queries import Query
from qblock.engines.session import Restriction, Session, translated
from qblock.engines.sql_session import SqlSession
from qblock.engines.tables import Column, SourceFacts, TableName
from qblock.errors import InputError, QblockError
from qblock.spec.source_file import ColumnType

BLOCK = 16 * 2**20
"""Bytes that are read at a time; no row may have more."""
SENT = 100_000
"""Rows that are sent, or repeated, at a time."""
GROUPED = 4
"""Rows are grouped by the server where it expects so many times fewer groups."""
COUNT = "qblock_count"
STATISTICS = sa.text(
    "SELECT class.reltuples AS rows, attname AS name, n_distinct AS distinct FROM pg_class AS class "
    "JOIN pg_namespace AS space ON space.oid = relnamespace "
    "JOIN pg_stats ON schemaname = nspname AND tablename = relname WHERE class.oid = to_regclass(:name)"
)
ATTEMPTS = 3
"""Of a replica, which ends a query that keeps it from going on."""
ENDED = (
    "the server ended the copy of the source {} times: changes of its primary conflict with so long a query. Run at a "
    "quieter time, or let the replica wait longer (max_standby_streaming_delay, hot_standby_feedback)"
)
CONFLICTS = ("40001", "40P01", "57P04")
TYPES: dict[str, pa.DataType] = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
KINDS = {"timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us", "UTC")}
MOST_DIGITS = 38


class ServerTable:
    """The Tabular protocol for a table of a server. session: whose snapshot it is read in."""

    facts: SourceFacts | None = None
    types: Mapping[str, ColumnType] = {}
    nan_is_missing = False

    def __init__(self, session: SqlSession, table: TableName) -> None:
        self.name, self.home = table.name, table
        self._session = session
        self._columns = session.columns(table)

    @property
    def columns(self) -> list[str]:
        """The names of all columns."""
        return list(self._columns)

    def check(self, needed: Mapping[str, str]) -> None:
        check_names(f"the source {self.home}", list(self._columns), needed)
        self._session.relation(self.home, list(needed))  # which of its rows is said by other columns

    def schema(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([pa.field(name, self._type(self._columns[name])) for name in columns])

    def _type(self, column: Column) -> pa.DataType:
        if column.kind == "decimal":
            return self._decimal(column)
        if column.kind == "text":
            return pa.string()
        return TYPES.get(column.compare_as) or KINDS[column.kind]

    def _decimal(self, column: Column) -> pa.DataType:
        """A type that holds every number of the column; its own may have no bounds."""
        value = self._session.relation(self.home, [column.name]).c[column.name]
        whole = sa.func.length(sa.cast(sa.func.trunc(sa.func.abs(value)), sa.Text))
        query = sa.select(sa.func.max(whole).label("whole"), sa.func.max(sa.func.min_scale(value)).label("scale"))
        (row,) = self._session.fetch(query).to_pylist()
        whole_digits, scale = row["whole"] or 1, row["scale"] or 0
        if whole_digits + scale > MOST_DIGITS:
            raise InputError(
                f"the source {self.home}: column {column.name} has numbers of {whole_digits + scale} digits; a copy "
                f"holds {MOST_DIGITS}; round them in a view, or leave the column out"
            )
        return pa.decimal128(MOST_DIGITS, scale)

    def parts(self, columns: Sequence[str], schema: pa.Schema) -> Iterator[tuple[str, Iterable[pa.RecordBatch]]]:
        texts = self._texts(columns)
        if not self._is_grouped(columns):
            yield str(self.home), self._batches(sa.select(*texts), schema)
            return
        # By bytes: values that a collation compares as equal stay apart.
        values = [self._session.bytewise(text.element) for text in texts]
        named = [value.label(text.name) for value, text in zip(values, texts, strict=True)]
        query = sa.select(*named, sa.func.count().label(COUNT)).group_by(*values)
        yield str(self.home), repeated(self._batches(query, schema.append(pa.field(COUNT, pa.int64()))))

    def _is_grouped(self, columns: Sequence[str]) -> bool:
        """Whether the server's statistics tell of far fewer combinations of values than there are rows."""
        rows = self._session.fetch(STATISTICS, {"name": self.home.quoted}).to_pylist()
        values = {row["name"]: row["distinct"] for row in rows}
        if not columns or not all(values.get(name) for name in columns):
            return False
        of_rows = rows[0]["rows"]
        # Below zero it is a share of the rows. One more for NULL.
        distinct = (1 + (values[name] if values[name] > 0 else -values[name] * of_rows) for name in columns)
        return math.prod(distinct) * GROUPED <= of_rows

    def _texts(self, columns: Sequence[str]) -> list[sa.Label[Any]]:
        """The canonical texts of the columns: what a value reads like, whatever the session of a login has set."""
        session, relation = self._session, self._session.relation(self.home, columns)
        texts = []
        for name in columns:
            column = self._columns[name]
            texts.append(session.text_of(session.comparable(relation.c[name], column), column.kind).label(name))
        return texts

    def _batches(self, query: Query, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        session = self._session
        dialect = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]
        text = str(query.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
        driver: Any = session.connection.connection.driver_connection
        session.count()
        with translated(PostgresqlAdapter(), lambda: [str(self.home)]), driver.cursor() as cursor:
            with cursor.copy(f"COPY ({text}) TO STDOUT (FORMAT CSV)") as copy:
                rows = yield from self._read(_Stream(copy), schema)
            if rows != cursor.rowcount:
                raise QblockError(f"{self.home}: {cursor.rowcount} rows were sent, and {rows} arrived; run again")

    def _read(self, stream: _Stream, schema: pa.Schema) -> Generator[pa.RecordBatch, None, int]:
        """The batches of what a server sends; returns how many rows there were."""
        rows = 0
        try:
            for batch in _reader(stream, schema):
                rows += batch.num_rows
                yield batch
        except pa.ArrowInvalid:
            if stream.problem is not None:
                raise stream.problem from None
            if stream.empty:
                return 0
            raise InputError(
                f"a copy cannot hold all of the source {self.home}. It has a row of more than {BLOCK >> 20} MB, or "
                f"infinity or a date before the year 1 or after 9999 in {', '.join(schema.names)}. Leave that out by a "
                "view"
            ) from None
        return rows


def repeated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each row as often as its last column says, without that column, SENT at a time."""
    for batch in batches:
        *columns, counts = batch.columns
        ends = np.cumsum(counts.to_numpy())
        groups = pa.RecordBatch.from_arrays(columns, schema=batch.schema.remove(len(columns)))
        for start in range(0, int(ends[-1]) if len(ends) else 0, SENT):
            rows = np.arange(start, min(start + SENT, ends[-1]))
            yield groups.take(pa.array(np.searchsorted(ends, rows, side="right")))


def _reader(stream: _Stream, schema: pa.Schema) -> pacsv.CSVStreamingReader:
    return pacsv.open_csv(
        pa.PythonFile(stream, mode="r"),
        read_options=pacsv.ReadOptions(column_names=schema.names, block_size=BLOCK),
        parse_options=pacsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pacsv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            true_values=["true"],
            false_values=["false"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


class _Stream(io.RawIOBase):
    """What COPY sends, as a file; `problem`: what it ended with, which the reader of the file would not tell."""

    def __init__(self, copy: Any) -> None:
        self._copy, self._rest = copy, b""
        self.problem: BaseException | None = None
        self.empty = True

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        pieces, have = [self._rest], len(self._rest)
        try:
            while size < 0 or have < size:
                piece = bytes(self._copy.read())
                if not piece:
                    break
                pieces.append(piece)
                have += len(piece)
        except BaseException as error:
            self.problem = error
            raise
        data = b"".join(pieces)
        size = have if size < 0 else size
        self._rest = data[size:]
        self.empty &= not data
        return data[:size]


def send_rows(source: Session, query: Query, target: SqlSession, table: str) -> None:
    """Write the rows of a query of the embedded database into a table of a server, in order, SENT at a time."""
    driver: Any = target.connection.connection.driver_connection
    options = pacsv.WriteOptions(include_header=False, quoting_style="needed")
    target.count()
    into = f"COPY {table} FROM STDIN (FORMAT CSV)"
    with translated(PostgresqlAdapter()), driver.cursor() as cursor, cursor.copy(into) as copy:
        for batch in rows_sent(source, query, SENT):
            sink = io.BytesIO()
            pacsv.write_csv(batch, sink, options)
            copy.write(sink.getvalue())


@contextmanager
def read_tables(
    url: sa.URL, memory_limit: str | None, restricted: Mapping[TableName, Restriction]
) -> Iterator[Callable[[TableName], ServerTable]]:
    """Tables of a server in one snapshot, which only reads; of each the rows that are named."""
    warehouse = PostgresqlWarehouse(url, memory_limit)
    for table, restriction in restricted.items():
        warehouse.restrict(table, restriction)
    try:
        with warehouse.snapshot() as session:
            session.run("SET TRANSACTION READ ONLY")
            yield partial(ServerTable, session)
    finally:
        warehouse.close()


class PostgresqlCopy(ServerCopy):
    """The Warehouse protocol for tables of a PostgreSQL database; a copy that a replica ends is made anew."""

    def __init__(
        self,
        url: sa.URL,
        table: TableName,
        needed: Mapping[str, str],
        beside: Sequence[TableName],
        memory_limit: str | None = None,
        *,
        rows: bool = True,
    ) -> None:
        super().__init__(partial(read_tables, url, memory_limit), table, needed, beside, memory_limit, rows=rows)
        self._conflicts = 0

    @contextmanager
    def snapshot(self) -> Iterator[SqlSession]:
        with super().snapshot() as session:
            session.conflicts = self._conflicts
            yield session

    def _copy(self) -> None:
        while True:
            try:
                return super()._copy()
            except QblockError as error:
                if state_of(error) not in CONFLICTS:
                    raise
                self._conflicts += 1
                if self._conflicts == ATTEMPTS:
                    raise QblockError(ENDED.format(ATTEMPTS)) from error
