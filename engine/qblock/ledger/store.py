"""The private state of the specs of a folder, and how it is opened: ledger, crosswalk, and the locks of runs."""

from __future__ import annotations

import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import sqlalchemy as sa

from qblock.engines.sql_session import SqlSession
from qblock.engines.tables import PRIVATE_SCHEMA
from qblock.errors import Busy, QblockError
from qblock.files import disk_full, no_room
from qblock.ledger import schema
from qblock.ledger.chain import Head
from qblock.ledger.reader import LedgerReader

FOLDER = "qblock"
SCHEMA = PRIVATE_SCHEMA
"""The private schema in the source's PostgreSQL database."""
OPEN_SECONDS = 10.0
"""How long to wait for another process that has locked a private file, or a lock; each holds it only for a moment."""

POLL_SECONDS = 0.1
WHOLE = ""
"""The whole place, where a lock is named after a release: no release has this name."""
KEPT_FROM_RUNNING = (
    "the key of the crosswalk is being changed, and no run may see it half done; wait until that has ended"
)


@dataclass(frozen=True)
class HeldLock:
    """A lock that this process holds. check: raises QblockError when it is lost, before anything is published."""

    release: str
    check: Callable[[], None]


def wait_for(attempt: Callable[[], bool], deadline: float, busy: Callable[[], Busy]) -> None:
    """Try until it succeeds. Raises what `busy` gives after the deadline."""
    while not attempt():
        left = deadline - time.monotonic()
        if left <= 0:
            raise busy()
        time.sleep(min(POLL_SECONDS, left))


def busy(release: str | None, holder: str) -> Busy:
    """What is said of another run. holder: which process it is, in brackets."""
    of = f" of release {release}" if release else ""
    return Busy(f"another run{of} is in progress{holder}; wait for it to end, or let this one wait longer")


class Database(ABC):
    """A database with private tables. file: its own, where it has one."""

    file: Path | None

    @property
    def exists(self) -> bool:
        """Whether there can be private tables: a file of its own is there."""
        return self.file is None or self.file.exists()

    @contextmanager
    def opened(self, *, read_only: bool, seconds: float = OPEN_SECONDS) -> Iterator[sa.Connection]:
        """A connection that finds the private tables; for writing an empty file is made where there is none.

        Raises Busy where another process keeps a file locked for so many seconds, QblockError for other faults.
        """
        if not read_only:
            self.make()
        with self.translated():
            connection = self.connect(read_only=read_only, seconds=seconds)
            try:
                yield connection
            except BaseException:
                self.give_up(connection)
                raise
            finally:
                connection.close()

    @contextmanager
    def write(self, seconds: float = OPEN_SECONDS) -> Iterator[sa.Connection]:
        """One transaction, committed at the end.

        Raises Busy when another process keeps a file locked, or a lock of PostgreSQL, for longer than `seconds`,
        QblockError for other faults.
        """
        with self.opened(read_only=False, seconds=seconds) as connection, self.transaction(connection, seconds):
            yield connection

    def transaction(self, connection: sa.Connection, seconds: float) -> AbstractContextManager[object]:
        """A transaction that waits so long for locks."""
        return connection.begin()

    def may_read(self, connection: sa.Connection, tables: Sequence[str]) -> bool | None:
        """Whether these private tables are there and this login may read them; None where it may not."""
        return True

    @abstractmethod
    def translated(self) -> AbstractContextManager[None]:
        """Turns the driver's errors into ours."""

    @abstractmethod
    def create_engine(self) -> sa.Engine:
        """An engine for tables that are not of the ledger or the crosswalk."""

    @abstractmethod
    def connect(self, *, read_only: bool, seconds: float) -> sa.Connection: ...

    @abstractmethod
    def make(self) -> None: ...

    @abstractmethod
    def give_up(self, connection: sa.Connection) -> None:
        """Let go of a connection that an error came through."""


class CrosswalkDatabase(Database):
    """The database that the crosswalk is in."""

    def ready(self, connection: sa.Connection) -> bool:
        """Whether there is a crosswalk. Raises QblockError for one whose schema is not this program's."""
        return schema.ready(connection)

    @abstractmethod
    def session(self, connection: sa.Connection) -> SqlSession:
        """A session on the private tables."""


class Store(Database):
    """Private state: one class for each kind of database that the ledger can be in. Within `with store:` each file is
    opened once, when it is needed first; outside of it for each use.

    engine: of the crosswalk, its name in ENGINES; folder: the private folder, which need not exist; url: of the
    database with the ledger; atomic: whether ledger, crosswalk and versions are in one database, and change in one
    transaction; one_database: whether ledger and crosswalk are; named: the place of all private state, for a message;
    another_target: how a release is told apart from one that is given up, for a message; crosswalk: the database that
    it is in, which need not be the ledger's; crosswalk_named: where that is, as the beginning of a sentence; heads: the
    events that this process has recorded last in transactions of the crosswalk, by release.
    """

    engine: str
    folder: Path
    url: sa.URL
    atomic: bool
    one_database: bool
    named: str
    another_target: str
    crosswalk: CrosswalkDatabase
    crosswalk_named: str
    heads: dict[str, Head]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @contextmanager
    def running(self) -> Iterator[None]:
        """As `with store:`, for a run, which writes: whoever reads before it does opens files for that, too."""
        with self:
            yield

    @contextmanager
    def read(self) -> Iterator[LedgerReader]:
        """A reader of the ledger, which sees one moment of it.

        Raises QblockError for a ledger whose schema is older or newer than this program, Busy when it stays locked.
        """
        if not self.exists:
            yield LedgerReader(None)
            return
        with self.opened(read_only=True) as connection:
            yield LedgerReader(connection)

    def upgrade(self) -> tuple[str | None, str]:
        """Bring the ledger up to date, in a transaction of its own; the revisions before and after. Raises Busy when a
        file, or a lock of PostgreSQL, stays locked elsewhere."""
        with self.write() as connection:
            return schema.upgrade(connection)

    def lock(self, release: str, wait_seconds: float = 0) -> AbstractContextManager[HeldLock]:
        """The lock of a release, of which only one run has it: taken before the first transaction, it dies with the
        process.

        Raises Busy (exit 4) when another run still holds it after wait_seconds, or somebody has `lock_all`.
        """
        return self.lock_until(release, time.monotonic() + wait_seconds)

    def lock_all(self, what: str, wait_seconds: float = 0) -> AbstractContextManager[HeldLock]:
        """The lock that every run shares, taken alone: nothing else runs in this place. what: who does so, for the
        messages of others.

        Raises Busy (exit 4), naming the release, when a run is still in progress after wait_seconds.
        """
        return self.lock_all_until(what, time.monotonic() + wait_seconds)

    def close_crosswalk(self) -> None:
        """Let others open the file of the crosswalk, before something takes long."""

    @contextmanager
    def without_nested_loops(self, session: SqlSession) -> Iterator[None]:
        """Within it a session does not join tables row by row: private tables that were just filled have no statistics,
        and one guess too low has every person compared with every other."""
        yield

    @abstractmethod
    def beside(self, file: str) -> Database:
        """A database for other private tables: a file of that name, or the same one, where their names tell."""

    @abstractmethod
    def within(self, file: Path) -> str:
        """A file of the spec's folder relative to it, so that both can be moved together; any other by its path."""

    @abstractmethod
    def lock_until(self, release: str, deadline: float) -> AbstractContextManager[HeldLock]: ...

    @abstractmethod
    def lock_all_until(self, what: str, deadline: float) -> AbstractContextManager[HeldLock]: ...


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
