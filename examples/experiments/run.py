"""All experiments by one command: `python examples/experiments/run.py --adult DIR --out DIR [--url URL]`.

DIR/adult.csv and DIR/hierarchies/*.csv are the Adult data (README.md says where they come from); --demo runs the same
on invented people. Writes one CSV file for each experiment and prints a summary.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import figures
from people import People, adult, demo

from qblock.errors import QblockError

SEED = 20_060_403
"""Of the 5% sample, and of the invented people."""


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--adult", type=Path, metavar="DIR", help="the folder with adult.csv and hierarchies/")
    source.add_argument("--demo", action="store_true", help="the demo's invented people instead")
    parser.add_argument("--rows", type=int, default=45_000, help="how many people to invent (%(default)s)")
    parser.add_argument("--url", help="a PostgreSQL database to work in; else a temporary DuckDB file")
    parser.add_argument("--out", type=Path, required=True, help="where the CSV files go")
    parser.add_argument("--quasi-identifiers", type=int, default=5, help="of (a) and (d) to (g) (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of which (b) takes the fastest (%(default)s)")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        try:
            opened = (
                demo(given.rows, given.url, work, SEED) if given.demo else adult(given.adult, given.url, work, SEED)
            )
            with opened as people:
                _run(people, given.quasi_identifiers, given.runs, work, given.out)
        except (QblockError, OSError) as error:
            print(error, file=sys.stderr)
            return error.exit_status if isinstance(error, QblockError) else 1
    return 0


def _run(people: People, quasi: int, runs: int, work: Path, out: Path) -> None:
    started = time.perf_counter()
    print(f"{people.rows:,} people; quasi-identifiers {', '.join(people.quasi_identifiers)}", flush=True)

    def say(line: str) -> None:
        print(line, flush=True)

    _write(out / "a_homogeneity.csv", figures.homogeneity(people, quasi, say))
    _write(out / "b_runtime.csv", figures.runtime(people, runs, say))
    _write(out / "c_utility.csv", figures.utility(people, min(quasi, 4), say))
    epsilons = figures.epsilons(people, quasi, work, out, say)
    _write(out / "d_epsilon_by_node.csv", figures.by_node(epsilons, say))
    _write(out / "e_epsilon_by_stubbornness.csv", figures.by_stubbornness(epsilons, say))
    _write(out / "f_utility_by_stubbornness.csv", figures.utility_by_stubbornness(epsilons, say))
    _write(out / "g_sets.csv", figures.sets_of_nodes(epsilons, say))
    _write(out / "g_inclusions.csv", figures.inclusions_of_sets(epsilons, say))
    print(f"{time.perf_counter() - started:.0f} s; CSV files in {out}")


def _write(path: Path, rows: Iterable[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
