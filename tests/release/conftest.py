"""A ledger on each engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from engines import database
from faults.nursery import Nursery
from faults.piped import Piped

from qblock.ledger.store import Store
from qblock.ledger.stores import store_of_url
from qblock.release import apply
from release.crossing import crossing  # noqa: F401
from release.jobs import copy_job, first_runs, job, job_templates, make_job, released  # noqa: F401

MakeLedger = Callable[[str, Path, str], AbstractContextManager[Store]]
Start = Callable[..., Piped]


@pytest.fixture
def place(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A place without a ledger."""
    if engine_name == "duckdb":
        return store_of_url("sqlite:///qblock/ledger.sqlite", tmp_path)
    return store_of_url(request.getfixturevalue("postgresql_url"), tmp_path)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How often a run opened the source to code it."""
    found: list[str] = []
    real = apply.open_recoded
    monkeypatch.setattr(apply, "open_recoded", lambda *a, **more: (found.append("source"), real(*a, **more))[1])
    return found


@pytest.fixture(scope="session")
def empty_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeLedger]:
    """`empty_ledger(engine, folder, server)`: a place with an empty ledger, copied from one made once.

    server: the URL of the PostgreSQL that it is on, or "".
    """
    made: dict[str, Store] = {}
    with ExitStack() as stack:

        @contextmanager
        def copy(engine: str, folder: Path, server: str) -> Iterator[Store]:
            kind = server or engine
            if kind not in made:
                template = tmp_path_factory.mktemp("ledger")
                url = "sqlite:///qblock/ledger.sqlite"
                if server:
                    url = stack.enter_context(database(server))
                made[kind] = store_of_url(url, template)
                made[kind].upgrade()
            if not server:
                shutil.copytree(made[kind].folder, folder / "qblock")
                yield store_of_url("sqlite:///qblock/ledger.sqlite", folder)
            else:
                with database(server, made[kind].url.database or "") as url:
                    yield store_of_url(url, folder)

        yield copy


@pytest.fixture
def ledger(
    engine_name: str, empty_ledger: MakeLedger, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Store]:
    """A place with an empty ledger."""
    server = request.getfixturevalue("server") if engine_name == "postgresql" else ""
    with empty_ledger(engine_name, tmp_path, server) as place:
        yield place


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """`start(code)`: another Python process with the test's `place` (or `ledger`), which is ended with the test."""
    place: Store = request.getfixturevalue("ledger" if "ledger" in request.fixturenames else "place")
    with Nursery() as nursery, ExitStack() as running:

        def process(code: str) -> Piped:
            url = place.url.render_as_string(hide_password=False)
            prologue = (
                "import os, pathlib, signal, warnings\nwarnings.simplefilter('error')\n"
                "from qblock.ledger.stores import store_of_url\n"
                f"place = store_of_url({url!r}, pathlib.Path({str(tmp_path)!r}))\n"
            )
            return running.enter_context(closing(Piped(nursery, prologue + code, tmp_path_factory.mktemp("pipes"))))

        yield process
