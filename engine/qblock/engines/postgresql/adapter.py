"""PostgreSQL: one REPEATABLE READ transaction; counts travel by binary COPY."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import numpy as np
import psycopg
import pyarrow as pa
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import BIT

from qblock.comparison import Kind
from qblock.engines.adapter import SqlAdapter
from qblock.engines.postgresql import session as postgresql_session
from qblock.engines.postgresql.faults import LOST, explain_postgresql
from qblock.engines.queries import Part, joined
from qblock.engines.quoting import quote
from qblock.engines.session import Restriction, translated
from qblock.engines.sql_session import SqlSession
from qblock.engines.tables import PRIVATE_SCHEMA, Column, TableName
from qblock.errors import QblockError
from qblock.spec.fields import in_bytes

_KINDS: dict[str, Kind] = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "real": "float",
    "double precision": "float",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "boolean": "boolean",
}
LEAST_MEMORY, MOST_MEMORY = 64, 2**31 - 1
"""Of work_mem, in kB."""
_COPY_HEADER = 19
_COPY_TRAILER = 2


def _literal(text: str) -> sa.ColumnElement[str]:
    """A text written into the statement: with a bound value, one expression would be two different ones in SELECT and
    GROUP BY."""
    return sa.literal_column("'" + text.replace("'", "''") + "'", sa.Text)


def _utf8(text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.convert_to(text, _literal("UTF8"))


COPIED = {
    "VARCHAR": "text",
    **dict.fromkeys(("TINYINT", "UTINYINT"), "smallint"),
    "USMALLINT": "integer",
    "UINTEGER": "bigint",
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), "numeric"),
    **dict.fromkeys(("TIMESTAMP_S", "TIMESTAMP_MS"), "timestamp without time zone"),
    "DOUBLE": "double precision",
    "FLOAT": "real",
    "TIMESTAMP": "timestamp without time zone",
    "SMALLINT": "smallint",
    "INTEGER": "integer",
    "BIGINT": "bigint",
    "BOOLEAN": "boolean",
    "DATE": "date",
}
"""Types of the embedded database, by the names that PostgreSQL has for them."""


class PostgresqlAdapter(SqlAdapter):
    """What PostgreSQL is like, and its SQL."""

    name = "postgresql"
    error = psycopg.Error
    range_types: ClassVar[Mapping[str, str]] = {
        "smallint": "int4range",
        "integer": "int4range",
        "bigint": "int8range",
        "number": "numrange",
        "date": "daterange",
    }
    private_schema = PRIVATE_SCHEMA
    has_roles = True
    # Not to_regclass, which may answer from before an upgrade that this session has waited for.
    table_exists = (
        "SELECT count(*) > 0 FROM pg_class WHERE relname = :name "
        "AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema)"
    )
    snapshot_words = "one REPEATABLE READ transaction"

    def __init__(self, url: sa.URL | None = None) -> None:
        self._url = url

    @staticmethod
    def dialect() -> sa.Dialect:
        return postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]

    @staticmethod
    def private_names(connection: sa.Connection) -> AbstractContextManager[None]:
        return postgresql_session.looking_along(connection, (PRIVATE_SCHEMA, postgresql_session.TEMPORARY))

    @staticmethod
    def type_of_copy(type_: str) -> str:
        return type_.replace("DECIMAL", "numeric") if type_.startswith("DECIMAL") else COPIED.get(type_, type_)

    def home(self, connection: sa.Connection, table: TableName) -> TableName:
        return postgresql_session.home(connection, table)

    def describe(self, connection: sa.Connection, table: TableName) -> list[Column]:
        # A domain compares as the type that it is made of in the end.
        query = sa.text(
            "WITH RECURSIVE based (number, name, type, modifier, folding, base, base_modifier) AS ("
            "SELECT attnum, attname, atttypid, atttypmod, collname, atttypid, atttypmod FROM pg_attribute "
            "LEFT JOIN pg_collation ON pg_collation.oid = attcollation AND NOT collisdeterministic "
            "WHERE attrelid = to_regclass(:name) AND attnum > 0 AND NOT attisdropped "
            "UNION ALL SELECT number, name, type, modifier, folding, typbasetype, typtypmod FROM based "
            "JOIN pg_type ON oid = base WHERE typtype = 'd') "
            "SELECT name, format_type(type, modifier) || coalesce(' COLLATE ' || quote_ident(folding), ''), "
            "format_type(base, base_modifier) FROM based "
            "JOIN pg_type ON oid = base WHERE typtype <> 'd' ORDER BY number"
        )
        return [_column(*row) for row in connection.execute(query, {"name": table.quoted})]

    def computed(self, connection: sa.Connection, table: TableName) -> bool:
        query = sa.text("SELECT relkind IN ('v', 'f') FROM pg_class WHERE oid = to_regclass(:name)")
        return bool(connection.execute(query, {"name": table.quoted}).scalar())

    def definition(self, connection: sa.Connection, table: TableName) -> str | None:
        query = sa.text("SELECT pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND oid = to_regclass(:name)")
        text = connection.execute(query, {"name": table.quoted}).scalar()
        return None if text is None else str(text)

    def expressions(self, connection: sa.Connection, table: TableName) -> dict[str, str]:
        query = sa.text(
            "SELECT attname, pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute "
            "ON attrelid = adrelid AND attnum = adnum WHERE adrelid = to_regclass(:name) AND attgenerated <> ''"
        )
        return {str(name): str(text) for name, text in connection.execute(query, {"name": table.quoted})}

    def tables(self, connection: sa.Connection) -> list[str]:
        query = sa.text(
            "SELECT table_schema || '.' || table_name FROM information_schema.tables "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        return list(connection.execute(query).scalars())

    def counts(self, connection: sa.Connection, sql: str, names: list[str]) -> dict[str, NDArray[np.int64]]:
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor, cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT BINARY)") as copy:
            data = b"".join(bytes(chunk) for chunk in copy)
        fields = [("fields", ">i2")]
        for name in names:
            fields += [(f"size {name}", ">i4"), (name, ">i8")]
        rows = np.frombuffer(data[_COPY_HEADER:-_COPY_TRAILER], dtype=np.dtype(fields))
        return {name: rows[name].astype(np.int64) for name in names}

    def pull(self, connection: sa.Connection, table: str, names: list[str]) -> Iterator[Part] | None:
        return joined(pieces(connection, table, names))

    def attempt(self, connection: sa.Connection, statement: sa.Executable) -> tuple[Any, ...] | None:
        try:
            with connection.begin_nested():
                row = connection.execute(statement).fetchone()
        except sa.exc.DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state is None or state.startswith(LOST):
                raise
            return None
        return None if row is None else tuple(row)

    def load(self, connection: sa.Connection, name: str, columns: pa.Table) -> None:
        types = ["bigint" if pa.types.is_integer(field.type) else "text" for field in columns.schema]
        body = ", ".join(f"{quote(c)} {t}" for c, t in zip(columns.column_names, types, strict=True))
        driver: Any = connection.connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute(f"CREATE TEMPORARY TABLE {quote(name)} ({body})")
            with cursor.copy(f"COPY {quote(name)} FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in columns.columns), strict=True):
                    copy.write_row(row)

    def plain_number(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # From the shortest text that reads back as the same number; a cast without it keeps 15 digits.
        return sa.cast(sa.cast(sa.cast(value, sa.Text), sa.Numeric), sa.Text)

    def plain_decimal(self, value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.cast(sa.func.trim_scale(value), sa.Text)

    def calendar_text(self, value: sa.ColumnElement[Any], kind: Kind) -> sa.ColumnElement[Any]:
        if kind != "timestamptz":
            return sa.cast(value, sa.Text)
        text = sa.cast(sa.func.timezone(_literal("UTC"), value), sa.Text)
        bc = sa.func.replace(text, _literal(" BC"), _literal("+00 BC"))
        finite = sa.func.isfinite(value)
        return sa.case(
            (
                sa.and_(finite, sa.func.right(text, sa.literal_column("2")) != _literal("BC")),
                text.concat(_literal("+00")),
            ),
            (finite, bc),
            else_=text,
        )

    def plain_text(self, value: sa.ColumnElement[Any], of: Column) -> sa.ColumnElement[Any]:
        base = of.base or of.type
        if base == "bytea":
            return _literal("\\x").concat(sa.func.encode(value, _literal("hex")))
        if base.startswith("interval"):
            plain = sa.func.replace(sa.cast(value, sa.Text), _literal("+"), _literal(""))
            return sa.func.regexp_replace(
                plain, _literal("(-1 (year|mon|day))s"), _literal(r"\1"), _literal("g"), type_=sa.Text
            )
        if base.endswith("[]"):
            return sa.cast(sa.func.to_json(value), sa.Text)
        text = sa.cast(value, sa.Text)
        return self.bytewise(text) if " COLLATE " in of.type else text

    def bytewise(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.collate(text, "C")

    def sha256(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.encode(sa.func.sha256(_utf8(text)), _literal("hex"), type_=sa.Text)

    def hex_number(self, digits: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.cast(sa.cast(_literal("x").concat(digits), BIT(60)), sa.BigInteger)

    def byte_length(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.octet_length(_utf8(text))

    def json_array(self, values: Sequence[sa.ColumnElement[Any]]) -> sa.ColumnElement[Any]:
        return sa.cast(sa.func.json_build_array(*values), sa.Text)

    def analyze(self, connection: sa.Connection, table: sa.TableClause) -> None:
        schema = getattr(table, "schema", None)
        connection.exec_driver_sql(f"ANALYZE {'' if schema is None else quote(schema) + '.'}{quote(table.name)}")

    def explain(self, error: Exception, reading: Sequence[str] = ()) -> QblockError:
        return explain_postgresql(error, self._url, reading)


def _column(name: str, type_: str, base: str) -> Column:
    kind = "decimal" if base.startswith("numeric") else _KINDS.get(re.sub(r"\(\d+\)", "", base), "text")
    below = None if base == type_ else base
    if kind == "text":
        return Column(name, type_, kind, "text", below)
    return Column(name, type_, kind, base, below)


class PostgresqlWarehouse:
    """A PostgreSQL database as a source."""

    engine = "postgresql"

    def __init__(self, url: sa.URL, memory_limit: str | None = None) -> None:
        local = of_transactions(memory_limit)
        self._engine = postgresql_session.create_engine(url, local=local, isolation_level="REPEATABLE READ")
        self._restrictions: dict[TableName, Restriction] = {}

    def restrict(self, table: TableName, restriction: Restriction) -> None:
        """Read of a table only these rows."""
        self._restrictions[table] = restriction

    @contextmanager
    def snapshot(self) -> Iterator[SqlSession]:
        adapter = PostgresqlAdapter(self._engine.url)
        with translated(adapter):
            connection = self._engine.connect()
        try:
            with translated(adapter):
                connection.begin()
            yield SqlSession(connection, adapter, restrictions=self._restrictions)
        finally:
            connection.close()

    def close(self) -> None:
        self._engine.dispose()


RIGHTS = sa.text(
    "SELECT pg_is_in_recovery() AS replica, current_setting('default_transaction_read_only') = 'on' AS only_reads, "
    "CAST(current_user AS text) AS login, "
    "CAST(current_database() AS text) AS name, has_database_privilege(current_database(), :privilege) AS given, "
    "EXISTS (SELECT FROM pg_namespace WHERE nspname = :private AND has_schema_privilege(oid, 'CREATE')) AS has_private"
)


def right_missing(url: sa.URL, privilege: str) -> str | None:
    """What keeps a login from making temporary tables, or (CREATE) the private schema, with the remedy; None where
    nothing does."""
    with translated(PostgresqlAdapter(url)), postgresql_session.create_engine(url).connect() as connection:
        row = connection.execute(RIGHTS, {"privilege": privilege, "private": PRIVATE_SCHEMA}).mappings().one()
    what = "temporary tables" if privilege == "TEMPORARY" else "schemas"
    if row["replica"]:
        return "the server is a replica, where nothing can be stored"
    if row["only_reads"]:
        return (
            "the login only reads "
            f"(ALTER ROLE {quote(row['login'])} SET default_transaction_read_only = off lets it make {what})"
        )
    if row["given"] or (privilege == "CREATE" and row["has_private"]):
        return None
    return f"the login may make no {what} (GRANT {privilege} ON DATABASE {quote(row['name'])} TO {quote(row['login'])})"


def of_transactions(memory_limit: str | None = None) -> dict[str, str]:
    """Settings of each transaction: memory for the GROUP BYs, scans of some pages alone (`pieces`), and an end
    when the job ends: a query whose job was killed ends too, instead of holding its snapshot and locks."""
    return {
        "work_mem": f"'{work_mem(memory_limit or '256MiB')}'",
        "enable_tidscan": "on",
        "client_connection_check_interval": "'10s'",
    }


def work_mem(limit: str) -> str:
    """An amount of memory as the spec writes it (512MB, 1.5 GiB) in the unit and range that PostgreSQL takes."""
    return f"{min(max(in_bytes(limit) // 1024, LEAST_MEMORY), MOST_MEMORY)}kB"


PAGES = 64
"""Pages of a piece: some ten thousand rows."""


def pieces(connection: sa.Connection, table: str, columns: Sequence[str], pages: int = PAGES) -> Iterator[Part]:
    """The rows of a temporary table whose columns are BIGINT and never NULL, those of so many pages at a time: as one
    value for each column. The driver handles each row of a COPY by itself, which takes longer than all else where a row
    is a number or two."""
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
