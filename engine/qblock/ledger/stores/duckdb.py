"""The store of a DuckDB source: `ledger.duckdb` in the private folder, and the crosswalk in a file beside it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import duckdb as native
import sqlalchemy as sa

from qblock.errors import Busy, QblockError
from qblock.files import disk_full, no_room
from qblock.ledger.place import HeldLock, make_private
from qblock.ledger.stores.duckdb_lock import file_lock, file_lock_of_all
from qblock.warehouse import duckdb_session
from qblock.warehouse.duckdb import DuckdbFacts
from qblock.warehouse.duckdb_files import check_database, logs_of
from qblock.warehouse.faults import explain_duckdb
from qblock.warehouse.protocol import Session
from qblock.warehouse.session import SqlSession

LEDGER_FILE = "ledger.duckdb"
CROSSWALK_FILE = "crosswalk.duckdb"
KEPT = "qblock keeps private state in a file there; move it away, or put the file back from its backup"
"""The remedy where something else has taken the place of a private file."""


@dataclass(frozen=True)
class DuckdbPlace:
    """The Place protocol for DuckDB, shared by the specs of a folder."""

    folder: Path
    url: sa.URL = field(repr=False)
    engine: str = "duckdb"
    atomic: bool = False

    @classmethod
    def of_file(cls, file: Path) -> DuckdbPlace:
        """The place of a ledger's file."""
        return cls(file.parent, sa.URL.create("duckdb", database=str(file)))

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
    def crosswalk(self) -> DuckdbPlace:
        return replace(self, url=self.url.set(database=str(self.folder / CROSSWALK_FILE)))

    @property
    def crosswalk_named(self) -> str:
        return f"the file {self.folder / CROSSWALK_FILE} is"

    def beside(self, name: str) -> DuckdbPlace:
        return replace(self, url=self.url.set(database=str(make_private(self.folder) / f"{name}.duckdb")))

    def within(self, file: Path) -> str:
        folder = self.folder.parent
        return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.SQLAlchemyError as error:
            raise explain_duckdb(error, file=self.file) from error

    def create_engine(self, *, read_only: bool = False) -> sa.Engine:
        check_database(self.file, KEPT)
        return _engine(self.file, read_only)

    def connect(self, *, read_only: bool) -> sa.Connection:
        engine = self.create_engine(read_only=read_only)
        with self.translated():
            try:
                return engine.connect()
            except sa.exc.DBAPIError as error:
                # Another thread of this process that has it open the other way is as good as another process.
                if not isinstance(error.orig, native.ConnectionException):
                    raise
                raise Busy("another thread of this process has the DuckDB ledger open") from error

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

    @contextmanager
    def without_nested_loops(self, session: Session) -> Iterator[None]:
        yield

    def lock(self, release: str, deadline: float) -> AbstractContextManager[HeldLock]:
        return file_lock(self.folder, release, deadline)

    def lock_all(self, what: str, deadline: float) -> AbstractContextManager[HeldLock]:
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


# A run connects about thirty times.
@lru_cache(maxsize=8)
def _engine(file: Path, read_only: bool) -> sa.Engine:
    return duckdb_session.attached_engine(file, read_only=read_only)
