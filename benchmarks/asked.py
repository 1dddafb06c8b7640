"""One question in a process of its own, so that its memory and its start are its own: `python -m benchmarks.asked`.

The stages are wrapped from outside: the same file measures every version of qblock that has open_task and run_search.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.clock import Clock


class Stopwatch:
    """Seconds and calls of wrapped functions by name; of functions that call each other, the outermost counts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._within = False

    def wrap(self, owner: type, name: str) -> None:
        function: Callable[..., Any] = vars(owner)[name]

        @functools.wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._within:
                return function(*arguments, **named)
            self._within, started = True, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self._within = False
                self.seconds[name] += time.perf_counter() - started
                self.calls[name] += 1

        setattr(owner, name, timed)

    def wrap_all(self, owner: type, *but: str) -> None:
        """Every public method that is one."""
        for name, found in list(vars(owner).items()):
            if not name.startswith("_") and callable(found) and not isinstance(found, type) and name not in but:
                self.wrap(owner, name)

    def found(self) -> dict[str, Any]:
        names = sorted(self.seconds, key=lambda name: -self.seconds[name])
        return {name: {"seconds": round(self.seconds[name], 4), "calls": self.calls[name]} for name in names}


def ask(path: Path) -> dict[str, Any]:
    """The answer to a spec, and what it took."""
    started = time.perf_counter()
    from qblock.search.run import open_task, run_search
    from qblock.search.utility.measure import Metrics
    from qblock.spec import load_spec
    from qblock.warehouse.session import SqlSession

    imported = time.perf_counter()
    metrics, statements = Stopwatch(), Stopwatch()
    for name in ("of", "rank", "bound"):
        with suppress(KeyError):
            metrics.wrap(Metrics, name)
    statements.wrap_all(SqlSession, "literal_sql", "comparable", "convert", "text_of", "bytewise", "sha256")
    spec = load_spec(path)
    clock = Clock("" if spec.source.url is None else spec.source.url.url)
    began, used = time.perf_counter(), clock.cpu()
    with open_task(load_spec(path)) as task:
        opened, opening = time.perf_counter(), clock.cpu() - used
        result = run_search(task)
        done, searching = time.perf_counter(), clock.cpu() - used
        memory = _duckdb_memory(task)
        sets = task.source.frequency_sets
        rows = {"leaf rows": getattr(sets, "leaf_rows", None), "rows read": getattr(sets, "rows_read", None)}
        found = result.to_json()
    by_metrics = sum(metrics.seconds.values())
    return {
        "seconds": done - began,
        "cpu": searching,
        "stages": {
            "import": imported - started,
            "opening": opened - began,
            "search": done - opened - by_metrics,
            "metrics": by_metrics,
        },
        "cpu of opening": opening,
        "statements": statements.found(),
        "peak memory": peak_memory(),
        "duckdb memory at the end": memory,
        **rows,
        "answer": found,
    }


def peak_memory() -> int:
    """Bytes that this process has had resident at most."""
    with suppress(OSError, StopIteration, ValueError):
        # Of this program alone; ru_maxrss begins with what the process had before it became this program.
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _duckdb_memory(task: Any) -> int | None:
    """Bytes that DuckDB holds now, where it counts in this process; it does not tell a peak."""
    session = getattr(task.source.frequency_sets, "session", task.source.session)
    if session.engine != "duckdb":
        return None
    return int(session.scalar("SELECT sum(memory_usage_bytes) FROM duckdb_memory()"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("spec", type=Path)
    parser.add_argument("--unit", action="store_true", help="time the GROUP BY that is the unit instead")
    arguments = parser.parse_args()
    if arguments.unit:
        from benchmarks.units import group_bys

        print(json.dumps(group_bys(arguments.spec)))
    else:
        print(json.dumps(ask(arguments.spec)))


if __name__ == "__main__":
    main()
