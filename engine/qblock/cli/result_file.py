"""The file of --result: what may be replaced by it, and how it is written.

A file is replaced whole, by renaming, where it is new, empty or the result of an earlier run; a link stays, and the
file that it names is replaced. A file that the release lives on (spec, source, release file, hierarchies, whatever is
in the private folder) is never written.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qblock.errors import InputError
from qblock.files import KINDS, OwnFile
from qblock.printable import printable_json

if TYPE_CHECKING:
    from qblock.api import Release

KEYS = {"status", "release", "exit_status"}
"""How a result of an earlier run is recognized."""
MOST_BYTES = 1 << 26
"""No result is larger."""
ASK = "give another name, or --result-force to replace it"
NAME_A_FILE = "name a file, or take the result from standard output (--json)"


def refuse(file: OwnFile, option: str, path: Path, real: Path, found: os.stat_result | None) -> None:
    """Raise InputError where a file to be written is one that the release lives on. path: as it was given; real, found:
    what it is."""
    if _is(file, real, found):
        raise InputError(f"{option} {path}: is {file.what}, which would be lost; give another name")


def _is(file: OwnFile, path: Path, found: os.stat_result | None) -> bool:
    """Whether a file is this one, by its real path or as another name of it (a hard link)."""
    own = Path(os.path.realpath(file.path))
    if path == own or (file.folder and own in path.parents):
        return True
    if found is None:
        return False
    return any(_same(other, found) for other in (own.rglob("*") if file.folder and own.is_dir() else [own]))


def _same(path: Path, found: os.stat_result) -> bool:
    with suppress(OSError):
        other = path.stat()
        return (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino)
    return False


def keep_own_files(option: str, path: Path, release: Release) -> None:
    """Raise InputError where a file that is to be written is one that the release lives on."""
    real, found = Path(os.path.realpath(path)), _stat(path)
    for file in release.own_files():
        refuse(file, option, path, real, found)


class ResultFile:
    """Where a run writes its result. Raises InputError for a path that cannot take one, before anything is done."""

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.path = path
        self._force = force
        self._protected: tuple[OwnFile, ...] | None = None
        self._check()

    def protect(self, release: Release) -> None:
        """Raise InputError where the file is one that the release lives on, or may not be replaced."""
        self._protected = tuple(release.own_files())
        self._check()

    def protect_path(self, path: str | Path) -> None:
        """Raise InputError where the file is the spec: before it is read, since it may be one that cannot be read."""
        real = Path(os.path.realpath(self.path))
        refuse(OwnFile(Path(path), "the spec"), "--result", self.path, real, _stat(self.path))

    def write(self, found: dict[str, Any]) -> None:
        """Write a result as JSON. Raises OSError, and InputError where something else has taken its place meanwhile."""
        self._check(last=True)
        replace_whole(Path(os.path.realpath(self.path)), result_bytes(found))

    def _check(self, *, last: bool = False) -> None:
        if _of_shell(self.path):
            raise InputError(f"--result {self.path}: is what the shell passes on, not a file; {NAME_A_FILE}")
        try:
            real, found = Path(os.path.realpath(self.path)), _stat(self.path)
        except OSError as error:
            raise InputError(f"--result {self.path}: cannot be written to: {error.strerror}") from None
        for file in self._protected or ():
            refuse(file, "--result", self.path, real, found)
        kind = None if found is None else next((name for is_kind, name in KINDS if is_kind(found.st_mode)), None)
        if kind is not None:
            raise InputError(f"--result {self.path}: is {kind}; {NAME_A_FILE}")
        if not os.access(real.parent, os.W_OK | os.X_OK):
            raise InputError(f"--result {self.path}: is in a folder that cannot be written to")
        known = self._protected is not None
        # Not before the spec says which files are its own: that they hold no result is not why they are kept.
        if found is not None and found.st_size and (known or last) and not (known and self._force):
            problem = _no_result(real, found)
            if problem is not None:
                raise InputError(f"--result {self.path}: {problem}; {ASK}")


def result_bytes(found: dict[str, Any]) -> bytes:
    """A result as JSON; half a character, as of a path that is not UTF-8, is escaped."""
    return (printable_json(json.dumps(found, ensure_ascii=False, indent=2)) + "\n").encode("utf-8", "backslashreplace")


def _stat(path: Path) -> os.stat_result | None:
    """That of the file that a path names; None where there is none yet. Raises OSError for a loop of links."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _of_shell(path: Path) -> bool:
    """Whether a path names what the shell has opened, like /dev/stdout or /dev/fd/3, whatever that is: the file of a
    redirection would be replaced, and whoever has it open would not see it."""
    for _ in range(40):
        if os.path.realpath(path.parent).startswith(("/proc/", "/dev/fd")):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / path.readlink()
    return False


def _no_result(file: Path, found: os.stat_result) -> str | None:
    """Why a file is not the result of an earlier run; None where it is one."""
    try:
        data = file.read_bytes() if found.st_size <= MOST_BYTES else b""
    except OSError:
        return "holds something that the job has no permission to read"
    with suppress(ValueError, RecursionError):
        value = json.loads(data)
        if isinstance(value, dict) and value.keys() >= KEYS:
            return None
    return "holds something other than the result of a run"


def replace_whole(file: Path, data: bytes) -> None:
    """Write so that a reader has the file before or the file after, with the owner and mode of the one before.

    Raises OSError.
    """
    before = _stat(file)
    beside = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if before is None else 0o600)
        with open(opened, "wb") as writer:
            writer.write(data)
            writer.flush()
            if before is not None:
                _like(opened, before)
            os.fsync(opened)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)


def _like(opened: int, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode) & 0o777
    try:
        os.fchown(opened, before.st_uid, before.st_gid)
    except PermissionError:
        if os.fstat(opened).st_gid != before.st_gid:
            mode &= ~0o070  # what was meant for another group
    os.fchmod(opened, mode)
