"""Hierarchies outside of a run: as CSV files to edit, and as dimension tables to keep in the warehouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import sqlalchemy as sa

from qblock.engines.registry import ENGINES
from qblock.errors import InputError
from qblock.hierarchy import Hierarchy, Layout, write_csv
from qblock.ledger.stores import store_of
from qblock.publish.helpers import shortened
from qblock.publish.targets import write_dimensions
from qblock.results.search import Checked, HierarchyTables
from qblock.search.task import Task
from qblock.spec import Spec
from qblock.spec.written import flow

FILE = "hierarchies.duckdb"
"""Of dimension tables in the private folder, where the ledger is in a file."""


def write_hierarchies(task: Task, directory: Path, *, force: bool = False, layout: Layout = "header") -> list[Path]:
    """Write each hierarchy as NAME.csv into a folder. Raises InputError where a file already exists."""
    files = {directory / f"{_file_name(h)}.csv": h for h in _by_values(task)}
    present = [file for file in files if file.exists()]
    if present and not force:
        raise InputError(f"{present[0]} already exists; give another --directory, or --force to replace it")
    directory.mkdir(parents=True, exist_ok=True)
    for file, hierarchy in files.items():
        write_csv(hierarchy, file, layout)
    return list(files)


def _file_name(hierarchy: Hierarchy) -> str:
    return "".join(c if c.isalnum() else "_" for c in hierarchy.attribute) or "hierarchy"


def check_hierarchies(task: Task) -> Checked:
    """The hierarchies of a source: it could be opened, so that they are nested and the spec says what becomes of values
    that they lack."""
    uncovered = task.source.rows_uncovered()
    hierarchies = [
        {
            "attribute": hierarchy.attribute,
            "levels": list(hierarchy.level_names),
            "height": hierarchy.height,
            "leaves": len(hierarchy.labels[0]),
            "labels": [len(set(level)) for level in hierarchy.labels],
            "uncovered": uncovered.get(hierarchy.attribute, 0),
        }
        for hierarchy in task.source.hierarchies
    ]
    fields = {"rows": task.source.rows, "quarantined": task.source.quarantined, "hierarchies": hierarchies}
    return Checked.model_validate(fields)


def dimension_tables(task: Task) -> dict[str, pa.Table]:
    """Each hierarchy as the rows of a dimension table, texts and leaf first, by the name that it is kept under."""
    return {
        shortened(f"hierarchy_{task.spec.release}_{_file_name(hierarchy)}"): _rows(hierarchy)
        for hierarchy in _by_values(task)
    }


def _by_values(task: Task) -> tuple[Hierarchy, ...]:
    """The hierarchies of a task. Raises InputError where one begins with cells, which no file says of values."""
    for hierarchy in task.source.hierarchies:
        if hierarchy.cells is not None:
            where = task.spec.at("attributes", hierarchy.attribute, "hierarchy", "finest")
            raise InputError(
                f"{where}: values of {hierarchy.attribute} are read as cells (`finest`), and a file or a table of its "
                "hierarchy would list single values. Remove `finest`, or keep the hierarchy in the spec"
            )
    return task.source.hierarchies


def load_hierarchies(spec: Spec, tables: Mapping[str, pa.Table]) -> HierarchyTables:
    """Write dimension tables, replacing older ones. No task may be open: the spec may name the very tables, which its
    snapshot would lock.

    PostgreSQL: `qblock.hierarchy_RELEASE_ATTRIBUTE` in the database of the ledger; Spark: in the schema of
    `private.path`; beside a ledger in files: the same name in `hierarchies.duckdb`, which no spec can name.
    """
    elsewhere = write_dimensions(spec, tables)
    if elsewhere is not None:
        return _loaded(elsewhere, tables)
    store = store_of(spec)
    schema = ENGINES[store.engine].adapter.private_schema
    beside = store.beside(FILE)
    if beside == store:
        store.upgrade()
    engine = beside.create_engine()
    try:
        with beside.translated(), engine.begin() as connection:
            for name, rows in tables.items():
                columns = [sa.Column(level, sa.Text) for level in rows.column_names]
                table = sa.Table(name, sa.MetaData(), *columns, schema=schema)
                table.drop(connection, checkfirst=True)
                table.create(connection)
                if rows.num_rows:
                    connection.execute(table.insert(), rows.to_pylist())
    finally:
        engine.dispose()
    if beside != store:
        return HierarchyTables(tables=tuple(tables), entries=(), file=store.within(store.folder / FILE))
    return _loaded([f"{schema}.{name}" for name in tables], tables)


def _loaded(names: Sequence[str], tables: Mapping[str, pa.Table]) -> HierarchyTables:
    """The answer for tables of a database, in order."""
    levels = (rows.column_names for rows in tables.values())
    entries = (f"hierarchy: {flow({'table': n, 'levels': of})}" for n, of in zip(names, levels, strict=True))
    return HierarchyTables(tables=tuple(names), entries=tuple(entries), file=None)


def _rows(hierarchy: Hierarchy) -> pa.Table:
    """The labels of each leaf but that of NULL, as texts."""
    rows = [labels for labels in zip(*hierarchy.labels, strict=True) if labels[0] is not None]
    levels = enumerate(hierarchy.level_names)
    return pa.table({name: pa.array([labels[h] for labels in rows], pa.string()) for h, name in levels})
