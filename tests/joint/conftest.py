"""Scenarios, and an open crosswalk on each engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from qblock.release.joint.book import Book, open_book, prepare
from qblock.release.private import Place, place_of_url
from qblock.warehouse.duckdb import DuckdbWarehouse
from qblock.warehouse.postgresql import PostgresqlWarehouse

OpenBook = Callable[[], AbstractContextManager[Book]]


@pytest.fixture(scope="session")
def scenarios(shared: Path) -> list[dict]:
    """The worked scenarios of successive releases."""
    return json.loads((shared / "golden" / "release_scenarios.json").read_text("utf-8"))


@pytest.fixture
def place(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place with an empty crosswalk."""
    url = "duckdb:///qblock/ledger.duckdb"
    if engine_name == "postgresql":
        url = request.getfixturevalue("postgresql_url")
    found = place_of_url(url, tmp_path)
    prepare(found)
    return found


@pytest.fixture
def open_a_book(place: Place) -> OpenBook:
    """`with open_a_book() as book`: beside a session without a source; committed at the end."""

    @contextmanager
    def opened() -> Iterator[Book]:
        warehouse = (
            DuckdbWarehouse(None)
            if place.engine == "duckdb"
            else PostgresqlWarehouse(place.url.set(drivername="postgresql"))
        )
        with warehouse.snapshot() as session, open_book(place, session) as book:
            yield book
            if place.engine == "postgresql":
                session.connection.commit()
        warehouse.close()

    return opened


@pytest.fixture
def book(open_a_book: OpenBook) -> Iterator[Book]:
    with open_a_book() as found:
        yield found
