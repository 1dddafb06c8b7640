"""DuckDB: its SQL, and a file attached read-only to a session in memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.sql import quoted_name

from qblock.comparison import Kind
from qblock.engines.adapter import SqlAdapter
from qblock.engines.arrow import MANY
from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.dialect import ARROW, DuckdbBeside, DuckdbDialect, check_database, hide_progress
from qblock.engines.duckdb.faults import explain_duckdb, interrupted
from qblock.engines.memory import SpillFolder, of_embedded
from qblock.engines.quoting import quote, quote_text
from qblock.engines.session import Restriction, translated
from qblock.engines.sql_session import SqlSession
from qblock.engines.tables import Column, TableName
from qblock.errors import InputError, QblockError

SOURCE = "source"
COLLATED = (
    "SELECT count(*) > 0 FROM (SELECT sql FROM duckdb_tables() UNION ALL SELECT sql FROM duckdb_views() "
    "WHERE NOT internal) AS written WHERE contains(lower(sql), 'collate')"
)
"""Whether any table or view of the session names a collation."""
COLLATION = "VARCHAR COLLATE "
"""How the type of a column with one begins."""
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
         "UHUGEINT"),
        "integer",
    ),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "timestamp"),
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "DATE": "date",
    "BOOLEAN": "boolean",
}  # fmt: skip


def _literals(columns: pa.Table) -> str | None:
    """Columns of whole numbers and text as expressions that give their rows; None where they have no text in SQL."""
    expressions = []
    for field, column in zip(columns.schema, columns.columns, strict=True):
        whole = pa.types.is_integer(field.type)
        if not (whole or pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
            return None
        type_ = "BIGINT" if whole else "VARCHAR"
        values = json.dumps(column.to_pylist(), ensure_ascii=False, separators=(",", ":"))
        if "\\u0000" in values:
            return None
        expressions.append(f"unnest(from_json({quote_text(values)}, '[\"{type_}\"]')) AS {quote(field.name)}")
    return ", ".join(expressions)


def _literal(text: str) -> sa.ColumnElement[str]:
    """A text written into the statement: with a bound value, one expression would be two different ones in SELECT and
    GROUP BY."""
    return sa.literal_column(quote_text(text), sa.Text)


def _number(number: int) -> sa.ColumnElement[int]:
    return sa.literal_column(str(number), sa.Integer)


class DuckdbAdapter(SqlAdapter):
    """What DuckDB is like, and its SQL."""

    name = "duckdb"
    error = duckdb.Error
    literals = True
    """To bind a parameter the driver imports pandas."""
    text_type = "VARCHAR"
    whole_type = "BIGINT"
    double_type = "DOUBLE"
    date_type = "DATE"
    embedded = True
    row_hash = ("hash", duckdb.__version__)
    approximate_distinct = "approx_count_distinct"
    table_exists = (
        "SELECT count(*) > 0 FROM duckdb_tables() WHERE table_name = :name AND NOT internal AND :schema IS NULL"
    )
    snapshot_words = "a read-only session, while nobody can write to the file"

    def __init__(self, database: str | None = SOURCE, file: Path | None = None) -> None:
        self._database, self._file = database, file

    @staticmethod
    def dialect() -> sa.Dialect:
        # A driver's own way of writing parameters would double every percent sign in a name.
        return DuckdbDialect(paramstyle="named")

    def prefix(self, schema: str | None) -> quoted_name | None:
        if self._database is None:
            return None if schema is None else quoted_name(schema, quote=True)
        # Quoted here: the dialect would take the dot as part of the name.
        return quoted_name(f"{quote(self._database)}.{quote(schema or 'main')}", quote=False)

    def describe(self, connection: sa.Connection, table: TableName) -> list[Column]:
        rows = connection.exec_driver_sql(
            f"SELECT column_name, data_type, ({COLLATED}) FROM duckdb_columns() WHERE {self._there(table)} "
            f"AND table_name = {quote_text(table.name)} ORDER BY column_index"
        ).all()
        texts = [name for name, type_, collated in rows if collated and type_ == "VARCHAR"]
        types = self._with_collations(connection, table, texts) if texts else {}
        return [_column(name, types.get(name, type_)) for name, type_, _ in rows]

    def _with_collations(self, connection: sa.Connection, table: TableName, texts: Sequence[str]) -> dict[str, str]:
        """The types of text columns that have a collation, which only the statement of a table says."""
        from sqlglot import exp, parse_one

        copy = "qblock_collations"
        rows = sa.table(quoted_name(table.name, quote=True), schema=self.prefix(table.schema))
        columns = [sa.column(quoted_name(name, quote=True), sa.Text) for name in texts]
        empty = sa.select(*columns).select_from(rows).where(sa.false())
        sql = empty.compile(connection)
        connection.exec_driver_sql(f"CREATE OR REPLACE TEMPORARY TABLE {copy} AS {sql}")
        written = f"SELECT sql FROM duckdb_tables() WHERE temporary AND table_name = '{copy}'"
        statement = parse_one(connection.exec_driver_sql(written).scalar_one(), dialect="duckdb")
        connection.exec_driver_sql(f"DROP TABLE {copy}")
        parsed = ((column, column.find(exp.CollateColumnConstraint)) for column in statement.find_all(exp.ColumnDef))
        return {column.name: f"{COLLATION}{of.this.sql()}" for column, of in parsed if of is not None}

    def _there(self, table: TableName) -> str:
        """In the table's schema. In the statement: to bind a parameter the driver imports pandas."""
        database = "current_database()" if self._database is None else quote_text(self._database)
        return f"database_name = {database} AND schema_name = {quote_text(table.schema or 'main')}"

    def computed(self, connection: sa.Connection, table: TableName) -> bool:
        query = f"SELECT 1 FROM duckdb_views() WHERE {self._there(table)} AND view_name = {quote_text(table.name)}"
        return connection.exec_driver_sql(query).first() is not None

    def definition(self, connection: sa.Connection, table: TableName) -> str | None:
        query = f"SELECT sql FROM duckdb_views() WHERE {self._there(table)} AND view_name = {quote_text(table.name)}"
        row = connection.exec_driver_sql(query).first()
        return None if row is None else str(row[0])

    def expressions(self, connection: sa.Connection, table: TableName) -> dict[str, str]:
        rows = connection.exec_driver_sql(
            f"SELECT column_name, column_default FROM duckdb_columns() WHERE {self._there(table)} "
            f"AND table_name = {quote_text(table.name)} AND column_default IS NOT NULL"
        )
        return {str(name): str(text) for name, text in rows}

    def tables(self, connection: sa.Connection) -> list[str]:
        query = sa.text(
            "SELECT schema_name, table_name FROM (SELECT database_name, schema_name, table_name FROM duckdb_tables() "
            "UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal) "
            "WHERE database_name = coalesce(:database, current_database())"
        )
        rows = connection.execute(query, {"database": self._database})
        return [name if schema == "main" else f"{schema}.{name}" for schema, name in rows]

    def fetch(self, connection: sa.Connection, statement: Any, parameters: Mapping[str, Any]) -> pa.Table:
        result = connection.execute(statement, parameters, execution_options={ARROW: True})
        return result.cursor.table  # type: ignore[union-attr]

    def counts(self, connection: sa.Connection, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        columns = connection.connection.driver_connection.execute(sql).fetchnumpy()  # type: ignore[union-attr]
        return {name: np.ascontiguousarray(columns[name], dtype=np.int64) for name in names}

    def attempt(self, connection: sa.Connection, statement: sa.Executable) -> tuple[Any, ...] | None:
        driver: Any = connection.connection.driver_connection
        literal = {"literal_binds": True}
        sql = str(statement.compile(dialect=connection.dialect, compile_kwargs=literal))  # type: ignore[attr-defined]
        # A statement that fails ends its transaction, and DuckDB has no savepoints.
        with driver.duplicate() as duplicate:
            hide_progress(duplicate)
            try:
                row: tuple[Any, ...] | None = duplicate.execute(sql).fetchone()
            except (duckdb.InterruptException, duckdb.InternalException, duckdb.FatalException):
                raise
            except duckdb.Error:
                return None
            return row

    def load(self, connection: sa.Connection, name: str, columns: pa.Table) -> None:
        driver: Any = connection.connection.driver_connection
        # To register a table the driver imports pandas, which takes longer than to send a small one as text.
        literals = None if "pandas" in sys.modules or columns.num_rows > MANY else _literals(columns)
        if literals is not None:
            driver.execute(f"CREATE TEMPORARY TABLE {quote(name)} AS SELECT {literals}")
            return
        driver.register("qblock_load", columns)
        try:
            driver.execute(f"CREATE TEMPORARY TABLE {quote(name)} AS SELECT * FROM qblock_load")
        finally:
            driver.unregister("qblock_load")

    def plain_number(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # DuckDB writes the shortest text that reads back as the same number, whole ones as 5.0, far ones as 1.5e-13.
        text = sa.cast(value, sa.Text)
        parts = [
            sa.func.regexp_extract(text, _literal(r"^(-?)(\d+)\.?(\d*)e([+-]\d+)$"), i) for i in map(_number, range(5))
        ]
        sign, digits, exponent = parts[1], parts[2].concat(parts[3]), sa.cast(parts[4], sa.Integer)
        large = sa.func.rpad(digits, exponent + _number(1), _literal("0"))
        zeros = sa.func.repeat(_literal("0"), -exponent - _number(1))
        plain = sign.concat(sa.case((exponent > _number(0), large), else_=_literal("0.").concat(zeros).concat(digits)))
        return sa.case(
            (value == _number(0), _literal("0")),
            (sa.func.isnan(value), _literal("NaN")),
            (sa.func.isinf(value), sa.case((value > _number(0), _literal("Infinity")), else_=_literal("-Infinity"))),
            (sa.func.contains(text, _literal("e")), plain),
            else_=sa.func.regexp_replace(text, _literal(r"\.0$"), _literal("")),
        )

    def plain_decimal(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # DuckDB writes .5 where a type has no digits before the point.
        text = sa.func.regexp_replace(sa.cast(value, sa.Text), _literal(r"^(-?)\."), _literal(r"\10."))
        without = sa.func.rtrim(sa.func.rtrim(text, _literal("0")), _literal("."))
        return sa.case((sa.func.contains(text, _literal(".")), without), else_=text)

    def calendar_text(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        zone, shown = "", value
        if kind == "timestamptz":
            zone, shown = "+00", sa.func.timezone(_literal("UTC"), value)
        text, before = sa.cast(shown, sa.Text), _literal(" (BC)")
        bc = sa.func.replace(text, before, _literal("")).concat(_literal(f"{zone} BC"))
        finite = text.concat(_literal(zone)) if zone else text
        return sa.case((sa.func.contains(text, before), bc), (sa.func.isfinite(value), finite), else_=text)

    def calendar_value(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        moved = sa.func.regexp_replace(text, _literal(r"^(\d+-\d+-\d+)(.*) BC$"), _literal(r"\1 (BC)\2"))
        return sa.case((sa.func.suffix(text, _literal(" BC")), moved), else_=text)

    def plain_text(self, value: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        if of.type == "BLOB":
            return _literal("\\x").concat(sa.func.lower(sa.func.hex(value)))
        if of.type == "INTERVAL":
            return sa.func.regexp_replace(sa.cast(value, sa.Text), _literal(" month"), _literal(" mon"))
        if of.type.endswith("]"):
            return sa.cast(sa.func.to_json(value), sa.Text)
        if of.type.startswith(COLLATION):
            return sa.collate(value, "C")
        return sa.cast(value, sa.Text)

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.sha256(text, type_=sa.Text)

    def hex_number(self, digits: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.cast(sa.literal_column("'0x'").concat(digits), sa.BigInteger)

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.strlen(text)

    def is_interrupt(self, error: BaseException) -> bool:
        return interrupted(error)

    def explain(self, error: Exception, reading: Sequence[str] = ()) -> QblockError:
        return explain_duckdb(error, reading, self._file)


def _column(name: str, type_: str) -> Column:
    kind = "decimal" if type_.startswith("DECIMAL") else _KINDS.get(type_, "text")
    return Column(name, type_, kind, type_ if kind != "text" else "VARCHAR")


class DuckdbWarehouse:
    """A DuckDB file as a source: attached read-only, which keeps other processes from writing to it meanwhile."""

    engine = "duckdb"

    def __init__(self, path: Path | None, memory_limit: str | None = None) -> None:
        self.path = path
        self._spill = SpillFolder()
        self._engine = duckdb_session.memory_engine()
        self._memory_limit = memory_limit
        self._restrictions: dict[TableName, Restriction] = {}

    def restrict(self, table: TableName, restriction: Restriction) -> None:
        """Read of a table only these rows."""
        self._restrictions[table] = restriction

    @contextmanager
    def snapshot(self) -> Iterator[SqlSession]:
        adapter = DuckdbAdapter(SOURCE if self.path is not None else None, self.path)
        with translated(adapter):
            connection = self._engine.connect()
        driver: Any = connection.connection.driver_connection
        beside = DuckdbBeside(driver)
        session: SqlSession | None = None
        failed = False
        try:
            with translated(adapter):
                hide_progress(driver)
                connection.exec_driver_sql(f"SET temp_directory = {quote_text(str(self._spill.path))}")
                if self._memory_limit:
                    connection.exec_driver_sql(f"SET memory_limit = {quote_text(of_embedded(self._memory_limit))}")
                connection.commit()
                if self.path is not None:
                    if not self.path.exists():
                        raise QblockError(f"database not reachable: the DuckDB file {self.path} does not exist")
                    check_database(self.path, "name a DuckDB file in the URL", InputError)
                    connection.exec_driver_sql(f"ATTACH {quote_text(str(self.path))} AS {SOURCE} (READ_ONLY)")
                    connection.commit()
            session = SqlSession(connection, adapter, beside, self._restrictions, stays=True)
            if self.path is not None:
                # An attached file's snapshot starts when it is first touched.
                session.scalar(f"SELECT count(*) FROM duckdb_tables() WHERE database_name = '{SOURCE}'")
            yield session
        except BaseException:
            failed = True
            # After Ctrl-C its threads still work on the statement, and a rollback would wait for them.
            with suppress(duckdb.Error):
                driver.interrupt()
                beside.interrupt()
            raise
        finally:
            beside.close()
            # What led here is told, and not that nothing can be ended any more.
            with suppress(sa.exc.SQLAlchemyError, duckdb.Error) if failed else translated(adapter):
                connection.rollback()
                if self.path is not None:
                    connection.exec_driver_sql(f"DETACH DATABASE IF EXISTS {SOURCE}")
            connection.close()
            if session is not None and session.committed:
                self._engine.dispose()  # with the tables that were committed in it

    def close(self) -> None:
        self._engine.dispose()
        self._spill.remove()
