"""Where a release keeps what no reader may see: the ledger, locks and working files."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol

import duckdb as native
import sqlalchemy as sa

from qblock.errors import InputError, QblockError
from qblock.files import disk_full, no_room
from qblock.warehouse import duckdb_session, postgresql_session
from qblock.warehouse.connect import duckdb_path, parse_url
from qblock.warehouse.duckdb_files import check_database
from qblock.warehouse.faults import explain_duckdb, explain_postgresql

FOLDER = "qblock"
LEDGER_FILE = "ledger.duckdb"
SCHEMA = "qblock"
"""The private schema in the source's PostgreSQL database."""


KEPT = "qblock keeps private state in a file there; move it away, or put the file back from its backup"
"""What is said where something else has the place of a private file."""


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


@dataclass(frozen=True)
class Place:
    """Where the ledger is. folder: the private folder, which need not exist; url: of the database with the ledger.

    DuckDB: `ledger.duckdb` in the private folder, shared by the specs of a folder. PostgreSQL: schema `qblock` of the
    source's database.
    """

    engine: Literal["duckdb", "postgresql"]
    folder: Path
    url: sa.URL = field(repr=False)

    @property
    def file(self) -> Path | None:
        """The ledger's DuckDB file."""
        return Path(self.url.database or "") if self.engine == "duckdb" else None

    @property
    def store_text(self) -> str:
        """Where the private state is, for a message."""
        return f"the private folder {self.folder}" if self.engine == "duckdb" else f"schema {SCHEMA}"

    def within(self, file: Path) -> str:
        """A file of the spec's folder relative to it, so that both can be moved together; any other by its path."""
        folder = self.folder.parent
        return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)


def place_of(spec: HasPlace) -> Place:
    """The ledger's place for a spec. Raises InputError for a source URL that cannot be used."""
    folder = spec.directory.resolve() / FOLDER
    url = parse_url(spec.source.url.url)
    if url.get_backend_name() == "duckdb":
        return _duckdb(folder / LEDGER_FILE)
    return Place("postgresql", folder, url.set(drivername="postgresql+psycopg"))


def place_of_url(url: str, directory: Path) -> Place:
    """The place of a ledger given by URL: a PostgreSQL database, or the DuckDB file that is the ledger itself.

    Raises InputError for another DuckDB file: a source is never written to.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "duckdb":
        file = duckdb_path(parsed, directory)
        if file.name != LEDGER_FILE:
            raise InputError(f"{file} is no ledger; right would be the spec, or the URL of a file {LEDGER_FILE}")
        return _duckdb(file)
    return Place("postgresql", directory.resolve() / FOLDER, parsed.set(drivername="postgresql+psycopg"))


def _duckdb(file: Path) -> Place:
    return Place("duckdb", file.parent, sa.URL.create("duckdb", database=str(file)))


def make_private(folder: Path) -> Path:
    """The folder, made with mode 0700 where it is missing. Raises QblockError where others may enter it."""
    try:
        folder.mkdir(mode=0o700)
        (folder / ".gitignore").write_text("*\n", "utf-8")  # specs are kept under version control, ledgers are not
    except FileExistsError:
        if not folder.is_dir():
            raise QblockError(f"{folder} is not a folder, and qblock keeps its ledger there; move it away") from None
    except OSError as error:
        cannot = f"the private folder {folder} cannot be made: {error.strerror}"
        raise (no_room(folder) if disk_full(error) else QblockError(cannot)) from None
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        raise QblockError(f"others may enter the private folder {folder}; close it: chmod 700 '{folder}'")
    return folder


def make_database(file: Path) -> None:
    """Make an empty DuckDB file in its private folder where there is none.

    DuckDB writes a new file in steps; one that a crash or another process finds half made is no database. It is made
    beside and renamed, under a lock on the folder.
    """
    check_database(file, KEPT)
    if file.exists() and file.stat().st_size:
        return
    descriptor = os.open(make_private(file.parent), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if file.exists() and file.stat().st_size:
            return
        begun = file.with_name(f"{file.name}.new")
        begun.unlink(missing_ok=True)
        with duckdb_session.connect(begun) as connection:
            connection.execute("CHECKPOINT")
        begun.chmod(0o600)
        begun.replace(file)
    except OSError as error:
        full = disk_full(error)
        raise (no_room(file) if full else QblockError(f"{file} cannot be made: {error.strerror}")) from None
    except native.Error as error:
        raise explain_duckdb(error) from error
    finally:
        os.close(descriptor)


@contextmanager
def translated(place: Place) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        raise (explain_duckdb(error) if place.engine == "duckdb" else explain_postgresql(error, place.url)) from error


def create_engine(
    place: Place, *, read_only: bool = False, path: tuple[str, ...] = postgresql_session.PATH
) -> sa.Engine:
    """An engine without a pool: what is closed is closed, and a DuckDB file is let go at once.

    path: in which PostgreSQL looks for names without a schema.
    """
    if place.file is not None:
        check_database(place.file, KEPT)
    return _engine(place.engine, place.url, read_only, path)


# A run connects about thirty times: what SQLAlchemy asks a server at the first connection of an engine, and what it has
# compiled for it, is asked and compiled once.
@lru_cache(maxsize=8)
def _engine(engine: str, url: sa.URL, read_only: bool, path: tuple[str, ...]) -> sa.Engine:
    if engine == "duckdb":
        return duckdb_session.create_engine(url, poolclass=sa.NullPool, connect_args={"read_only": read_only})
    return postgresql_session.create_engine(
        url, path=path, execution_options={"postgresql_readonly": True} if read_only else {}
    )
