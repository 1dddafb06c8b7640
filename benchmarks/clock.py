"""What something takes: seconds, and seconds of processors, with those of a PostgreSQL server on this machine."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
Taken = tuple[float, float]
"""Seconds, and seconds of processors."""


class Clock:
    """Times this process and, for a URL of PostgreSQL, the server's processes."""

    def __init__(self, url: str) -> None:
        self._url = url if url.startswith("postgresql") else None
        self._postmaster: int | None = None

    def cpu(self) -> float:
        """Seconds of processors so far."""
        return time.process_time() + self.server()

    def server(self) -> float:
        """Those of the server alone; 0 where there is none."""
        return self._server() if self._url else 0.0

    def measured(self, perform: Callable[[], Any]) -> Taken:
        used, started = self.cpu(), time.perf_counter()
        perform()
        seconds = time.perf_counter() - started
        return seconds, self.cpu() - used

    def _server(self) -> float:
        if self._postmaster is None:
            import psycopg  # what measures the start of a program must not have imported it

            with psycopg.connect(self._url or "") as connection:
                (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
                self._postmaster = int(_stat(backend)[1])
        total = sum(int(ticks) for ticks in _stat(self._postmaster)[11:15])
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = _stat(int(path.parent.name))
                if int(fields[1]) == self._postmaster:
                    total += int(fields[11]) + int(fields[12])
        return total / TICKS


def machine() -> float:
    """Seconds that the processors of this machine were busy so far, for whomever."""
    user, nice, system, _, _, irq, softirq, steal = Path("/proc/stat").read_text().split()[1:9]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / TICKS


def _stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, ..., utime, stime, cutime, cstime (11 to 14)."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()


def medians(taken: Iterable[Taken]) -> Taken:
    seconds, cpu = zip(*taken, strict=True)
    return statistics.median(seconds), statistics.median(cpu)


def summary(taken: list[Taken], unit: Taken) -> dict[str, Any]:
    """Medians of what several runs took, in seconds and in units of one GROUP BY, and the longest run."""
    seconds, cpu = medians(taken)
    return {
        "seconds": seconds,
        "ratio": seconds / unit[0],
        "cpu": cpu,
        "cpu ratio": cpu / unit[1],
        "longest": max(spent for spent, _ in taken),
        "runs": len(taken),
    }
