"""Readers of a release, each a process of its own that reads until its standard input ends.

It prints {"reads", "failed", "torn", "seen"}: torn counts transactions whose two reads differ; seen lists, in order,
every change of what was read, as the digest of all rows of the view.
"""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
COLUMNS = "zip, age, disease, wave"
ROWS = f"SELECT {COLUMNS} FROM published.people"
WAVES = "SELECT wave, count(*) AS number FROM published.people GROUP BY wave"
"""What the second view of PostgreSQL shows."""
JOINED = (
    f"SELECT {', '.join(f'p.{c}' for c in COLUMNS.split(', '))}, s.wave, s.number "
    "FROM published.people AS p FULL JOIN published_too.waves AS s ON s.wave = p.wave"
)
PAUSE = 0.02
"""Seconds between two reads, which leaves the processors to the job."""


def digest(rows: Iterable[Sequence[Any]]) -> str:
    """Of the rows, in whatever order they come."""
    return hashlib.sha256("\n".join(sorted(json.dumps(list(row)) for row in rows)).encode()).hexdigest()


class Readers:
    """Four readers at once; a context manager, `results` afterwards. pause: see PAUSE; three times that for a file."""

    def __init__(self, engine: str, where: str, pause: float = PAUSE) -> None:
        kinds = ["file"] * 4 if engine == "duckdb" else ["plain", "joined", "repeatable", "repeatable"]
        self._commands = [[sys.executable, "-m", "faults.readers", kind, where, str(pause)] for kind in kinds]
        self.results: list[dict[str, Any]] = []

    def __enter__(self) -> Readers:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *(p for p in sys.path if p)])}
        self._processes = [
            subprocess.Popen(c, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            for c in self._commands
        ]
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.readline()
        return self

    def __exit__(self, *_: object) -> None:
        self.results = [json.loads(process.communicate()[0]) for process in self._processes]


def _duckdb(file: str) -> Callable[[], list[str]]:
    import duckdb

    def read() -> list[str]:
        with duckdb.connect(file, read_only=True, config={"threads": 1}) as connection:
            return [digest(connection.execute(ROWS).fetchall())]

    return read


def _postgresql(kind: str, url: str, pause: float, stack: ExitStack) -> Callable[[], list[str]]:
    import psycopg

    connection = stack.enter_context(psycopg.connect(url, autocommit=kind != "repeatable"))
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if kind == "repeatable" else None

    def rows() -> str:
        return digest(connection.execute(ROWS).fetchall())

    def joined() -> str:
        found = connection.execute(JOINED).fetchall()
        # One number of rows, which is how many came: else the two views were not of one version.
        if {row[-1] for row in found} != {len(found)}:
            return "torn"
        return digest(row[:4] for row in found)

    def repeatable() -> list[str]:
        with connection.transaction():
            first = joined()
            time.sleep(pause)
            return [first, rows(), joined()]

    return {"plain": lambda: [rows()], "joined": lambda: [joined()], "repeatable": repeatable}[kind]


def _main(kind: str, where: str, pause: float) -> None:
    reads = torn = 0
    failed: list[str] = []
    seen: list[str] = []
    with ExitStack() as stack:
        read = _duckdb(where) if kind == "file" else _postgresql(kind, where, pause, stack)
        print("ready", flush=True)
        while not select.select([sys.stdin], [], [], pause if kind != "file" else 3 * pause)[0]:
            reads += 1
            try:
                found = read()
            except Exception as error:
                failed.append(f"{type(error).__name__}: {error}"[:300])
                continue
            torn += len(set(found)) > 1
            seen += [one for i, one in enumerate(found) if one != (found[i - 1] if i else (seen or [None])[-1])]
    print(json.dumps({"reads": reads, "failed": failed, "torn": torn, "seen": seen}))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
