"""Counts the tests of `make test` and `make test-more`, by ids without the engine, against those of `make test-all`.

    python tests/runs.py [--write FILE] [--before FILE]

--write: keep the ids, one a line; --before: compare with ids that were kept. Exit status 1 where a test is in no run of
the first two, or is there no more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENGINES = {"duckdb", "postgresql", "postgresql15"}


def runs(engines: str = "", part: str = "") -> list[str]:
    """What pytest collects but for Spark, where tests/on_spark.py chooses; each test once for each of its runs."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not spark"]
    environment = {**os.environ, "QBLOCK_TEST_ENGINES": engines, "QBLOCK_TEST_PART": part}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return [line.strip() for line in done.stdout.splitlines() if line.startswith("tests/") and "::" in line]


def test_of(run: str) -> str:
    """The id of a run's test, without the engine."""
    name, _, parameters = run.partition("[")
    words = [word for word in parameters.removesuffix("]").split("-") if word not in ENGINES]
    return f"{name}[{'-'.join(words)}]"


def lost(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Tests that are there no more, wherever their files are now."""
    earlier, later = (Counter(test[test.partition("::")[0].rfind("/") + 1 :] for test in t) for t in (before, now))
    return sorted((earlier - later).elements())


def folder_of(run: str) -> str:
    path = Path(run.partition("::")[0])
    return "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    parts, every = {"test": runs(part="quick"), "test-more": runs(part="more")}, runs("all")
    tests = {test_of(run) for found in parts.values() for run in found}
    columns = {**parts, "test-all": every}
    counted = {what: Counter(map(folder_of, found)) for what, found in columns.items()}
    print(f"{'folder':24}" + "".join(f"{'make ' + what:>16}" for what in columns))
    for folder in sorted(counted["test-all"]):
        print(f"{folder:24}" + "".join(f"{counted[what][folder]:16}" for what in columns))
    print(f"{'runs':24}" + "".join(f"{len(found):16}" for found in columns.values()))
    print(f"{'tests':24}" + "".join(f"{len(set(map(test_of, found))):16}" for found in columns.values()))
    known = {test_of(run) for run in every}
    missing = sorted(known - tests)
    if given.before:
        before = given.before.read_text("utf-8").splitlines()
        gone, slow = lost(before, tests), lost(before, set(map(test_of, parts["test"])))
        print(
            f"before: {len(before)} tests, of which {len(slow) - len(gone)} are in `make test-more`, {len(gone)} gone"
        )
        missing += gone
    if given.write:
        given.write.write_text("".join(f"{test}\n" for test in sorted(tests)), "utf-8")
    for test in missing:
        print(f"missing: {test}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
