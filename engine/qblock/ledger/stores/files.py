"""The store in files of a private folder: the ledger in SQLite, the crosswalk beside it in DuckDB."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Self, cast
from urllib.parse import quote

import duckdb as native
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from qblock.errors import Busy, InputError, QblockError
from qblock.files import check_file, disk_full, no_room
from qblock.ledger.store import CrosswalkDatabase, HeldLock, Store, make_private
from qblock.ledger.stores.locks import file_lock, file_lock_of_all
from qblock.warehouse import duckdb_session
from qblock.warehouse.duckdb import DuckdbFacts
from qblock.warehouse.duckdb_session import check_database, logs_of
from qblock.warehouse.faults import explain_duckdb
from qblock.warehouse.kept_sessions import SharedDialect
from qblock.warehouse.protocol import Session
from qblock.warehouse.session import SqlSession

LEDGER_FILE = "ledger.sqlite"
CROSSWALK_FILE = "crosswalk.duckdb"
KEPT = "qblock keeps private state in a file there; move it away, or put the file back from its backup"
"""The remedy where something else has taken the place of a private file."""
POLL_SECONDS = 0.05
SYNCHRONOUS = "EXTRA"
"""A transaction outlasts a loss of power from the moment that its commit has ended."""
WRITES = "qblock writes"
"""Of a connection to the ledger: whether its transactions write."""
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
DENIED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN)


class DuckdbFile(CrosswalkDatabase):
    """A DuckDB file. Within `with database:` it stays open once it was, until `close`. writable: also for readers."""

    file: Path

    def __init__(self, file: Path) -> None:
        self.file = file
        self._users = 0
        self.writable = False
        self._kept: native.DuckDBPyConnection | None = None
        self._kept_read_only = False
        self._ready = False

    def __enter__(self) -> Self:
        self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        if not self._users:
            self.close()

    def close(self) -> None:
        """Let others open the file."""
        if self._kept is not None:
            kept, self._kept, self._ready = self._kept, None, False
            kept.close()

    def ready(self, connection: sa.Connection) -> bool:
        if self._kept is None:
            return super().ready(connection)
        # Nobody else can alter the file while it is open here.
        self._ready = self._ready or super().ready(connection)
        return self._ready

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise explain_duckdb(error, file=self.file) from error

    def create_engine(self) -> sa.Engine:
        return duckdb_session.engine_from(partial(self._open, read_only=False))

    def connect(self, *, read_only: bool, seconds: float) -> sa.Connection:
        read_only = read_only and not self.writable
        if self._kept is not None and self._kept_read_only and not read_only:
            self.close()
        if not self._users:
            return duckdb_session.engine_from(lambda: self._opened_within(seconds, read_only)).connect()
        if self._kept is None:
            self._kept, self._kept_read_only = self._opened_within(seconds, read_only), read_only
        # Temporary tables go with a connection of their own.
        return duckdb_session.engine_from(self._kept.cursor).connect()

    def _opened_within(self, seconds: float, read_only: bool) -> native.DuckDBPyConnection:
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._open(read_only)
            except Busy:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(POLL_SECONDS)

    def _open(self, read_only: bool) -> native.DuckDBPyConnection:
        check_database(self.file, KEPT)
        try:
            opened = duckdb_session.connect(self.file, read_only=read_only)
            if not read_only and any(log.exists() and log.stat().st_size for log in logs_of(self.file)):
                # So a log holds the work of one process alone; and where there is no room for what is owed, nothing is
                # added.
                opened.execute("CHECKPOINT")
            return opened
        except native.ConnectionException as error:
            # Another thread of this process that has it open the other way is as good as another process.
            raise Busy(f"another thread of this process has {self.file.name} open") from error
        except native.Error as error:
            raise explain_duckdb(error, file=self.file) from error

    def make(self) -> None:
        make_database(self.file)

    def give_up(self, connection: sa.Connection) -> None:
        # No rollback: a database that a fatal error has shut refuses it, and that error would hide the first one.
        connection.invalidate()
        self.close()

    def session(self, connection: sa.Connection) -> Session:
        return SqlSession(connection, DuckdbFacts(None))


class FileStore(Store):
    """The store of a private folder, shared by its specs."""

    engine = "duckdb"
    atomic = False
    another_target = "in another file (publish.url)"
    file: Path
    crosswalk: DuckdbFile

    def __init__(self, file: Path) -> None:
        self.file, self.folder = file, file.parent
        self.url = sa.URL.create("sqlite", database=str(file))
        self.named = f"the private folder {self.folder}"
        self.crosswalk = DuckdbFile(self.folder / CROSSWALK_FILE)
        self.crosswalk_named = f"the file {self.crosswalk.file} is"
        self._users = 0
        self._engine: sa.Engine | None = None

    def __enter__(self) -> Self:
        self._users += 1
        self.crosswalk.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._users -= 1
        self.crosswalk.__exit__()
        if not self._users and self._engine is not None:
            engine, self._engine = self._engine, None
            engine.dispose()

    @contextmanager
    def running(self) -> Iterator[None]:
        before, self.crosswalk.writable = self.crosswalk.writable, True
        try:
            with self:
                yield
        finally:
            self.crosswalk.writable = before

    def close_crosswalk(self) -> None:
        self.crosswalk.close()

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
            raise explain_sqlite(error, self.file) from error

    def create_engine(self) -> sa.Engine:
        check_file(self.file, KEPT, QblockError)
        check_file(journal_of(self.file), "SQLite keeps the journal of the database there; move it away", QblockError)
        return _engine(self.file, kept=bool(self._users))

    def connect(self, *, read_only: bool, seconds: float) -> sa.Connection:
        engine = self._engine or self.create_engine()
        if self._users:
            self._engine = engine
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
            cannot = QblockError(f"{self.file} cannot be made: {error.strerror}")
            raise (no_room(self.file) if disk_full(error) else cannot) from None

    def give_up(self, connection: sa.Connection) -> None:
        # No rollback, whose own error would hide the first one: closing the file rolls back.
        connection.invalidate()

    def lock_until(self, release: str, deadline: float) -> AbstractContextManager[HeldLock]:
        return file_lock(self.folder, release, deadline)

    def lock_all_until(self, what: str, deadline: float) -> AbstractContextManager[HeldLock]:
        return file_lock_of_all(self.folder, what, deadline)


def make_database(file: Path) -> None:
    """Make an empty DuckDB file in its private folder where there is none.

    DuckDB writes a new file in steps; one that is half made, after a crash or for another process, is not a database.
    So it is made beside its place and renamed, under a lock on the folder.
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
        raise explain_duckdb(error, file=file) from error
    finally:
        os.close(descriptor)


def journal_of(file: Path) -> Path:
    """What there is beside a database while a transaction is committed, or was stopped in it."""
    return file.with_name(f"{file.name}-journal")


def explain_sqlite(error: BaseException, file: Path) -> QblockError:
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


def _engine(file: Path, *, kept: bool) -> sa.Engine:
    """An engine for a file. kept: whether one connection stays open until the engine is disposed of."""
    # A reader must be able to roll back what a writer that was killed has left.
    uri = f"file:{quote(str(file))}?mode=rw"

    def connect(_: Any) -> Any:
        driver = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        driver.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        return driver

    dialect, maker = _dialect(), cast("Any", connect)
    pool = sa.QueuePool(maker, pool_size=1, max_overflow=-1, dialect=dialect.dialect) if kept else None
    return dialect.engine(sa.make_url("sqlite://"), connect, pool=pool)
