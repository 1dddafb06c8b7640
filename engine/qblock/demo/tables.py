"""The demo's table on a server: PostgreSQL or Spark."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pyarrow.csv
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.schema import CreateSchema, CreateTable, DropTable, SetTableComment

from qblock.demo.people import ROWS, SEED, generate
from qblock.demo.write import IN_POSTGRESQL, IN_SPARK, SCHEMA, TABLE, Place
from qblock.engines.postgresql import ENGINE as POSTGRESQL
from qblock.engines.postgresql.faults import explain_postgresql
from qblock.engines.postgresql.session import create_engine
from qblock.engines.registry import engine_of, parse_url
from qblock.engines.spark import ENGINE as SPARK
from qblock.errors import InputError

MARK = "invented people, written by qblock demo"
"""The comment by which a table is known to be the demo's own."""
CHUNK = 100_000


def place_at(url: str) -> Place:
    """Where people are on a server. Raises InputError for one that the demo does not write to."""
    address = parse_url(url)
    if engine_of(address) is POSTGRESQL:
        return IN_POSTGRESQL
    if engine_of(address) is SPARK and address.host:
        return IN_SPARK
    raise InputError(
        "the demo's URL is not one of PostgreSQL or Spark; write postgresql://USER:PASSWORD@HOST/DATABASE or "
        "sc://HOST:15002"
    )


def load_people(url: str, rows: int = ROWS, seed: int = SEED, *, schema: str = SCHEMA, table: str = TABLE) -> None:
    """Write the people to a table (in PostgreSQL in one transaction), in place of the demo's own of an earlier run.

    url: of PostgreSQL or Spark. Raises InputError for another URL, or where the table is not the demo's;
    QblockError for a fault of the database.
    """
    place_at(url)  # wrong ones are named before people are made up
    load_table(url, generate(rows, seed), schema=schema, table=table)


def load_table(url: str, people: pa.Table, *, schema: str = SCHEMA, table: str = TABLE) -> None:
    """`load_people` with people that are there already (`generate`)."""
    plain = pa.schema([(c.name, pa.string() if pa.types.is_dictionary(c.type) else c.type) for c in people.schema])
    load = _to_postgresql if place_at(url) is IN_POSTGRESQL else _to_spark
    load(parse_url(url), people.cast(plain), schema, table)


def _to_postgresql(url: sa.URL, people: pa.Table, schema: str, table: str) -> None:
    address = url.set(drivername="postgresql+psycopg")
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


def _not_the_demos(schema: str, table: str) -> InputError:
    return InputError(f"table {schema}.{table} is not the demo's; name another schema or table")


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
            raise _not_the_demos(schema, name)
        connection.execute(DropTable(table))
    connection.execute(CreateTable(table))
    connection.execute(SetTableComment(table))


def _copy(driver: psycopg.Connection, schema: str, table: str, people: pa.Table) -> None:
    statement = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(sql.Identifier(schema, table))
    options = pyarrow.csv.WriteOptions(include_header=False)
    with driver.cursor() as cursor, cursor.copy(statement) as copy:
        for start in range(0, len(people), CHUNK):
            buffer = pa.BufferOutputStream()
            pyarrow.csv.write_csv(people.slice(start, CHUNK), buffer, options)
            copy.write(memoryview(buffer.getvalue()))


def _to_spark(url: sa.URL, people: pa.Table, schema: str, table: str) -> None:
    from qblock.engines.spark.catalog import SparkCatalog
    from qblock.engines.spark.client import connected, end, explained, quoted
    from qblock.engines.spark.session import parts_of

    client = connected(url)
    catalog = SparkCatalog(client)
    try:
        entry = catalog.entries(schema).get(table)
        if entry is not None and entry.comment != MARK:
            raise _not_the_demos(schema, table)
        with explained():
            client.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
            client.sql(f"DROP TABLE IF EXISTS {quoted(schema, table)}")
            frames = map(client.createDataFrame, parts_of(people))
            catalog.write(next(frames), schema, table, MARK)
            for frame in frames:
                frame.write.insertInto(quoted(schema, table))
    finally:
        end(client)
