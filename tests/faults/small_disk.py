"""A file system of limited size for one process and its children, and how much of it is left free.

Mounted in a namespace of its own, so that it goes with the process: `unshare -m` as root, `unshare -Urm` for others.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MB = 1_000_000


def command() -> list[str] | None:
    """What to put before a command so that it may mount; None where neither way is open."""
    for flags in (["-m"], ["-Urm"]):
        given = ["unshare", *flags, "--propagation", "private"]
        if shutil.which("unshare") is None:
            return None
        tried = subprocess.run(
            [
                *given,
                "sh",
                "-c",
                'd=$(mktemp -d) && mount -t tmpfs -o size=64k tmpfs "$d" && umount "$d"; s=$?; rmdir "$d"; exit $s',
            ],
            capture_output=True,
            check=False,
            timeout=30,
        )
        if tried.returncode == 0:
            return given
    return None


def run_inside(module: str, arguments: Sequence[str], seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run `python -m module` where it may mount; it is ended with what it started after so many seconds.

    Raises RuntimeError where nothing can be mounted.
    """
    before = command()
    if before is None:
        raise RuntimeError(
            "no file system of limited size can be mounted: neither `unshare -m` nor `unshare -Urm` works"
        )
    paths = [str(TESTS), *(path for path in sys.path if path)]
    return subprocess.run(
        [*before, sys.executable, "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=seconds,
    )


class SmallDisk:
    """A tmpfs of `size` bytes mounted at a folder, within a namespace of this process (see `run_inside`)."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(folder)], check=True, timeout=30
        )

    @property
    def free(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def fill(self, free: int) -> None:
        """Leave so many bytes free, and no more, in whole blocks."""
        left = self.free - free
        if left < 0:
            raise RuntimeError(f"only {self.free} bytes are free; make the file system larger")
        with open(self.folder / "filler", "wb") as file:
            if left:
                os.posix_fallocate(file.fileno(), 0, left)

    def make_room(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)

    def unmount(self) -> None:
        subprocess.run(["umount", str(self.folder)], check=True, timeout=30)
