"""Runs the command line as a process of its own, with the standard streams that a shell, cron or a pipe may give it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

FULL = "/dev/full"
CLOSED = "closed"
GONE = "gone"
"""A pipe that nobody reads."""
MAIN = "from qblock.cli import main\nmain()\n"


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def qblock(*arguments: object, out: str = "", err: str = "", code: str = MAIN, **environment: str) -> Ended:
    """`qblock ARGUMENTS`. out, err: what standard output and error are, where not a pipe that is read to its end.

    code: the program, which may set something up first; environment: variables for it.
    """
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ends = [_stream(out), _stream(err)]
    closed = [number for number, kind in ((1, out), (2, err)) if kind == CLOSED]
    if closed:
        # A shell closes what its `>&-` names; no argument of Popen does.
        command = ["sh", "-c", 'exec "$@" ' + " ".join(f"{number}>&-" for number in closed), "sh", *command]
    try:
        ran = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stdin=subprocess.DEVNULL,
            stdout=ends[0],
            stderr=ends[1],
            check=False,
            timeout=300,
        )
    finally:
        for end in ends:
            if end >= 0:
                os.close(end)
    return Ended(ran.returncode, *((text or b"").decode("latin-1") for text in (ran.stdout, ran.stderr)))


def _stream(kind: str) -> int:
    if kind == GONE:
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    return os.open(kind, os.O_WRONLY) if Path(kind).is_char_device() else subprocess.PIPE
