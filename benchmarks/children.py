"""Programs that are started, timed and ended in time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Ended:
    """status: the exit status, or None where the time was over. seconds, cpu: of the whole process. memory: bytes."""

    status: int | None
    seconds: float
    cpu: float
    memory: int
    output: str
    errors: str


def run(arguments: list[str], timeout: float | None = None) -> Ended:
    """Run a module of Python, `-m` and its arguments, from the folder of the project."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=errors, cwd=ROOT)
        late: list[int] = []

        def end() -> None:
            late.append(_peak(process.pid))
            process.kill()

        timer = threading.Timer(timeout or threading.TIMEOUT_MAX, end)
        timer.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)  # wait4 has reaped it
        seconds = time.perf_counter() - started
        output.seek(0)
        errors.seek(0)
        return Ended(
            None if late else process.returncode,
            seconds,
            used.ru_utime + used.ru_stime,
            late[0] if late else used.ru_maxrss * 1024,
            output.read().decode(),
            errors.read().decode(errors="replace"),
        )


def _peak(process: int) -> int:
    with suppress(OSError, StopIteration, ValueError):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return 0
