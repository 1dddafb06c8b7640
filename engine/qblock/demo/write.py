"""Writes the demo: its folder with the DuckDB warehouse, hierarchies and release spec, and its table in PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv
import sqlalchemy as sa
from psycopg import sql
from sqlalchemy.schema import CreateSchema, CreateTable, DropTable, SetTableComment

from qblock.demo.people import ROWS, SEED, WORDS, generate, hierarchies
from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.faults import explain_duckdb
from qblock.engines.postgresql import ENGINE as POSTGRESQL
from qblock.engines.postgresql.faults import explain_postgresql
from qblock.engines.postgresql.session import create_engine
from qblock.engines.registry import engine_of, parse_url
from qblock.errors import InputError, QblockError
from qblock.ledger.stores import store_of
from qblock.resources import sql_text
from qblock.spec import Spec, read_spec

WAREHOUSE = "census.duckdb"
PUBLISHED, PRIVATE = "published.duckdb", "qblock"
"""What the job makes: the release file, and the folder of ledger, crosswalk and versions."""
MADE = (WAREHOUSE, PUBLISHED, PRIVATE)
SPEC = "release.yaml"
RECORD = ".qblock-demo.json"
"""Lists what the demo wrote or had the job write, with the digest of the files that a person may edit."""

IN_DUCKDB = {
    "source": f"duckdb:///{WAREHOUSE}",
    "table": "main.people",
    # DuckDB names the file's catalog after the file, and cannot tell a schema of the same name from it.
    "publish": f'url: "duckdb:///{PUBLISHED}", schema: main, view: census',
}
IN_POSTGRESQL = {
    "source": "${WAREHOUSE_URL}",
    "table": "census.people",
    "publish": "schema: published, view: census",
}
SCHEMA, TABLE = "census", "people"
MARK = "invented people, written by qblock demo"
"""The comment by which a table is known to be the demo's own."""
CHUNK = 100_000


@dataclass(frozen=True)
class Demo:
    """What was written. warehouse: the DuckDB file, or None where the people are not in the folder."""

    directory: Path
    spec: Path
    warehouse: Path | None


def spec_text(warehouse: bool = True) -> str:
    """The release spec, for the DuckDB file of the folder or (False) for the PostgreSQL that WAREHOUSE_URL names."""
    template = Template(Path(__file__).with_name("release.yaml.template").read_text("utf-8"))
    return template.substitute(IN_DUCKDB if warehouse else IN_POSTGRESQL, salaries=", ".join(WORDS.salaries))


def write_demo(directory: Path, rows: int = ROWS, seed: int = SEED, *, warehouse: bool = True) -> Demo:
    """Write census.duckdb (unless `warehouse` is False), hierarchies/*.csv and release.yaml into a folder.

    Files of an earlier demo are rewritten, and what was published of its people, with its ledger and crosswalk, is
    removed: they are evidence about people who are there no more. Raises InputError, before anything is written, where
    the folder holds a file of one of these names that is not the demo's or was edited since, or the ledger of another
    release.
    """
    people = generate(rows, seed) if warehouse else None
    texts = {f"hierarchies/{name}.csv": text for name, text in hierarchies().items()} | {SPEC: spec_text(warehouse)}
    path = directory / WAREHOUSE if people is not None else None
    with _filesystem(directory):
        known = _known(directory)
        _check(directory, known, texts, path)
        for name, text in texts.items():
            _write_text(directory / name, text)
        record: dict[str, str | None] = {name: _digest(text.encode()) for name, text in texts.items()}
        record |= dict.fromkeys(name for name in MADE if path is not None or name in known)
        _write_text(directory / RECORD, json.dumps(record, indent=1) + "\n")
        if people is not None and path is not None:
            (directory / PUBLISHED).unlink(missing_ok=True)
            if (directory / PRIVATE).exists():
                shutil.rmtree(directory / PRIVATE)
            write_warehouse(path, people)
    return Demo(directory, directory / SPEC, path)


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, "utf-8")
    new.replace(path)


def write_warehouse(path: Path, people: pa.Table) -> None:
    """Write people (`generate`) to the DuckDB file in place of those that it has.

    Fills a new file beside the old one, then rename it: whoever has the old one open can go on reading it."""
    new = path.with_name(f".{path.name}.new")
    for stale in (new, _log(new), _log(path)):
        stale.unlink(missing_ok=True)  # DuckDB would replay a log that a crash left into the new file
    try:
        with duckdb_session.connect(new) as connection:
            connection.register("generated", people)
            connection.execute(sql_text("demo_people", "duckdb"))
    except duckdb.Error as error:
        raise explain_duckdb(error) from error
    new.replace(path)


def _log(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def _check(directory: Path, known: dict[str, str | None], texts: dict[str, str], warehouse: Path | None) -> None:
    """Refuse to overwrite what a person made. A text that is already what will be written was left by a crash."""
    for name in MADE if warehouse is not None else ():
        if (directory / name).exists() and name not in known:
            raise InputError(f"{directory / name} is not the demo's; name another folder, or move it away")
    for name, text in texts.items():
        path = directory / name
        if path.exists() and _digest(path.read_bytes()) not in (known.get(name), _digest(text.encode())):
            what = "was edited since the demo wrote it" if name in known else "is not a file of the demo"
            raise InputError(f"{path} {what}; name another folder, or move it away")
    if warehouse is not None:
        _check_ledger(read_spec(texts[SPEC], directory / SPEC), directory / PRIVATE)


def _check_ledger(spec: Spec, folder: Path) -> None:
    place = store_of(spec)
    if not place.exists:
        return
    with place.read() as reader:
        if set(reader.releases()) - {spec.release}:
            raise InputError(f"{folder} has the ledger of other releases than the demo's; name another folder")


def _known(directory: Path) -> dict[str, str | None]:
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; name a folder for the demo")
    record = directory / RECORD
    if not record.exists():
        return {}
    try:
        return dict(json.loads(record.read_text("utf-8")))
    except ValueError as error:
        raise InputError(f"{record} is not a record of the demo; name another folder, or move it away") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def _filesystem(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise QblockError(f"the demo cannot be written to {directory}: {error.strerror or error}") from error


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
