"""From a URL to a warehouse, and what may be printed of a URL."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.spec import Spec
from qblock.spec.source_file import column_type
from qblock.spec.urls import url_problem
from qblock.warehouse.copied import CopiedWarehouse, Tabular
from qblock.warehouse.engines import EXAMPLES, Engine, engine_of
from qblock.warehouse.protocol import TableName, Warehouse
from qblock.warehouse.source_files import FileTable


@runtime_checkable
class Copying(Protocol):
    """A warehouse that copies what is read of it."""

    def copy_only(self, table: TableName, columns: frozenset[str]) -> None:
        """Of this table only these columns are copied."""

    def copy_to(self, path: str) -> None:
        """Copies are stored there, by the server."""


def parse_url(url: str) -> sa.URL:
    """An SQLAlchemy URL; raises InputError that does not repeat the text, which may hold a password."""
    problem = url_problem(url)
    if problem is not None:
        raise InputError(problem)
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError(f"the database URL cannot be read; write {EXAMPLES}") from None
    engine_of(parsed).check_url(parsed)
    return parsed


def open_warehouse(url: str, directory: Path, memory_limit: str | None = None) -> Warehouse:
    """The warehouse of a URL, not connected yet; relative DuckDB paths start at `directory`."""
    parsed = parse_url(url)
    return engine_of(parsed).opened(parsed, directory, memory_limit)


def engine_of_source(spec: Spec) -> Engine:
    """The engine that the source of a spec is on."""
    return engine_of(parse_url(spec.source.url.url))


def warehouse_of(spec: Spec, *, rows: bool = True) -> Warehouse:
    """The warehouse of a spec's source. rows: whether they are wanted of files, or only the columns and their types."""
    source = spec.source
    if source.file is None:
        warehouse = open_warehouse(source.url.url, spec.directory, spec.search.memory_limit)
        if isinstance(warehouse, Copying):
            named = {*spec.attributes, *([spec.entity] if spec.entity is not None else [])}
            warehouse.copy_only(TableName.parse(source.table), frozenset(named))
            if spec.private is not None:
                warehouse.copy_to(spec.private.path)
        return warehouse
    types = {name: column_type(text) for name, text in source.types.items()}
    return copied(FileTable(source.file, spec.directory, spec.at("source", "file"), types), spec, rows=rows)


def copied(table: Tabular, spec: Spec, *, rows: bool = True) -> CopiedWarehouse:
    """A table that is in no database, with the columns that a spec names, as a warehouse."""
    needed = {name: spec.at("attributes", name) for name in spec.attributes}
    if spec.entity is not None:
        needed.setdefault(spec.entity, spec.at("entity"))
    return CopiedWarehouse(table, needed, spec.search.memory_limit, rows=rows)


def files_warehouse(
    text: str, directory: Path, place: str, types: Mapping[str, str] | None = None
) -> tuple[CopiedWarehouse, TableName]:
    """All columns of the files that a path or pattern names, as a warehouse with one table. place: for messages."""
    table = FileTable(text, directory, place, {name: column_type(type_) for name, type_ in (types or {}).items()})
    return CopiedWarehouse(table, dict.fromkeys(table.names(), place)), TableName(None, table.name)
