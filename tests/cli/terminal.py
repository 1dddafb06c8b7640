"""Runs the command line as a process of its own, with the standard streams that a shell, cron or a pipe may give it.

It is forked from one that has imported everything, but where Python itself has to find its streams closed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from faults.nursery import GONE, MAIN, Nursery

FULL = "/dev/full"
CLOSED = "closed"
SECONDS = 300
"""Longer than any command takes."""


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def qblock(*arguments: object, out: str = "", err: str = "", code: str = MAIN, **environment: str) -> Ended:
    """`qblock ARGUMENTS`. out, err: what standard output and error are, where not a pipe that is read to its end.

    code: the program, which may set something up first; environment: variables for it.
    """
    if CLOSED in (out, err):
        return _started(list(map(str, arguments)), (out, err), code, environment)
    with tempfile.TemporaryDirectory() as folder, Nursery() as nursery:
        files = {1: Path(folder, "out"), 2: Path(folder, "err")}
        streams = {"output": out or files[1], "error": err or files[2]}
        pid = nursery.start(list(map(str, arguments)), **streams, code=code, environment=environment)
        limit = threading.Timer(SECONDS, os.kill, (pid, signal.SIGKILL))
        limit.start()
        try:
            status = nursery.wait(pid)
        finally:
            limit.cancel()
        printed = [file.read_bytes() if file.exists() else b"" for file in files.values()]
    return Ended(status, *(text.decode("latin-1") for text in printed))


def _started(arguments: list[str], kinds: tuple[str, str], code: str, environment: dict[str, str]) -> Ended:
    """A process that is started by a shell, which closes what its `>&-` names: no argument of Popen does."""
    closed = " ".join(f"{number}>&-" for number, kind in enumerate(kinds, 1) if kind == CLOSED)
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code, *arguments]
    ends = [_stream(kind) for kind in kinds]
    try:
        ran = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stdin=subprocess.DEVNULL,
            stdout=ends[0],
            stderr=ends[1],
            check=False,
            timeout=SECONDS,
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
