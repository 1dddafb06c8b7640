"""Files of a release on DuckDB: what one holds beside the rows, what it says of itself, and how it is replaced."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import duckdb
import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.duckdb.dialect import Catalogs, logs_of
from qblock.engines.duckdb.faults import explain_duckdb, of_newer_duckdb
from qblock.engines.quoting import quote, quote_text
from qblock.engines.sql_session import SqlSession
from qblock.engines.tables import RawType, TableName
from qblock.errors import QblockError
from qblock.files import disk_full, no_room
from qblock.ledger.kept import PublishedColumn
from qblock.ledger.stamps import ObjectTag
from qblock.publish.helpers import (
    BLOCKS_SAY,
    KEPT,
    Kind,
    Shown,
    Type,
    block_columns,
    column_comments,
    names,
    view_comment,
)
from qblock.publish.midpoints import MIDPOINTS_SAY, midpoints_of
from qblock.spec import Spec

TYPES: dict[Type, str] = {
    "text": "VARCHAR",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
}
TABLES = "SELECT schema_name, table_name, comment FROM system.main.duckdb_tables() WHERE NOT internal"
VIEWS = "SELECT schema_name, view_name, comment FROM system.main.duckdb_views() WHERE NOT internal"


def store_helpers(session: SqlSession, spec: Spec, schema: quoted_name, shown: Shown) -> None:
    """Make the tables that are kept with a version. schema: of the attached file."""
    named = names(spec.view, spec.publish.names)
    for helper in KEPT:
        given = session.load(f"qblock_helper_{helper.kind}", shown.table(helper))
        selected = [sa.cast(given.c[name], RawType(TYPES[type_])).label(name) for name, type_ in helper.columns.items()]
        query = sa.select(*selected).order_by(sa.cast(given.c.position, sa.BigInteger))
        session.run(sa.CreateTableAs(query, quoted_name(named[helper.kind], quote=True), schema=schema))
        session.drop(given)


def finish(connection: duckdb.DuckDBPyConnection, spec: Spec, table: str, columns: Sequence[PublishedColumn]) -> None:
    """Make the views of blocks and of midpoints, and say in comments what everything in the file is."""
    schema, named = quote(spec.publish.schema), names(spec.view, spec.publish.names)
    selected, grouped = block_columns(spec, columns, quote)
    view, blocks = f"{schema}.{quote(spec.view)}", f"{schema}.{quote(named['blocks'])}"
    connection.execute(f"CREATE VIEW {blocks} AS SELECT {selected} FROM {schema}.{quote(table)} GROUP BY {grouped}")
    midpoints, middles = f"{schema}.{quote(named['midpoints'])}", midpoints_of(spec, columns)
    text = middles.select(f"{schema}.{quote(table)}", f"{schema}.{quote(named['spread'])}", quote, quote_text)
    connection.execute(f"CREATE VIEW {midpoints} AS {text}")
    connection.execute(f"COMMENT ON VIEW {view} IS {quote_text(view_comment(spec))}")
    comments = column_comments(spec, columns)
    for name, said_of in ((view, comments), (midpoints, comments | middles.comments)):
        for column, says in said_of.items():
            connection.execute(f"COMMENT ON COLUMN {name}.{quote(column)} IS {quote_text(says)}")
    for name, says in ((blocks, BLOCKS_SAY), (midpoints, MIDPOINTS_SAY)):
        connection.execute(f"COMMENT ON VIEW {name} IS {quote_text(says.format(view=spec.view))}")
    for helper in KEPT:
        says = quote_text(helper.says.format(view=spec.view))
        connection.execute(f"COMMENT ON TABLE {schema}.{quote(named[helper.kind])} IS {says}")


def comments_on_helpers(view: str) -> Iterator[str]:
    """What the helper views of a view say of themselves, by which they are known whatever their names."""
    for helper in KEPT:
        yield helper.says.format(view=view)
    yield BLOCKS_SAY.format(view=view)
    yield MIDPOINTS_SAY.format(view=view)


def copy_tables(before: Path, after: Path, spec: Spec, name: str, storage: str) -> None:
    """Make a new file of the tables of another one, under the names of a spec. name: of the table of the version.
    Raises what DuckDB raises."""
    schema, renamed = quote(spec.publish.schema), names(spec.view, spec.publish.names)
    with duckdb_session.connect(after, storage=storage) as connection:
        connection.execute(f"ATTACH {quote_text(str(before))} AS qblock_before (READ_ONLY)")
        query = f"{TABLES} AND database_name = 'qblock_before'"
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        for there, table, comment in connection.execute(query).fetchall():
            kind = kind_of(comment or "")
            # DuckDB keeps the order of rows.
            rows = f"qblock_before.{quote(there)}.{quote(table)}"
            new = quote(name if kind is None else renamed[kind])
            connection.execute(f"CREATE TABLE {schema}.{new} AS SELECT * FROM {rows}")
        connection.execute("DETACH qblock_before")
        connection.execute("CHECKPOINT")


def kind_of(comment: str) -> Kind | None:
    """Which helper view a table of a file is, by its comment; None for the table of the version."""
    for helper in KEPT:
        before, _, after = helper.says.partition("{view}")
        if comment.startswith(before) and comment.endswith(after):
            return helper.kind
    return None


def said(catalogs: Catalogs, file: Path) -> list[tuple[TableName, str]]:
    """What the tables and views of a file say about themselves. Raises what DuckDB raises."""
    tables, views = catalogs.ask(file, TABLES, VIEWS)
    return [(TableName(schema, name), comment or "") for schema, name, comment in (*tables, *views)]


def tags_of(catalogs: Catalogs, file: Path, release: str) -> list[ObjectTag]:
    """The versions of the release that a file holds. Raises what DuckDB raises."""
    tags = (ObjectTag.read(comment, release) for _, comment in said(catalogs, file))
    return [tag for tag in tags if tag is not None]


def shown_tags(catalogs: Catalogs, published: Path, release: str) -> list[ObjectTag]:
    """The version of the release that readers of a file see: one, or none.

    Raises QblockError for a file that cannot be read: what is in it is not known then.
    """
    if not published.exists():
        return []
    try:
        return [replace(tag, shown=True) for tag in tags_of(catalogs, published, release)]
    except duckdb.Error as error:
        raise explain_duckdb(error, file=published) from error


def kept_tags(catalogs: Catalogs, kept: Path, release: str) -> list[ObjectTag]:
    """The versions of the release that a private folder keeps.

    A copy that cannot be read was left half made by a run that was stopped, and says nothing.
    """
    tags: list[ObjectTag] = []
    for file in sorted(kept.glob("v*.duckdb")) if kept.is_dir() else ():
        if re.fullmatch(r"v\d+\.duckdb", file.name):
            try:
                tags += tags_of(catalogs, file, release)
            except duckdb.Error as error:
                if of_newer_duckdb(error):
                    raise explain_duckdb(error, file=file) from error
    return tags


@contextmanager
def reading(file: Path) -> Iterator[SqlSession]:
    """A session that reads a DuckDB file and nothing else."""
    warehouse = DuckdbWarehouse(file)
    try:
        with warehouse.snapshot() as session:
            yield session
    finally:
        warehouse.close()


def same_file(left: Path, right: Path) -> bool:
    """Whether two paths are one file, by links too."""
    if left.exists() and right.exists():
        return left.samefile(right)
    return left.resolve() == right.resolve()


def copy_file(source: Path, target: Path) -> None:
    """Copy to a new file that nobody else may read, onto the disk. Raises QblockError."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(source, "rb") as reader, open(descriptor, "wb") as writer:
            shutil.copyfileobj(reader, writer)
            writer.flush()
            os.fsync(writer.fileno())
    except OSError as error:
        raise (
            no_room(target) if disk_full(error) else QblockError(f"{target} cannot be written: {error.strerror}")
        ) from None


def remove(file: Path) -> None:
    """Remove a DuckDB file with what belongs to it."""
    file.unlink(missing_ok=True)
    remove_logs(file)


def remove_logs(file: Path) -> None:
    """Remove the write-ahead logs that DuckDB keeps beside a file."""
    for log in logs_of(file):
        log.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have a file, or the entries of a folder, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        # Some file systems cannot do this for a folder.
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def umask() -> int:
    """The process's file mode mask, which can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
