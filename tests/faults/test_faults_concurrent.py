"""Jobs at the same time, and a source that changes meanwhile: the short forms of `faults.crowd` and `faults.writer`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults import crowd, writer

JOBS = crowd.JOBS if os.environ.get("QBLOCK_TEST_ENGINES") == "all" else 5


def test_of_jobs_that_start_at_once_exactly_one_publishes(
    engine_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("postgresql_server") if engine_name == "postgresql" else None
    report = crowd.run(engine_name, 2, tmp_path, server, JOBS)
    assert report["problems"] == report["rows_lost"] == []
    assert report["waiting"] == {"published": 1, "unchanged": JOBS - 1}
    assert report["not_waiting"]["published"] == 1
    assert report["not_waiting"]["exit status 4"] >= 1


def test_every_version_of_a_source_that_changes_meanwhile_is_verified(tmp_path: Path, postgresql_server: str) -> None:
    report = writer.run(3, 1, tmp_path, postgresql_server)
    assert report["problems"] == []
    assert report["outcomes"] == {"published": 3}
    assert report["different_contents"] == 3
    assert report["changes"] > 3
    assert report["releases_without_a_change_meanwhile"] == 0
