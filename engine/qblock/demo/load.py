"""The demo's people in a PostgreSQL warehouse."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pyarrow.csv
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.schema import CreateSchema, CreateTable, DropTable, SetTableComment

from qblock.demo.people import ROWS, SEED, generate
from qblock.errors import InputError
from qblock.warehouse.connect import parse_url
from qblock.warehouse.engines import POSTGRESQL, engine_of
from qblock.warehouse.postgresql_faults import explain_postgresql
from qblock.warehouse.postgresql_session import create_engine

SCHEMA, TABLE = "census", "people"
MARK = "invented people, written by qblock demo"
"""The comment by which a table is known to be the demo's own."""
CHUNK = 100_000


def load_people(url: str, rows: int = ROWS, seed: int = SEED, *, schema: str = SCHEMA, table: str = TABLE) -> None:
    """Write the people to a table, in one transaction; the demo's own table of an earlier run is rewritten.

    url: a SQLAlchemy URL of PostgreSQL. Raises InputError for another URL, or where the table is not the demo's;
    QblockError for a fault of the database.
    """
    postgresql_address(url)  # wrong ones are named before people are made up
    load_table(url, generate(rows, seed), schema=schema, table=table)


def load_table(url: str, people: pa.Table, *, schema: str = SCHEMA, table: str = TABLE) -> None:
    """`load_people` with people that are there already (`generate`)."""
    address = postgresql_address(url)
    try:
        engine = create_engine(address)
        with engine.begin() as connection:
            _make(connection, schema, table, people.schema)
            driver = connection.connection.driver_connection
            assert isinstance(driver, psycopg.Connection)
            _copy(driver, schema, table, people)
    except (sa.exc.DBAPIError, psycopg.Error) as error:
        fault = explain_postgresql(error, address)
        raise type(fault)(f"the people cannot be written to {schema}.{table}: {fault}") from error


def postgresql_address(url: str) -> sa.URL:
    """The address of a database of PostgreSQL. Raises InputError for another URL."""
    address = parse_url(url)
    if engine_of(address) is not POSTGRESQL:
        raise InputError("the demo's URL is not one of PostgreSQL; write postgresql://USER:PASSWORD@HOST/DATABASE")
    return address.set(drivername="postgresql+psycopg")


def _make(connection: sa.Connection, schema: str, name: str, columns: pa.Schema) -> None:
    inspector = sa.inspect(connection)
    if not inspector.has_schema(schema):  # CREATE SCHEMA IF NOT EXISTS needs the privilege even where it does nothing
        connection.execute(CreateSchema(schema))
    types = {pa.int64(): sa.BigInteger, pa.int16(): sa.SmallInteger}
    table = sa.Table(
        name,
        sa.MetaData(),
        *(sa.Column(c.name, types.get(c.type, sa.Text), nullable=False) for c in columns),
        schema=schema,
        comment=MARK,
    )
    if inspector.has_table(name, schema=schema):
        if inspector.get_table_comment(name, schema=schema)["text"] != MARK:
            raise InputError(f"table {schema}.{name} is not the demo's; name another schema or table")
        connection.execute(DropTable(table))
    connection.execute(CreateTable(table))
    connection.execute(SetTableComment(table))


def _copy(driver: psycopg.Connection, schema: str, table: str, people: pa.Table) -> None:
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(schema, table))
    options = pyarrow.csv.WriteOptions(include_header=False)
    plain = pa.schema([(c.name, pa.string() if pa.types.is_dictionary(c.type) else c.type) for c in people.schema])
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for start in range(0, len(people), CHUNK):
            buffer = pa.BufferOutputStream()
            pyarrow.csv.write_csv(people.slice(start, CHUNK).cast(plain), buffer, options)
            copy.write(memoryview(buffer.getvalue()))
