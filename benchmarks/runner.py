"""One question in a process of its own, so that its memory and its start are its own: `python -m benchmarks.runner`.

The stages are wrapped from outside: the same file measures every version of qblock that has open_task and run_search.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.children import resident
from benchmarks.clock import Clock

SESSION = (
    "run",
    "fetch",
    "scalar",
    "attempt",
    "counts",
    "load",
    "store",
    "analyze",
    "drop",
    "columns",
    "rows",
    "values",
)
"""What a session sends statements with, in any version."""


class Stopwatch:
    """Seconds and calls of wrapped functions by name; of functions that call each other, the outermost counts."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._thread = threading.local()

    def wrap(self, module: str, owner: str, *names: str) -> None:
        """Methods of a class; those that this version of qblock does not have are left out."""
        class_ = getattr(importlib.import_module(module), owner)
        for name in set(names) & set(vars(class_)):
            setattr(class_, name, self._timed(name, vars(class_)[name]))

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **named: Any) -> Any:
            if getattr(self._thread, "within", False):
                return function(*arguments, **named)
            self._thread.within, started = True, time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self._thread.within = False
                self.seconds[name] += time.perf_counter() - started
                self.calls[name] += 1

        return timed

    def times(self) -> dict[str, Any]:
        names = sorted(self.seconds, key=lambda name: -self.seconds[name])
        return {name: {"seconds": round(self.seconds[name], 4), "calls": self.calls[name]} for name in names}


def ask(path: Path) -> dict[str, Any]:
    """The answer to a spec, and what it took."""
    started = time.perf_counter()
    from qblock.search.run import open_task, run_search
    from qblock.spec import load_spec

    imported = time.perf_counter()
    metrics, statements = Stopwatch(), Stopwatch()
    metrics.wrap("qblock.search.utility", "Metrics", "of", "rank", "bound")
    statements.wrap("qblock.engines.sql_session", "SqlSession", *SESSION)
    clock = Clock(url_of(load_spec(path)))
    used, began = clock.cpu(), time.perf_counter()
    with open_task(load_spec(path)) as task:
        opened = time.perf_counter()
        opening = clock.cpu() - used
        best = getattr(task.spec.search, "answer", "all") == "best"
        result = run_search(task, **({"best_only": True} if best else {}))
        done = time.perf_counter()
        searching = clock.cpu() - used
        memory = _duckdb_memory(task)
        sets = task.source.frequency_sets
        rows = {"leaf rows": getattr(sets, "leaf_rows", None), "rows read": getattr(sets, "rows_read", None)}
        answer = result.to_json()
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
        "statements": statements.times(),
        "peak memory": resident(),
        "duckdb memory at the end": memory,
        **rows,
        "answer": answer,
    }


def url_of(spec: Any) -> str:
    """Where the source of a spec is; a secret."""
    return "" if spec.source.url is None else str(spec.source.url.url)


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
