"""Ctrl-C and SIGTERM at any time: the exit status says so, readers keep a whole version, the next run publishes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psycopg
import pytest

from faults import readers
from faults.harness import Harness
from faults.nursery import MAIN, Nursery
from faults.stage import Stage, stage
from qblock.ledger.history import history

STOPPED: list[tuple[int, dict[str, Any]]] = [
    (signal.SIGTERM, {"step": "Search", "when": "before"}),
    (signal.SIGINT, {"step": "CopyVersion", "when": "after"}),
    (signal.SIGTERM, {"record": "checked", "when": "after"}),
]
WORD = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
AGAIN_SOON = f"from qblock.cli import app\napp.AGAIN_SECONDS = 2.0\n{MAIN}"
"""The program, which waits less long before it takes a signal to be swallowed."""
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def play(engine_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    server = request.getfixturevalue("server") if engine_name == "postgresql" else None
    with stage(engine_name, tmp_path, server) as made:
        yield made


@pytest.fixture
def harness(play: Stage) -> Any:
    """A harness after a first version, with another wave to publish."""
    with Nursery() as nursery:
        made = Harness(play, nursery, 0)
        assert made.run() == 0, made.output.read_text()
        made.succeeded()
        play.next_wave()
        yield made


def last_words(harness: Harness) -> str:
    """The last line that the newest run printed."""
    return harness.output.read_text().splitlines()[-1]


def seen(play: Stage) -> str:
    return readers.digest(play.job.query(readers.ROWS))


def test_a_stopped_run_leaves_the_version_before(harness: Harness) -> None:
    play = harness.play
    for number, point in STOPPED:
        before = seen(play)
        assert harness.run({**point, "signal": number}) == STATUS[number], harness.output.read_text()
        assert last_words(harness) == f"qblock: {WORD[number]}: nothing was published"
        assert "Traceback" not in harness.output.read_text()
        assert seen(play) == before == play.legal[-1]
        last = history(play.job.spec)["events"][-1]
        assert (last["state"], last["reason"]) == ("failed", "the run was stopped")
        assert harness.run() == 0, harness.output.read_text()
        harness.succeeded()
        play.next_wave()
    assert (harness.report.problems, play.lost) == ([], [])


@pytest.mark.parametrize("point", [{"step": "Retire", "when": "before"}, {"record": "published", "when": "committed"}])
def test_a_run_that_is_stopped_after_it_has_published_stays_published(harness: Harness, point: dict[str, Any]) -> None:
    before = seen(harness.play)
    assert harness.run({**point, "signal": signal.SIGTERM}, code=AGAIN_SOON) == 143
    assert last_words(harness) == "qblock: terminated: version 2 was published"
    assert seen(harness.play) != before
    harness.succeeded()
    assert harness.run() == 0
    assert '"unchanged"' in harness.output.read_text()
    assert (harness.report.problems, harness.play.lost) == ([], [])


def test_a_file_that_was_renamed_when_the_signal_came_is_recorded_by_the_next_run(tmp_path: Path) -> None:
    with stage("duckdb", tmp_path) as play, Nursery() as nursery:
        job = Harness(play, nursery, 0)
        assert job.run({"rename": "after", "signal": signal.SIGINT}) == 130
        assert last_words(job) == "qblock: interrupted: version 1 was published"
        assert job.run() == 0, job.output.read_text()
        assert '"unchanged"' in job.output.read_text()
        job.succeeded()
        assert history(play.job.spec)["current"] == 1
        assert (job.report.problems, play.lost) == ([], [])


@pytest.mark.parametrize("number", STATUS)
@pytest.mark.parametrize("engine_name", ["postgresql"])
def test_a_signal_ends_a_run_that_waits_for_the_database(number: int, harness: Harness) -> None:
    play = harness.play
    before = seen(play)
    with psycopg.connect(play.job.url) as blocker, psycopg.connect(play.job.url, autocommit=True) as watcher:
        blocker.execute("LOCK TABLE people")
        pid = harness.nursery.start(["release", str(play.path)], harness.output)
        deadline = time.monotonic() + 120
        while watcher.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(pid, number)
        assert harness.nursery.wait(pid) == STATUS[number], harness.output.read_text()
        assert seen(play) == before
    assert harness.run() == 0
    harness.succeeded()
    assert (harness.report.problems, play.lost) == ([], [])
