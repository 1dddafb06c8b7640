"""A ledger on each engine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qblock.release import migrate
from qblock.release.private import Place, place_of_url

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def place(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place without a ledger."""
    if engine_name == "duckdb":
        return place_of_url("duckdb:///qblock/ledger.duckdb", tmp_path)
    return place_of_url(request.getfixturevalue("postgresql_url"), tmp_path)


@pytest.fixture
def ledger(place: Place) -> Place:
    """A place with an empty ledger."""
    migrate.upgrade_ledger(place)
    return place


@pytest.fixture
def start(place: Place, tmp_path: Path) -> Iterator[Start]:
    """`start(code)`: another Python process in which `place` is the place, and which is ended with the test."""
    running = []

    def process(code: str) -> subprocess.Popen[str]:
        file = "/qblock/ledger.duckdb" if place.engine == "duckdb" else ""
        url = f"duckdb:///{tmp_path}{file}" if file else place.url.render_as_string(hide_password=False)
        prologue = (
            "import os, pathlib, signal, sys\nfrom qblock.release.private import place_of_url\n"
            f"place = place_of_url({url!r}, pathlib.Path({str(tmp_path)!r}))\n"
        )
        started = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", prologue + code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        running.append(started)
        return started

    yield process
    for process_ in running:
        process_.kill()
        process_.communicate()
