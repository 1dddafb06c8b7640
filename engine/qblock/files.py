"""What is at a path, found out before it is opened (opening a pipe may wait forever, and a device may do anything), and
files that are written whole."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from qblock.errors import InputError, QblockError

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe (FIFO)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
OF_SHELL = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Names of what the shell has opened for a command: `< FILE` and `<(...)`."""
WRITE_IT = "write it to a file, and name that one"


@dataclass(frozen=True)
class OwnFile:
    """A file that nothing else may be written to. what: as a message names it; folder: everything in it is meant."""

    path: Path
    what: str
    folder: bool = False


def problem_of(path: str | Path) -> str | None:
    """What is wrong with what is at a path, as the end of a sentence; None for a file that this user has permission to
    read, and where there is nothing. Opens nothing."""
    path = Path(path)
    if "\0" in str(path):
        return "has a NUL character in its name"
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "is a link to a file that does not exist" if path.is_symlink() else None
    except OSError as error:
        return f"cannot be examined ({os.strerror(error.errno or 0)})"
    for is_kind, name in KINDS:
        if is_kind(mode):
            return f"is {'a link to ' if path.is_symlink() else ''}{name}"
    return None if os.access(path, os.R_OK, effective_ids=True) else "cannot be read by this user"


def check_file(path: str | Path, needed: str, error: type[QblockError] = InputError, where: str = "") -> None:
    """Raise an error where something is at the path that is not a regular file which this user has permission to read.

    needed: the remedy; where: the place of the spec that names the path.
    """
    problem = problem_of(path)
    if problem is not None:
        raise error(f"{where}{': ' if where else ''}{path} {problem}; {needed}")


@contextmanager
def open_input(path: str | Path, what: str = "") -> Iterator[io.BufferedReader]:
    """A regular file that a user names, open for reading. what: `the hierarchy file`, for messages.

    Raises InputError for what is not a regular file, cannot be read or is not UTF-8.
    """
    cannot = f"{path}: {what}{' ' if what else ''}cannot be read"
    if str(path).startswith(OF_SHELL):
        # A file that the shell has opened has no folder of its own, and what is piped can be read only once.
        raise InputError(f"{cannot}: it is what the shell passes on, not a file; {WRITE_IT}")
    problem = problem_of(path)
    if problem is not None:
        piped = problem.endswith(("(FIFO)", "a socket", "a device"))
        remedy = WRITE_IT if piped else "name a file that this user may read"
        raise InputError(f"{cannot}: it {problem}; {remedy}")
    try:
        # A pipe that has taken its place since is opened without waiting, and read as empty or refused.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"{cannot}: {error.strerror}") from None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{cannot}: it is not a regular file any more; {WRITE_IT}")
        yield file


def read_input(path: str | Path, what: str = "", newline: str | None = None) -> str:
    """The text of a file that a user names. what: as of `open_input`; newline: as of `open`.

    Raises InputError for what is not a regular file, cannot be read or is not UTF-8.
    """
    with open_input(path, what) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline) as text:
        try:
            return text.read()
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 (byte {error.start}); save the file as UTF-8") from None
        except OSError as error:
            raise InputError(f"{path}: {what}{' ' if what else ''}cannot be read: {error.strerror}") from None


def check_output(path: str | Path, option: str = "path") -> None:
    """Raise InputError where no file can be written, before anything is read."""
    problem = problem_of(path)
    if problem is not None:
        raise InputError(f"{option} {path}: it {problem}; name a file")
    if not Path(path).resolve().parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {Path(path).parent}; make it, or name another file")


@contextmanager
def written_whole(path: str | Path, *, private: bool) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of what is at the path at the end. A link stays.

    private: only its owner may read it (0600), whatever the umask and the rights of the file before.
    Raises OSError; what was there stays then.
    """
    real = Path(os.path.realpath(path))
    beside = real.with_name(f".{real.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(beside, flags, 0o600 if private else 0o666), "wb") as file:
            if private:
                os.fchmod(file.fileno(), 0o600)  # the umask may take even the owner's rights
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, real)
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


@contextmanager
def private_output(path: str | Path) -> Iterator[BinaryIO]:
    """`written_whole` for what only its owner may read. Raises InputError for a path that cannot be a file, QblockError
    where it cannot be written."""
    check_output(path)
    try:
        with written_whole(path, private=True) as file:
            yield file
    except OSError as error:
        if disk_full(error):
            raise no_room(path) from None
        raise QblockError(f"{path}: cannot be written: {error.strerror}; what was there stays") from None


def disk_full(error: OSError) -> bool:
    """Whether the disk, or the user's quota of it, has no room left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def no_room(path: str | Path) -> QblockError:
    """The error for a file that could not be written because the disk is full."""
    return QblockError(f"the disk is full: there is no room left for {path}; make room on it, and run again")
