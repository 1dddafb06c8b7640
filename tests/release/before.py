"""The program as it was before values had a canonical text: it wrote them by a plain cast, and kept no column types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from engines import sql_engine

from qblock.ledger import kept
from qblock.ledger.stores import place_of
from qblock.publish import copy
from qblock.release import ranges
from qblock.warehouse.session import SqlSession
from release.jobs import Job


@contextmanager
def old_program(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs within are those of the first text form."""
    with monkeypatch.context() as patch:
        now = SqlSession.text_of

        def text_of(self: SqlSession, value: Any, kind: Any, form: int = 1) -> sa.ColumnElement[Any]:
            return now(self, value, kind, form)

        patch.setattr(SqlSession, "text_of", text_of)
        patch.setattr(copy, "TEXT_FORM", 1)
        patch.setattr(ranges, "FIRST", "text")
        plain = kept._plain
        patch.setattr(kept, "_plain", lambda one: plain(replace(one, kind=None, people=None)))
        yield


def run_old(job: Job, monkeypatch: pytest.MonkeyPatch) -> Any:
    """One run of the old program; its crosswalk keeps no types."""
    with old_program(monkeypatch):
        result = job.run()
    if job.settings.get("entity"):
        crosswalk(job, "UPDATE crosswalk_version SET types = NULL")
    return result


def crosswalk(job: Job, statement: str) -> list[tuple[Any, ...]]:
    """Ask or change the crosswalk itself."""
    place = place_of(job.spec)
    path = place.folder / "crosswalk.duckdb"
    url = place.url if job.engine == "postgresql" else sa.URL.create("duckdb", database=str(path))
    engine = sql_engine(url)
    with engine.begin() as connection:
        if job.engine == "postgresql":
            connection.exec_driver_sql("SET LOCAL search_path = qblock")
        found = connection.exec_driver_sql(statement)
        return [tuple(row) for row in found] if found.returns_rows else []
