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
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import figures
from people import People, adult, demo

from qblock.errors import QblockError

LETTERS = "abcdefg"
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
    parser.add_argument("--only", default=LETTERS, metavar="LETTERS", help="of the experiments (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="of which (b) takes the fastest (%(default)s)")
    given = parser.parse_args(arguments)
    if unknown := set(given.only) - set(LETTERS):
        parser.error(f"there is no experiment {', '.join(sorted(unknown))}; they are {', '.join(LETTERS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        try:
            opened = (
                demo(given.rows, given.url, work, SEED) if given.demo else adult(given.adult, given.url, work, SEED)
            )
            with opened as people:
                _run(people, given, work)
        except (QblockError, OSError) as error:
            print(error, file=sys.stderr)
            return error.exit_status if isinstance(error, QblockError) else 1
    return 0


def _run(people: People, given: argparse.Namespace, work: Path) -> None:
    started = time.perf_counter()
    quasi, out = given.quasi_identifiers, given.out
    print(f"{people.rows:,} people; quasi-identifiers {', '.join(people.quasi_identifiers)}", flush=True)

    def say(line: str) -> None:
        print(line, flush=True)

    @cache
    def epsilons() -> figures.Epsilons:
        return figures.epsilons(people, quasi, given.only, work, out, say)

    files: dict[str, Callable[[], Iterable[list[Any]]]] = {
        "a_homogeneity": lambda: figures.homogeneity(people, quasi, say),
        "b_runtime": lambda: figures.runtime(people, given.runs, say),
        "c_utility": lambda: figures.utility(people, min(quasi, 4), say),
        "d_epsilon_by_node": lambda: figures.by_node(epsilons(), say),
        "e_epsilon_by_stubbornness": lambda: figures.by_stubbornness(epsilons(), say),
        "f_utility_by_stubbornness": lambda: figures.utility_by_stubbornness(epsilons(), say),
        "g_sets": lambda: figures.sets_of_nodes(epsilons(), say),
        "g_inclusions": lambda: figures.inclusions_of_sets(epsilons(), say),
    }
    for name, rows in files.items():
        if name[0] in given.only:
            _write(out / f"{name}.csv", rows())
    print(f"{time.perf_counter() - started:.0f} s; CSV files in {out}")


def _write(path: Path, rows: Iterable[list[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
