"""What it takes to tell the beliefs of somebody who knows a population: `python -m benchmarks.beliefs [--table NAME]`.

The population is the table itself, then a table that holds a quarter more rows. Prints seconds in units of one leaf
GROUP BY of the published table and the peak memory of the whole process, at the leaves, half-way up and at the top.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.children import resident, run
from benchmarks.questions import k
from benchmarks.tables import TABLES, Table, in_duckdb, written
from benchmarks.units import one_group_by

MORE = 4
"""One row in so many is in the population alone."""
POPULATION = "main.population"
PRIORS = ("table", POPULATION)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", choices=sorted(TABLES), default="retail", help="(%(default)s)")
    parser.add_argument("--rows", type=int, help="of the published table, for a try")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="medians of so many runs (%(default)s)")
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()) / "qblock-benchmarks")
    parser.add_argument("--one", nargs=3, metavar=("SPEC", "NODE", "PRIOR"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one:
        print(json.dumps(_ask(*given.one)))
        return 0
    given.directory.mkdir(parents=True, exist_ok=True)
    table = TABLES[given.table]
    with tempfile.TemporaryDirectory(dir=given.directory) as folder:
        spec = _prepared(table, given.directory, Path(folder), given.rows)
        unit, _ = one_group_by(spec)
        for prior in PRIORS:
            for node in ("bottom", "middle", "top"):
                runs = [_in_a_process(spec, node, prior) for _ in range(given.repeat)]
                seconds = statistics.median(process["seconds"] for process in runs)
                memory = max(process["memory"] for process in runs)
                pairs = f"{runs[0]['pairs']:,} combinations with a value"
                print(
                    f"{table.name}, prior {prior}, {node}: {seconds / unit:.1f} u (u = {unit:.3f} s), "
                    f"{memory / 1e6:,.0f} MB, {pairs}, {runs[0]['people']:,} rows breached",
                    flush=True,
                )
    return 0


def _prepared(table: Table, directory: Path, folder: Path, rows: int | None) -> Path:
    """The spec of a file with the table, and a population that holds it and others."""
    database = in_duckdb(table, directory, rows)
    file = folder / "beliefs.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"ATTACH '{database}' AS source (READ_ONLY)")
        connection.execute("CREATE TABLE rows AS SELECT * FROM source.rows")
        connection.register("others", table.generate(table.per_part(rows) // MORE, table.parts))
        connection.execute("CREATE TABLE population AS SELECT * FROM rows UNION ALL SELECT * FROM others")
    spec = {
        "version": 1,
        "release": "benchmark",
        "source": {"url": f"duckdb:///{file}", "table": "main.rows"},
        "attributes": table.attributes(directory),
        "privacy": [k(2)],
    }
    return written(spec, folder / "beliefs.json")


def _in_a_process(spec: Path, node: str, prior: str) -> dict[str, Any]:
    ended = run(["-m", "benchmarks.beliefs", "--one", str(spec), node, prior])
    if ended.status != 0:
        raise RuntimeError(ended.errors)
    figures: dict[str, Any] = json.loads(ended.output)
    return figures


def _ask(spec: str, node: str, prior: str) -> dict[str, Any]:
    """Seconds from the opening of the source on."""
    from qblock.search.beliefs import BayesAdversary, beliefs_at
    from qblock.search.run import open_task
    from qblock.spec import load_spec

    adversary = BayesAdversary.of("bayes", prior, {})
    assert adversary is not None
    started = time.perf_counter()
    with open_task(load_spec(Path(spec)), name_values=False) as task:
        heights = task.lattice.heights
        levels = {"bottom": (0,) * len(heights), "middle": tuple(h // 2 for h in heights), "top": tuple(heights)}
        (beliefs,) = beliefs_at(task, levels[node], adversary)
        seconds = time.perf_counter() - started
        pairs = len(task.source.frequency_sets.leaf_counts([0])[0])
    return {"seconds": seconds, "memory": resident(), "pairs": pairs, "people": beliefs["breach"]["people"]}


if __name__ == "__main__":
    raise SystemExit(main())
