"""The ledger of a store in files: a SQLite database in the private folder, with a rollback journal."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from qblock.errors import Busy, InputError, QblockError
from qblock.files import check_file, disk_full, no_room
from qblock.ledger.place import HeldLock, make_private
from qblock.ledger.stores.duckdb import KEPT, DuckdbFile
from qblock.ledger.stores.file_lock import file_lock, file_lock_of_all
from qblock.warehouse.dialects import SharedDialect
from qblock.warehouse.protocol import Session

LEDGER_FILE = "ledger.sqlite"
CROSSWALK_FILE = "crosswalk.duckdb"
SETTINGS = {"synchronous": "EXTRA"}
"""Of every connection. EXTRA: a transaction outlasts a loss of power from the moment that its commit has ended."""
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
WRITES = "qblock writes"
"""Of a connection: whether its transactions write."""
DENIED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN)


@dataclass(frozen=True)
class SqlitePlace:
    """The Place protocol for files, shared by the specs of a folder. engine: of the crosswalk, in a file beside it."""

    folder: Path
    url: sa.URL = field(repr=False)
    engine: str = "duckdb"
    atomic: bool = False

    @classmethod
    def of_file(cls, file: Path) -> SqlitePlace:
        """The place of a ledger's file."""
        return cls(file.parent, sa.URL.create("sqlite", database=str(file)))

    @property
    def file(self) -> Path:
        return Path(self.url.database or "")

    @property
    def exists(self) -> bool:
        return self.file.exists()

    @property
    def named(self) -> str:
        return f"the private folder {self.folder}"

    @property
    def another_target(self) -> str:
        return "in another file (publish.url)"

    @property
    def crosswalk(self) -> DuckdbFile:
        return DuckdbFile(self.folder / CROSSWALK_FILE)

    @property
    def crosswalk_named(self) -> str:
        return f"the file {self.folder / CROSSWALK_FILE} is"

    def beside(self, name: str) -> DuckdbFile:
        return DuckdbFile(make_private(self.folder) / f"{name}.duckdb")

    def within(self, file: Path) -> str:
        folder = self.folder.parent
        return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise explain(error, self.file) from error

    def create_engine(self) -> sa.Engine:
        check_file(self.file, KEPT, QblockError)
        check_file(journal_of(self.file), "SQLite keeps the journal of the database there; move it away", QblockError)
        return _engine(self.file)

    def connect(self, *, read_only: bool, seconds: float) -> sa.Connection:
        engine = self.create_engine()
        with self.translated():
            connection = engine.connect()
            connection.info[WRITES] = not read_only
            driver: Any = connection.connection.driver_connection
            driver.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
            driver.execute(f"PRAGMA query_only = {'ON' if read_only else 'OFF'}")
            return connection

    def make(self) -> None:
        check_file(self.file, KEPT, QblockError)
        make_private(self.folder)
        try:
            # An empty file is an empty database.
            os.close(os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            full = disk_full(error)
            raise (
                no_room(self.file) if full else QblockError(f"{self.file} cannot be made: {error.strerror}")
            ) from None

    def settle(self, connection: sa.Connection) -> None:
        pass  # whoever reads first rolls back what the journal holds

    def give_up(self, connection: sa.Connection) -> None:
        # No rollback, whose own error would hide the first one: closing the file rolls back.
        connection.invalidate()

    def transaction(self, connection: sa.Connection, seconds: float | None) -> AbstractContextManager[object]:
        return connection.begin()

    def may_read(self, connection: sa.Connection, tables: Sequence[str]) -> bool | None:
        return True

    @contextmanager
    def without_nested_loops(self, session: Session) -> Iterator[None]:
        yield

    def lock(self, release: str, deadline: float) -> AbstractContextManager[HeldLock]:
        return file_lock(self.folder, release, deadline)

    def lock_all(self, what: str, deadline: float) -> AbstractContextManager[HeldLock]:
        return file_lock_of_all(self.folder, what, deadline)


def journal_of(file: Path) -> Path:
    """What there is beside a database while a transaction is committed, or was stopped in it."""
    return file.with_name(f"{file.name}-journal")


def explain(error: BaseException, file: Path) -> QblockError:
    """The error to raise for one of SQLite's, whose text is not repeated."""
    original = getattr(error, "orig", None) or error
    code = getattr(original, "sqlite_errorcode", 0) & 0xFF
    if code in BUSY:
        return Busy(f"another process holds the ledger {file}; wait until it has closed the file")
    if code == sqlite3.SQLITE_FULL:
        return no_room(file)
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(f"{file} is not a valid SQLite database file; put it back from its backup")
    if code == sqlite3.SQLITE_CORRUPT:
        return QblockError(f"{file} is damaged; put it back from its backup")
    if code in DENIED:
        return QblockError(f"{file} cannot be opened or written; check who has permission to read and write the file")
    more = getattr(original, "sqlite_errorname", None) or type(original).__name__
    return QblockError(f"SQLite reported an error of the ledger {file} ({more}); run again")


class Dialect(SQLiteDialect_pysqlite):
    """SQLAlchemy's, but a transaction that writes has its lock from the beginning."""

    supports_statement_cache = True

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.execute("BEGIN IMMEDIATE" if dbapi_connection.info.get(WRITES) else "BEGIN")


@cache
def _dialect() -> SharedDialect:
    return SharedDialect(Dialect(dbapi=sqlite3))  # type: ignore[no-untyped-call]


@lru_cache(maxsize=8)
def _engine(file: Path) -> sa.Engine:
    # A reader must be able to roll back what a writer that was killed has left.
    uri = f"file:{quote(str(file))}?mode=rw"

    def connect(_: Any) -> sqlite3.Connection:
        driver = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        for name, value in SETTINGS.items():
            driver.execute(f"PRAGMA {name} = {value}")
        return driver

    return _dialect().engine(sa.make_url("sqlite://"), connect)
