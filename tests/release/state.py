"""Private state that is saved, lost and restored: files of the private folder, or tables of schema qblock."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import duckdb

from release.jobs import Job

PARTS = {
    "duckdb": {"ledger": ["ledger.sqlite"], "crosswalk": ["crosswalk.duckdb"], "versions": ["versions"]},
    "postgresql": {
        "ledger": ["event", "guarantee", "reference", "pointer", "begun"],
        "crosswalk": [
            f"crosswalk{name}"
            for name in ("", "_key", "_version", "_block", "_episode", "_signature", "_rolled", "_frozen", "_apart")
        ],
    },
}
EVERYTHING = {engine: tuple(parts) for engine, parts in PARTS.items()}


def save(job: Job) -> None:
    """A backup of all private state, and on DuckDB of the release file, as they are now."""
    if job.engine == "duckdb":
        shutil.copytree(job.folder / "qblock", job.folder / "backup")
        shutil.copy(job.target, job.folder / "backup" / "release.duckdb")
        return
    job.change("CREATE SCHEMA backup")
    for names in PARTS[job.engine].values():
        for name in names:
            job.change(f"CREATE TABLE backup.{name} AS TABLE qblock.{name}")


def lose(job: Job, parts: Iterable[str]) -> None:
    """Parts of the private state are gone."""
    for name in (name for part in parts for name in PARTS[job.engine][part]):
        if job.engine == "postgresql":
            job.change(f"DELETE FROM qblock.{name}")
        elif name == "versions":
            shutil.rmtree(job.folder / "qblock" / name)
        else:
            (job.folder / "qblock" / name).unlink()


def restore(job: Job, parts: Iterable[str]) -> None:
    """Parts of the private state are as they were when they were saved."""
    for part in parts:
        lose(job, [part])
        for name in PARTS[job.engine][part]:
            if job.engine == "postgresql":
                job.change(f"INSERT INTO qblock.{name} SELECT * FROM backup.{name}")
            elif name == "versions":
                shutil.copytree(job.folder / "backup" / name, job.folder / "qblock" / name)
            else:
                shutil.copy(job.folder / "backup" / name, job.folder / "qblock" / name)


def ask(job: Job, part: str, statement: str) -> list[tuple[Any, ...]]:
    """Ask the ledger or the crosswalk; `{}` is the schema's prefix."""
    if job.engine == "postgresql":
        return job.query(statement.format("qblock."))
    file = job.folder / "qblock" / PARTS["duckdb"][part][0]
    if not file.exists():
        return []
    if part == "ledger":
        with closing(sqlite3.connect(file)) as ledger:
            return ledger.execute(statement.format("")).fetchall()
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(statement.format("")).fetchall()


def crosswalk(job: Job) -> list[tuple[int, str | None]]:
    """Versions and stamps in the crosswalk."""
    return ask(job, "crosswalk", "SELECT version, stamp FROM {}crosswalk_version ORDER BY version")


def kept(job: Job) -> list[str]:
    """The private copies of versions."""
    if job.engine == "duckdb":
        return sorted(path.name for path in (job.folder / "qblock").glob("versions/people/v*.duckdb"))
    return [name for (name,) in job.query("SELECT relname FROM pg_class WHERE relname ~ '^v[0-9]+_people$' ORDER BY 1")]
