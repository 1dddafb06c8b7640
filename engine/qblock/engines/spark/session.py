"""Spark through Spark Connect: what is read is copied first, into a private schema, and read from there alone.

Spark has no transactions. The copies stand for the snapshot (docs/decisions/0023-spark-snapshot.md).
"""

from __future__ import annotations

import getpass
import hashlib
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name, visitors

from qblock.engines.faults import Unreachable
from qblock.engines.memory import PREFIX, SpillFolder
from qblock.engines.queries import Part
from qblock.engines.session import Restriction, Restrictions, Session
from qblock.engines.spark.adapter import SparkAdapter, SparkDialect, column_of, is_absent, is_read, quote_name
from qblock.engines.spark.client import (
    Client,
    Frame,
    arriving,
    connected,
    drivers,
    end,
    explained,
    path_literal,
    quoted,
    rows_of,
    whole,
)
from qblock.engines.tables import Column, TableName
from qblock.errors import InputError, QblockError

PRIVATE = "qblock_staging"
PART_BYTES = 8 << 20
"""Of a table that is sent, about so much at once."""
SMALL_BYTES = 256 << 10
"""A table that is sent is a view of the session up to here, for which no file is written."""


class SparkSession(Session):
    """A session over Spark Connect. private: the schema of its tables, which `make` makes; needed: of a
    table, the columns that are copied, where that is not all of them."""

    def __init__(
        self,
        client: Client,
        private: str,
        make: Callable[[], None],
        needed: Mapping[TableName, frozenset[str]],
        restrictions: Restrictions | None = None,
    ) -> None:
        super().__init__(SparkAdapter(), SparkDialect(), restrictions)
        self._client, self._private, self._needed = client, private, needed
        self._make: Callable[[], None] | None = make
        self._staged: dict[TableName, str] = {}
        self._replaced: list[Restriction] = []
        """Of copies, kept since `spellings` knows them by what they are."""

    @property
    def client(self) -> Client:
        """For what a warehouse has no words for: the catalog (spark_catalog.py)."""
        return self._client

    def private_schema(self) -> str:
        """The schema of its tables, made where it is not there yet: most sessions need none."""
        if self._make is not None:
            with explained():
                self._make()
            self._make = None
        return self._private

    def frame(self, query: sa.Executable) -> Frame:
        """The rows of a query, to be written by the server."""
        return self._frame(query)

    def _frame(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> Frame:
        self._sent += 1
        if isinstance(statement, str):
            return self._client.sql(statement, dict(parameters or {}))
        compiled: Any = statement.compile(dialect=self.dialect)  # type: ignore[attr-defined]
        state = compiled.construct_expanded_state(dict(parameters or {}))
        if isinstance(statement, sa.Select | sa.CompoundSelect):
            return rows_of(self._client, state.statement, state.parameters)
        return self._client.sql(state.statement, dict(state.parameters))

    def _fetched(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        reading = [str(table) for table in self._staged] if not isinstance(statement, str) else []
        with explained(reading):
            return whole(self._frame(statement, parameters))

    def run(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> None:
        if isinstance(statement, str):  # a command, which is done when it is sent
            with explained():
                self._frame(statement, parameters)
            return
        self._fetched(statement, parameters)

    def fetch(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        return self._fetched(statement, parameters)

    def scalar(self, statement: sa.Executable | str, parameters: Mapping[str, Any] | None = None) -> Any:
        rows = self._fetched(statement, parameters)
        return rows.column(0)[0].as_py() if rows.num_rows else None

    def attempt(self, statement: sa.Select[*tuple[Any, ...]]) -> tuple[Any, ...] | None:
        try:
            rows = self._fetched(statement)
        except Unreachable:
            raise
        except QblockError:
            return None
        return tuple(column[0].as_py() for column in rows.columns) if rows.num_rows else None

    def counts(self, statement: sa.Select[*tuple[Any, ...]]) -> dict[str, NDArray[np.int64]]:
        return _numbers(self._fetched(statement), list(statement.selected_columns.keys()))

    def counts_of(self, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        self._sent += 1
        with explained([str(table) for table in self._staged]):
            return _numbers(whole(rows_of(self._client, sql, {})), names)

    def pull(self, table: sa.TableClause) -> Iterator[Part]:
        yield self.counts(sa.select(*table.c))

    def load(self, name: str, columns: pa.Table) -> sa.TableClause:
        if columns.nbytes > SMALL_BYTES:
            return self.load_parts(name, columns.column_names, parts_of(columns))
        self._sent += 1
        with explained():
            rows = self._client.createDataFrame(columns) if columns.num_rows else self._empty(columns)
            rows.createOrReplaceTempView(name)
        return self._keep(sa.table(name, *map(sa.column, columns.column_names)))

    def load_parts(self, name: str, names: Sequence[str], parts: Iterable[pa.Table]) -> sa.TableClause:
        """Store rows that come in parts, as `load` does a table."""
        for number, part in enumerate(parts):
            self._sent += 1
            with explained():
                frame = self._client.createDataFrame(part)
                if number:
                    frame.write.insertInto(quoted(self._private, name))
                else:
                    self._save(name, frame)
        return self._keep(self._own(name, [sa.column(c) for c in names]))

    def _empty(self, columns: pa.Table) -> Frame:
        # The client infers no types where there are no rows.
        typed = [("BIGINT" if pa.types.is_integer(f.type) else "STRING", quote_name(f.name)) for f in columns.schema]
        chosen = ", ".join(f"CAST(NULL AS {type_}) AS {name}" for type_, name in typed)
        return rows_of(self._client, f"SELECT {chosen} WHERE FALSE", {})

    def store(self, name: str, query: sa.Select[*tuple[Any, ...]]) -> sa.TableClause:
        columns = [sa.column(c.name, c.type) for c in query.selected_columns]
        with explained([str(table) for table in self._staged]):
            if self._is_small(query):
                self._frame(query).createOrReplaceTempView(name)
                return self._keep(sa.table(name, *columns))
            self._save(name, self._frame(query))
        return self._keep(self._own(name, columns))

    def _is_small(self, query: sa.Select[*tuple[Any, ...]]) -> bool:
        """Whether a query reads nothing but views of small tables that were sent: it is computed again sooner than it
        is written to a file."""
        read = [of for of in visitors.iterate(query) if isinstance(of, sa.TableClause)]
        return bool(read) and all(of.schema is None and of.name in self._temporary for of in read)

    def _save(self, name: str, frame: Frame) -> None:
        frame.write.format("parquet").saveAsTable(quoted(self.private_schema(), name))

    def _own(self, name: str, columns: Sequence[sa.ColumnClause[Any]]) -> sa.TableClause:
        return sa.table(name, *columns, schema=quoted_name(self._private, quote=True))

    def _keep(self, table: sa.TableClause) -> sa.TableClause:
        self._temporary[table.name] = table
        return table

    def _drop(self, table: sa.TableClause) -> None:
        if table.schema is None:
            with explained():
                self._client.catalog.dropTempView(table.name)
        else:
            self.run(f"DROP TABLE {quoted(self._private, table.name)}")
        self._temporary.pop(table.name, None)

    def columns(self, table: TableName) -> dict[str, Column]:
        stored = self._stored(table)
        shown = super().columns(table).values()
        return {c.name: c if c == stored[c.name] else column_of(c.name, "string") for c in shown}

    def _describe(self, table: TableName) -> tuple[list[Column], Callable[[], list[str]]]:
        with explained([str(table)]):
            try:
                fields = self._client.table(quoted(table.catalog, table.schema, table.name)).schema.fields
            except drivers() as error:
                if not is_absent(error):
                    raise
                fields = []
        return [column_of(f.name, f.dataType.simpleString()) for f in fields], partial(self._names_beside, table)

    def _names_beside(self, table: TableName) -> list[str]:
        schema = quoted(table.catalog, table.schema)
        with suppress(QblockError):
            listing = self._fetched(f"SHOW TABLES IN {schema}" if schema else "SHOW TABLES")
            names = map(str, listing.column("tableName").to_pylist())
            return [str(TableName(table.schema, name, table.catalog)) for name in names]
        return []

    def is_copy(self, relation: sa.FromClause) -> bool:
        return isinstance(relation, sa.TableClause) and relation.name in self._staged.values()

    def computed(self, table: TableName) -> bool:
        return False  # what is read is a copy

    def relation(self, table: TableName, names: Sequence[str] | None = None) -> sa.FromClause:
        columns = self._copied(table)
        return self._own(self._staged[table], [sa.column(name) for name in columns])

    def read(self, table: TableName) -> pa.Table:
        # What is read once needs no copy, whose files need not keep the order of a view.
        query = self._query(table, list(self._stored(table)))
        with explained([str(table)]):
            return whole(self._frame(query))

    def definition(self, table: TableName) -> str | None:
        with suppress(QblockError):
            rows = self._fetched(f"DESCRIBE TABLE EXTENDED {quoted(table.catalog, table.schema, table.name)}")
            described = dict(zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True))
            return described.get("View Text") if described.get("Type") == "VIEW" else None
        return None

    def _copied(self, table: TableName) -> list[str]:
        """The columns of a table's copy, which is made when the table is named first."""
        described, copied = self._stored(table), self.columns(table)
        wanted = self._needed.get(table)
        names = [name for name in described if wanted is None or name in wanted]
        for name in names:
            if wanted is not None and not is_read(described[name]):
                raise InputError(
                    f"column {name} of table {table} has the type {described[name].type}, which is not read from Spark "
                    "yet. Cast it to STRING in a view, and name the view in the spec"
                )
        names = [name for name in names if is_read(described[name])] or names[:1]
        if table not in self._staged:
            copy = f"qblock_source_{len(self._staged)}"
            with explained([str(table)]):
                self._copy(table, copy, names)
                fields = self._client.table(quoted(self._private, copy)).schema.fields
            if [column_of(f.name, f.dataType.simpleString()) for f in fields] != [copied[name] for name in names]:
                raise QblockError(f"the columns of {table} were changed while it was copied; run again")
            self._staged[table] = copy
        return names

    def _copy(self, table: TableName, copy: str, names: Sequence[str]) -> None:
        """Store the rows that the spec is about: at first as they are, where what is read of them depends on them all,
        since two statements may see two states of the table."""
        restriction, described = self._restriction(table), self._stored(table)
        rows, replaced = (None, None) if restriction is None else restriction.divided()
        if replaced is None:
            self._save(copy, self._frame(self._query(table, names)))
            return
        self._replaced.append(replaced)
        stored = self._own(f"{copy}_stored", [sa.column(name) for name in names])
        self._save(stored.name, self._frame(self._rows(table, names, rows)))
        kept = replaced.kept(self, stored, {name: described[name] for name in names}, names)
        self._save(copy, self._frame(sa.select(*(kept.c[name] for name in names))))
        self.drop(stored)

    def _query(self, table: TableName, names: Sequence[str]) -> sa.Select[*tuple[Any, ...]]:
        """What is copied of a table: the rows that the spec is about, with these columns."""
        return self._rows(table, names, self._restriction(table))

    def _rows(
        self, table: TableName, names: Sequence[str], restriction: Restriction | None
    ) -> sa.Select[*tuple[Any, ...]]:
        """These columns of the rows of a table that a restriction keeps."""
        described = self._stored(table)
        schema = quoted(table.catalog, table.schema)
        rows: sa.FromClause = sa.table(
            table.name, *map(sa.column, described), schema=quoted_name(schema, quote=False) if schema else None
        )
        if restriction is not None:
            rows = restriction.kept(self, rows, described, names)
        return sa.select(*(rows.c[name] for name in names))


class SparkReader(SparkSession):
    """A session that stores nothing: of each table it reads those rows that were asked for, where they are."""

    def relation(self, table: TableName, names: Sequence[str] | None = None) -> sa.FromClause:
        return self._query(table, list(self._stored(table)) if names is None else names).subquery("qblock_read")

    def parts(self, query: sa.Select[*tuple[Any, ...]], reading: TableName) -> Iterator[pa.Table]:
        """The rows of a query as they arrive; the client's own `toArrow` holds them all."""
        where = [str(reading)]
        with explained(where):
            rows = arriving(self._frame(query))
        while True:
            with explained(where):
                part = next(rows, None)
            if part is None:
                return
            yield part


class SparkTables(SparkSession):
    """A session that reads tables as they are, not copies: for versions, which nobody changes."""

    def relation(self, table: TableName, names: Sequence[str] | None = None) -> sa.FromClause:
        columns: list[sa.ColumnClause[Any]] = [sa.column(name) for name in self.columns(table)]
        return sa.table(table.name, *columns, schema=quoted_name(table.schema or "default", quote=True))


def parts_of(table: pa.Table) -> Iterator[pa.Table]:
    """The rows of a table, in parts that a driver of little memory can take: it holds what it is sent several times."""
    rows = max(1, table.num_rows * PART_BYTES // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


def _numbers(rows: pa.Table, names: list[str]) -> dict[str, NDArray[np.int64]]:
    return {
        name: np.ascontiguousarray(column.to_numpy(), dtype=np.int64)
        for name, column in zip(names, rows.columns, strict=True)
    }


S = TypeVar("S", bound=SparkSession)


class SparkWarehouse:
    """A Spark server as a source. Its tables are read; what a run writes is in a schema of its own, which it drops."""

    engine = "spark"

    def __init__(self, url: sa.URL) -> None:
        self._url = url
        self._spill = SpillFolder()
        self._needed: dict[TableName, frozenset[str]] = {}
        self._restrictions: dict[TableName, Restriction] = {}
        self._path: str | None = None

    def restrict(self, table: TableName, restriction: Restriction) -> None:
        """Read of a table only these rows."""
        self._restrictions[table] = restriction

    def copy_to(self, path: str) -> None:
        """Private schemas are stored in this folder of the server."""
        self._path = path

    def copy_only(self, table: TableName, columns: frozenset[str]) -> None:
        """Of this table only these columns are copied."""
        self._needed[table] = columns

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        with self._opened(SparkSession) as session:
            yield session

    @contextmanager
    def reader(self) -> Iterator[SparkReader]:
        """A session that stores nothing on the server."""
        with self._opened(SparkReader) as session:
            yield session

    @contextmanager
    def tables(self) -> Iterator[SparkTables]:
        """A session that reads tables as they are."""
        with self._opened(SparkTables) as session:
            yield session

    @contextmanager
    def _opened(self, kind: type[S]) -> Iterator[S]:
        client = connected(self._url)
        folder = self._spill.path.name.removeprefix(PREFIX)
        private = f"{_owner(self._spill)}{folder}_{uuid.uuid4().hex[:8]}"
        where = "" if self._path is None else f" LOCATION {path_literal(f'{self._path}/{private}')}"
        begun = False

        def make() -> None:
            nonlocal begun
            begun = True
            _drop_left_behind(client, self._spill)
            client.sql(f"CREATE SCHEMA {quote_name(private)}{where}")

        try:
            yield kind(client, private, make, self._needed, self._restrictions)
        except BaseException:
            with suppress(Exception), explained():
                cast(Any, client).interruptAll()
            raise
        finally:
            with suppress(Exception), explained():  # the next run drops it
                if begun:
                    client.sql(f"DROP SCHEMA IF EXISTS {quote_name(private)} CASCADE")
            end(client)

    def close(self) -> None:
        self._spill.remove()


def _owner(spill: SpillFolder) -> str:
    """How the private schemas begin of runs that share a temporary folder: only of those is it known which live."""
    shared = f"{socket.gethostname()}\0{uuid.getnode()}\0{getpass.getuser()}\0{spill.path.parent}"
    return f"{PRIVATE}_{hashlib.sha256(shared.encode()).hexdigest()[:12]}_"


def _drop_left_behind(client: Client, spill: SpillFolder) -> None:
    """Drop the private schemas of runs of this machine and login whose process is gone, and with it their folder."""
    begin = _owner(spill)
    for name in client.sql("SHOW SCHEMAS").toArrow().column(0).to_pylist():
        if name.startswith(begin):
            folder, _, token = name.removeprefix(begin).rpartition("_")
            if folder and token and not (spill.path.parent / f"{PREFIX}{folder}").exists():
                client.sql(f"DROP SCHEMA IF EXISTS {quote_name(name)} CASCADE")
