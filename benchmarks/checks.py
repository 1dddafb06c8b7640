"""What `qblock check` takes on a table of 20 columns: `python -m benchmarks.checks [--rows N] [--folder FOLDER]`.

Six quasi-identifiers, two sensitive attributes, ten insensitive columns (two of which tell a quasi-identifier), a
household and a person, drawn by DuckDB from a seed. The unit is one leaf GROUP BY of the same table, over
quasi-identifiers and sensitive attributes, in a process of its own before and after; whole processes are timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import duckdb

from benchmarks.children import Ended, run

KNOWN = ("age", "zip", "sex", "job", "schooling", "region")
SENSITIVE = ("disease", "income")
PLAIN = ("born", "office", *(f"note{i}" for i in range(8)))
TABLE = """
SELECT range AS person, range // 4 AS household, age, zip, sex, job, schooling, region, disease, income,
    2026 - age - month % 2 AS born, 'o' || zip AS office, {notes}
FROM (
    SELECT range, CAST(random() * 90 AS INTEGER) AS age, CAST(random() * 800 AS INTEGER) AS zip,
        CAST(random() AS INTEGER) AS sex, CAST(random() * 30 AS INTEGER) AS job,
        CAST(random() * 12 AS INTEGER) AS schooling, CAST(random() * 20 AS INTEGER) AS region,
        CAST(random() * 50 AS INTEGER) AS disease, CAST(random() * 40 AS INTEGER) AS income,
        CAST(random() * 11 AS INTEGER) AS month
    FROM range({rows})
)"""
SPEC = {
    "version": 1,
    "release": "people",
    "source": {"url": "duckdb:///people.duckdb", "table": "people"},
    "attributes": {
        "person": "identifying",
        "household": "identifying",
        "age": {"role": "quasi_identifier", "hierarchy": {"ranges": [10, 50]}},
        **{name: {"role": "quasi_identifier", "hierarchy": "suppress"} for name in KNOWN[1:]},
        **dict.fromkeys(SENSITIVE, "sensitive"),
        **dict.fromkeys(PLAIN, "insensitive"),
    },
    "privacy": [{"k_anonymity": {"k": 5}}, {"distinct_l_diversity": {"l": 2, "sensitive": "disease"}}],
    "search": {"node": [1, 1, 0, 1, 1, 1], "memory_limit": "4GiB"},
    "publish": {"url": "duckdb:///out.duckdb"},
}
UNIT = """import duckdb, sys
columns = {columns!r}
with duckdb.connect({file!r}, read_only=True) as connection:
    connection.execute("SET memory_limit = '4GiB'")
    connection.execute(f"CREATE TEMP TABLE unit AS SELECT {{columns}}, count(*) FROM people GROUP BY {{columns}}")
"""
CHECK = "import sys; from qblock.cli import main; sys.exit(main())"


def main(arguments: list[str] | None = None) -> int:
    """The command line. Prints seconds, units, peak memory and the findings."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="keep the table here")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as own:
        folder = options.folder or Path(own)
        spec = written(folder, options.rows)
        units = [unit(folder)]
        ended = run(["-c", CHECK, "check", str(spec), "--json"])
        units.append(unit(folder))
    if ended.status not in (0, 3):
        print(ended.errors, file=sys.stderr)
        return 1
    seconds = statistics.mean(ended_unit.seconds for ended_unit in units)
    cpu = statistics.mean(ended_unit.cpu for ended_unit in units)
    print(
        f"{options.rows:,} rows: {ended.seconds:.1f} s, {ended.seconds / seconds:.1f} u (u = {seconds:.2f} s), of the "
        f"processor {ended.cpu:.1f} s, {ended.cpu / cpu:.1f} u (u = {cpu:.2f} s), {ended.memory >> 20:,} MB"
    )
    print(", ".join(f"{finding['check']} of {' and '.join(finding['columns'])}" for finding in said(ended)))
    return 0


def written(folder: Path, rows: int) -> Path:
    """The spec, with its table beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "people.duckdb").exists():
        notes = ", ".join(f"CAST(random() * {5 + 40 * i} AS INTEGER) AS note{i}" for i in range(8))
        with duckdb.connect(str(folder / "people.duckdb")) as connection:
            connection.execute("SET threads = 1; SET memory_limit = '4GiB'; SELECT setseed(0.5)")
            connection.execute(f"CREATE TABLE people AS {TABLE.format(notes=notes, rows=rows)}")
    spec = folder / "spec.yaml"
    spec.write_text(json.dumps(SPEC), "utf-8")
    return spec


def unit(folder: Path) -> Ended:
    """The process of one GROUP BY."""
    columns = ", ".join((*KNOWN, *SENSITIVE))
    return run(["-c", UNIT.format(columns=columns, file=str(folder / "people.duckdb"))])


def said(ended: Ended) -> list[dict[str, list[str]]]:
    """The findings of the answer."""
    findings: list[dict[str, list[str]]] = json.loads(ended.output)["checks"]
    return findings


if __name__ == "__main__":
    sys.exit(main())
