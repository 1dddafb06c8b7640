"""DuckDB files of the private folder: the crosswalk and the tables of hierarchies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import duckdb as native
import sqlalchemy as sa

from qblock.errors import Busy, QblockError
from qblock.files import disk_full, no_room
from qblock.ledger.place import make_private
from qblock.warehouse import duckdb_session
from qblock.warehouse.duckdb import DuckdbFacts
from qblock.warehouse.duckdb_files import check_database, logs_of
from qblock.warehouse.faults import explain_duckdb
from qblock.warehouse.protocol import Session
from qblock.warehouse.session import SqlSession

POLL_SECONDS = 0.05
KEPT = "qblock keeps private state in a file there; move it away, or put the file back from its backup"
"""The remedy where something else has taken the place of a private file."""


@dataclass(frozen=True)
class DuckdbFile:
    """The Database protocol for a DuckDB file."""

    file: Path

    @property
    def exists(self) -> bool:
        return self.file.exists()

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise explain_duckdb(error, file=self.file) from error

    def create_engine(self) -> sa.Engine:
        return self._engine(read_only=False)

    def _engine(self, *, read_only: bool) -> sa.Engine:
        check_database(self.file, KEPT)
        return _engine(self.file, read_only)

    def connect(self, *, read_only: bool, seconds: float) -> sa.Connection:
        deadline = time.monotonic() + seconds
        while True:
            try:
                return self._connected(read_only)
            except Busy:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(POLL_SECONDS)

    def _connected(self, read_only: bool) -> sa.Connection:
        engine = self._engine(read_only=read_only)
        with self.translated():
            try:
                return engine.connect()
            except sa.exc.DBAPIError as error:
                # Another thread of this process that has it open the other way is as good as another process.
                if not isinstance(error.orig, native.ConnectionException):
                    raise
                raise Busy(f"another thread of this process has {self.file.name} open") from error

    def make(self) -> None:
        make_database(self.file)

    def settle(self, connection: sa.Connection) -> None:
        # So a log holds the work of one process alone; and where there is no room for what is owed, nothing is added.
        with self.translated():
            if any(log.exists() and log.stat().st_size for log in logs_of(self.file)):
                connection.exec_driver_sql("CHECKPOINT")
                connection.commit()

    def give_up(self, connection: sa.Connection) -> None:
        # No rollback: a database that a fatal error has shut refuses it, and that error would hide the first one.
        connection.invalidate()

    def transaction(self, connection: sa.Connection, seconds: float | None) -> AbstractContextManager[object]:
        return connection.begin()

    def may_read(self, connection: sa.Connection, tables: Sequence[str]) -> bool | None:
        return True

    def session(self, connection: sa.Connection) -> Session:
        return SqlSession(connection, DuckdbFacts(None))


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


# A run connects about thirty times.
@lru_cache(maxsize=8)
def _engine(file: Path, read_only: bool) -> sa.Engine:
    return duckdb_session.attached_engine(file, read_only=read_only)
