"""How often commands open the private files of a release on DuckDB: `python -m benchmarks.openings [--people N]`.

Runs them on the demo's people, with an entity, in this process, and counts each file that DuckDB or SQLite is told to
open.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb

from benchmarks.weeks import People, prepared
from qblock.cli.app import run as qblock

FOLDER = "qblock"
WEEKS, SHARE = 8, 0.03
"""So many weeks, in which such a share of the people joins and leaves, until a version is published."""


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """The files that are opened meanwhile, by their paths."""
    opened: Counter[str] = Counter()
    connect = duckdb.connect

    def counting_connect(database: Any = ":memory:", *given: Any, **options: Any) -> Any:
        opened[str(database)] += 1
        return connect(database, *given, **options)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "sqlite3.connect" and counting:
            opened[unquote(str(arguments[0]).removeprefix("file:").partition("?")[0])] += 1

    counting = True
    sys.addaudithook(hear)
    duckdb.connect = counting_connect
    try:
        yield opened
    finally:
        counting = False
        duckdb.connect = connect


def openings(private: Path, *arguments: str) -> tuple[str, dict[str, int]]:
    """What became of a command, and how often it opened each file of the private folder."""
    output, errors = io.StringIO(), io.StringIO()
    with counted() as opened, contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = qblock([*arguments, "--json"])
    if status:
        raise RuntimeError(f"qblock {arguments[0]} ended with exit status {status}: {errors.getvalue()}")
    paths = {Path(path).resolve(): times for path, times in opened.items()}
    inside = {str(p.relative_to(private)): times for p, times in sorted(paths.items()) if p.is_relative_to(private)}
    return str(json.loads(output.getvalue()).get("status", "done")), inside


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openings", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--people", type=int, default=20_000)
    given = parser.parse_args(arguments)

    def show(command: str) -> str:
        status, files = openings(spec.parent / FOLDER, command, str(spec))
        each = ", ".join(f"{name} {times}" for name, times in files.items())
        print(f"{command} ({status}): {sum(files.values())} openings: {each or 'none'}", flush=True)
        return status

    with tempfile.TemporaryDirectory() as temporary:
        source, spec = prepared(Path(temporary).resolve(), None, given.people)
        people = People(given.people, WEEKS, SHARE)
        for command in ("release", "release", "search", "plan", "verify", "history"):
            show(command)
        for _ in range(WEEKS):
            source.change(*people.week())
            if show("release") == "published":
                break
    return 0


if __name__ == "__main__":
    sys.exit(main())
