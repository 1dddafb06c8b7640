"""What DuckDB files of versions say about themselves: the comment on the table, or of older ones on the view."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import duckdb

from qblock.publish.targets.mark import Mark, read_mark
from qblock.warehouse import duckdb_session
from qblock.warehouse.faults import explain_duckdb, of_newer_duckdb
from qblock.warehouse.protocol import TableName

TABLES = "SELECT schema_name, table_name, comment FROM system.main.duckdb_tables() WHERE NOT internal"
VIEWS = "SELECT schema_name, view_name, comment FROM system.main.duckdb_views() WHERE NOT internal"


def said(file: Path) -> list[tuple[TableName, str]]:
    """What the tables and views of a file say about themselves. Raises what DuckDB raises."""
    tables, views = duckdb_session.ask_catalog(file, TABLES, VIEWS)
    return [(TableName(schema, name), comment or "") for schema, name, comment in (*tables, *views)]


def marked_views(file: Path, release: str) -> list[tuple[Mark, TableName]]:
    """The views of a file that show versions of the release. Raises what DuckDB raises."""
    read = [(read_mark(comment, release), name) for name, comment in said(file)]
    return [(Mark(*mark), view_of(name, mark[0])) for mark, name in read if mark is not None]


def view_of(marked: TableName, version: int) -> TableName:
    """The view of what is marked: the table of a version has its name with the number, the view of older files is
    marked itself."""
    return TableName(marked.schema, marked.name.removesuffix(f"_v{version}"))


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
