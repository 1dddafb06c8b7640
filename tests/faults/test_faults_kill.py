"""The short form of the fault harness: a few random kills on each engine, and some of the state boundaries.

The long form, with every boundary, is `python -m tests.faults.harness --engine duckdb --kills 200`, and the same for
postgresql; of the steady job `python -m tests.faults.weeks --engine duckdb --kills 200`, and of all commands
`python -m tests.faults.jobs --engine duckdb --kills 200`.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from faults import harness, jobs, readers, weeks
from faults.harness import Harness, Report
from faults.stage import ELSEWHERE, PRIVATE, Stage, stage

RECORDED = [
    {"record": "staged", "when": "committed"},
    {"record": "checked", "when": "after"},
    {"record": "published", "when": "before"},
    {"record": "published", "when": "committed"},
]
PAUSE = readers.PAUSE if os.environ.get("QBLOCK_TEST_ENGINES") == "all" else 4 * readers.PAUSE
"""Every state that a kill leaves is read some times, since it lasts until another run has started and published."""


def check_kills(engine: str, points: list[dict[str, Any]], kills: int, folder: Path, server: str | None) -> None:
    report = harness.run(engine, kills, 3, folder, points, server, PAUSE)
    assert report.problems == []
    assert (report.failed_reads, report.reads_of_anything_else, report.rows_lost) == ([], [], [])
    assert report.boundaries_not_reached == []
    assert report.kills >= kills
    assert report.kills_by_kind["boundary"] == len(points) + 1  # the first run
    assert report.reads > 4 * report.versions_published


@pytest.mark.every_postgresql
def test_killed_runs_on_postgresql_leave_readers_a_complete_version(tmp_path: Path, server: str) -> None:
    check_kills("postgresql", RECORDED, 6, tmp_path, server)


def test_killed_runs_that_publish_elsewhere_leave_readers_a_complete_version(tmp_path: Path, server: str) -> None:
    check_kills(ELSEWHERE, [{"record": "staged", "when": "committed"}, *RECORDED[2:]], 5, tmp_path, server)


def test_killed_runs_whose_ledger_is_elsewhere_leave_readers_a_complete_version(tmp_path: Path, server: str) -> None:
    points = [{"record": "checked", "when": "committed"}, {"rename": "before"}, {"rename": "after"}]
    check_kills(PRIVATE, points, 5, tmp_path, server)


def test_killed_runs_on_duckdb_leave_readers_a_complete_version(tmp_path: Path) -> None:
    points = [{"record": "checked", "when": "committed"}, {"rename": "before"}, {"rename": "after"}]
    check_kills("duckdb", points, 5, tmp_path, None)


def check_weeks(
    engine: str, points: list[dict[str, Any]], folder: Path, server: str | None, several: bool = False
) -> None:
    everything = os.environ.get("QBLOCK_TEST_ENGINES") == "all"
    if everything:
        points = [*harness.boundaries(engine), *weeks.DECIDED]
    report = weeks.run(engine, len(points), 1, folder, points, server, several)
    assert (report.problems, report.boundaries_not_reached) == ([], [])
    assert report.kills >= len(points)
    assert report.versions > len(points)
    if everything and not several:
        assert set(report.closed) == {"newcomers", "leavers", "changed values", "whole cell"}
        assert report.failed


def test_a_killed_run_of_the_steady_job_on_postgresql_decides_nothing_twice(tmp_path: Path, server: str) -> None:
    points = [{"decided": "committed"}, {"record": "published", "when": "before"}]
    check_weeks("postgresql", points, tmp_path, server)


def test_a_killed_run_of_the_steady_job_on_duckdb_decides_nothing_twice(tmp_path: Path) -> None:
    check_weeks("duckdb", [{"decided": "committed"}, {"rename": "before"}], tmp_path, None)


def test_a_killed_run_where_people_have_several_rows_decides_nothing_twice(tmp_path: Path, server: str) -> None:
    check_weeks("postgresql", [{"decided": "committed"}], tmp_path, server, several=True)


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_commands_that_are_killed_end_as_without_the_kill(engine: str, tmp_path: Path, server: str) -> None:
    report = jobs.run(engine, 3, 1, tmp_path, server, names=("rekey", "move", "erase"))
    assert report.clean, report
    assert sum(report.kills.values()) >= 3


@pytest.fixture
def judged(tmp_path: Path) -> Harness:
    """A harness that has published versions `one` and `two`."""
    with stage("duckdb", tmp_path) as play:
        play.legal += ["one", "two"]
        return Harness(play, None, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({}, None),
        ({"seen": ["one", "half of two", "two"]}, "unknown rows"),
        ({"seen": ["one", "two", "one"]}, "an older version again"),
        ({"torn": 1}, "two reads of one transaction differ"),
        ({"failed": ["no such table"]}, "no such table"),
    ],
)
def test_readers_are_judged(judged: Harness, found: dict[str, Any], says: str | None) -> None:
    report = judged.end([{"reads": 3, "failed": [], "torn": 0, "seen": ["one", "two"], **found}])
    assert report.clean == (says is None)
    assert any((says or "") in line for line in ["", *report.failed_reads, *report.reads_of_anything_else])


@pytest.mark.parametrize("what", ["row", "event", "chain"])
def test_what_is_lost_is_noticed(what: str, tmp_path: Path) -> None:
    with stage("duckdb", tmp_path) as play:
        play.job.run()
        play.check_rows()
        assert play.lost == []
        play.check_published()
        ledger = tmp_path / "qblock" / "ledger.sqlite"
        damage(play, what, ledger)
        play.check_rows()
        assert play.lost


def damage(play: Stage, what: str, ledger: Path) -> None:
    if what == "row":
        play.job.change("DELETE FROM people WHERE age = 30")
        return
    with closing(sqlite3.connect(ledger, isolation_level=None)) as connection:
        if what == "event":
            connection.execute("DELETE FROM guarantee WHERE number = 3")
            connection.execute("DELETE FROM event WHERE number = 3")
        else:
            connection.execute("UPDATE event SET rows_published = 1 WHERE number = 2")


def test_a_report_is_clean_only_without_any_fault() -> None:
    assert Report("duckdb").clean
    for name in ("problems", "failed_reads", "reads_of_anything_else", "rows_lost"):
        assert not Report("duckdb", **{name: ["something"]}).clean
        assert Report("duckdb", **{name: ["something"]}).to_json()[name] == 1
