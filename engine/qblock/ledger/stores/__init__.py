"""The stores of private state by engine; a new engine is an entry of STORES."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from qblock.errors import InputError
from qblock.ledger.place import FOLDER, Place
from qblock.ledger.stores.duckdb import LEDGER_FILE, DuckdbPlace
from qblock.warehouse.connect import parse_url
from qblock.warehouse.engines import Engine, database_file, engine_of


class Secret(Protocol):
    @property
    def url(self) -> str: ...


class Source(Protocol):
    @property
    def url(self) -> Secret: ...


class HasPlace(Protocol):
    """What is read of a spec."""

    @property
    def directory(self) -> Path: ...

    @property
    def source(self) -> Source: ...


def _beside_the_spec(folder: Path, url: sa.URL) -> Place:
    return DuckdbPlace.of_file(folder / LEDGER_FILE)


def _in_the_database(folder: Path, url: sa.URL) -> Place:
    from qblock.ledger.stores.postgresql import PostgresqlPlace

    return PostgresqlPlace(folder, url.set(drivername="postgresql+psycopg"))


STORES: dict[str, Callable[[Path, sa.URL], Place]] = {"duckdb": _beside_the_spec, "postgresql": _in_the_database}
"""Where the private state of a source is, by engine: from the private folder and the source's URL."""


def place_of(spec: HasPlace) -> Place:
    """The ledger's place for a spec. Raises InputError for a source URL that cannot be used."""
    url = parse_url(spec.source.url.url)
    _check_published(engine_of(url))
    return STORES[engine_of(url).name](spec.directory.resolve() / FOLDER, url)


def _check_published(engine: Engine) -> None:
    if not engine.publishes:
        raise InputError(
            f"releases from {engine.title} are not published yet: it has no ledger; search, audit and compare read it"
        )


def place_of_url(url: str, directory: Path) -> Place:
    """The place of a ledger given by URL: a database, or the file that is the ledger itself.

    Raises InputError for another file: a source is never written to.
    """
    parsed = parse_url(url)
    folder = directory.resolve() / FOLDER
    if engine_of(parsed).is_file:
        file = database_file(parsed, directory)
        if file.name != LEDGER_FILE:
            raise InputError(f"{file} is not a ledger; give the spec, or the URL of a file {LEDGER_FILE}")
        folder = file.parent
    _check_published(engine_of(parsed))
    return STORES[engine_of(parsed).name](folder, parsed)
