"""The stores of private state by engine; a new engine is an entry of STORES."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from qblock.engines.engine import database_file
from qblock.engines.from_spec import engine_of_place, place_of
from qblock.engines.registry import engine_of, parse_url
from qblock.errors import InputError
from qblock.ledger.store import FOLDER, Store
from qblock.ledger.stores.files import LEDGER_FILE, FileStore
from qblock.spec import Spec

OF_LEDGERS = "sqlite:///"
"""What the URL of a ledger in a file starts with."""
REMEDY = (
    "give it a database: private: {url: sqlite:///qblock/ledger.sqlite, path: /where/the/cluster/keeps/copies}, or "
    "url: postgresql://USER@HOST/DATABASE; or publish elsewhere: publish: {url: duckdb:///release.duckdb}"
)


def _beside_the_spec(folder: Path, url: sa.URL) -> Store:
    return FileStore(folder / LEDGER_FILE)


def _in_the_database(folder: Path, url: sa.URL) -> Store:
    from qblock.ledger.stores.postgresql import PostgresqlStore

    return PostgresqlStore(folder, url.set(drivername="postgresql+psycopg"))


STORES: dict[str, Callable[[Path, sa.URL], Store]] = {"duckdb": _beside_the_spec, "postgresql": _in_the_database}
"""Where the private state of a source is, by engine: from the private folder and the source's URL."""


def has_store(spec: Spec) -> bool:
    """Whether a spec says where its ledger is. A search of a source on Spark needs none."""
    return spec.private is not None or engine_of_place(spec).stores


def store_of(spec: Spec) -> Store:
    """The store of a spec. Raises InputError for a URL that cannot be used, and where `private` is missing
    or of no use."""
    url, private = place_of(spec), spec.private
    engine = engine_of(url)
    if not engine.publishes:
        raise InputError(f"{engine.title} is only read; publish elsewhere: publish: {{url: duckdb:///release.duckdb}}")
    if private is None:
        if engine.stores:
            return STORES[engine.name](spec.directory.resolve() / FOLDER, url)
        raise InputError(f"{engine.title} cannot hold the ledger of a release; {REMEDY}")
    if engine.stores and not engine.is_file:
        raise InputError(
            f"{spec.at('private')}: {engine.title} holds the private state of its releases, and changes both in one "
            "transaction; remove `private`"
        )
    if engine.stores and private.path is not None:
        raise InputError(f"{spec.at('private', 'path')}: private.path is for releases on Spark; remove it")
    if not engine.stores and private.path is None:
        raise InputError(f"{spec.at('private')}: private.path is missing; {REMEDY}")
    return _elsewhere(private.url.url, spec.directory)


def _elsewhere(url: str, directory: Path) -> Store:
    """The store in another database than the source's."""
    file = _ledger_file(url, directory, "private.url: ")
    if file is not None:
        return FileStore(file)
    parsed = parse_url(url)
    engine = engine_of(parsed)
    if not engine.stores or engine.is_file:
        raise InputError(
            f"private.url: {engine.title} cannot hold the ledger of a release; write sqlite:///qblock/ledger.sqlite, "
            "or postgresql://USER@HOST/DATABASE"
        )
    from qblock.ledger.stores.postgresql import PostgresqlStore

    return PostgresqlStore(directory.resolve() / FOLDER, parsed.set(drivername="postgresql+psycopg"), atomic=False)


def _ledger_file(url: str, directory: Path, where: str = "") -> Path | None:
    """The file that a URL names as a ledger; None for a URL of another database. where: the place in the spec."""
    if not url.startswith(OF_LEDGERS):
        return None
    file = (directory / url.removeprefix(OF_LEDGERS)).resolve()
    if file.name != LEDGER_FILE:
        raise InputError(f"{where}{file} is not a ledger; give the spec, or the URL of a file {LEDGER_FILE}")
    return file


def store_of_url(url: str, directory: Path) -> Store:
    """The store of a ledger given by URL: a database, or the file that is the ledger itself.

    Raises InputError for another file: a source is never written to.
    """
    file = _ledger_file(url, directory)
    if file is not None:
        return FileStore(file)
    parsed = parse_url(url)
    engine = engine_of(parsed)
    if not engine.stores:
        raise InputError(f"there is no ledger on {engine.title}; give the spec, or the URL that it has in private.url")
    if engine.is_file:
        name = database_file(parsed, directory)
        raise InputError(f"{name} is not a ledger; give the spec, or the URL of a file {LEDGER_FILE}")
    return STORES[engine.name](directory.resolve() / FOLDER, parsed)
