"""Hierarchies outside of a run: as CSV files to edit, and as dimension tables to keep in the warehouse."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.hierarchy import Hierarchy, Layout, write_csv
from qblock.ledger.migrate import upgrade_ledger
from qblock.ledger.stores import place_of
from qblock.publish.helpers import shortened
from qblock.search.task import Task
from qblock.warehouse.connect import engine_of_source
from qblock.warehouse.engines import ENGINES


def write_hierarchies(task: Task, directory: Path, *, force: bool = False, layout: Layout = "header") -> list[Path]:
    """Write each hierarchy as NAME.csv into a folder. Raises InputError where a file already exists."""
    files = {directory / f"{_file_name(h)}.csv": h for h in task.source.hierarchies}
    present = [file for file in files if file.exists()]
    if present and not force:
        raise InputError(f"{present[0]} already exists; give another --directory, or --force to replace it")
    directory.mkdir(parents=True, exist_ok=True)
    for file, hierarchy in files.items():
        write_csv(hierarchy, file, layout)
    return list(files)


def _file_name(hierarchy: Hierarchy) -> str:
    return "".join(c if c.isalnum() else "_" for c in hierarchy.attribute) or "hierarchy"


def load_hierarchies(task: Task) -> list[str]:
    """Write each hierarchy as a dimension table of text columns, leaf first, replacing an older one; returns the names.

    PostgreSQL: `qblock.hierarchy_RELEASE_ATTRIBUTE` in the source's database; DuckDB: the same name in
    `qblock/hierarchies.duckdb` beside the spec. A spec can name such a table as a hierarchy.
    """
    on = engine_of_source(task.spec)
    if not on.stores:
        raise InputError(f"hierarchies are not written to {on.title}; build CSV files, and name them in the spec")
    place = place_of(task.spec)
    schema = ENGINES[place.engine].facts.private_schema
    beside = place.beside("hierarchies")
    if beside == place:
        upgrade_ledger(place)
    engine = beside.create_engine()
    names = []
    try:
        with place.translated(), engine.begin() as connection:
            for hierarchy in task.source.hierarchies:
                name = shortened(f"hierarchy_{task.spec.release}_{_file_name(hierarchy)}")
                columns = [sa.Column(level, sa.Text) for level in hierarchy.level_names]
                table = sa.Table(name, sa.MetaData(), *columns, schema=schema)
                table.drop(connection, checkfirst=True)
                table.create(connection)
                rows = [
                    dict(zip(hierarchy.level_names, labels, strict=True))
                    for labels in zip(*hierarchy.labels, strict=True)
                    if labels[0] is not None
                ]
                connection.execute(table.insert(), rows)
                names.append(f"{schema}.{name}" if schema else name)
    finally:
        engine.dispose()
    return names
