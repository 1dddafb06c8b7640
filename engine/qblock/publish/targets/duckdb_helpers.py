"""What a DuckDB file holds beside the rows of a version: helper views, and comments that say what it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.ledger.kept import PublishedColumn
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
from qblock.publish.targets.identity import Mark, read_mark
from qblock.spec import Spec
from qblock.warehouse import duckdb_session
from qblock.warehouse.duckdb import quote_text
from qblock.warehouse.faults import explain_duckdb, of_newer_duckdb
from qblock.warehouse.protocol import Session, TableName, quote
from qblock.warehouse.session import RawType

TYPES: dict[Type, str] = {
    "text": "VARCHAR",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
}
TABLES = "SELECT schema_name, table_name, comment FROM system.main.duckdb_tables() WHERE NOT internal"
VIEWS = "SELECT schema_name, view_name, comment FROM system.main.duckdb_views() WHERE NOT internal"


def store(session: Session, spec: Spec, schema: quoted_name, shown: Shown) -> None:
    """Make the tables that are kept with a version. schema: of the attached file."""
    named = names(spec.view, spec.publish.names)
    for helper in KEPT:
        given = session.load(f"qblock_helper_{helper.kind}", shown.table(helper))
        selected = [sa.cast(given.c[name], RawType(TYPES[type_])).label(name) for name, type_ in helper.columns.items()]
        query = sa.select(*selected).order_by(sa.cast(given.c.position, sa.BigInteger))
        session.run(sa.CreateTableAs(query, quoted_name(named[helper.kind], quote=True), schema=schema))
        session.drop(given)


def finish(connection: duckdb.DuckDBPyConnection, spec: Spec, table: str, columns: Sequence[PublishedColumn]) -> None:
    """Make the view of the blocks, and say in comments what everything in the file is."""
    schema, named = quote(spec.publish.schema), names(spec.view, spec.publish.names)
    selected, grouped = block_columns(columns, quote)
    view, blocks = f"{schema}.{quote(spec.view)}", f"{schema}.{quote(named['blocks'])}"
    connection.execute(f"CREATE VIEW {blocks} AS SELECT {selected} FROM {schema}.{quote(table)} GROUP BY {grouped}")
    connection.execute(f"COMMENT ON VIEW {view} IS {quote_text(view_comment(spec))}")
    for column, says in column_comments(spec, columns).items():
        connection.execute(f"COMMENT ON COLUMN {view}.{quote(column)} IS {quote_text(says)}")
    connection.execute(f"COMMENT ON VIEW {blocks} IS {quote_text(BLOCKS_SAY.format(view=spec.view))}")
    query = "SELECT table_name FROM system.main.duckdb_tables()"
    there = {name for (name,) in connection.execute(query).fetchall()}
    for helper in KEPT:
        if named[helper.kind] in there:
            says = quote_text(helper.says.format(view=spec.view))
            connection.execute(f"COMMENT ON TABLE {schema}.{quote(named[helper.kind])} IS {says}")


def comments(view: str) -> Iterator[str]:
    """What the helper views of a view say of themselves, by which they are known whatever their names."""
    for helper in KEPT:
        yield helper.says.format(view=view)
    yield BLOCKS_SAY.format(view=view)


def kind_of(comment: str) -> Kind | None:
    """Which helper view a table of a file is, by its comment; None for the table of the version."""
    for helper in KEPT:
        before, _, after = helper.says.partition("{view}")
        if comment.startswith(before) and comment.endswith(after):
            return helper.kind
    return None


def said(file: Path) -> list[tuple[TableName, str]]:
    """What the tables and views of a file say about themselves. Raises what DuckDB raises."""
    tables, views = duckdb_session.ask_catalog(file, TABLES, VIEWS)
    return [(TableName(schema, name), comment or "") for schema, name, comment in (*tables, *views)]


def marked_views(file: Path, release: str) -> list[tuple[Mark, TableName]]:
    """The views of a file that show versions of the release. Raises what DuckDB raises."""
    read = [(read_mark(comment, release), name) for name, comment in said(file)]
    # The table of a version has the name of its view with the number; the view of older files is marked itself.
    return [
        (Mark(*mark), TableName(name.schema, name.name.removesuffix(f"_v{mark[0]}")))
        for mark, name in read
        if mark is not None
    ]


def shown_marks(published: Path, release: str) -> list[Mark]:
    """The version of the release that readers of a file see: one, or none.

    Raises QblockError for a file that cannot be read: what is in it is not known then.
    """
    if not published.exists():
        return []
    try:
        return [replace(mark, shown=True) for mark, _ in marked_views(published, release)]
    except duckdb.Error as error:
        raise explain_duckdb(error, file=published) from error


def kept_marks(kept: Path, release: str) -> list[Mark]:
    """The versions of the release that a private folder keeps.

    A copy that cannot be read was left half made by a run that was stopped, and says nothing.
    """
    marks: list[Mark] = []
    for file in sorted(kept.glob("v*.duckdb")) if kept.is_dir() else ():
        if re.fullmatch(r"v\d+\.duckdb", file.name):
            try:
                marks += [mark for mark, _ in marked_views(file, release)]
            except duckdb.Error as error:
                if of_newer_duckdb(error):
                    raise explain_duckdb(error, file=file) from error
    return marks
