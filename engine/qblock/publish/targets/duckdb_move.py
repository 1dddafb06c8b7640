"""The files of a release of DuckDB under another name, after the ledger says that it was moved; twice is once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from qblock.ledger.kept import PublishedColumn
from qblock.ledger.store import make_private
from qblock.publish.helpers import names
from qblock.publish.targets import duckdb_helpers
from qblock.publish.targets.duckdb import DuckdbTarget, copy_file, remove, remove_logs, sync
from qblock.publish.targets.duckdb_helpers import marked_views
from qblock.publish.targets.identity import mark_text
from qblock.warehouse import duckdb_session
from qblock.warehouse.duckdb import quote_text
from qblock.warehouse.faults import explain_duckdb
from qblock.warehouse.protocol import quote


def finish_move(
    target: DuckdbTarget,
    earlier: str,
    before: str,
    kept: Mapping[int, Sequence[PublishedColumn]],
    current: int | None,
) -> None:
    """Move what is left of a release. earlier: its name before; before: its view then, as the ledger has it; kept: the
    columns of each version that is kept; current: the version that readers see."""
    folder = target.folder.parent / earlier
    for version, columns in kept.items():
        _move_version(target, earlier, folder / f"v{version}.duckdb", version, columns)
    _move_file(target, earlier, before, current)
    if folder != target.folder and folder.is_dir():
        shutil.rmtree(folder)


def _move_version(
    target: DuckdbTarget, earlier: str, before: Path, version: int, columns: Sequence[PublishedColumn]
) -> None:
    """The private copy of a version under the names of the spec: a file of its own, as nothing is renamed in one."""
    path = target.version_file(version)
    if not before.exists() or (path.exists() and (path != before or target.holds(version))):
        return
    for folder in (target.folder.parent, target.folder):
        make_private(folder)
    beside = path.with_name(f".{path.name}.new")
    remove(beside)
    schema, name = quote(target.spec.publish.schema), f"{target.spec.view}_v{version}"
    with _translated(), duckdb_session.connect(beside, storage=target.storage) as connection:
        connection.execute(f"ATTACH {quote_text(str(before))} AS qblock_before (READ_ONLY)")
        tables = connection.execute(
            "SELECT schema_name, table_name, comment FROM system.main.duckdb_tables() "
            "WHERE database_name = 'qblock_before'"
        ).fetchall()
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        renamed = names(target.spec.view, target.spec.publish.names)
        for there, table, comment in tables:
            kind = duckdb_helpers.kind_of(comment or "")
            # DuckDB keeps the order of rows.
            rows = f"qblock_before.{quote(there)}.{quote(table)}"
            new = quote(name if kind is None else renamed[kind])
            connection.execute(f"CREATE TABLE {schema}.{new} AS SELECT * FROM {rows}")
        connection.execute("DETACH qblock_before")
        connection.execute("CHECKPOINT")
    with _translated():
        stamp = next((mark.stamp for mark, _ in marked_views(before, earlier)), None)
    mark = mark_text(target.spec.release, version, stamp)
    target.add_view(beside, name, columns, mark)
    beside.chmod(0o600)
    sync(beside)
    beside.replace(path)
    remove_logs(beside)
    sync(path.parent)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise explain_duckdb(error) from error


def _move_file(target: DuckdbTarget, earlier: str, before: str, current: int | None) -> None:
    """Make the release file under the names of the spec, and remove the one that readers had until now."""
    _, _, name = before.partition(" in ")
    old = target.place.folder.parent / name
    if current is not None and not target.is_live(current):
        beside = target.file.with_name(f".{target.file.name}.qblock-v{current}")
        remove(beside)
        copy_file(target.version_file(current), beside)
        shown = next((file for file in (target.file, old) if file.exists()), None)
        if shown is not None:
            beside.chmod(shown.stat().st_mode & 0o777)
        remove_logs(target.file)
        beside.replace(target.file)
        sync(target.file.parent)
    if old.resolve() != target.file.resolve() and old.exists():
        replace_spec = replace(target.spec, release=earlier)
        DuckdbTarget(replace_spec, target.place, target.source, old).unpublish()
