"""The store in files of a private folder: the ledger in SQLite, the crosswalk beside it in DuckDB."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import IO, Any, Self, cast
from urllib.parse import quote

import duckdb as native
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from qblock.engines.duckdb import dialect as duckdb_session
from qblock.engines.duckdb.adapter import DuckdbAdapter
from qblock.engines.duckdb.dialect import check_database, logs_of
from qblock.engines.duckdb.faults import explain_duckdb
from qblock.engines.kept_sessions import SharedDialect
from qblock.engines.sql_session import SqlSession
from qblock.errors import Busy, InputError, QblockError
from qblock.files import check_file, disk_full, no_room
from qblock.ledger.store import (
    KEPT_FROM_RUNNING,
    WHOLE,
    CrosswalkDatabase,
    HeldLock,
    Store,
    busy,
    make_private,
    wait_for,
)

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

    def session(self, connection: sa.Connection) -> SqlSession:
        return SqlSession(connection, DuckdbAdapter(None, self.file))


class FileStore(Store):
    """The store of a private folder, shared by its specs."""

    engine = "duckdb"
    atomic = one_database = False
    another_target = "in another file (publish.url)"
    file: Path
    crosswalk: DuckdbFile

    def __init__(self, file: Path) -> None:
        self.file, self.folder = file, file.parent
        self.heads = {}
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

    def beside(self, file: str) -> DuckdbFile:
        return DuckdbFile(make_private(self.folder) / file)

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


@contextmanager
def _locked_file(path: Path) -> Iterator[tuple[IO[str], Callable[[], None]]]:
    """The file to be locked, and the check that it is still the one that others will find."""
    if not path.is_symlink():  # which is not followed
        check_file(path, "qblock keeps a lock there; move it away", QblockError)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise QblockError(f"the lock {path} cannot be opened: {error.strerror}") from None
    with open(descriptor, "r+", encoding="utf-8") as file:

        def check() -> None:
            if not path.exists() or not os.path.samestat(path.stat(), os.fstat(file.fileno())):
                of = f" of release {path.stem}" if path.name != f"{WHOLE}.lock" else ""
                raise QblockError(f"the lock{of} was lost: {path} was removed; run the command again")

        yield file, check


@contextmanager
def file_lock(folder: Path, release: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of a release, with a share of that of the folder."""
    make_private(folder)
    with (
        _locked_file(folder / f"{release}.lock") as (file, check_own),
        _locked_file(folder / f"{WHOLE}.lock") as (shared, check_shared),
    ):
        wait_for(lambda: _try_lock(file), deadline, lambda: busy(release, _holder_of(file)))
        wait_for(lambda: _try_lock(shared, fcntl.LOCK_SH), deadline, lambda: Busy(KEPT_FROM_RUNNING))
        holder = {"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}
        file.truncate(0)
        # Only for the messages of others: on a full disk the lock is held nevertheless.
        with suppress(OSError):
            os.pwrite(file.fileno(), json.dumps(holder).encode(), 0)

        def check() -> None:
            check_own()
            check_shared()

        check()
        yield HeldLock(release, check)
        file.seek(0)
        file.truncate()


@contextmanager
def file_lock_of_all(folder: Path, what: str, deadline: float) -> Iterator[HeldLock]:
    """The lock of the folder, alone."""
    with _locked_file(make_private(folder) / f"{WHOLE}.lock") as (file, check):
        wait_for(lambda: _try_lock(file), deadline, lambda: busy(*_some_run(folder)))
        yield HeldLock(what, check)


def _some_run(folder: Path) -> tuple[str | None, str]:
    """One of the runs that share the lock of the store: its release, and the process."""
    for path in sorted(folder.glob("*.lock")):
        if path.name == f"{WHOLE}.lock":
            continue
        with _locked_file(path) as (file, _):
            if not _try_lock(file):
                return path.stem, _holder_of(file)
    return None, ""


def _try_lock(file: IO[str], how: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder_of(file: IO[str]) -> str:
    file.seek(0)
    try:
        holder = json.loads(file.read())
        return f" (process {int(holder['pid'])}, since {holder['since']})"
    except (ValueError, KeyError, TypeError):
        return ""


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
