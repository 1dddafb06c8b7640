"""The helper views of a release in a DuckDB file: tables beside the version's own, and the blocks as a view of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import sqlalchemy as sa
from sqlalchemy.sql import quoted_name

from qblock.ledger.kept import PublishedColumn
from qblock.publish.helpers import BLOCKS_SAY, KEPT, Kind, Shown, Type, block_columns, names
from qblock.publish.targets.comments import column_comments, view_comment
from qblock.spec import Spec
from qblock.warehouse.duckdb import quote_text
from qblock.warehouse.protocol import Session, quote
from qblock.warehouse.session import RawType

TYPES: dict[Type, str] = {
    "text": "VARCHAR",
    "bigint": "BIGINT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
}


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
