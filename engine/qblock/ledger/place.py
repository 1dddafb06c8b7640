"""Where a release keeps what no reader may see: the ledger, the crosswalk, locks and working files."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from qblock.errors import QblockError
from qblock.files import disk_full, no_room
from qblock.warehouse.protocol import PRIVATE_SCHEMA, Session

FOLDER = "qblock"
SCHEMA = PRIVATE_SCHEMA
"""The private schema in the source's PostgreSQL database."""


@dataclass(frozen=True)
class HeldLock:
    """A lock that this process holds. check: raises QblockError when it is lost, before anything is published."""

    release: str
    check: Callable[[], None]


class Database(Protocol):
    """A database with private tables. file: its own, where it has one."""

    @property
    def file(self) -> Path | None: ...

    @property
    def exists(self) -> bool:
        """Whether there can be private tables: a file of its own is there."""

    def translated(self) -> AbstractContextManager[None]:
        """Turns the driver's errors into ours."""

    def create_engine(self) -> sa.Engine:
        """An engine without a pool: what is closed is closed, and a file is let go at once; but sessions of a server
        may be those that `kept_sessions` keeps."""

    def connect(self, *, read_only: bool, seconds: float) -> sa.Connection:
        """A connection that finds the private tables. seconds: how long it waits for another process that has locked a
        file; then it, or a statement on it, raises Busy."""

    def make(self) -> None:
        """Make an empty database where there is none, before it is written to."""

    def settle(self, connection: sa.Connection) -> None:
        """Bring into the database what a writer that was stopped left beside it."""

    def give_up(self, connection: sa.Connection) -> None:
        """Let go of a connection that an error came through."""

    def transaction(self, connection: sa.Connection, seconds: float | None) -> AbstractContextManager[object]:
        """A transaction that waits so long for locks (None: as long as it takes)."""

    def may_read(self, connection: sa.Connection, tables: Sequence[str]) -> bool | None:
        """Whether these private tables are there and this login may read them; None where it may not."""


class CrosswalkDatabase(Database, Protocol):
    """The database that the crosswalk is in."""

    def session(self, connection: sa.Connection) -> Session:
        """A session on the private tables."""


class Place(Database, Protocol):
    """The private state of the specs of a folder, and the database that the ledger is in: one class for each store.

    engine: of the crosswalk, its name in ENGINES; folder: the private folder, which need not exist; url: of the
    database with the ledger.
    """

    @property
    def engine(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def url(self) -> sa.URL: ...

    @property
    def atomic(self) -> bool:
        """Whether ledger, crosswalk and versions are in one database, and change in one transaction."""

    @property
    def named(self) -> str:
        """The place of all private state, for a message."""

    @property
    def another_target(self) -> str:
        """How a release is told apart from one that is given up, for a message."""

    @property
    def crosswalk(self) -> CrosswalkDatabase:
        """The database that the crosswalk is in, which need not be the ledger's."""

    @property
    def crosswalk_named(self) -> str:
        """Where the crosswalk is, as the beginning of a sentence about it."""

    def beside(self, name: str) -> Database:
        """A database for other private tables; the same one where they are told apart by their names."""

    def within(self, file: Path) -> str:
        """A file of the spec's folder relative to it, so that both can be moved together; any other by its path."""

    def without_nested_loops(self, session: Session) -> AbstractContextManager[None]:
        """Within it a session does not join tables row by row: private tables that were just filled have no statistics,
        and one guess too low has every person compared with every other."""

    def lock(self, release: str, deadline: float) -> AbstractContextManager[HeldLock]:
        """The lock of a release, shared with `lock_all`. deadline: until when to wait, of time.monotonic."""

    def lock_all(self, what: str, deadline: float) -> AbstractContextManager[HeldLock]:
        """The lock that every run shares, taken alone. what: who does so, for the messages of others."""


def make_private(folder: Path) -> Path:
    """The folder, made with mode 0700 where it is missing. Raises QblockError where others have access to it."""
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
        raise QblockError(f"others have access to the private folder {folder}; close it: chmod 700 '{folder}'")
    return folder
