"""Ctrl-C and SIGTERM in the middle of a search: exit status, message, and nothing left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from faults.nursery import Nursery
from faults.piped import Piped
from integration.sources import execute

from qblock.cli import app
from qblock.search.task import Task

QUASI: dict[str, Any] = {"role": "quasi_identifier", "hierarchy": "suppress"}
START = """
from qblock.cli import main
from qblock.engines.sql_session import SqlSession

stored = SqlSession.store

def store(self, name, query):
    if name == "qblock_raw":
        print("reached", flush=True)
    return stored(self, name, query)

SqlSession.store = store
main()
"""
SLOW = {
    "duckdb": "SELECT sum(a.range * b.range) % 2 FROM range(1000000) a, range(10000000) b",
    "postgresql": "SELECT count(pg_sleep(600))",
}
"""A value that takes minutes to find."""


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
    ],
)
def test_in_the_middle_of_a_statement(
    warehouse, engine_name: str, spec: Callable[..., Path], tmp_path: Path, sent: int, status: int, said: str
) -> None:
    url = warehouse("people", {"a": ["x", "y"], "s": ["u", "v"]})
    execute(url, f"CREATE VIEW slow AS SELECT a, s FROM people WHERE ({SLOW[engine_name]}) >= 0")
    file = spec(url, "slow", {"a": QUASI, "s": "sensitive"})
    (spill := tmp_path / "tmp").mkdir()
    arguments = ["search", str(file), "--json"]
    with Nursery() as nursery, closing(Piped(nursery, START, tmp_path, arguments, {"TMPDIR": str(spill)})) as process:
        assert process.stdout.readline() == "reached\n"
        if engine_name == "postgresql":
            wait_for(lambda: running(url) == 1)
        process.send_signal(sent)
        out, err = process.communicate()
    assert (process.returncode, out, err) == (status, "", f"qblock: {said}\n")
    assert list(spill.iterdir()) == []
    if engine_name == "postgresql":
        wait_for(lambda: running(url) == 0)


def running(url: str) -> int:
    """Sessions that are at the slow statement."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%slow%' AND state = 'active' "
            "AND pid <> pg_backend_pid() AND datname = current_database()"
        ).fetchone()
    assert found is not None
    return int(found[0])


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something is so; fail when it is not in good time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_between_two_nodes(
    warehouse, spec: Callable[..., Path], qblock, monkeypatch: pytest.MonkeyPatch, sent: int, status: int
) -> None:
    """In this process: the search is left where it is, and the next one finds everything as before."""
    url = warehouse("people", {"a": ["x", "y", "x", "y"], "b": [1, 2, 1, 2], "s": ["u", "v", "v", "u"]})
    file = spec(url, "people", {"a": QUASI, "b": QUASI, "s": "sensitive"}, [{"distinct_l_diversity": {"l": 2}}])
    asked = Task.passes

    def passes(self: Task, node: Any) -> bool:
        os.kill(os.getpid(), sent)
        return asked(self, node)

    before = {number: signal.signal(number, app._stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Task, "passes", passes)
            ran = qblock("search", file, "--json")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert (ran.status, ran.out) == (status, "")
    assert ran.err == f"qblock: {'terminated' if sent == signal.SIGTERM else 'interrupted'}\n"
    assert qblock("search", file, "--json").status == 0
