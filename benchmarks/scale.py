"""The search against one leaf-level GROUP BY on a large table: `python benchmarks/scale.py [--rows N] [--url URL]`.

Writes a seeded table of census-like people with seven quasi-identifiers (1,920 nodes) and prints, for each privacy
definition, the time of `qblock search` divided by that of one GROUP BY over the raw quasi-identifiers and the sensitive
attribute, measured in the same run on the same engine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from qblock.demo.hierarchies import hierarchies
from qblock.demo.load import load_people
from qblock.demo.write import write_demo
from qblock.search.run import open_task, run_search
from qblock.spec import load_spec
from qblock.warehouse import TableName, open_warehouse, queries

QUASI = {
    "age": "{file: hierarchies/age.csv}",
    "gender": "suppress",
    "marital_status": "{file: hierarchies/marital_status.csv}",
    "education": "{file: hierarchies/education.csv}",
    "country": "{file: hierarchies/country.csv}",
    "work_class": "suppress",
    "hours": "suppress",
}
DEFINITIONS = {
    "k-anonymity 6": "k_anonymity: {k: 6}",
    "entropy l 6": "entropy_l_diversity: {l: 6, sensitive: occupation}",
    "recursive (3,6)": "recursive_cl_diversity: {c: 3, l: 6, sensitive: occupation}",
    "t-closeness 0.2": "t_closeness: {t: 0.2, sensitive: occupation}",
}


def spec_text(url: str, table: str, definition: str, extra: str = "") -> str:
    attributes = "".join(f"  {n}: {{role: quasi_identifier, hierarchy: {h}}}\n" for n, h in QUASI.items())
    return (
        f"version: 1\nrelease: scale\nsource: {{url: '{url}', table: {table}}}\nattributes:\n{attributes}"
        f"  occupation: sensitive\nprivacy:\n  - {definition}\n{extra}"
    )


def group_by_seconds(url: str, directory: Path, table: str, runs: int) -> float:
    """The least time of the base scan alone, each run in a new session."""
    best = float("inf")
    for _ in range(runs):
        warehouse = open_warehouse(url, directory)
        with warehouse.snapshot() as session:
            name = TableName.parse(table)
            relation = session.relation(name)
            columns = {f"c{i}": relation.c[n] for i, n in enumerate([*QUASI, "occupation"])}
            started = time.perf_counter()
            session.store("scan", queries.raw_scan(relation, columns))
            best = min(best, time.perf_counter() - started)
        warehouse.close()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_600_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--url", help="a PostgreSQL database to load and measure instead of DuckDB")
    parser.add_argument("--roll-up", default="warehouse", choices=["warehouse", "local"])
    parser.add_argument("--strategy", default="chains", choices=["chains", "incognito", "exhaustive"])
    parser.add_argument("--directory", type=Path, help="where to keep the DuckDB file between runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.directory or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        if arguments.url:
            url, table = arguments.url, "census.people"
            load_people(url, arguments.rows)
            (directory / "hierarchies").mkdir(exist_ok=True)
            for name, text in hierarchies().items():
                (directory / "hierarchies" / f"{name}.csv").write_text(text, "utf-8")
        else:
            url, table = "duckdb:///census.duckdb", "main.people"
            if not (directory / "census.duckdb").exists():
                write_demo(directory, rows=arguments.rows)
        scan = group_by_seconds(url, directory, table, arguments.runs)
        print(json.dumps({"rows": arguments.rows, "one leaf GROUP BY, seconds": round(scan, 3)}))
        for title, definition in DEFINITIONS.items():
            spec = directory / "scale.yaml"
            extra = f"search: {{roll_up: {arguments.roll_up}}}\n"
            spec.write_text(spec_text(url, table, definition, extra), "utf-8")
            best, result = float("inf"), None
            for _ in range(arguments.runs):
                started = time.perf_counter()
                with open_task(load_spec(spec)) as task:
                    result = run_search(task, strategy=arguments.strategy)
                    leaf = task.source.frequency_sets.leaf_rows
                best = min(best, time.perf_counter() - started)
            assert result is not None
            found = result.to_json()
            print(
                json.dumps(
                    {
                        "definition": title,
                        "seconds": round(best, 3),
                        "ratio": round(best / scan, 2),
                        "nodes": found["nodes_total"],
                        "evaluated": found["nodes_evaluated"],
                        "statements": found["queries"],
                        "satisfying": found["satisfying"],
                        "leaf rows": leaf,
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
