"""Amounts of memory as a spec writes them, and private temporary folders for what does not fit into it."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

from qblock.errors import QblockError
from qblock.spec.fields import in_bytes

DATABASE, CLIENT = Fraction(7, 10), Fraction(1, 5)
"""Of a limit, where the database is in this process: the rest is what Python and both their overheads take."""
UNLIMITED = 1 << 30
"""Bytes for what is fetched, where there is no limit."""


def of_embedded(limit: str) -> str:
    """The share of a database in this process, as it takes it."""
    return f"{int(in_bytes(limit) * DATABASE)}B"


def of_client(limit: str | None) -> int:
    """Bytes for what is fetched at once, in all its copies."""
    return UNLIMITED if limit is None else int(in_bytes(limit) * CLIENT)


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no cycles of objects within: where millions of objects are made that stay, each look goes through all of
    them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


PREFIX = "qblock-spill-"
TRIES = 100
"""Another process may take a folder that is made and not locked yet for one that was left, and remove it."""


class SpillFolder:
    """A folder that nobody else may enter, made and locked; making one removes those whose process is gone.

    The lock (flock, on the folder itself) ends with the process, however it ends: rows of the source may be in it.
    Raises QblockError where none can be made.
    """

    def __init__(self) -> None:
        try:
            self.path, self._descriptor = _locked_folder()
            sweep(self.path.parent)
        except OSError:
            # Python says "no such file" where every temporary folder is full.
            raise QblockError(
                "no temporary folder can be written to ($TMPDIR, /tmp, /var/tmp): its disk is full, or this login may "
                "not write there. Make room, or name another folder: export TMPDIR=FOLDER"
            ) from None

    def remove(self) -> None:
        """Remove it with all that is in it; a second time nothing happens."""
        if self._descriptor is None:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._descriptor)
        self._descriptor = None


def _locked_folder() -> tuple[Path, int | None]:
    for _ in range(TRIES):
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        descriptor = _locked(path, ours=True)
        if descriptor is not None:
            return path, descriptor
    raise OSError


def sweep(folder: Path) -> None:
    """Remove the folders of this login in it that no living process holds; what cannot be removed stays."""
    left: list[Path] = []
    with suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if entry.name.startswith(PREFIX) and _may_be_ours(entry)]
    for path in left:
        descriptor = _locked(path)
        if descriptor is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(descriptor)


def _may_be_ours(entry: os.DirEntry[str]) -> bool:
    with suppress(OSError):
        state = entry.stat(follow_symlinks=False)
        return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
    return False


def _locked(path: Path, *, ours: bool = False) -> int | None:
    """A descriptor of a folder of this login that holds its lock; None where it is somebody's, or gone.

    ours: it was made just now, so that a file system without locks is no reason to do without it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        if not ours:
            os.close(descriptor)
            return None
    held = os.fstat(descriptor)
    with suppress(OSError):
        there = path.lstat()
        if os.path.samestat(held, there) and held.st_uid == os.geteuid():
            return descriptor
    os.close(descriptor)
    return None
