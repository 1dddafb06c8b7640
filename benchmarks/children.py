"""Programs that are started, timed and ended in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clock import machine

ROOT = Path(__file__).resolve().parents[1]
LOOK_EVERY = 0.05
"""Seconds."""


@dataclass(frozen=True)
class Limits:
    """Seconds, and bytes, that a program may have."""

    timeout: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Ended:
    """status: the exit status, or None where it was ended. seconds, cpu, memory (bytes): of the whole process. late:
    it was ended since the time was over, and not since it had too much memory. busy: seconds that the processors of
    the machine were busy meanwhile."""

    status: int | None
    seconds: float
    cpu: float
    memory: int
    output: str
    errors: str
    late: bool
    busy: float


def run(arguments: list[str], limits: Limits = Limits()) -> Ended:
    """Run Python with arguments, from the folder of the project."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        busy, started = machine(), time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=errors, cwd=ROOT)
        watch = Watch(process, limits)
        watch.start()
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            seconds, busy = time.perf_counter() - started, machine() - busy
            watch.ended.set()
            watch.join()
        process.returncode = os.waitstatus_to_exitcode(status)  # wait4 has reaped it
        output.seek(0)
        errors.seek(0)
        return Ended(
            None if watch.late or watch.large else process.returncode,
            seconds,
            used.ru_utime + used.ru_stime,
            watch.memory,
            output.read().decode(),
            errors.read().decode(errors="replace"),
            watch.late,
            busy,
        )


class Watch(threading.Thread):
    """Ends a process in time, or when it has too much memory, and sees how much it has had resident at most.

    What the system says at the end (ru_maxrss) would begin with the memory of the process that has started it.
    """

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        super().__init__(daemon=True)
        self.memory, self.late, self.large, self.ended = 0, False, False, threading.Event()
        self._process, self._most = process, limits.memory
        self._until = None if limits.timeout is None else time.monotonic() + limits.timeout

    def run(self) -> None:
        while not self.ended.wait(LOOK_EVERY):
            self.memory = max(self.memory, resident(self._process.pid))
            self.late = self._until is not None and time.monotonic() > self._until
            self.large = self._most is not None and self.memory > self._most
            if self.late or self.large:
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, signal.SIGKILL)  # Popen.kill would take the status from wait4
                return


def resident(process: int | str = "self") -> int:
    """Bytes that a process has had resident at most since it began its program; 0 where that is not told."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return 0
