"""Scenarios, and an open crosswalk on each engine."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from engines import database

from qblock.engines.duckdb.adapter import DuckdbWarehouse
from qblock.engines.postgresql.adapter import PostgresqlWarehouse
from qblock.ledger.store import Store
from qblock.ledger.stores import store_of_url
from qblock.versions.crosswalk import Crosswalk, open_crosswalk, prepare

MakePlace = Callable[[str, Path, str], AbstractContextManager[Store]]
OpenBook = Callable[[], AbstractContextManager[Crosswalk]]


@pytest.fixture(scope="session")
def empty_crosswalk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakePlace]:
    """`empty_crosswalk(engine, folder, server)`: a place with an empty crosswalk, copied from one made once."""
    made: dict[str, Store] = {}
    with ExitStack() as stack:

        @contextmanager
        def copy(engine: str, folder: Path, server: str) -> Iterator[Store]:
            kind = server or engine
            if kind not in made:
                url = stack.enter_context(database(server)) if server else "sqlite:///qblock/ledger.sqlite"
                made[kind] = store_of_url(url, tmp_path_factory.mktemp("crosswalk"))
                made[kind].upgrade()
                prepare(made[kind])
            if not server:
                shutil.copytree(made[kind].folder, folder / "qblock")
                yield store_of_url("sqlite:///qblock/ledger.sqlite", folder)
            else:
                with database(server, made[kind].url.database or "") as url:
                    yield store_of_url(url, folder)

        yield copy


@pytest.fixture
def place(
    engine_name: str, empty_crosswalk: MakePlace, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Store]:
    """A place with an empty crosswalk."""
    server = request.getfixturevalue("server") if engine_name == "postgresql" else ""
    with empty_crosswalk(engine_name, tmp_path, server) as found:
        yield found


@pytest.fixture
def open_a_book(place: Store) -> OpenBook:
    """`with open_a_book() as crosswalk`: beside a session without a source; committed at the end."""

    @contextmanager
    def opened() -> Iterator[Crosswalk]:
        warehouse = (
            DuckdbWarehouse(None)
            if place.engine == "duckdb"
            else PostgresqlWarehouse(place.url.set(drivername="postgresql"))
        )
        with warehouse.snapshot() as session, open_crosswalk(place, session) as crosswalk:
            yield crosswalk
            if place.engine == "postgresql":
                session.connection.commit()
        warehouse.close()

    return opened


@pytest.fixture
def crosswalk(open_a_book: OpenBook) -> Iterator[Crosswalk]:
    with open_a_book() as found:
        yield found
