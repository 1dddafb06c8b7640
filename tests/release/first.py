"""First runs of jobs that many tests begin with: done once for each table and spec, and copied."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from engines import database, replace_database

from qblock.results.release import Published

if TYPE_CHECKING:
    from release.jobs import Job


class FirstRuns:
    """What first runs have left, by all that they depend on. new_folder: makes one that stays."""

    def __init__(self, new_folder: Callable[[], Path]) -> None:
        self._new_folder = new_folder
        self._kept: dict[str, tuple[str, Path, Published, list[str]]] = {}
        self._databases = ExitStack()

    def run(self, job: Job, server: str, table: object, more: Callable[[Job], object] | None = None) -> Published:
        """What `job.run()` would do and return. server: the URL of any database; table: what was put into the source
        before the job's own changes; more: what is done after it. On DuckDB, where all of it is files of the job's
        folder, server is ""."""
        key = _key(job, server, table) + ("" if more is None else f"{more.__module__}.{more.__qualname__}")
        if key not in self._kept:
            result = job.run()
            if more is not None:
                more(job)
            folder = self._new_folder() / "job"
            shutil.copytree(job.folder, folder)
            url = self._databases.enter_context(database(server, _name(job.url))) if server else ""
            self._kept[key] = _name(url) if server else "", folder, copy.deepcopy(result), list(job.changes)
            return result
        template, folder, result, job.changes[:] = self._kept[key]
        if server:
            replace_database(server, _name(job.url), template)
        shutil.copytree(folder, job.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("spec.yaml"))
        return copy.deepcopy(result)

    def close(self) -> None:
        self._databases.close()


def _name(url: str) -> str:
    return sa.make_url(url).database or ""


def _key(job: Job, server: str, table: object) -> str:
    files = {
        str(path.relative_to(job.folder)): path.read_bytes().hex()
        for path in sorted(job.folder.rglob("*"))
        if path.is_file() and path.name not in ("spec.yaml", "warehouse.duckdb")
    }
    settings = json.dumps(job.settings, sort_keys=True, default=str).replace(json.dumps(job.url), '"URL"')
    settings = settings.replace(str(job.folder), "FOLDER")
    return repr((server, table, job.changes, files, settings))
